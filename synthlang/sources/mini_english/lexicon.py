"""The lexicon: exactly as many word forms as asked for, in the proportions of a natural one.

words.yaml has real English for the frequent ranks; beyond it stems are made of syllables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from synthlang.rng import key_of
from synthlang.sources.mini_english.entries import (
    Adjective,
    Entry,
    Frame,
    Manner,
    Name,
    Noun,
    Verb,
    closed_forms,
    forms_of,
    tags_of,
)
from synthlang.strict_yaml import read_yaml

WORDS: dict[str, Any] = read_yaml(Path(__file__).with_name("words.yaml"))
TOPICS = tuple(WORDS["nouns"])


def table(name: str) -> list[list[str]]:
    """The lines of a table of words.yaml, each as its columns."""
    return [line.split() for line in WORDS[name].splitlines()]


VOWELS = "aeiou"
PLURALS = {line[0]: line[1] for line in table("plurals")}
IRREGULAR = {base: (past, participle) for base, past, participle in table("irregular")}


class VerbForms(NamedTuple):
    """The five forms of a verb (go goes went gone going)."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


def plural(noun: str) -> str:
    """The plural of a noun."""
    return PLURALS.get(noun) or _add_s(noun)


def verb_forms(base: str) -> VerbForms:
    """All forms of a verb."""
    past, participle = IRREGULAR.get(base) or (_past(base),) * 2
    return VerbForms(base, _add_s(base), past, participle, _gerund(base))


def takes_an(word: str) -> bool:
    """Whether "an" stands before ``word``."""
    if word in WORDS["consonant_sound"].split():
        return False
    return word in WORDS["vowel_sound"].split() or word[0].lower() in VOWELS


def _add_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if _consonant_y(word) else word + "s"


def _past(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if _consonant_y(word) else _doubled(word) + "ed"


def _gerund(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word[:-1] + "ing"
    return _doubled(word) + "ing"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in VOWELS


def _doubled(word: str) -> str:
    """Double the last letter of a short stem: stop → stopp(ed); also of "forget"."""
    short = re.fullmatch(r"[^aeiou]*(qu)?[aeiou][^aeiouwxy]", word)
    return word + word[-1] if short or word == "forget" else word


def stems(kind: str, draw: Callable[[], float], taken: Callable[[str], bool]) -> Iterator[str]:
    """New stems of a kind without end; never one that is ``taken``."""

    def one(items: Sequence[str]) -> str:
        return items[int(draw() * len(items))]

    names = kind in ("given", "surname", "place", "org")
    onsets, nuclei, codas = (WORDS[part].split() for part in ("onsets", "nuclei", "codas"))
    endings = [ending.strip("-") for ending in WORDS["endings"][kind].split()]
    while True:
        stem = one(onsets) + one(nuclei) + one(codas)
        ending = one(endings)
        if draw() < 0.3 and not names:
            stem = stem.rstrip("ck") + one("aeio") + one("lmnrtv")
        word = stem + ending
        word = word.capitalize() if names else word
        if not taken(word) and 3 < len(word) < 13:
            yield word


Draw = Callable[[], float]
TOPIC_WEIGHTS = tuple((rank + 1) ** -0.8 for rank in range(len(TOPICS)))
SENSES = "ppptttttllggiiieeeaaff"  # of generated nouns
TOGETHER = 6.0  # how far a seed may move a word in the frequency order


def _shuffled(items: list[tuple[float, Entry]], draw: Draw) -> list[Entry]:
    """Items by their frequency order, moved a little."""
    return [entry for _, entry in sorted(((rank + TOGETHER * draw(), e) for rank, e in items), key=lambda x: x[0])]


def _topic(draw: Draw) -> int:
    """A topic by its weight."""
    level = draw() * sum(TOPIC_WEIGHTS)
    for topic, weight in enumerate(TOPIC_WEIGHTS):
        level -= weight
        if level < 0:
            return topic
    return 0


def real_nouns(draw: Draw) -> list[Entry]:
    """The nouns of the lists; a topic of half the weight has its words at twice the ranks."""
    ranked: list[tuple[float, Entry]] = []
    for topic, name in enumerate(TOPICS):
        for sense, text in WORDS["nouns"][name].items():
            for rank, word in enumerate(text.split()):
                stem = word.rstrip("*")
                noun = Noun(stem, "" if word.endswith("*") else plural(stem), sense, topic)
                ranked.append((8 * rank / TOPIC_WEIGHTS[topic] ** 0.5, noun))
    return _shuffled(ranked, draw)


def real_verbs(draw: Draw) -> list[Entry]:
    """The verbs of the list."""
    ranked: list[tuple[float, Entry]] = []
    for rank, line in enumerate(WORDS["verbs"].splitlines()):
        base, topic, rest = line.split(maxsplit=2)
        frames = tuple(_frame(part.split()) for part in rest.split(";"))
        ranked.append((rank, _verb(base, TOPICS.index(topic) if topic != "-" else -1, frames)))
    return _shuffled(ranked, draw)


def _frame(fields: list[str]) -> Frame:
    kind, subject, *rest = fields
    taken = rest.pop(0) if kind in ("tr", "di") else ""
    pairs = tuple((prep, senses) for prep, _, senses in (field.partition(":") for field in rest))
    return Frame(kind, subject, taken, pairs)


def _verb(base: str, topic: int, frames: tuple[Frame, ...]) -> Verb:
    return Verb(*verb_forms(base), topic, frames)


def real_adjectives(draw: Draw) -> list[Entry]:
    """The adjectives of the list."""
    ranked: list[tuple[float, Entry]] = [
        (rank, Adjective(form, senses, antonym.strip("-"), _topic(draw)))
        for rank, (form, senses, antonym) in enumerate(table("adjectives"))
    ]
    return _shuffled(ranked, draw)


def real_manners(draw: Draw) -> list[Entry]:
    """The manner adverbs of the list."""
    ranked: list[tuple[float, Entry]] = [
        (rank, Manner(f, antonym.strip("-"), _topic(draw))) for rank, (f, antonym) in enumerate(table("manners"))
    ]
    return _shuffled(ranked, draw)


def real_names(text: str, kind: str, draw: Draw) -> list[Entry]:
    """The names of a list: + joins a compound, = a flat name."""
    sense = {"PER": "p", "LOC": "l", "ORG": "g"}[kind]
    ranked: list[tuple[float, Entry]] = []
    for rank, word in enumerate(text.split()):
        parts = tuple(word.replace("=", "+").split("+"))
        ranked.append((rank, Name(parts, kind, sense, _topic(draw), "compound" if "+" in word else "flat")))
    return _shuffled(ranked, draw)


def generated_nouns(draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New nouns, one in eight of them a mass noun."""
    countable, mass = stems("noun", draw, taken), stems("mass", draw, taken)
    for _ in count():
        sense = SENSES[int(draw() * len(SENSES))]
        if sense in "fti" and draw() < 0.3:
            yield Noun(next(mass), "", sense, _topic(draw))
        else:
            stem = next(countable)
            yield Noun(stem, plural(stem), sense, _topic(draw))


def generated_verbs(draw: Draw, taken: Callable[[str], bool], nouns: list[Entry]) -> Iterator[Entry]:
    """New verbs; one in five has the stem of a noun ("a walk", "to walk")."""
    templates = [f for e in real_verbs(draw) if isinstance(e, Verb) for f in e.frames]
    fresh, used = stems("verb", draw, taken), set[str]()
    while True:
        base = next(fresh)
        own = [n for n in nouns[-40:] if isinstance(n, Noun) and n.plural and n.singular not in used]
        if own and draw() < 0.2:
            noun = own[int(draw() * len(own))]
            base = noun.singular if taken(noun.plural) and verb_forms(noun.singular).third == noun.plural else base
            base = base if not taken(verb_forms(base).past) else next(fresh)
        used.add(base)
        picked = (templates[int(draw() * len(templates))] for _ in range(1 + (draw() < 0.3)))
        yield _verb(base, _topic(draw), tuple({f.kind: f for f in picked}.values()))


def generated_adjectives(draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New adjectives, each for one to three senses."""
    for form in stems("adjective", draw, taken):
        senses = "".join(sorted({SENSES[int(draw() * len(SENSES))] for _ in range(3)}))
        yield Adjective(form, senses, "", _topic(draw))


def generated_manners(draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New manner adverbs in -ly."""
    for stem in stems("adjective", draw, taken):
        form = stem[:-1] + "ily" if stem.endswith("y") else stem + ("ally" if stem.endswith("ic") else "ly")
        if not taken(form):
            yield Manner(form, "", _topic(draw))


def generated_names(kind: str, style: str, draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New names of one word."""
    for form in stems(style, draw, taken):
        yield Name((form,), kind, {"PER": "p", "LOC": "l", "ORG": "g"}[kind], _topic(draw))


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
            "noun": real_nouns(self.draw),
            "verb": real_verbs(self.draw),
            "adjective": real_adjectives(self.draw),
            "manner": real_manners(self.draw),
            "given": real_names(WORDS["given"], "PER", self.draw),
            "surname": real_names(WORDS["surnames"], "PER", self.draw),
            "place": real_names(WORDS["places"], "LOC", self.draw),
            "org": self._organisations(),
        }
        every = chain(*self.real.values())
        self.reserved = {form for entry in every for form in forms_of(entry)}
        self.queues = {kind: self._queue(kind) for kind in SHARES}

    def _organisations(self) -> list[Entry]:
        """One-word organisations and the head words of the longer ones, which come first."""
        heads: list[Entry] = [Name((h,), "ORG", "g", 0, "head") for h in WORDS["organisation_heads"].split()]
        return heads[:4] + real_names(WORDS["organisations"], "ORG", self.draw) + heads[4:]

    def taken(self, form: str) -> bool:
        return form in self.tags or form in self.reserved

    def _queue(self, kind: str) -> Iterator[Entry]:
        generated: dict[str, Iterator[Entry]] = {
            "noun": generated_nouns(self.draw, self.taken),
            "verb": generated_verbs(self.draw, self.taken, self.entries["noun"]),
            "adjective": generated_adjectives(self.draw, self.taken),
            "manner": generated_manners(self.draw, self.taken),
            "given": generated_names("PER", "given", self.draw, self.taken),
            "surname": generated_names("PER", "surname", self.draw, self.taken),
            "place": generated_names("LOC", "place", self.draw, self.taken),
            "org": generated_names("ORG", "org", self.draw, self.taken),
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
    heads: list[Name], singles: list[Name], places: tuple[Name, ...], surnames: tuple[Name, ...], draw: Draw
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
