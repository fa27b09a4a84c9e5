"""What is probed: one model or two, the two languages they read, sentence pairs in both, and their hidden states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.adjust.batches import side_words
from pretrain.adjust.vectors import Subword
from pretrain.model.encoder import MaskedLM
from probes.measures.distances.pairs import Linked
from probes.measures.settings import InputConfig
from probes.states import StateReader, batches_by_length, link_batches, reading
from probes.transfer.aligned_text import Aligned, read_aligned
from probes.transfer.batch import Role
from probes.transfer.model import Pretrained
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.parallel.prepare import PairData, Sentences
from synthlang.progress import Report, silent
from synthlang.store import Store

ROLES: tuple[Role, Role] = ("target", "source")  # left and right of the sentence pairs


@dataclass(frozen=True, eq=False)
class Side:
    """One language of the sentence pairs: its words, its ids, and what reads them.

    corpus      the sentences as words
    sentences   the same as ids; row r of both sides are a pair
    """

    role: Role
    name: str
    corpus: Corpus
    sentences: Sentences
    reader: StateReader


@dataclass(frozen=True, eq=False)
class ProbeInput:
    """A model with the text it is probed on. ``target`` (left) is the other language, ``source`` (right) the parent.

    run   the folder, if the model is a run of ours
    """

    pretrained: Pretrained
    config: InputConfig
    run: Path | None = None
    store: Store | None = None
    report: Report = silent

    @property
    def same_model(self) -> bool:
        """Whether one model reads both languages."""
        return self.pretrained.model is self.pretrained.target_model

    def body(self, role: Role) -> MaskedLM:
        """The model that reads a language."""
        return self.pretrained.target_model if role == "target" else self.pretrained.model

    def name(self, role: Role) -> str:
        """What a language is called."""
        return self.pretrained.language_name(role)

    @cached_property
    def aligned(self) -> Aligned:
        """The sentence pairs; InputError for what cannot be read, and for more than one pair of languages."""
        config = self.config
        texts = read_aligned(
            config.pairs, config.data, self.pretrained, config.seed, self.store, self.report, config.fits
        )
        if len(texts) > 1:
            raise InputError(f"pairs: name one pair of languages, not {len(texts)}")
        return texts[0]

    @property
    def data(self) -> PairData:
        """Their ids and links."""
        return self.aligned.data

    @property
    def measured(self) -> NDArray[np.int64]:
        """The sentence pairs that are measured on; InputError if there are none."""
        if not len(self.data.dev):
            raise InputError("data.dev: no sentence pair is left to measure on")
        return self.data.dev

    @property
    def fitted(self) -> NDArray[np.int64]:
        """The sentence pairs that maps may be fitted on, none of them measured; there are some if a probe ``fits``."""
        return self.data.train

    def layers(self, role: Role) -> tuple[int, ...]:
        """The numbers of the layers that are read of a model: 0 … N."""
        return self.config.numbers(self.body(role).shape.layers)

    def side(self, role: Role, subword: Subword | None = None, layers: tuple[int, ...] | None = None) -> Side:
        """One language, read at some layers (default: the config's)."""
        text, data = self.aligned.text, self.data
        corpus, sentences = (text.left, data.left) if role == "target" else (text.right, data.right)
        held = self.pretrained.target if role == "target" else self.pretrained.source
        numbers = self.layers(role) if layers is None else layers
        reader = StateReader(self.body(role), held.specials, numbers, subword or self.config.subword)
        return Side(role, self.name(role), corpus, sentences, reader)

    def reading(self) -> AbstractContextManager[None]:
        """Without gradients and dropout, on a GPU where there is one; the models are then as they were."""
        return reading(map(self.body, ROLES))


@dataclass(frozen=True, eq=False)
class WordStates:
    """Vectors of the words of some sentences.

    vectors    [layers, n, d] float32, on the device of the model
    word       [n] int64 the number of each word among all words of the side's corpus
    sentence   [n] int64 its sentence: a row of the pairs
    """

    vectors: Tensor
    word: Tensor
    sentence: Tensor


def word_states(side: Side, rows: NDArray[np.int64], report: Report = silent, task: str = "") -> Iterator[WordStates]:
    """All words of the sentences at ``rows`` that the tokenizer leaves something of.

    The order of sentences is that of ``bounded_batches``: by length, not that of ``rows``.
    """
    sentences, offsets = side.sentences, side.corpus.offsets
    for at in batches_by_length(sentences, rows, report, task):
        counts = np.diff(offsets)[at]
        word = words_of(offsets, at)
        words = side_words([sentences], [at], np.zeros(len(word), bool), side.reader.specials)
        kept = words.stop > words.start
        vectors = side.reader.vectors(words)[:, kept.to(side.reader.body.norm.weight.device)]
        sentence = np.repeat(at, counts)
        yield WordStates(vectors, torch.from_numpy(word)[kept], torch.from_numpy(sentence)[kept])


def words_of(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of the words of the sentences at ``rows``, in their order; ``offsets`` are those of a corpus."""
    counts = np.diff(offsets)[rows]
    return np.repeat(offsets[rows] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))


def linked_states(
    given: ProbeInput, left: Side, right: Side, rows: NDArray[np.int64], report: Report = silent, task: str = ""
) -> Iterator[Linked]:
    """Vectors of both words of every link of the pairs at ``rows``, their sentence and the type of the right word."""
    data, codes = given.data, right.corpus.form.codes
    for at, of_left, of_right in link_batches(data, rows, left.reader, right.reader, report, task):
        links = data.links.take(at)
        sentence = at[links.sentence]
        word = codes[right.corpus.offsets[sentence] + links.right].astype(np.int64)
        yield Linked(of_left, of_right, torch.from_numpy(sentence), torch.from_numpy(word))
