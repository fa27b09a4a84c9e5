"""The source ``builtin:mini-english``: sentences of a seeded grammar with gold annotation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import ClassVar

from synthlang.corpus import Corpus, Sentence
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import BATCH_SENTENCES, MORPHOLOGY, check_split
from synthlang.sources.mini_english.draw import sentence
from synthlang.sources.mini_english.lexicon import Lexicon
from synthlang.sources.mini_english.realise import Columns, realise
from synthlang.sources.mini_english.world import Context, World, world_of

NAME = "builtin:mini-english"
VERSION = 1  # part of the fingerprint: raise when grammar or word lists give other sentences
MIN_TYPES, MAX_TYPES = 500, 5000
MAX_WORDS = 30
MAX_WORDS_NAMED = 16  # of a sentence of the task of named entities
MAX_ZIPF = 2.0


@dataclass(frozen=True)
class MiniEnglish:
    """A small English-like language with Universal Dependencies v2 trees and named entities.

    Only names and "I" are capitalised, not the first word of a sentence, so that each word type has one form. Eight
    sentences in a row share a topic. Sentence i of a split is a function of (types, seed, zipf, split, i). All splits
    share the lexicon and its preferences.

    Attributes:
        types: Number of word forms, including function words and punctuation, from 500 to 5000.
        sentences: Number of sentences of the train split.
        dev: Number of sentences of the dev split.
        test: Number of sentences of the test split.
        seed: Seed of the lexicon, its preferences and the sentences, 0 or more.
        zipf: Exponent of the rank in word frequencies of the open classes, from 0 to 2. With 0 all words are about
            equally frequent.
        feats: True for the column ``feats``, the morphological features of Universal Dependencies.
        lemma: True for the column ``lemma``.
        licence: SPDX id of the licence of the sentences.
        splits: Names of the splits.

    Raises:
        InputError: A number is outside its range, or a number of sentences is negative.
    >>> batch = next(MiniEnglish(sentences=3).batches("train"))
    >>> len(batch), sorted(batch.columns)
    (3, ['deprel', 'form', 'head', 'ner', 'upos'])
    """

    types: int = 1000
    sentences: int = 20_000
    dev: int = 1000
    test: int = 1000
    seed: int = 0
    zipf: float = 1.0
    feats: bool = False
    lemma: bool = False
    licence: ClassVar[str] = "apache-2.0"  # the licence of the project
    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")

    def __post_init__(self) -> None:
        if not MIN_TYPES <= self.types <= MAX_TYPES:
            reason = f"must be between {MIN_TYPES} and {MAX_TYPES}, not {self.types}"
            raise InputError(reason, NAME, keys="types", code="range")
        if not 0 <= self.zipf <= MAX_ZIPF:
            reason = f"must be between 0 and {MAX_ZIPF:g}, not {self.zipf:g}"
            raise InputError(reason, NAME, keys="zipf", code="range")
        for name in ("sentences", "dev", "test", "seed"):
            if getattr(self, name) < 0:
                raise InputError(f"must be 0 or more, not {getattr(self, name)}", NAME, keys=name, code="range")

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the version and all fields. Fields that were added later are left out at their defaults."""
        later = {name: getattr(MiniEnglish, name) for name in ("zipf", *MORPHOLOGY)}
        fields = {name: value for name, value in asdict(self).items() if value != later.get(name)}
        return fingerprint("source", name="mini-english", version=VERSION, **fields)

    @property
    def morphology(self) -> tuple[str, ...]:
        """The columns that the fields ``feats`` and ``lemma`` add."""
        return tuple(name for name in MORPHOLOGY if getattr(self, name))

    def with_morphology(self, names: Sequence[str]) -> MiniEnglish:
        """Return the source with the columns of MORPHOLOGY in ``names`` added."""
        return replace(self, feats=self.feats or "feats" in names, lemma=self.lemma or "lemma" in names)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("form", "upos", "head", "deprel", "ner", *self.morphology)

    @property
    def world(self) -> World:
        """The lexicon, and the preferences by which words are drawn."""
        return world_of(self.types, self.seed, self.zipf)

    @property
    def lexicon(self) -> Lexicon:
        """The words of all classes, and the tags of each word form."""
        return self.world.lexicon

    def size(self, split: str) -> int:
        check_split(self, split, NAME)
        return {"train": self.sentences, "dev": self.dev, "test": self.test}[split]

    def sentence(self, split: str, index: int) -> Columns:
        """Return the columns of sentence ``index`` of a split. Every sentence has at most MAX_WORDS words."""
        c = self.world.context(split, index)
        while True:  # this ends, because most sentences are short
            columns = realise(sentence(c), self.morphology)
            if len(columns["form"]) <= MAX_WORDS:
                return columns

    def batches(self, split: str) -> Iterator[Corpus]:
        size = self.size(split)
        if 0 < size <= BATCH_SENTENCES:
            yield _only_batch(self, split)
            return
        for start in range(0, size, BATCH_SENTENCES):
            yield self.batch(split, start, min(start + BATCH_SENTENCES, size))

    def batch(self, split: str, start: int, end: int) -> Corpus:
        """Return the sentences ``start`` … ``end`` − 1 of a split. Ids count from 0 in the split."""
        return Corpus.of([self.sentence(split, index) for index in range(start, end)], start)

    def contexts(self, split: str, count: int, purpose: str) -> Iterator[tuple[int, Context]]:
        """Yield the number and the random context of each of ``count`` items of a task.

        ``purpose`` names the task, so that the items of different tasks differ.

        Raises:
            InputError: The source has no such split.
        """
        check_split(self, split, NAME)
        return ((index, self.world.context(split, index, purpose)) for index in range(count))


@lru_cache(maxsize=16)
def _only_batch(source: MiniEnglish, split: str) -> Corpus:
    """Return a split of one batch. The cache helps because each stage of a small study reads the same sentences."""
    return source.batch(split, 0, source.size(split))


def named_sentences(source: MiniEnglish, split: str, count: int) -> Iterator[Sentence]:
    """Yield ``count`` short annotated sentences with a name. Sentence i is a function of (types, seed, zipf, split, i).

    A sentence of dev or test has a word of ``World.held_out`` in a name, and a sentence of train has none. A model must
    therefore recognise a name by its context.

    Raises:
        InputError: The source has no such split.
    """
    return (Sentence(index, _named(c, split, source.morphology)) for index, c in source.contexts(split, count, "names"))


def _named(c: Context, split: str, more: Sequence[str]) -> Columns:
    while True:  # this ends, because one sentence in a few is short and has a suitable name
        columns = realise(sentence(c), more)
        names = [word for word, tag in zip(columns["form"], columns["ner"], strict=True) if tag != "O"]
        if names and len(columns["form"]) <= MAX_WORDS_NAMED and c.world.suits(split, names):
            return columns
