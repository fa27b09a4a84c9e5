"""Rank correlation for few cells, with a permutation p and a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from probes.statistics.base import BOOTSTRAP_ROUNDS, Floats, generator, values_of

EXACT_UP_TO = 8
"""Largest n whose n! permutations are all counted (8! = 40,320)."""
PERMUTATIONS = 10_000
SMALLEST_BOOTSTRAP = 5
"""With fewer pairs a percentile bootstrap of a rank correlation collapses; no interval is given."""

Kind = Literal["spearman", "kendall"]


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
    """Rank correlation of pairs x [n], y [n] with a permutation p and a bootstrap interval.

    ``spearman``: Pearson correlation of the mid-ranks. ``kendall``: tau-b. p is the share of
    permutations of y whose |rho| reaches the observed one: all n! for n ≤ EXACT_UP_TO, else
    (1 + hits) / (1 + PERMUTATIONS) over random ones (Phipson & Smyth 2010). The interval
    resamples pairs, leaves out resamples with a constant side, and needs SMALLEST_BOOTSTRAP
    pairs. It takes the pairs as independent: cells that share a language or a seed are not,
    and p and interval are then too narrow.
    """
    assert 0 < level < 1, level
    left, right = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    assert left.ndim == 1 and left.shape == right.shape, (left.shape, right.shape)
    n = len(left)
    if n < 3:
        return RankCorrelation(kind, n, level=level, reason=f"{n} pairs: a correlation needs at least 3")
    left, right = values_of(left, (1,)), values_of(right, (1,))
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        side = "first" if np.ptp(left) == 0 else "second"
        return RankCorrelation(kind, n, level=level, reason=f"the {side} side is constant")
    random = generator(key)
    rho = float(_correlate(left[None], right[None], kind)[0])
    p = _permutation_p(left, right, rho, kind, random)
    low, high = _resampled_bounds(left, right, kind, level, random)
    return RankCorrelation(kind, n, rho, p, n <= EXACT_UP_TO, low, high, level)


def _correlate(x: Floats, y: Floats, kind: Kind) -> Floats:
    """Correlation [r] of the rows of x [r or 1, n] and y [r, n]; NaN where a row is constant."""
    left, right = _scores(x, kind), _scores(y, kind)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = (left * right).sum(1) / np.sqrt((left**2).sum(1) * (right**2).sum(1))
    clipped: Floats = np.clip(rho, -1, 1)
    return clipped


def _scores(rows: Floats, kind: Kind) -> Floats:
    """What a rank correlation is the cosine of: centred mid-ranks [r, n] or signs of differences [r, n²]."""
    if kind == "kendall":
        signs: Floats = np.sign(rows[:, :, None] - rows[:, None, :])
        return signs.reshape(len(rows), -1)
    ranks: Floats = np.asarray(stats.rankdata(rows, axis=1), dtype=np.float64)
    ranks -= ranks.mean(1, keepdims=True)
    return ranks


def _in_blocks(x: Floats, y: Floats, picks: NDArray[np.intp], both: bool, kind: Kind) -> Floats:
    """Correlation of y[pick] with x[pick] (``both``) or with x, for each row of picks [r, n]; bounded memory."""
    size = max(1, 4_000_000 // len(x) ** 2)
    blocks = (picks[start : start + size] for start in range(0, len(picks), size))
    return np.concatenate([_correlate(x[block] if both else x[None], y[block], kind) for block in blocks])


def _permutation_p(x: Floats, y: Floats, rho: float, kind: Kind, random: np.random.Generator) -> float:
    n, exact = len(x), len(x) <= EXACT_UP_TO
    indices = np.arange(n)
    picks = np.array(
        list(permutations(range(n))) if exact else [random.permutation(indices) for _ in range(PERMUTATIONS)]
    )
    # The rounding of equal correlations must not decide whether they count.
    hits = int((np.abs(_in_blocks(x, y, picks, False, kind)) >= abs(rho) - 1e-12).sum())
    return hits / len(picks) if exact else (1 + hits) / (1 + len(picks))


def _resampled_bounds(
    x: Floats, y: Floats, kind: Kind, level: float, random: np.random.Generator
) -> tuple[float | None, float | None]:
    n = len(x)
    if n < SMALLEST_BOOTSTRAP:
        return None, None
    drawn = _in_blocks(x, y, random.integers(n, size=(BOOTSTRAP_ROUNDS, n)), True, kind)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < BOOTSTRAP_ROUNDS / 2:
        return None, None
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
