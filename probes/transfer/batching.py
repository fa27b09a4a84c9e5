"""Which rows make a batch: rows of about one length together, so that little is padding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import permutation

POOL = 64  # batches that are sorted by length together: with fewer more is padding, with more less is chance
ROWS, TOKENS = 256, 8192  # of a batch that is only predicted

Rows = NDArray[np.int64]


def training_batches(lengths: NDArray[np.int64], rows: int, key: int) -> list[Rows]:
    """Batches of ``rows`` rows, each row once: a function of (lengths, rows, key).

    A random order is cut into pools of 64 batches, each pool sorted by length and cut into batches, which then come in
    a random order. One batch has fewer rows where ``rows`` does not divide their number.
    """
    order = permutation(key, len(lengths))
    pools = [order[start : start + POOL * rows] for start in range(0, len(order), POOL * rows)]
    in_pools = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
    batches = [pool[start : start + rows] for pool in in_pools for start in range(0, len(pool), rows)]
    return [batches[i] for i in permutation(key ^ 1, len(batches))]


def bounded_batches(lengths: NDArray[np.int64], rows: int = ROWS, tokens: int = TOKENS) -> list[Rows]:
    """Each row once, the longest first: at most ``rows`` rows and, padded, ``tokens`` tokens a batch (or one row)."""
    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    batches, start = [], 0
    while start < len(order):
        count = max(1, min(rows, tokens // max(int(lengths[order[start]]), 1)))
        batches.append(order[start : start + count])
        start += count
    return batches
