"""Who goes with whom: every head word has preferences of its own over its dependents.

For a head h in a slot s and a word n of rank r among N:

    P(n | h, s)  ∝  (r + 4 + N/20)^−1 · exp(τ·⟨u_hs, v_n⟩) · [n fits the slot]

with random unit-variance vectors u, v (functions of the seed). Within a document words of
its topic are kept and others only now and then, so topics of unequal weight show as well.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import key_of, uniform
from synthlang.sources.mini_english.entries import Adjective, Frame, Manner, Name, Noun, Verb
from synthlang.sources.mini_english.lexicon import TOPIC_WEIGHTS, Lexicon, build_lexicon

Draw = Callable[[], float]
DIMENSIONS = 8
SHARPNESS = 1.6  # τ: standard deviation of a log preference
OFF_TOPIC = 0.15  # how often a word of another topic is kept
TRIES = 6


class HasTopic(Protocol):
    """An entry with a topic (−1: any)."""

    @property
    def topic(self) -> int:
        """Its index."""
        ...


E = TypeVar("E", bound=HasTopic)


def _vectors(key: int, count: int) -> NDArray[np.float64]:
    """[count, DIMENSIONS], each number of variance 1 (uniform)."""
    return (uniform(key, np.arange(count)[:, None], np.arange(DIMENSIONS)) - 0.5) * 12**0.5


class Vocabulary(Generic[E]):
    """The words of one class in frequency order, drawn by the preferences of a head.

    ``fits(entry, limit)`` says whether a word fits a slot; a row of probabilities is made
    when a head is first met, 8 bytes a word.
    """

    def __init__(self, name: str, entries: Sequence[E], seed: int, fits: Callable[[E, str], bool]) -> None:
        self.entries = entries
        self._fits = fits
        self._seed = seed
        self._vectors = _vectors(key_of("mini-english", "words", name, seed), len(entries))
        self._log_frequency = -np.log(np.arange(len(entries)) + 4.0 + len(entries) / 20)
        self._rows: dict[tuple[str, str, str], array[float]] = {}

    def row(self, head: str, slot: str, limit: str) -> array[float]:
        """Cumulative probabilities [entries]; empty if nothing fits."""
        key = (head, slot, limit)
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._make_row(head, slot, limit)
        return found

    def _make_row(self, head: str, slot: str, limit: str) -> array[float]:
        fitting = np.asarray([self._fits(entry, limit) for entry in self.entries], dtype=bool)
        if not fitting.any():
            return array("d")
        own = _vectors(key_of("mini-english", "head", head, slot, self._seed), 1)[0]
        score = self._log_frequency + SHARPNESS * (self._vectors @ own) / DIMENSIONS**0.5
        cumulative = np.cumsum(np.where(fitting, np.exp(score), 0.0))
        cumulative /= cumulative[-1]
        cumulative[np.flatnonzero(fitting)[-1] :] = 1.0
        return array("d", cumulative.tolist())

    def draw(self, draw: Draw, topic: int, head: str, slot: str, limit: str) -> E | None:
        """A word for a slot of a head, or None if none fits."""
        row = self.row(head, slot, limit)
        if not row:
            return None
        entry = self.entries[bisect_right(row, draw())]
        for _ in range(TRIES):
            if entry.topic in (topic, -1) or draw() < OFF_TOPIC:
                break
            entry = self.entries[bisect_right(row, draw())]
        return entry


DOCUMENT = 8  # sentences of one topic
# prepositions any verb can take, and the senses after them
ADJUNCTS = (
    *(("in", "l"), ("with", "p"), ("at", "l"), ("near", "l"), ("after", "e"), ("during", "e"), ("for", "pg")),
    *(("before", "e"), ("behind", "l"), ("without", "p"), ("on", "t"), ("like", "p")),
)
# prepositions after nouns: senses of the noun, preposition, senses after it
MODIFIERS = (
    *(("tlge", "of", "pgl"), ("plg", "in", "l"), ("pag", "from", "l"), ("ptl", "with", "ta"), ("i", "about", "pltea")),
    *(("tl", "near", "l"), ("te", "for", "pg"), ("i", "of", "pgl"), ("t", "on", "t"), ("e", "in", "l")),
    *(("e", "with", "pg"), ("a", "in", "l"), ("f", "from", "l"), ("f", "with", "f"), ("pt", "without", "t")),
)


@dataclass(frozen=True, slots=True)
class Use:
    """A verb in one of its frames."""

    verb: Verb
    frame: Frame
    topic: int


@dataclass(frozen=True, slots=True)
class Link:
    """A preposition, what it stands after and what after it."""

    before: str
    preposition: str
    senses: str
    topic: int = -1


def _any(_entry: object, _limit: str) -> bool:
    return True


def _use_fits(use: Use, limit: str) -> bool:
    """Limit "kinds|subject|object": kinds separated by spaces, a sense or nothing for any."""
    kinds, subject, taken = limit.split("|")
    frame = use.frame
    return frame.kind in kinds.split() and subject in frame.subject and (not taken or taken in frame.object)


class World:
    """Lexicon and one vocabulary for each class of word."""

    def __init__(self, types: int, seed: int) -> None:
        self.lexicon: Lexicon = build_lexicon(types, seed)
        lexicon = self.lexicon
        ranked = [(r + 10 * n, Use(v, f, v.topic)) for r, v in enumerate(lexicon.verbs) for n, f in enumerate(v.frames)]
        uses = [use for _, use in sorted(ranked, key=lambda pair: pair[0])]  # further frames are rarer
        self.nouns = Vocabulary[Noun]("noun", lexicon.nouns, seed, lambda n, limit: n.sense in limit)
        self.uses = Vocabulary[Use]("use", uses, seed, _use_fits)
        self.adjectives = Vocabulary[Adjective](
            "adjective", lexicon.adjectives, seed, lambda a, limit: not limit or limit in a.senses
        )
        self.manners = Vocabulary[Manner]("manner", lexicon.manners, seed, _any)
        self.given = Vocabulary[Name]("given", lexicon.given, seed, _any)
        self.surnames = Vocabulary[Name]("surname", lexicon.surnames, seed, _any)
        self.places = Vocabulary[Name]("place", lexicon.places, seed, _any)
        self.organisations = Vocabulary[Name]("org", lexicon.organisations, seed, _any)
        adjuncts = [Link("", preposition, senses) for preposition, senses in ADJUNCTS]
        self.adjuncts = Vocabulary[Link]("adjunct", adjuncts, seed, _any)
        modifiers = [Link(*parts) for parts in MODIFIERS]
        self.modifiers = Vocabulary[Link]("modifier", modifiers, seed, lambda k, limit: limit in k.before)
        numbers = uniform(key_of("mini-english", "plural", seed), np.arange(len(lexicon.nouns)))
        self.plural_share = dict(zip(lexicon.nouns, (0.08 + 0.5 * numbers).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Context:
    """What drawing a sentence needs: the world, the sentence's random numbers, its topic."""

    world: World
    draw: Draw
    topic: int

    def chance(self, probability: float) -> bool:
        return self.draw() < probability

    def weighted(self, items: tuple[tuple[str, float], ...]) -> str:
        """One of (value, weight); weights sum to 1."""
        level = self.draw()
        for value, weight in items:
            level -= weight
            if level < 0:
                return value
        return items[-1][0]


@lru_cache(maxsize=4)
def world_of(types: int, seed: int) -> World:
    """The world, kept for the next call."""
    return World(types, seed)


def context_of(world: World, seed: int, types: int, split: str, sentence: int, purpose: str = "sentence") -> Context:
    """The context of sentence ``sentence`` of a split: a function of the arguments alone."""
    about = key_of("mini-english", "topic", seed, types, split, purpose, sentence // DOCUMENT)
    document = random.Random(about)  # noqa: S311
    topic = document.choices(range(len(TOPIC_WEIGHTS)), TOPIC_WEIGHTS)[0]
    own = random.Random(key_of("mini-english", purpose, seed, types, split, sentence))  # noqa: S311
    return Context(world, own.random, topic)
