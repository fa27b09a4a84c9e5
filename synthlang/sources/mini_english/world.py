"""The world of a grammar: its lexicon and everyone's preferences, made once for (types, seed)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from synthlang.rng import key_of, uniform
from synthlang.sources.mini_english.entries import Adjective, Frame, Manner, Name, Noun, Verb
from synthlang.sources.mini_english.lexicon import Lexicon, build_lexicon
from synthlang.sources.mini_english.preferences import Draw, Vocabulary
from synthlang.sources.mini_english.supply import TOPIC_WEIGHTS

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
        """True with this probability."""
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
