"""How often each source of rows is drawn from, and the order of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pretrain.data.rows import RowSource
from synthlang.rng import key_of, permutation


def sampling_weights(
    monolingual: Sequence[RowSource], sentences: Sequence[int], exponent: float, parallel: Sequence[RowSource] = ()
) -> tuple[Fraction, ...]:
    """The share of each source, monolingual ones first; they sum to 1.

    Among monolingual rows a language has q ∝ sentences ** exponent (Lample & Conneau 2019, section 3.1);
    rows of pairs are mixed in uniformly: each source of them has its share of all rows.
    """
    powers = [Fraction(float(size) ** exponent) for size in sentences]
    own = sum(source.rows for source in monolingual)
    rows = own + sum(source.rows for source in parallel)
    shares = [Fraction(own, rows) * power / sum(powers) for power in powers]
    return (*shares, *(Fraction(source.rows, rows) for source in parallel))


class Epochs:
    """The rows of a source in the order of training: every epoch has each row once, in an order of its own."""

    def __init__(self, seed: int, source: int, rows: int) -> None:
        self.rows = rows
        # an order is as long as the source; a step may end one epoch and begin the next
        self._order = lru_cache(maxsize=2)(lambda epoch: permutation(key_of("epoch", seed, source, epoch), rows))

    def rows_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows that samples of this source show; they are counted from 0, epoch after epoch."""
        epoch, place = np.divmod(samples, self.rows)
        result = np.empty_like(samples)
        for e in np.unique(epoch).tolist():
            mine = epoch == e
            result[mine] = self._order(e)[place[mine]]
        return result
