"""One vector for each word type, whatever its context; and words beside the vectors of their sentence."""

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
    """Vectors of words, the most frequent first where that is known.

    words     each once
    vectors   [words, d] float32, finite
    facts     how they came about, as JSON values
    """

    words: tuple[str, ...]
    vectors: Tensor
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("there are no word vectors", code="empty")
        assert self.vectors.shape[:1] == (len(self.words),) and self.vectors.ndim == 2, self.vectors.shape
        if not bool(self.vectors.isfinite().all()):
            raise InputError("the word vectors hold NaN or infinity", code="range")

    @cached_property
    def index(self) -> dict[str, int]:
        """Word → row."""
        return {word: row for row, word in enumerate(self.words)}

    def rows_of(self, words: Sequence[str]) -> NDArray[np.int64]:
        """[n] the row of each word, −1 for one without a vector."""
        return np.fromiter((self.index.get(word, -1) for word in words), np.int64, len(words))

    def vectors_of(self, words: Sequence[str]) -> Tensor:
        """[n, d] the vector of each word; zeros for one without."""
        rows = self.rows_of(words)
        found = self.vectors[torch.from_numpy(np.maximum(rows, 0))]
        return found.masked_fill(torch.from_numpy(rows < 0)[:, None], 0.0)

    def with_small_letters(self, words: Sequence[str]) -> StaticVectors:
        """With those of small letters for ``words`` that have none of their own."""
        more = [word for word in words if word not in self.index and word.lower() in self.index]
        rows = torch.tensor([self.index[word.lower()] for word in more], dtype=torch.long)
        facts = {**self.facts, "small_letters": len(more)}
        return StaticVectors((*self.words, *more), torch.cat([self.vectors, self.vectors[rows]]), facts)

    def without_zeros(self) -> StaticVectors:
        """Return the words whose vector is not zero.

        A zero vector would be near its sentence's other words by their vectors.
        """
        kept = (self.vectors != 0).any(1)
        words = tuple(word for word, there in zip(self.words, kept.tolist(), strict=True) if there)
        return self if bool(kept.all()) else StaticVectors(words, self.vectors[kept], self.facts)

    def rows_of_column(self, forms: Column) -> NDArray[np.int64]:
        """[words] the same for the words of a corpus, each type looked up once."""
        return self.rows_of(forms.names or ())[forms.codes]

    def mapped(self, function: Callable[[Tensor], Tensor]) -> StaticVectors:
        """Return the same words with other vectors. ``function`` maps rows to rows, batch by batch (``map.apply``)."""
        rows = torch.cat([function(batch) for batch in torch.split(self.vectors, ROWS)])
        return StaticVectors(self.words, rows.float(), self.facts)


SENTENCES = 500  # whose words are given out at once
ROWS = 8192  # of vectors that are mapped at once


def augmented(vectors: StaticVectors, corpus: Corpus, pools: Sequence[Pool] = POOLS) -> Iterator[Tensor]:
    """Return the vectors [words, d · (1 + pools)] float32 of a corpus, some sentences at a time.

    A vector is the word's own, then its sentence's. A word without a vector of its own has zeros, so that it is a miss
    whatever its sentence. As in the paper, ``vectors`` are normalised (``unit-centre-unit``) and rotated before, by
    ``mapped``, since a rotation does not keep largest and smallest values. The vectors of a sentence are the mean, the
    largest and the smallest of its words' vectors, element by element (Rücklé et al. 2018), so 300 dimensions become
    1,200.
    Without pools there are the words alone. Words without a vector take no part in their sentence's.
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
    """[segments, d · pools] float32: the pools of the rows offsets[i] … offsets[i + 1] − 1, one beside the other.

    Sums are in float64; a segment without rows is zeros.
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
