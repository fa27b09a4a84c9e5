"""Which rows make a batch: any to train on, rows of about one length to predict."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import permutation

ROWS, TOKENS = 256, 8192  # of a batch that is only predicted

Rows = NDArray[np.int64]


def training_batches(count: int, rows: int, key: int) -> list[Rows]:
    """Batches of ``rows`` of ``count`` rows, each once, in a random order that is a function of the key.

    The last batch may have fewer. Length plays no part: it often goes with a class, and batches of one class train
    badly. What is padding costs little, since the model leaves it out (pretrain.model.text).
    """
    order = permutation(key, count)
    return [order[start : start + rows] for start in range(0, count, rows)]


def bounded_batches(lengths: NDArray[np.int64], rows: int = ROWS, tokens: int = TOKENS) -> list[Rows]:
    """Each row once, the longest first: at most ``rows`` rows and, padded, ``tokens`` tokens a batch (or one row)."""
    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    batches, start = [], 0
    while start < len(order):
        count = max(1, min(rows, tokens // max(int(lengths[order[start]]), 1)))
        batches.append(order[start : start + count])
        start += count
    return batches
