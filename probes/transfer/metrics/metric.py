"""A score of predictions, as sums over items: so that intervals and tests can draw items anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """``score`` of the sums of ``stats``, in percent.

    stats   (gold, predictions), one of each for each item → [items, k] float64: what an item adds to each sum
    score   sums [..., k] → [...]: vectorised over leading dimensions; 0 where nothing was to be found
    """

    name: str
    stats: Callable[[Sequence[Any], Sequence[Any]], Floats]
    score: Callable[[Floats], Floats]

    def __call__(self, gold: Sequence[Any], predictions: Sequence[Any]) -> float:
        """The score of all items together."""
        return float(self.score(self.stats(gold, predictions).sum(axis=0)))
