"""Means with confidence bounds: Student's t over seeds, and bootstraps over seeds and items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from synthlang.errors import InputError
from synthlang.parallel.error_rates import error_rate
from synthlang.rng import key_of

BOOTSTRAP_ROUNDS = 2_000

Floats = NDArray[np.float64]


def generator(key: int) -> np.random.Generator:
    """Return the random number generator Philox with the key ``key`` (0 ≤ key < 2¹²⁸)."""
    return np.random.Generator(np.random.Philox(key=key))


def values_of(values: ArrayLike, dimensions: tuple[int, ...]) -> Floats:
    """Return ``values`` as a float64 array. ``dimensions`` are the allowed numbers of dimensions.

    Raises:
        InputError: There are no values, or NaN or infinity is among them.
    """
    array = np.asarray(values, dtype=np.float64)
    assert array.ndim in dimensions, array.shape
    if not array.size:
        raise InputError("there are no values", code="empty")
    if not np.isfinite(array).all():
        raise InputError("the values contain NaN or infinity", code="range")
    return array


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence bounds, in the unit of the values.

    Attributes:
        mean: The mean, or another estimate such as a difference or a correlation.
        low: The lower bound, or None if it is not known, as for n = 1.
        high: The upper bound, or None if it is not known.
        n: The number of values. A bootstrap counts seeds × items.
        level: The confidence level, 0 to 1.
        within: The least and the greatest possible value of the measure, if they are known.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    level: float
    within: tuple[float, float] | None = None

    @property
    def shown(self) -> Interval:
        """The interval with bounds clipped to ``within``, but never past the mean."""
        if self.within is None or self.low is None or self.high is None:
            return self
        least, most = self.within
        return replace(self, low=min(max(self.low, least), self.mean), high=max(min(self.high, most), self.mean))


def numbers_among(values: Iterable[float | None]) -> list[float]:
    """Return the values that are not None, NaN or infinite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the finite numbers among ``values``, or None if there is no finite number."""
    numbers = numbers_among(values)
    return sum(numbers) / len(numbers) if numbers else None


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return the mean of ``values`` [n], such as the scores of n seeds, with Student's t interval.

    The interval is mean ± t((1 + level) / 2; n − 1) · s / √n, where s is the sample standard deviation (Student 1908).
    Values are treated as draws from a normal distribution. Bounds may lie outside the range of the score, which shows
    that n is too small. ``Interval.shown`` clips them. With one value, there are no bounds. ``level`` is the confidence
    level, 0 to 1.

    Raises:
        InputError: There are no values, or NaN or infinity is among them.
    """
    assert 0 < level < 1, level
    array = values_of(values, (1,))
    mean, n = float(array.mean()), len(array)
    if n == 1:
        return Interval(mean, None, None, n, level)
    half = _quantile((1 + level) / 2, n - 1) * float(array.std(ddof=1)) / n**0.5
    return Interval(mean, mean - half, mean + half, n, level)


@lru_cache(maxsize=4096)
def _quantile(share: float, degrees: int) -> float:
    """Return a quantile of Student's t distribution. A report needs the same few quantiles often, hence the cache."""
    return float(stats.t.ppf(share, degrees))


def wilson_interval(share: float, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's score interval in percent for a ``share`` (0 to 1) of ``n`` ≥ 1 draws.

    The bounds are (p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n), where p is the share and z the quantile of the
    normal distribution at (1 + level) / 2 (Wilson 1927). SciPy's function accepts only whole numbers of hits, but ties
    give fractions of hits.
    """
    z = float(stats.norm.ppf((1 + level) / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    low, high = max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))  # rounding at 0 and 1
    return Interval(100 * share, 100 * low, 100 * high, n, level)


Score = Callable[[Floats], Floats]  # sums [..., k] → scores [...], as in Metric
Draws = tuple[Floats, Floats]  # counts of draws of each seed [rounds, seeds] and each item [rounds, items]

BLOCK = 2_000_000
"""Maximum number of array elements in a block of rounds."""


def bootstrap_metric(
    stats: ArrayLike, score: Score, key: int, rounds: int = BOOTSTRAP_ROUNDS, level: float = 0.95
) -> Interval:
    """Return the mean over seeds of the score of all items, with a percentile bootstrap interval.

    Each round draws seeds and items with replacement, and averages the scores of the drawn seeds over the drawn items.
    All seeds share the drawn items (a crossed bootstrap; Davison & Hinkley 1997, section 3.8), because they were scored
    on one test set. ``scipy.stats.bootstrap`` cannot do this. With one seed, the interval covers items only.

    Args:
        stats: [seeds, items, k], the contribution of each item to each sum.
        score: A function from sums [..., k] to scores [...].
        key: The key of the random draws.
        rounds: Number of bootstrap rounds.
        level: The confidence level, 0 to 1.

    Returns:
        The interval, in the unit of ``score``. Its ``n`` is seeds × items. If n = 1, there are no bounds.

    Raises:
        InputError: There are no values, or NaN or infinity is among them.
    """
    table = values_of(stats, (3,))
    mean = _mean(table, score)
    if table.shape[0] * table.shape[1] == 1:
        return Interval(mean, None, None, 1, level)
    drawn = [_drawn(table, score, draws) for draws in _draws(table.shape, generator(key), rounds, _size(table))]
    return _interval(mean, np.concatenate(drawn), table, level)


def bootstrap_difference(
    first: ArrayLike,
    second: ArrayLike,
    score: Score,
    key: int,
    *,
    paired: bool,
    rounds: int = BOOTSTRAP_ROUNDS,
    level: float = 0.95,
) -> Interval:
    """Return the difference ``first`` − ``second`` with a bootstrap interval, such as SUP − ZS.

    The arguments are as for `bootstrap_metric`. If ``paired``, both sides have the same seeds and items in the same
    order, and a round draws them once for both. Otherwise seeds and items are drawn for each side separately. The ``n``
    of the interval is seeds × items of ``first``. If each side has one seed and one item, there are no bounds.

    Raises:
        InputError: A side has no values, or NaN or infinity is among them.
    """
    left, right = values_of(first, (3,)), values_of(second, (3,))
    assert not paired or left.shape[:2] == right.shape[:2], (left.shape, right.shape)
    mean = _mean(left, score) - _mean(right, score)
    if max(left.shape[0] * left.shape[1], right.shape[0] * right.shape[1]) == 1:
        return Interval(mean, None, None, 1, level)
    random, size = generator(key), min(_size(left), _size(right))
    draws = _draws(left.shape, random, rounds, size)
    both = (
        ((one, one) for one in draws) if paired else zip(draws, _draws(right.shape, random, rounds, size), strict=True)
    )
    drawn = [_drawn(left, score, mine) - _drawn(right, score, other) for mine, other in both]
    return _interval(mean, np.concatenate(drawn), left, level)


def _mean(table: Floats, score: Score) -> float:
    return float(score(table.sum(axis=1)).mean())


def _size(table: Floats) -> int:
    """Return the number of rounds per block that keeps its arrays within BLOCK elements."""
    seeds, items, k = table.shape
    return int(max(1, BLOCK // max(items, seeds * k)))


def _draws(shape: tuple[int, ...], random: np.random.Generator, rounds: int, size: int) -> Iterator[Draws]:
    """Yield blocks of at most ``size`` rounds."""
    seeds, items = shape[:2]
    for start in range(0, rounds, size):
        pairs = [(_counted(random, seeds), _counted(random, items)) for _ in range(min(size, rounds - start))]
        yield np.array([s for s, _ in pairs], np.float64), np.array([i for _, i in pairs], np.float64)


def _counted(random: np.random.Generator, n: int) -> NDArray[np.intp]:
    """Return the number of times that each of n items occurs in n draws with replacement, [n]."""
    return np.bincount(random.integers(n, size=n), minlength=n)


def _drawn(table: Floats, score: Score, draws: Draws) -> Floats:
    """Return the mean score of the drawn seeds over the drawn items, [rounds]."""
    of_seeds, of_items = draws
    seeds = len(table)
    scores = np.stack([score(of_items @ table[s]) for s in range(seeds)], axis=1)
    result: Floats = (scores * of_seeds).sum(axis=1) / seeds
    return result


def _interval(mean: float, drawn: Floats, table: Floats, level: float) -> Interval:
    assert 0 < level < 1, level
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low), float(high), table.shape[0] * table.shape[1], level)


def alignment_interval(sums: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap bounds (low, high) of the alignment error rate (0 to 1) over sentence pairs.

    `error_rate` has the equation, and `bootstrap_metric` computes the interval. The result is None for one pair, or if
    a draw has neither a word alignment nor a sure gold alignment.

    Args:
        sums: [pairs, 4] the counts of each sentence pair, with the columns of ``error_rate``.

    Raises:
        InputError: There are no sentence pairs.
    """
    found = bootstrap_metric(sums[None], error_rate, key_of("alignment error rate"))
    if found.low is None or found.high is None or not math.isfinite(found.low + found.high):
        return None
    return found.low, found.high
