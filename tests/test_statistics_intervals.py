"""Intervals of means and of scores: against SciPy, plain loops and in simulations."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes import statistics
from probes.statistics import BOOTSTRAP_ROUNDS, Floats, Interval, generator
from synthlang.errors import InputError

# whose bounds may be None
mean_interval: Any = statistics.mean_interval
bootstrap_metric: Any = statistics.bootstrap_metric
bootstrap_difference: Any = statistics.bootstrap_difference


def f1(sums: Floats) -> Floats:
    whole = sums[..., 1] + sums[..., 2]
    return np.asarray(100 * np.divide(2 * sums[..., 0], whole, out=np.zeros(whole.shape), where=whole > 0))


def mean(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])


def spans(seeds: int, items: int, seed: int = 0, quality: float = 0.7) -> np.ndarray:
    """[seeds, items, 3]: right, gold, predicted; gold is the same for all seeds."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, items) + np.zeros((seeds, 1), int)
    right = rng.binomial(gold, quality)
    return np.stack([right, gold, right + rng.integers(0, 2, gold.shape)], axis=2).astype(float)


def of_values(values: np.ndarray) -> np.ndarray:
    """Statistics whose score is the mean of values [seeds, items]."""
    return np.stack([values, np.ones_like(values)], axis=2)


def test_t_interval_by_hand_and_by_scipy() -> None:
    interval = mean_interval([1.0, 2.0, 3.0])
    # t(.975; 2) = 4.302653, s = 1: 2 ± 4.302653 / √3
    assert (interval.low, interval.high) == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-5)
    values = [58.8, 4.6, 12.8, 18.8]
    expected = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    got = mean_interval(values, level=0.9)
    assert (got.mean, got.low, got.high, got.n) == pytest.approx((np.mean(values), *expected, 4))


def test_one_value_has_no_bounds_and_none_is_an_error() -> None:
    one = spans(1, 1)
    assert mean_interval([7.0]) == Interval(7.0, None, None, 1, 0.95)
    assert bootstrap_metric(one, f1, key=1).low is None
    assert bootstrap_difference(one, one, f1, key=1, paired=True).high is None
    for values in ([], [1.0, float("nan")]):
        with pytest.raises(InputError):
            mean_interval(values)
    for bad in (np.zeros((1, 0, 3)), np.full((1, 2, 3), np.nan)):
        with pytest.raises(InputError):
            bootstrap_metric(bad, f1, key=1)


def test_of_a_mean_of_items_it_is_scipys_bootstrap() -> None:
    values = np.random.default_rng(3).exponential(size=80)
    got = bootstrap_metric(of_values(values[None]), mean, key=5, rounds=5000)
    other = stats.bootstrap((values,), np.mean, n_resamples=5000, method="percentile", rng=0).confidence_interval
    assert (got.low, got.high) == pytest.approx((other.low, other.high), abs=0.03)
    assert got.mean == pytest.approx(values.mean())


@pytest.mark.parametrize("block", [1, 100, 10**6])
def test_equals_a_plain_loop(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Whatever the size of the blocks; a difference from nothing, too."""
    monkeypatch.setattr("probes.statistics.intervals.BLOCK", block)
    table, random, drawn = spans(3, 12), generator(5), []
    for _ in range(200):
        seeds, items = random.integers(3, size=3), random.integers(12, size=12)
        drawn.append(np.mean([f1(table[s][items].sum(axis=0)) for s in seeds]))
    expected = (np.mean([f1(s.sum(axis=0)) for s in table]), *np.quantile(drawn, [0.05, 0.95]))
    for got in (
        bootstrap_metric(table, f1, key=5, rounds=200, level=0.9),
        bootstrap_difference(table, 0 * table, f1, key=5, paired=True, rounds=200, level=0.9),
    ):
        assert (got.mean, got.low, got.high) == pytest.approx(expected)
        assert (got.n, got.level) == (36, 0.9)


def test_the_spread_of_seeds_counts() -> None:
    table = np.concatenate([spans(1, 300, quality=q) for q in (0.3, 0.6, 0.9)])
    wide, narrow = bootstrap_metric(table, f1, key=1), bootstrap_metric(table[1:2], f1, key=1)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_a_paired_difference_is_narrower_where_items_are_shared() -> None:
    worse = spans(2, 400)
    better = worse + np.eye(400)[7][None, :, None] * np.array([1.0, 0, 1])  # one more mention found, in item 7
    paired, apart = (bootstrap_difference(better, worse, f1, key=1, paired=paired) for paired in (True, False))
    assert paired.mean == apart.mean > 0
    assert 0 <= paired.low < paired.high < 1 < apart.high - apart.low
    assert apart.low < 0 < apart.high
    same = bootstrap_difference(worse, worse, f1, key=1, paired=True)
    assert (same.mean, same.low, same.high) == (0, 0, 0)


def test_differences_of_other_items_and_seeds() -> None:
    """Independent draws: the variances add up."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(1, 900)), rng.normal(size=(1, 400))
    got = bootstrap_difference(of_values(first), of_values(second), mean, key=1, paired=False)
    error = np.sqrt(first.var() / 900 + second.var() / 400)
    assert got.high - got.low == pytest.approx(2 * 1.96 * error, rel=0.07)
    assert got.mean == pytest.approx(first.mean() - second.mean())
    more = bootstrap_difference(spans(3, 50), spans(2, 70), f1, key=1, paired=False)
    assert more.low < more.mean
    with pytest.raises(AssertionError):
        bootstrap_difference(spans(3, 50), spans(2, 50), f1, key=1, paired=True)


def test_it_is_a_function_of_its_key() -> None:
    one, same, other = (bootstrap_metric(spans(2, 60), f1, key=key) for key in (1, 1, 2))
    assert one == same != other


def test_memory_is_bounded() -> None:
    """All rounds at once would be 2,000 × 20,000 numbers, 320 MB."""
    table = spans(2, 20_000)
    tracemalloc.start()
    bootstrap_metric(table, f1, key=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 8 * BOOTSTRAP_ROUNDS * 20_000
