"""The lexicon: exactly as many word forms as asked for, in the proportions of a natural one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

from synthlang.rng import key_of
from synthlang.sources.mini_english import supply, words
from synthlang.sources.mini_english.closed import closed_forms
from synthlang.sources.mini_english.entries import Adjective, Entry, Manner, Name, Noun, Verb, forms_of, tags_of

# share of the open-class word forms
SHARES = {
    **{"noun": 0.375, "verb": 0.315, "adjective": 0.11, "manner": 0.04},
    **{"given": 0.045, "surname": 0.04, "place": 0.045, "org": 0.03},
}
E = TypeVar("E", bound=Entry)


@dataclass(frozen=True)
class Lexicon:
    """All words. ``tags``: form → universal POS tags; entries of each class in frequency order."""

    tags: Mapping[str, frozenset[str]]
    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    manners: tuple[Manner, ...]
    given: tuple[Name, ...]
    surnames: tuple[Name, ...]
    places: tuple[Name, ...]
    organisations: tuple[Name, ...]

    @property
    def forms(self) -> tuple[str, ...]:
        """Every word form once."""
        return tuple(self.tags)

    @cached_property
    def entities(self) -> Mapping[str, frozenset[str]]:
        """Word form → kinds of entity it can be part of (PER LOC ORG)."""
        kinds: dict[str, set[str]] = {}
        for name in chain(self.given, self.surnames, self.places, self.organisations):
            for word in forms_of(name):
                kinds.setdefault(word, set()).add(name.kind)
        return {word: frozenset(k) for word, k in kinds.items()}


class _Builder:
    """Takes entries from the supplies until the number of forms is reached."""

    def __init__(self, types: int, seed: int) -> None:
        self.draw = random.Random(key_of("mini-english", "lexicon", seed)).random  # noqa: S311
        self.types = types
        self.tags = closed_forms()
        self.entries: dict[str, list[Entry]] = {kind: [] for kind in SHARES}
        self.real = {
            "noun": supply.real_nouns(self.draw),
            "verb": supply.real_verbs(self.draw),
            "adjective": supply.real_adjectives(self.draw),
            "manner": supply.real_manners(self.draw),
            "given": supply.real_names(words.GIVEN, "PER", self.draw),
            "surname": supply.real_names(words.SURNAMES, "PER", self.draw),
            "place": supply.real_names(words.PLACES, "LOC", self.draw),
            "org": self._organisations(),
        }
        every = chain(*self.real.values())
        self.reserved = {form for entry in every for form in forms_of(entry)}
        self.queues = {kind: self._queue(kind) for kind in SHARES}

    def _organisations(self) -> list[Entry]:
        """One-word organisations and the head words of the longer ones, which come first."""
        heads: list[Entry] = [Name((h,), "ORG", "g", 0, "head") for h in words.ORG_HEADS.split()]
        return heads[:4] + supply.real_names(words.ORGS, "ORG", self.draw) + heads[4:]

    def taken(self, form: str) -> bool:
        return form in self.tags or form in self.reserved

    def _queue(self, kind: str) -> Iterator[Entry]:
        generated: dict[str, Iterator[Entry]] = {
            "noun": supply.generated_nouns(self.draw, self.taken),
            "verb": supply.generated_verbs(self.draw, self.taken, self.entries["noun"]),
            "adjective": supply.generated_adjectives(self.draw, self.taken),
            "manner": supply.generated_manners(self.draw, self.taken),
            "given": supply.generated_names("PER", "given", self.draw, self.taken),
            "surname": supply.generated_names("PER", "surname", self.draw, self.taken),
            "place": supply.generated_names("LOC", "place", self.draw, self.taken),
            "org": supply.generated_names("ORG", "org", self.draw, self.taken),
        }
        return chain(self.real[kind], generated[kind])

    def _add(self, kind: str, entry: Entry) -> int:
        """Add an entry if its forms fit; the number of new forms."""
        new = [form for form in forms_of(entry) if form not in self.tags]
        if len(self.tags) + len(new) > self.types:
            return 0
        for form in forms_of(entry):
            self.tags.setdefault(form, set()).add(tags_of(entry))
        self.entries[kind].append(entry)
        return len(new)

    def build(self) -> None:
        """Fill each class in turn, the one farthest below its share first."""
        used = dict.fromkeys(SHARES, 0)
        while len(self.tags) < self.types - 4:
            kind = min(SHARES, key=lambda k: used[k] / SHARES[k])
            used[kind] += max(1, self._add(kind, next(self.queues[kind])))
        while len(self.tags) < self.types:  # single forms, so that the count is exact
            self._add("adjective", next(self.queues["adjective"]))

    def of(self, kind: str, cls: type[E]) -> tuple[E, ...]:
        return tuple(entry for entry in self.entries[kind] if isinstance(entry, cls))


def build_lexicon(types: int, seed: int) -> Lexicon:
    """The lexicon of ``types`` word forms, a function of (types, seed)."""
    builder = _Builder(types, seed)
    builder.build()
    places, surnames = builder.of("place", Name), builder.of("surname", Name)
    names = builder.of("org", Name)
    heads = [n for n in names if n.joined == "head"]
    singles = [n for n in names if n.joined != "head"]
    organisations = _compose(heads, singles, places, surnames, builder.draw)
    return Lexicon(
        {form: frozenset(tags) for form, tags in builder.tags.items()},
        builder.of("noun", Noun),
        builder.of("verb", Verb),
        builder.of("adjective", Adjective),
        builder.of("manner", Manner),
        builder.of("given", Name),
        surnames,
        places,
        tuple(organisations),
    )


def _compose(
    heads: list[Name], singles: list[Name], places: tuple[Name, ...], surnames: tuple[Name, ...], draw: supply.Draw
) -> Iterator[Name]:
    """Organisations: for each of one word, two longer ones ("Oslo Bank", "University of Oslo")."""
    short = [place for place in places if len(place.words) == 1]
    for single in singles:
        yield single
        for _ in range(2):
            head = heads[int(draw() ** 1.5 * len(heads))].words[0]
            owners = short if draw() < 0.7 else surnames
            owner = owners[int(draw() ** 2 * len(owners))]
            if owner.kind == "LOC" and draw() < 0.4:
                yield Name((head, "of", *owner.words), "ORG", "g", owner.topic, "of")
            else:
                yield Name((*owner.words, head), "ORG", "g", owner.topic, "compound")
