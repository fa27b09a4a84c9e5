"""Bootstrap intervals of a score that is a function of sums over items, such as an F1."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probes.statistics.base import BOOTSTRAP_ROUNDS, Floats, generator, values_of
from probes.statistics.intervals import Interval

Score = Callable[[Floats], Floats]  # sums [..., k] → scores [...], as a Metric has it
Draws = tuple[Floats, Floats]  # how often each seed [rounds, seeds] and each item [rounds, items] was drawn

BLOCK = 2_000_000  # numbers that a block of rounds holds at a time


def bootstrap_metric(
    stats: ArrayLike, score: Score, key: int, rounds: int = BOOTSTRAP_ROUNDS, level: float = 0.95
) -> Interval:
    """Mean over seeds of the score of all items, with a percentile bootstrap interval.

    stats   [seeds, items, k]: what an item adds to each sum; every seed was scored on the same items

    Each round draws seeds and items with replacement, crossed, as ``bootstrap_interval`` does: the score of each drawn
    seed over the drawn items, then their mean. With one seed the interval speaks of the items alone. Memory is that of
    ``stats`` and a block of rounds.
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
    """``first`` − ``second``, both as in ``bootstrap_metric``, such as SUP − ZS.

    paired   the same seeds and items stand in both in the same order: each round draws them once for both. Otherwise
             each side draws its own, and the two may have any number of seeds and items.
    """
    left, right = values_of(first, (3,)), values_of(second, (3,))
    assert not paired or left.shape[:2] == right.shape[:2], (left.shape, right.shape)
    mean = _mean(left, score) - _mean(right, score)
    if max(left.shape[0] * left.shape[1], right.shape[0] * right.shape[1]) == 1:
        return Interval(mean, None, None, 1, level)
    random, drawn = generator(key), []
    size = min(_size(left), _size(right))
    if paired:
        for draws in _draws(left.shape, random, rounds, size):
            drawn.append(_drawn(left, score, draws) - _drawn(right, score, draws))
    else:
        both = zip(_draws(left.shape, random, rounds, size), _draws(right.shape, random, rounds, size), strict=True)
        drawn = [_drawn(left, score, mine) - _drawn(right, score, other) for mine, other in both]
    return _interval(mean, np.concatenate(drawn), left, level)


def _mean(table: Floats, score: Score) -> float:
    return float(score(table.sum(axis=1)).mean())


def _size(table: Floats) -> int:
    """How many rounds a block has: its draws and its sums stay within BLOCK numbers."""
    seeds, items, k = table.shape
    return int(max(1, BLOCK // max(items, seeds * k)))


def _draws(shape: tuple[int, ...], random: np.random.Generator, rounds: int, size: int) -> Iterator[Draws]:
    """Blocks of at most ``size`` rounds."""
    seeds, items = shape[:2]
    for start in range(0, rounds, size):
        pairs = [(_counted(random, seeds), _counted(random, items)) for _ in range(min(size, rounds - start))]
        yield np.array([s for s, _ in pairs], np.float64), np.array([i for _, i in pairs], np.float64)


def _counted(random: np.random.Generator, n: int) -> NDArray[np.intp]:
    """How often each of n things came up in n draws with replacement."""
    return np.bincount(random.integers(n, size=n), minlength=n)


def _drawn(table: Floats, score: Score, draws: Draws) -> Floats:
    """[rounds] the mean score of the drawn seeds over the drawn items."""
    of_seeds, of_items = draws
    seeds = len(table)
    scores = np.stack([score(of_items @ table[s]) for s in range(seeds)], axis=1)
    result: Floats = (scores * of_seeds).sum(axis=1) / seeds
    return result


def _interval(mean: float, drawn: Floats, table: Floats, level: float) -> Interval:
    assert 0 < level < 1, level
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low), float(high), table.shape[0] * table.shape[1], level)
