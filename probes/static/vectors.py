"""Static word vectors, and word vectors extended by the vector of their sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.static.settings import POOLS, Pool
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """One vector for each word type.

    Attributes:
        words: The distinct words, most frequent first if frequencies are known.
        vectors: [words, d] float32, finite.
        facts: The origin of the vectors, as JSON values.

    Raises:
        InputError: There are no words, or a vector contains NaN or infinity.
    """

    words: tuple[str, ...]
    vectors: Tensor
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("no word has a vector", hint="use other vectors", code="empty")
        assert self.vectors.shape[:1] == (len(self.words),) and self.vectors.ndim == 2, self.vectors.shape
        if not bool(self.vectors.isfinite().all()):
            raise InputError("the word vectors contain NaN or infinity", hint="use other vectors", code="range")

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word in ``vectors``."""
        return {word: row for row, word in enumerate(self.words)}

    def rows_of(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the row [n] int64 of each word, or −1 for a word without a vector."""
        return np.fromiter((self.index.get(word, -1) for word in words), np.int64, len(words))

    def vectors_of(self, words: Sequence[str]) -> Tensor:
        """Return the vector [n, d] float32 of each word, with zeros for words without a vector."""
        rows = self.rows_of(words)
        found = self.vectors[torch.from_numpy(np.maximum(rows, 0))]
        return found.masked_fill(torch.from_numpy(rows < 0)[:, None], 0.0)

    def with_small_letters(self, words: Sequence[str]) -> StaticVectors:
        """Return the vectors, with a vector added for each of ``words`` that has one only in lower case.

        An added word gets the vector of its lower-cased form. ``words`` must be distinct. ``facts`` of the result has
        the number of added words as ``small_letters``.
        """
        more = [word for word in words if word not in self.index and word.lower() in self.index]
        rows = torch.tensor([self.index[word.lower()] for word in more], dtype=torch.long)
        facts = {**self.facts, "small_letters": len(more)}
        return StaticVectors((*self.words, *more), torch.cat([self.vectors, self.vectors[rows]]), facts)

    def without_zeros(self) -> StaticVectors:
        """Return the words whose vectors are not zero, with their vectors.

        Raises:
            InputError: All vectors are zero.
        """
        kept = (self.vectors != 0).any(1)
        words = tuple(word for word, there in zip(self.words, kept.tolist(), strict=True) if there)
        return self if bool(kept.all()) else StaticVectors(words, self.vectors[kept], self.facts)

    def rows_of_column(self, forms: Column) -> NDArray[np.int64]:
        """Return the row in ``vectors`` [n] int64 of each of the n words in a column, or −1 for words without a vector.

        Each type is looked up once.
        """
        return self.rows_of(forms.names or ())[forms.codes]

    def mapped(self, function: Callable[[Tensor], Tensor]) -> StaticVectors:
        """Return the same words with vectors mapped by a function [n, d] → [n, k], such as a rotation, as float32.

        Raises:
            InputError: A result contains NaN or infinity.
        """
        rows = torch.cat([function(batch) for batch in torch.split(self.vectors, ROWS)])
        return StaticVectors(self.words, rows.float(), self.facts)


SENTENCES = 500  # sentences per batch
ROWS = 8192  # vectors that are mapped at once


def augmented(vectors: StaticVectors, corpus: Corpus, pools: Sequence[Pool] = POOLS) -> Iterator[Tensor]:
    """Yield word vectors with sentence vectors appended, in batches of SENTENCES sentences.

    A batch is [words of the batch, d · (1 + number of pools)] float32, where d is the size of a vector. ``corpus`` has
    the sentences, and ``pools`` names the sentence vectors to append.

    A sentence vector is the element-wise mean, maximum or minimum of the vectors of its words (Rücklé et al. 2018).
    With all three, 300 dimensions become 1,200. Words without a vector do not contribute to sentence vectors. Their own
    rows are zero, so that they count as misses. As in Cao et al. 2020, section 3.4, ``vectors`` must already be
    normalised and rotated, because a rotation does not preserve maximum and minimum.
    """
    for start in range(0, len(corpus), SENTENCES):
        part = corpus.between(start, start + SENTENCES)
        rows = vectors.rows_of_column(part.form)
        known = rows >= 0
        own = vectors.vectors[torch.from_numpy(np.maximum(rows, 0))]
        mask = torch.from_numpy(known)
        inside = np.concatenate([[0], np.cumsum(known)])[part.offsets]
        pooled = pool_rows(own[mask], inside, pools)
        whole = torch.cat([own, pooled[torch.from_numpy(part.sentence_of_word)]], dim=1)
        yield whole.masked_fill(~mask[:, None], 0.0)


def pool_rows(rows: Tensor, offsets: NDArray[np.int64], pools: Sequence[Pool]) -> Tensor:
    """Return the element-wise mean, maximum or minimum of each segment of rows, [segments, d · pools] float32.

    Args:
        rows: [n, d] The rows, float32.
        offsets: [segments + 1] Segment i has the rows offsets[i] … offsets[i + 1] − 1. A segment without rows is zero.
        pools: Names of the functions, whose results are put side by side.
    """
    values, lengths = rows.numpy(), np.diff(offsets)
    filled = lengths > 0
    starts = offsets[:-1][filled]  # the next filled segment starts where this one ends
    result = np.zeros((len(lengths), len(pools), values.shape[1]), np.float32)
    for at, name in enumerate(pools if len(starts) else ()):
        if name == "mean":
            sums = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
            result[filled, at] = sums / lengths[filled][:, None]
        else:
            result[filled, at] = (np.maximum if name == "max" else np.minimum).reduceat(values, starts, axis=0)
    return torch.from_numpy(result.reshape(len(lengths), -1))
