"""Preferences of every head word over its dependents.

For a head h in a slot s and a word n of rank r, from 0, among N words:

    P(n | h, s)  ∝  (r + 4 + N/20)^−z · exp(τ·⟨u_hs, v_n⟩ / √d) · [n fits the slot]

The vectors u and v have d = DIMENSIONS random components of variance 1, which are functions of the seed. The constant
τ is SHARPNESS, and the exponent z is ``zipf`` (default: 1). Within a document, words of another topic are usually
drawn again, so that topics and their weights are visible.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import key_of, uniform
from synthlang.sources.mini_english.entries import GRAMMAR, Adjective, Frame, Name, Noun, NounPhrase, Verb
from synthlang.sources.mini_english.lexicon import TOPIC_WEIGHTS, Draw, Lexicon, build_lexicon

DIMENSIONS = 8
SHARPNESS = 1.6  # τ: standard deviation of a log preference
OFF_TOPIC = 0.15  # probability that a word of another topic is kept
TRIES = 6
DOCUMENT = 8  # sentences of one topic
HELD_OUT = 3  # every third noun of a sense or name of a class is in no training item of a task
# Prepositions that any verb can take, and the senses after them.
ADJUNCTS = tuple((prep, senses) for prep, _, senses in (a.partition(":") for a in GRAMMAR["adjuncts"].split()))
CHOICES: dict[str, tuple[tuple[str, float], ...]] = {k: tuple(v.items()) for k, v in GRAMMAR["choices"].items()}


@dataclass(frozen=True, slots=True)
class Use:
    """A verb in one of its frames.

    Attributes:
        verb: The verb.
        frame: The arguments of the verb in this use.
        topic: Number of the topic in which the verb is frequent, or −1 for any topic.
    """

    verb: Verb
    frame: Frame
    topic: int

    def fits(self, limit: str) -> bool:
        """Return whether the use fits a limit of the form "kinds|subject|object".

        The kinds of frames are separated by spaces. ``subject`` and ``object`` are senses that the frame must allow, or
        "" for any sense.
        """
        kinds, subject, taken = limit.split("|")
        frame = self.frame
        return frame.kind in kinds.split() and subject in frame.subject and (not taken or taken in frame.object)


@dataclass(frozen=True, slots=True)
class Link:
    """A preposition with the senses before and after it. Each sense is one letter, as in words.yaml.

    Attributes:
        before: Senses of the nouns that the preposition may follow.
        preposition: The preposition.
        senses: Senses of the nouns after the preposition.
        topic: Always −1, since prepositions occur in any topic.
    """

    before: str
    preposition: str
    senses: str
    topic: int = -1


E = TypeVar("E", bound=Noun | Adjective | Name | Use | Link)
T = TypeVar("T")


def _vectors(key: int, count: int) -> NDArray[np.float64]:
    """Return uniform random numbers of variance 1, [count, DIMENSIONS]."""
    return (uniform(key, np.arange(count)[:, None], np.arange(DIMENSIONS)) - 0.5) * 12**0.5


class Vocabulary(Generic[E]):
    """The words of one class in frequency order, drawn by the preferences of a head.

    The probabilities of a head (see the module) are computed when the head first occurs, and take 8 bytes per word.

    Args:
        name: Name of the class, from which the vectors of the words are made.
        entries: The words, the most frequent first.
        seed: Seed of the vectors.
        fits: Function of a word and a limit that returns True if the word fits the slot. The limit is a text such as
            the senses of a slot. By default every word fits.
        zipf: Exponent z of the rank.
    """

    def __init__(
        self,
        name: str,
        entries: Sequence[E],
        seed: int,
        fits: Callable[[E, str], bool] = lambda _entry, _limit: True,
        zipf: float = 1.0,
    ) -> None:
        self.entries, self._fits, self._seed = entries, fits, seed
        self._vectors = _vectors(key_of("mini-english", "words", name, seed), len(entries))
        self._log_frequency = -zipf * np.log(np.arange(len(entries)) + 4.0 + len(entries) / 20)
        self._rows: dict[tuple[str, str, str], array[float]] = {}

    def _make_row(self, head: str, slot: str, limit: str) -> array[float]:
        """Return cumulative probabilities [entries], or an empty array if nothing fits."""
        fitting = np.asarray([self._fits(entry, limit) for entry in self.entries], dtype=bool)
        if not fitting.any():
            return array("d")
        own = _vectors(key_of("mini-english", "head", head, slot, self._seed), 1)[0]
        score = self._log_frequency + SHARPNESS * (self._vectors @ own) / DIMENSIONS**0.5
        cumulative = np.cumsum(np.where(fitting, np.exp(score), 0.0))
        cumulative /= cumulative[-1]
        cumulative[np.flatnonzero(fitting)[-1] :] = 1.0
        return array("d", cumulative.tolist())

    def draw(self, c: Context, head: str, slot: str, limit: str = "") -> E | None:
        """Draw a word for a slot of the word ``head``, or return None if no word fits ``limit``."""
        key = (head, slot, limit)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._make_row(head, slot, limit)
        if not row:
            return None
        draw, topics = c.draw, (c.topic, -1)
        entry = self.entries[bisect_right(row, draw())]
        for _ in range(TRIES):
            if entry.topic in topics or draw() < OFF_TOPIC:
                break
            entry = self.entries[bisect_right(row, draw())]
        return entry

    def one(self, c: Context, head: str, slot: str, limit: str = "") -> E:
        """Draw a word for a slot of the word ``head``. Some word must fit ``limit``."""
        entry = self.draw(c, head, slot, limit)
        assert entry is not None, f"nothing fits {slot} {limit}"
        return entry


class World:
    """The lexicon, and a vocabulary for each class of words, as a function of (types, seed, zipf).

    Attributes:
        types: Number of word forms.
        seed: Seed of the lexicon and the preferences.
        lexicon: The words of all classes.
        nouns: Vocabulary of the common nouns.
        uses: Vocabulary of the verbs in each of their frames.
        adjectives: Vocabulary of the adjectives.
        manners: Vocabulary of the adverbs of manner.
        given: Vocabulary of the given names of people.
        surnames: Vocabulary of the surnames of people.
        places: Vocabulary of the names of places.
        organisations: Vocabulary of the names of organisations.
        adjuncts: Vocabulary of the prepositions that any verb can take.
        modifiers: Vocabulary of the prepositions between two nouns.
        kinds: The noun that names all nouns of a sense ("animal"), by sense.
        held_out: Word forms that ``suits`` allows only in items of dev and test.
        plural_share: Probability of the plural for each noun.
    """

    def __init__(self, types: int, seed: int, zipf: float = 1.0) -> None:
        self.types, self.seed = types, seed
        self.lexicon = lexicon = build_lexicon(types, seed)
        ranked = [(r + 10 * n, Use(v, f, v.topic)) for r, v in enumerate(lexicon.verbs) for n, f in enumerate(v.frames)]
        uses = [use for _, use in sorted(ranked, key=lambda pair: pair[0])]  # later frames of a verb are rarer
        self.nouns = Vocabulary("noun", lexicon.nouns, seed, lambda noun, limit: noun.sense in limit, zipf)
        self.uses = Vocabulary("use", uses, seed, Use.fits, zipf)
        self.adjectives = Vocabulary("adjective", lexicon.adjectives, seed, lambda a, sense: sense in a.senses, zipf)
        self.manners = Vocabulary("manner", lexicon.manners, seed, zipf=zipf)
        self.given = Vocabulary("given", lexicon.given, seed, zipf=zipf)
        self.surnames = Vocabulary("surname", lexicon.surnames, seed, zipf=zipf)
        self.places = Vocabulary("place", lexicon.places, seed, zipf=zipf)
        self.organisations = Vocabulary("org", lexicon.organisations, seed, zipf=zipf)
        self.adjuncts = Vocabulary("adjunct", [Link("", *adjunct) for adjunct in ADJUNCTS], seed)
        modifiers = [Link(*line.split()) for line in GRAMMAR["modifiers"].splitlines()]
        self.modifiers = Vocabulary("modifier", modifiers, seed, lambda link, sense: sense in link.before)
        names = {name: sense for sense, name in GRAMMAR["kinds"].items()}
        self.kinds = {names[noun.singular]: noun for noun in lexicon.nouns if noun.singular in names}
        held_out = chain(*(words[HELD_OUT - 1 :: HELD_OUT] for words in _by_sense(lexicon)))
        self.held_out = frozenset(form for word in held_out for form in word.forms)
        numbers = uniform(key_of("mini-english", "plural", seed), np.arange(len(lexicon.nouns)))
        self.plural_share = dict(zip(lexicon.nouns, (0.08 + 0.5 * numbers).tolist(), strict=True))

    def suits(self, split: str, forms: Iterable[str]) -> bool:
        """Return whether an item of a task may have these words.

        In train no word may be held out. In other splits at least one word must be held out.
        """
        return self.held_out.isdisjoint(forms) == (split == "train")

    def context(self, split: str, index: int, purpose: str = "sentence") -> Context:
        """Return the context for drawing sentence or item ``index`` of a split.

        The context is a function of the arguments and of the types, the seed and the exponent of this world.
        ``purpose`` names the task, so that the items of different tasks differ.
        """
        about = key_of("mini-english", "topic", self.seed, self.types, split, purpose, index // DOCUMENT)
        document = random.Random(about)  # noqa: S311
        topic = document.choices(range(len(TOPIC_WEIGHTS)), TOPIC_WEIGHTS)[0]
        own = random.Random(key_of("mini-english", purpose, self.seed, self.types, split, index))  # noqa: S311
        return Context(self, own.random, topic)


def _by_sense(lexicon: Lexicon) -> Iterator[list[Noun | Name]]:
    """Yield the nouns of each named sense and the names of each class, the most frequent first."""
    kinds = frozenset(GRAMMAR["kinds"].values())
    for sense in GRAMMAR["kinds"]:
        yield [noun for noun in lexicon.nouns if noun.sense == sense and noun.singular not in kinds]
    for names in (lexicon.given, lexicon.surnames, lexicon.places, lexicon.organisations):
        yield [name for name in names if len(name.words) == 1 and name.joined != "head"]


@dataclass(frozen=True, slots=True)
class Context:
    """The state for drawing a sentence.

    Attributes:
        world: The lexicon and its preferences.
        draw: Function that returns the next random number in [0, 1).
        topic: Number of the topic of the document.
    """

    world: World
    draw: Draw
    topic: int

    def chance(self, probability: float) -> bool:
        """Draw True with the given probability, 0 to 1, and False otherwise."""
        return self.draw() < probability

    def one(self, items: Sequence[T], sharpness: float = 1) -> T:
        """Draw one item, with equal probabilities for sharpness 1. A larger sharpness favours the first items."""
        return items[int(self.draw() ** sharpness * len(items))]

    def weighted(self, name: str) -> str:
        """Draw one of the choices ``name`` of grammar.yaml by their weights, which sum to 1."""
        level = self.draw()
        for value, weight in CHOICES[name]:
            level -= weight
            if level < 0:
                return value
        return CHOICES[name][-1][0]

    def use(self, slot: str, kinds: str, subject: str = "", taken: str = "", head: str = "") -> Use | None:
        """Draw a verb with one of its frames, or return None if no verb fits.

        Args:
            slot: Name of the slot, for which the head has preferences.
            kinds: Kinds of frames, separated by spaces.
            subject: A sense that the frame must allow for the subject, or "" for any.
            taken: A sense that the frame must allow for the object, or "" for any.
            head: The head, whose preferences decide (default: the topic).
        """
        return self.world.uses.draw(self, head or str(self.topic), slot, f"{kinds}|{subject}|{taken}")

    def adjective(self, phrase: NounPhrase) -> Adjective | None:
        """Draw an adjective for a phrase, or return None if none fits."""
        return self.world.adjectives.draw(self, phrase.key, "amod", phrase.sense)

    def manner(self, verb: Verb) -> Adjective:
        """Draw an adverb of manner for a verb."""
        return self.world.manners.one(self, verb.base, "manner")

    def adjunct(self, verb: Verb) -> Link:
        """Draw a preposition of an adjunct for a verb."""
        return self.world.adjuncts.one(self, verb.base, "adjunct")


@lru_cache(maxsize=4)
def world_of(types: int, seed: int, zipf: float = 1.0) -> World:
    """Return the world of these settings. The latest worlds are cached."""
    return World(types, seed, zipf)
