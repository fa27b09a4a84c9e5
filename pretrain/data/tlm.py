"""Rows of sentence pairs, for TLM (Lample & Conneau 2019, section 3.3): one language in each half."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pretrain.artifacts import Parallel
from pretrain.data.packing import pack, ranges, write_sentences
from pretrain.data.rows import Rows, Span
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation
from synthlang.vocabularies import Specials


class ParallelRows:
    """Whole sentences of the left language in the first half, the same ones of the right in the second.

    A share ``rate`` of the pairs is drawn without replacement: round(rate · pairs), of which a smaller rate
    draws a part. They are packed in the order of ``parallel``, as long as both halves have room:
    ``<s> a1 </s> a2 </s> <pad> … | <s> b1 </s> b2 </s> <pad> …``. Positions start anew in the second half.

    drawn     pairs drawn
    too_long  of these, left out since a side with its <s> and </s> is longer than half a row
    empty     of these, left out since a side has no token

    InputError for an odd length, and if no pair is left.
    """

    term = "tlm"
    padded = True

    def __init__(
        self,
        parallel: Parallel,
        rate: float,
        length: int,
        specials: Specials,
        seed: int,
        name: str,
        report: Report = silent,
    ) -> None:
        if length % 2:
            raise InputError(f"{name}: TLM needs an even batch.length, a half for each language; it is {length}")
        self.length, self.specials, self.name = length, specials, name
        self.half = length // 2
        self.languages: tuple[int, ...] = (parallel.left, parallel.right)
        self.spans: tuple[Span, ...] = ((0, self.half, parallel.left), (self.half, length, parallel.right))
        self._shards = (parallel.left_shards, parallel.right_shards)
        self._pairs = self._usable(parallel.rows, rate, key_of("tlm", seed, parallel.left, parallel.right))
        self._starts = pack(self._costs, len(self._pairs), self.half - 1, f"pack {name}", report)
        self.rows = len(self._starts) - 1

    def _usable(self, pairs: NDArray[np.int64], rate: float, key: int) -> NDArray[np.int64]:
        """The pairs that are drawn and fit, in order."""
        drawn = pairs[np.sort(permutation(key, len(pairs))[: round(rate * len(pairs))])]
        lengths = self._lengths(drawn)
        empty = lengths.min(axis=0) == 0
        fits = lengths.max(axis=0) + 2 <= self.half
        self.drawn, self.empty, self.too_long = len(drawn), int(empty.sum()), int((~fits & ~empty).sum())
        self.counts = {
            "pairs drawn": self.drawn,
            f"pairs dropped, a side has over {self.half - 2} tokens": self.too_long,
            "pairs dropped, a side is empty": self.empty,
        }
        usable: NDArray[np.int64] = drawn[fits & ~empty]
        if not len(usable):
            raise InputError(
                f"{self.name}: TLM has no usable pair: {len(drawn)} of {len(pairs)} drawn, of these {self.too_long} "
                f"have a side of over {self.half - 2} tokens (half a row), {self.empty} an empty side"
            )
        return usable

    def _lengths(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of each side, [2, pairs]."""
        sides = zip(self._shards, pairs.T, strict=True)
        return np.stack([shards.offsets[row + 1] - shards.offsets[row] for shards, row in sides])

    def _costs(self, first: int, last: int) -> NDArray[np.int64]:
        return self._lengths(self._pairs[first:last]) + 1

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of the given numbers."""
        pair, row = ranges(self._starts[numbers], self._starts[numbers + 1])
        ids = np.empty((len(numbers), self.length), np.int64)
        languages = np.empty_like(ids)
        valid = np.empty(ids.shape, bool)
        for side, (start, stop, language) in enumerate(self.spans):
            sentences = self._pairs[pair, side]
            valid[:, start:stop] = write_sentences(
                ids[:, start:stop], self._shards[side], sentences, row, self.specials
            )
            languages[:, start:stop] = language
        languages[~valid] = self.languages[0]
        positions = np.tile(np.arange(self.half), (len(numbers), 2))
        return Rows(ids, languages, positions, valid)
