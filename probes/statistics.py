"""Intervals and rank correlation for few seeds and few cells: NumPy and SciPy only.

Every random draw comes from an explicit key, so a report repeats to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from synthlang.errors import InputError

EXACT_UP_TO = 8
"""Largest n whose n! permutations are all counted (8! = 40,320)."""
PERMUTATIONS = 10_000
BOOTSTRAP_ROUNDS = 2_000
SMALLEST_BOOTSTRAP = 5
"""With fewer pairs a percentile bootstrap of a rank correlation collapses; no interval is given."""

Kind = Literal["spearman", "kendall"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence bounds, in the unit of the values; bounds are None when n = 1."""

    mean: float
    low: float | None
    high: float | None
    n: int
    level: float

    def overlaps(self, other: Interval) -> bool | None:
        """Whether the two intervals share a point; None where either has no bounds."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return None
        return self.low <= other.high and other.low <= self.high


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


def generator(key: int) -> np.random.Generator:
    """The stream of random numbers that belongs to ``key`` (0 ≤ key < 2¹²⁸)."""
    return np.random.Generator(np.random.Philox(key=key))


def _values(values: ArrayLike, dimensions: tuple[int, ...]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    assert array.ndim in dimensions, array.shape
    if not array.size:
        raise InputError("no values to average")
    if not np.isfinite(array).all():
        raise InputError("the values hold NaN or infinity")
    return array


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Mean of the values of n seeds [n] with a Student t interval.

    mean ± t((1 + level) / 2; n − 1) · s / √n with the sample standard deviation s. It takes
    the seeds as draws from a normal distribution; with n = 1 nothing is known of the spread.
    Scores of 0 to 100 are not clipped: a bound outside says that n is too small.
    """
    assert 0 < level < 1, level
    array = _values(values, (1,))
    mean, n = float(array.mean()), len(array)
    if n == 1:
        return Interval(mean, None, None, n, level)
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * float(array.std(ddof=1)) / n**0.5
    return Interval(mean, mean - half, mean + half, n, level)


def bootstrap_interval(values: ArrayLike, key: int, rounds: int = BOOTSTRAP_ROUNDS, level: float = 0.95) -> Interval:
    """Mean of ``values``, items [n] or seeds × items [s, n], with a percentile bootstrap interval.

    Each round draws items with replacement; with two dimensions it also draws seeds, crossed:
    the same items for all drawn seeds, since all seeds are scored on one test set (Davison &
    Hinkley 1997, section 3.8). With one seed the interval speaks of the items alone.
    """
    assert 0 < level < 1 and rounds > 0, (level, rounds)
    array = _values(values, (1, 2))
    mean, table = float(array.mean()), np.atleast_2d(array)
    if array.size == 1:
        return Interval(mean, None, None, 1, level)
    seeds, items = table.shape
    random = generator(key)
    means = np.empty(rounds)
    for i in range(rounds):  # one round at a time: memory stays that of the input
        weights = np.bincount(random.integers(seeds, size=seeds), minlength=seeds) / seeds
        means[i] = (weights @ table)[random.integers(items, size=items)].mean()
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low), float(high), array.size, level)


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
    left, right = _values(left, (1,)), _values(right, (1,))
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
