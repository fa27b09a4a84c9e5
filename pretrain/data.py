"""Batches of fixed shape, each a pure function of (seed, step, rank).

A language's shards are one stream of tokens with </s> after each sentence, cut into rows of
<s> and length − 1 tokens. Sample g of the run is row g of a sequence that goes through the
languages in turn and through each language's rows in a new random order every epoch. Step
s takes the samples s · rows … (s + 1) · rows − 1, split over micro-batches and ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pretrain.config import PretrainConfig
from pretrain.masking import IGNORE, mask, random_word_tables, slots_per_row
from pretrain.prepare import Artifacts
from synthlang.dictionary import trained_types
from synthlang.errors import InputError
from synthlang.rng import key_of, permutation
from synthlang.shards import Shards
from synthlang.vocabulary import BOS, EOS

Tables = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Batch:
    """``input_ids`` [rows, length]; ``slots``, ``labels`` [rows, k]; ``language`` [rows]; all int64."""

    input_ids: NDArray[np.int64]
    slots: NDArray[np.int64]
    labels: NDArray[np.int64]
    language: NDArray[np.int64]

    @property
    def targets(self) -> int:
        """How many slots have a label."""
        return int((self.labels != IGNORE).sum())


class Stream:
    """Rows of a language's shards, packed as one stream."""

    def __init__(self, shards: Shards, length: int, name: str) -> None:
        self.shards = shards
        self.length = length
        self._starts = shards.offsets + np.arange(len(shards.offsets))  # in the stream with </s>
        self.rows = int(self._starts[-1]) // (length - 1)
        if self.rows == 0:
            raise InputError(f"{name}: {int(self._starts[-1])} tokens do not fill one row of length {length}")

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of rows, [rows, length]."""
        place = rows[:, None] * (self.length - 1) + np.arange(self.length - 1)
        sentence = np.searchsorted(self._starts, place, side="right") - 1
        within = place - self._starts[sentence]
        offsets = self.shards.offsets
        is_end = within == offsets[sentence + 1] - offsets[sentence]
        index = np.minimum(offsets[sentence] + within, len(self.shards.tokens) - 1)
        ids = np.where(is_end, EOS, self.shards.tokens[index].astype(np.int64))
        return np.concatenate([np.full((len(rows), 1), BOS), ids], axis=1)


class Batches:
    """The batches of a run over the streams of its languages."""

    def __init__(self, streams: tuple[Stream, ...], rows: int, slots: int, tables: Tables, seed: int) -> None:
        self.streams = streams
        self.rows = rows
        self.slots = slots
        self.tables = tables
        self.seed = seed
        # an order is as long as a language has rows: keep the current epoch's only
        self._order = lru_cache(maxsize=2 * len(streams))(self._shuffled)

    def _shuffled(self, language: int, epoch: int) -> NDArray[np.int64]:
        return permutation(key_of("epoch", self.seed, language, epoch), self.streams[language].rows)

    def batch(self, step: int, part: int = 0, parts: int = 1) -> Batch:
        """Part ``part`` of ``parts`` equal parts of the batch of a step (counted from 0)."""
        share = self.rows // parts
        first = step * self.rows + part * share
        return self.samples(np.arange(first, first + share, dtype=np.int64))

    def samples(self, samples: NDArray[np.int64]) -> Batch:
        """The samples of the given numbers, in order."""
        language = samples % len(self.streams)
        number = samples // len(self.streams)
        ids = np.empty((len(samples), self.streams[0].length), np.int64)
        for which, stream in enumerate(self.streams):
            mine = language == which
            rows = [self._order(which, int(n) // stream.rows)[int(n) % stream.rows] for n in number[mine]]
            ids[mine] = stream.read(np.asarray(rows, np.int64))
        masked = mask(ids, language, samples, self.slots, self.tables, self.seed)
        return Batch(masked.input_ids, masked.slots, masked.labels, language)


def train_batches(config: PretrainConfig, artifacts: Artifacts) -> Batches:
    """The batches a run trains on."""
    return _batches(config, artifacts, artifacts.train, config.seed)


def dev_batches(config: PretrainConfig, artifacts: Artifacts) -> Batches:
    """The batches a run validates on: other masks than in training, the same in every run."""
    assert artifacts.dev is not None, "the source has no dev split"
    return _batches(config, artifacts, artifacts.dev, key_of("validation"))


def _batches(config: PretrainConfig, artifacts: Artifacts, shards: tuple[Shards, Shards], seed: int) -> Batches:
    names = [f"{config.source}, {language.name}" for language in artifacts.languages]
    streams = tuple(Stream(s, config.batch.length, name) for s, name in zip(shards, names, strict=True))
    parent, derived = (trained_types(s.counts) for s in artifacts.train)
    tables = random_word_tables(parent, derived, config.objective.random_words)
    return Batches(
        streams, config.batch.rows, slots_per_row(config.objective.mask_rate, config.batch.length), tables, seed
    )
