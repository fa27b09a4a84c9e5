"""Sentences with labelled words as rows of token ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from synthlang.corpus import Column, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.language import Language
from synthlang.sources.base import Source
from synthlang.subwords import starts_word
from synthlang.vocabularies import MemberTokenizer, Specials
from synthlang.vocabulary import Encoded

NO_LABEL = -100
ROUND_LENGTH = 8


@dataclass(frozen=True)
class Examples:
    """Encoded sentences; ``labels`` [words] are class numbers, −1 for a label not in training."""

    encoded: Encoded
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    length: int
    specials: Specials

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """[words] whether a word's first subword is within ``length`` − 2 tokens of its sentence."""
        starts = self.encoded.word_offsets[:-1]
        sentence_start = self.encoded.word_offsets[self.offsets[:-1]]
        within = starts - np.repeat(sentence_start, np.diff(self.offsets))
        # a form that encodes to nothing has no subword to predict from
        return (within < self.length - 2) & (np.diff(self.encoded.word_offsets) > 0)

    def batch(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        """``input_ids`` and ``labels`` [rows, width], and the word of each position (−1: none).

        Labels stand on the first subword of a word. Width is the longest row, rounded up.
        """
        bounds = self.encoded.word_offsets[self.offsets]
        sizes = np.minimum(np.diff(bounds)[rows], self.length - 2)
        width = -(-(int(sizes.max(initial=0)) + 2) // ROUND_LENGTH) * ROUND_LENGTH
        bos, eos = self.specials.bos, self.specials.eos
        ids = np.full((len(rows), width), self.specials.pad, np.int64)
        words = np.full((len(rows), width), -1, np.int64)
        for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            start = bounds[row]
            ids[i, : size + 2] = [bos, *self.encoded.ids[start : start + size], eos]
            of_sentence = np.arange(self.offsets[row], self.offsets[row + 1])
            of_sentence = of_sentence[self.kept[of_sentence]]
            words[i, 1 + self.encoded.word_offsets[of_sentence] - start] = of_sentence
        labels = np.where((words >= 0) & (self.labels[words] >= 0), self.labels[words], NO_LABEL)
        return torch.from_numpy(ids), torch.from_numpy(labels), torch.from_numpy(words)

    def batches(self, size: int) -> Iterator[NDArray[np.int64]]:
        """Rows in order of length, so that a batch pads little."""
        order = np.argsort(np.diff(self.encoded.word_offsets[self.offsets]), kind="stable")
        return (order[i : i + size] for i in range(0, len(order), size))


def read_split(source: Source, split: str, limit: int | None) -> Corpus:
    """The first ``limit`` sentences of a split as one corpus."""
    batches: list[Corpus] = []
    count = 0
    for batch in source.batches(split):
        batches.append(batch if limit is None else batch.between(0, limit - count))
        count += len(batches[-1])
        if limit is not None and count >= limit:
            break
    return concatenate(batches)


def class_names(column: Column) -> tuple[str, ...]:
    """The labels that occur in a column, sorted."""
    assert column.names is not None, "labels have names"
    return tuple(sorted({column.names[i] for i in np.unique(column.codes)}))


def build_examples(
    parent: Corpus,
    language: Language,
    tokenizer: MemberTokenizer,
    specials: Specials,
    column: str,
    classes: tuple[str, ...],
    length: int,
) -> Examples:
    """Encode sentences of the parent in a language; the labels follow their words."""
    if not len(parent):
        raise InputError("a split for the task has no sentence")
    derived = language.derive(parent)
    if not len(derived):
        raise InputError(f"the language {language.name} leaves no sentence of a split for the task")
    labels = derived.columns[column]
    index = {name: i for i, name in enumerate(classes)}
    table = np.asarray([index.get(name, -1) for name in labels.names or ()], np.int64)
    classes_of = table[labels.codes]
    if language.on_tokens:  # each token is a word there; the label stands on the first of its word
        classes_of = np.where(starts_word(derived.form, language.script), classes_of, -1)
    return Examples(tokenizer.encode(derived), derived.offsets, classes_of, length, specials)
