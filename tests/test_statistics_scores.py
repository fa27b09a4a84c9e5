"""Bootstrap of scores of sums over items: against the mean's bootstrap, a plain loop, and repeated experiments."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from probes.statistics import (
    BOOTSTRAP_ROUNDS,
    Floats,
    Interval,
    bootstrap_difference,
    bootstrap_interval,
    bootstrap_metric,
    generator,
)
from synthlang.errors import InputError


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


def close(a: Interval, b: Interval) -> bool:
    assert a.low is not None and a.high is not None and b.low is not None and b.high is not None
    return (a.mean, a.low, a.high) == pytest.approx((b.mean, b.low, b.high), abs=1e-9)


@pytest.mark.parametrize("shape", [(1, 40), (5, 30), (3, 1)])
def test_of_a_mean_it_equals_the_bootstrap_of_the_mean(shape: tuple[int, int]) -> None:
    """The same draws from the same key."""
    values = np.random.default_rng(1).normal(size=shape)
    expected = bootstrap_interval(values, key=7)
    assert close(bootstrap_metric(of_values(values), mean, key=7), expected)
    shifted = bootstrap_difference(of_values(values), of_values(0 * values), mean, key=7, paired=True)
    assert close(shifted, expected)


def test_equals_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of the blocks."""
    stats, random, drawn = spans(3, 12), generator(5), []
    for _ in range(200):
        seeds, items = random.integers(3, size=3), random.integers(12, size=12)
        drawn.append(np.mean([f1(stats[s][items].sum(axis=0)) for s in seeds]))
    expected = np.quantile(drawn, [0.05, 0.95])
    for block in (1, 100, 10**6):
        monkeypatch.setattr("probes.statistics.intervals.BLOCK", block)
        got = bootstrap_metric(stats, f1, key=5, rounds=200, level=0.9)
        assert (got.low, got.high) == pytest.approx(tuple(expected))
        assert (got.n, got.level) == (36, 0.9)
        assert got.mean == pytest.approx(np.mean([f1(s.sum(axis=0)) for s in stats]))


def test_covers_as_often_as_it_says() -> None:
    """One seed, many test sets: the score of a large one lies within the interval of small ones."""
    truth = float(f1(spans(1, 200_000)[0].sum(axis=0)))
    found = [bootstrap_metric(spans(1, 150, seed), f1, key=seed, rounds=300) for seed in range(1, 301)]
    covered = [i.low <= truth <= i.high for i in found if i.low is not None and i.high is not None]
    assert len(covered) == 300 and np.mean(covered) == pytest.approx(0.95, abs=0.04)


def test_the_spread_of_seeds_counts() -> None:
    stats = np.concatenate([spans(1, 300, quality=q) for q in (0.3, 0.6, 0.9)])
    wide, narrow = bootstrap_metric(stats, f1, key=1), bootstrap_metric(stats[1:2], f1, key=1)
    assert wide.low is not None and wide.high is not None and narrow.low is not None and narrow.high is not None
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_a_paired_difference_is_narrower_where_items_are_shared() -> None:
    worse = spans(2, 400)
    better = worse + np.eye(400)[7][None, :, None] * np.array([1.0, 0, 1])  # one more mention found, in item 7
    paired = bootstrap_difference(better, worse, f1, key=1, paired=True)
    apart = bootstrap_difference(better, worse, f1, key=1, paired=False)
    assert paired.low is not None and paired.high is not None and apart.low is not None and apart.high is not None
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
    assert got.low is not None and got.high is not None
    error = np.sqrt(first.var() / 900 + second.var() / 400)
    assert got.high - got.low == pytest.approx(2 * 1.96 * error, rel=0.07)
    assert got.mean == pytest.approx(first.mean() - second.mean())
    more = bootstrap_difference(spans(3, 50), spans(2, 70), f1, key=1, paired=False)
    assert more.low is not None and more.low < more.mean
    with pytest.raises(AssertionError):
        bootstrap_difference(spans(3, 50), spans(2, 50), f1, key=1, paired=True)


def test_it_is_a_function_of_its_key() -> None:
    stats = spans(2, 60)
    assert (
        bootstrap_metric(stats, f1, key=1) == bootstrap_metric(stats, f1, key=1) != bootstrap_metric(stats, f1, key=2)
    )


def test_one_value_has_no_bounds_and_none_is_an_error() -> None:
    one = spans(1, 1)
    assert bootstrap_metric(one, f1, key=1).low is None
    assert bootstrap_difference(one, one, f1, key=1, paired=True).high is None
    for bad in (np.zeros((1, 0, 3)), np.full((1, 2, 3), np.nan)):
        with pytest.raises(InputError):
            bootstrap_metric(bad, f1, key=1)


def test_memory_is_bounded() -> None:
    """All rounds at once would be 2,000 × 20,000 numbers, 320 MB."""
    stats = spans(2, 20_000)
    tracemalloc.start()
    bootstrap_metric(stats, f1, key=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 8 * BOOTSTRAP_ROUNDS * 20_000
