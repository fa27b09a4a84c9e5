"""The lexicon: exactly the requested number of word forms, in the proportions of a natural language.

words.yaml has real English words for the frequent ranks. Further stems are made of syllables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from synthlang.rng import key_of
from synthlang.sources.mini_english.entries import GRAMMAR, Adjective, Entry, Frame, Name, Noun, Verb
from synthlang.strict_yaml import read_yaml

WORDS: dict[str, Any] = read_yaml(Path(__file__).with_name("words.yaml"))
TOPICS = tuple(WORDS["nouns"])
TOPIC_WEIGHTS = tuple((rank + 1) ** -0.8 for rank in range(len(TOPICS)))
VOWELS = "aeiou"
SENSES = "ppptttttllggiiieeeaaff"  # senses of generated nouns, by their frequency
TOGETHER = 6.0  # largest number of ranks by which a seed may move a word in the frequency order
SHARES = {  # shares of the open-class word forms
    **{"noun": 0.375, "verb": 0.315, "adjective": 0.11, "manner": 0.04},
    **{"given": 0.045, "surname": 0.04, "place": 0.045, "org": 0.03},
}
NAMES = {"given": "PER", "surname": "PER", "place": "LOC", "org": "ORG"}
TAGS = {"noun": "NOUN", "verb": "VERB", "adjective": "ADJ", "manner": "ADV"}  # names: PROPN
Draw = Callable[[], float]
T = TypeVar("T")


def table(name: str) -> list[list[str]]:
    """Return the lines of a table of words.yaml, each split into its columns."""
    return [line.split() for line in WORDS[name].splitlines()]


PLURALS = {line[0]: line[1] for line in table("plurals")}
IRREGULAR = {base: (past, participle) for base, past, participle in table("irregular")}


def plural(noun: str) -> str:
    """Return the plural form of a singular noun, regular unless words.yaml lists an irregular form."""
    return PLURALS.get(noun) or _add_s(noun)


def inflected(base: str, topic: int = -1, frames: tuple[Frame, ...] = ()) -> Verb:
    """Return the verb with the base form ``base``. Its forms are regular unless words.yaml lists irregular forms."""
    past, participle = IRREGULAR.get(base) or (_past(base),) * 2
    return Verb(base, _add_s(base), past, participle, _gerund(base), topic, frames)


def takes_an(word: str) -> bool:
    """Return whether the indefinite article before a word is "an"."""
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
    """Double the last letter of a short stem, as in stop → stopp(ed), and of "forget"."""
    short = re.fullmatch(r"[^aeiou]*(qu)?[aeiou][^aeiouwxy]", word)
    return word + word[-1] if short or word == "forget" else word


@dataclass(frozen=True)
class Lexicon:
    """All words, with the entries of each class in frequency order, the most frequent first.

    Attributes:
        tags: UPOS tags of each word form.
        nouns: Common nouns.
        verbs: Verbs.
        adjectives: Adjectives.
        manners: Adverbs of manner.
        given: Given names of people.
        surnames: Surnames of people.
        places: Names of places.
        organisations: Names of organisations.
    """

    tags: Mapping[str, frozenset[str]]
    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    manners: tuple[Adjective, ...]
    given: tuple[Name, ...]
    surnames: tuple[Name, ...]
    places: tuple[Name, ...]
    organisations: tuple[Name, ...]


class _Builder:
    """Builder of a lexicon, which adds entries until the lexicon has ``types`` word forms."""

    def __init__(self, types: int, seed: int) -> None:
        self.draw = random.Random(key_of("mini-english", "lexicon", seed)).random  # noqa: S311
        self.tags: dict[str, set[str]] = {}
        for tag, words in GRAMMAR["closed"].items():
            for word in words.split():
                self.tags.setdefault(word, set()).add(tag)
        self.entries: dict[str, list[Any]] = {kind: [] for kind in SHARES}
        real: dict[str, list[Any]] = {
            "noun": self._nouns(),
            "verb": self.verbs(),
            "adjective": self._graded("adjectives"),
        }
        real |= {"manner": self._graded("manners"), "given": self._names("PER", "given")}
        real |= {"surname": self._names("PER", "surnames"), "place": self._names("LOC", "places")}
        heads = [Name((head,), "ORG", 0, "head") for head in WORDS["organisation_heads"].split()]
        real["org"] = [*heads[:4], *self._names("ORG", "organisations"), *heads[4:]]
        self.reserved = {form for entry in chain(*real.values()) for form in entry.forms}
        new: dict[str, Iterator[Any]] = {
            "noun": self._new_nouns(),
            "verb": self._new_verbs(),
            "adjective": self._new_adjectives(),
        }
        new |= {"manner": self._new_manners()} | {kind: self._new_names(kind) for kind in NAMES}
        queues = {kind: chain(real[kind], new[kind]) for kind in SHARES}
        used = dict.fromkeys(SHARES, 0)
        while len(self.tags) < types - 4:  # the class that is furthest below its share comes first
            kind = min(SHARES, key=lambda k: used[k] / SHARES[k])
            used[kind] += max(1, self._add(kind, next(queues[kind]), types))
        while len(self.tags) < types:  # add single forms, so that the count is exact
            self._add("adjective", next(queues["adjective"]), types)

    def _add(self, kind: str, entry: Entry, types: int) -> int:
        """Add an entry if its forms fit, and return the number of new forms."""
        new = [form for form in entry.forms if form not in self.tags]
        if len(self.tags) + len(new) > types:
            return 0
        for form in entry.forms:
            self.tags.setdefault(form, set()).add(TAGS.get(kind, "PROPN"))
        self.entries[kind].append(entry)
        return len(new)

    def _one(self, items: Sequence[T]) -> T:
        return items[int(self.draw() * len(items))]

    def _topic(self) -> int:
        level = self.draw() * sum(TOPIC_WEIGHTS)
        for topic, weight in enumerate(TOPIC_WEIGHTS):
            level -= weight
            if level < 0:
                return topic
        return 0

    def _shuffled(self, items: Iterable[tuple[float, T]]) -> list[T]:
        """Sort items by rank plus a small random number."""
        ranked = [(rank + TOGETHER * self.draw(), entry) for rank, entry in list(items)]
        return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]

    # --- real words

    def _nouns(self) -> list[Noun]:
        """Return the listed nouns. The ranks of a topic grow with 1 / √weight."""
        ranked: list[tuple[float, Noun]] = []
        for topic, name in enumerate(TOPICS):
            for sense, text in WORDS["nouns"][name].items():
                for rank, word in enumerate(text.split()):
                    stem = word.rstrip("*")
                    noun = Noun(stem, "" if word.endswith("*") else plural(stem), sense, topic)
                    ranked.append((8 * rank / TOPIC_WEIGHTS[topic] ** 0.5, noun))
        return self._shuffled(ranked)

    def verbs(self) -> list[Verb]:
        verbs = []
        for line in WORDS["verbs"].splitlines():
            base, topic, rest = line.split(maxsplit=2)
            frames = tuple(_frame(*part.split()) for part in rest.split(";"))
            verbs.append(inflected(base, TOPICS.index(topic) if topic != "-" else -1, frames))
        return self._shuffled(enumerate(verbs))

    def _graded(self, name: str) -> list[Adjective]:
        """Return the adjectives (form, senses, antonym) or adverbs (form, antonym) of a table of words.yaml."""
        rows = [(form, "".join(senses), antonym) for form, *senses, antonym in table(name)]
        return self._shuffled(enumerate(Adjective(f, senses, a.strip("-"), self._topic()) for f, senses, a in rows))

    def _names(self, kind: str, name: str) -> list[Name]:
        """Return the names of a list, where + joins a compound and = a flat name."""
        names = []
        for word in WORDS[name].split():
            parts = tuple(word.replace("=", "+").split("+"))
            names.append(Name(parts, kind, self._topic(), "compound" if "+" in word else "flat"))
        return self._shuffled(enumerate(names))

    # --- new words, without end and never one that is taken

    def taken(self, form: str) -> bool:
        return form in self.tags or form in self.reserved

    def _stems(self, kind: str) -> Iterator[str]:
        onsets, nuclei, codas = (WORDS[part].split() for part in ("onsets", "nuclei", "codas"))
        endings = [ending.strip("-") for ending in WORDS["endings"][kind].split()]
        while True:
            stem = self._one(onsets) + self._one(nuclei) + self._one(codas)
            ending = self._one(endings)
            if self.draw() < 0.3 and kind not in NAMES:
                stem = stem.rstrip("ck") + self._one("aeio") + self._one("lmnrtv")
            word = stem + ending
            word = word.capitalize() if kind in NAMES else word
            if not self.taken(word) and 3 < len(word) < 13:
                yield word

    def _new_nouns(self) -> Iterator[Noun]:
        countable, mass = self._stems("noun"), self._stems("mass")
        while True:
            sense = self._one(SENSES)
            if sense in "fti" and self.draw() < 0.3:
                yield Noun(next(mass), "", sense, self._topic())
            else:
                stem = next(countable)
                yield Noun(stem, plural(stem), sense, self._topic())

    def _new_verbs(self) -> Iterator[Verb]:
        """Yield new verbs. About one in five has the stem of a noun ("a walk", "to walk")."""
        templates = [frame for verb in self.verbs() for frame in verb.frames]
        fresh, used = self._stems("verb"), set[str]()
        while True:
            base = next(fresh)
            own = [n for n in self.entries["noun"][-40:] if n.plural and n.singular not in used]
            if own and self.draw() < 0.2:
                noun = self._one(own)
                if self.taken(noun.plural) and inflected(noun.singular).third == noun.plural:
                    base = noun.singular
                base = base if not self.taken(inflected(base).past) else next(fresh)
            used.add(base)
            picked = (self._one(templates) for _ in range(1 + (self.draw() < 0.3)))
            yield inflected(base, self._topic(), tuple({f.kind: f for f in picked}.values()))

    def _new_adjectives(self) -> Iterator[Adjective]:
        for form in self._stems("adjective"):
            senses = "".join(sorted({self._one(SENSES) for _ in range(3)}))
            yield Adjective(form, senses, "", self._topic())

    def _new_manners(self) -> Iterator[Adjective]:
        for stem in self._stems("adjective"):
            form = stem[:-1] + "ily" if stem.endswith("y") else stem + ("ally" if stem.endswith("ic") else "ly")
            if not self.taken(form):
                yield Adjective(form, "", "", self._topic())

    def _new_names(self, kind: str) -> Iterator[Name]:
        for form in self._stems(kind):
            yield Name((form,), NAMES[kind], self._topic())


def _frame(kind: str, subject: str, *rest: str) -> Frame:
    taken, *more = rest if kind in ("tr", "di") else ("", *rest)
    return Frame(kind, subject, taken, tuple((prep, senses) for prep, _, senses in (m.partition(":") for m in more)))


def build_lexicon(types: int, seed: int) -> Lexicon:
    """Build the lexicon of ``types`` word forms, a function of (types, seed)."""
    builder = _Builder(types, seed)
    entries = {kind: tuple(found) for kind, found in builder.entries.items()}
    nouns, verbs, adjectives, manners, given, surnames, places, names = entries.values()
    organisations = tuple(_organisations(names, places, surnames, builder.draw))
    tags = {form: frozenset(found) for form, found in builder.tags.items()}
    return Lexicon(tags, nouns, verbs, adjectives, manners, given, surnames, places, organisations)


def _organisations(
    names: Sequence[Name], places: Sequence[Name], surnames: Sequence[Name], draw: Draw
) -> Iterator[Name]:
    """Yield each one-word name, then two longer names ("Oslo Bank", "University of Oslo")."""
    heads = [name for name in names if name.joined == "head"]
    short = [place for place in places if len(place.words) == 1]
    for single in (name for name in names if name.joined != "head"):
        yield single
        for _ in range(2):
            head = heads[int(draw() ** 1.5 * len(heads))].words[0]
            owners = short if draw() < 0.7 else surnames
            owner = owners[int(draw() ** 2 * len(owners))]
            if owner.kind == "LOC" and draw() < 0.4:
                yield Name((head, "of", *owner.words), "ORG", owner.topic, "of")
            else:
                yield Name((*owner.words, head), "ORG", owner.topic, "compound")
