"""Rank correlation for few cells, with a permutation p and a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from probes.statistics.correlations import PERMUTATIONS, SMALLEST_BOOTSTRAP, correlation

EXACT_UP_TO = 8
"""Largest n whose n! permutations are all counted (8! = 40,320)."""

Kind = Literal["spearman", "kendall"]

__all__ = ["EXACT_UP_TO", "PERMUTATIONS", "SMALLEST_BOOTSTRAP", "Kind", "RankCorrelation", "rank_correlation"]


@dataclass(frozen=True)
class RankCorrelation:
    """A rank correlation over ``n`` pairs, or None everywhere and the ``reason`` why."""

    kind: Kind
    n: int
    rho: float | None = None
    p: float | None = None
    """Two-sided permutation p-value."""
    exact: bool = False
    """Whether ``p`` counts all n! permutations, not a random sample of them."""
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    reason: str | None = None


def rank_correlation(
    x: ArrayLike, y: ArrayLike, key: int, kind: Kind = "spearman", level: float = 0.95
) -> RankCorrelation:
    """Rank correlation of independent pairs x [n], y [n]: ``correlation`` without blocks and clusters.

    ``spearman``: Pearson correlation of the mid-ranks. ``kendall``: tau-b. Cells that share a language or a seed are
    not independent, and p and interval are then too narrow.
    """
    found = correlation(x, y, key, kind, level=level)
    return RankCorrelation(kind, found.n, found.r, found.p, found.exact, found.low, found.high, level, found.reason)
