"""Intervals of means and of scores: against SciPy, by hand and in simulations."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from probes.statistics import (
    BOOTSTRAP_ROUNDS,
    Floats,
    Interval,
    bootstrap_difference,
    bootstrap_interval,
    bootstrap_metric,
    correlation,
    generator,
    mean_interval,
)
from synthlang.errors import InputError


def _noisy(n: int, seed: int, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return x, x + noise * random.normal(size=n)


def test_t_interval_by_hand_and_by_scipy() -> None:
    interval = mean_interval([1.0, 2.0, 3.0])
    # t(.975; 2) = 4.302653, s = 1: 2 ± 4.302653 / √3
    assert (interval.low, interval.high) == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-5)
    values = [58.8, 4.6, 12.8, 18.8]
    expected = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    got = mean_interval(values, level=0.9)
    assert (got.mean, got.low, got.high, got.n) == pytest.approx((np.mean(values), *expected, 4))


def test_t_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    drawn = [mean_interval(random.normal(5, 2, size=4)) for _ in range(2000)]
    assert np.mean([i.low <= 5 <= i.high for i in drawn if i.low is not None and i.high is not None]) == pytest.approx(
        0.95, abs=0.015
    )


def test_one_seed_has_no_bounds_and_none_is_an_error() -> None:
    assert mean_interval([7.0]) == Interval(7.0, None, None, 1, 0.95)
    assert bootstrap_interval([[7.0]], key=1).low is None
    for values in ([], [1.0, float("nan")]):
        with pytest.raises(InputError):
            mean_interval(values)
        with pytest.raises(InputError):
            bootstrap_interval(values, key=1)


def test_overlap() -> None:
    a, b, c = (Interval(m, m - 1, m + 1, 3, 0.95) for m in (0, 2, 5))
    assert a.overlaps(b) and b.overlaps(a) and not a.overlaps(c)
    assert a.overlaps(Interval(0, None, None, 1, 0.95)) is None


def test_bootstrap_of_items_agrees_with_scipy() -> None:
    values = np.random.default_rng(3).exponential(size=80)
    got = bootstrap_interval(values, key=5, rounds=5000)
    other = stats.bootstrap((values,), np.mean, n_resamples=5000, method="percentile", rng=0).confidence_interval
    assert (got.low, got.high) == pytest.approx((other.low, other.high), abs=0.03)
    assert got.mean == pytest.approx(values.mean())


def test_bootstrap_is_a_function_of_its_key() -> None:
    values = np.random.default_rng(3).normal(size=(3, 50))
    assert bootstrap_interval(values, key=5) == bootstrap_interval(values, key=5)
    assert bootstrap_interval(values, key=5) != bootstrap_interval(values, key=6)


def test_bootstrap_sees_the_spread_of_seeds() -> None:
    """Seeds 20 points apart: resampling items alone would give an interval of a point or two."""
    random = np.random.default_rng(1)
    table = np.array([[30.0], [50.0], [70.0]]) + random.normal(size=(3, 400))
    wide = bootstrap_interval(table, key=1)
    narrow = bootstrap_interval(table.mean(0), key=1)
    assert wide.low is not None and wide.high is not None and narrow.low is not None and narrow.high is not None
    assert wide.high - wide.low > 30 > 1 > narrow.high - narrow.low


CASES = {
    "distinct": _noisy(7, 0),
    "n = 3": (np.array([1.0, 2, 3]), np.array([1.0, 3, 2])),
    "ties": (np.array([1.0, 1, 2, 3, 3, 4]), np.array([2.0, 1, 1, 4, 5, 5])),
    "many": _noisy(25, 1),
    "many ties": (np.repeat(np.arange(5.0), 4), np.random.default_rng(2).integers(3, size=20).astype(float)),
}


@pytest.mark.parametrize("name", CASES)
def test_rho_equals_scipy(name: str) -> None:
    x, y = CASES[name]
    assert correlation(x, y, key=0).r == pytest.approx(stats.spearmanr(x, y).statistic)
    assert correlation(x, y, key=0, kind="kendall").r == pytest.approx(stats.kendalltau(x, y).statistic)


@pytest.mark.parametrize("name", ["distinct", "n = 3", "ties"])
def test_exact_p_equals_brute_force(name: str) -> None:
    x, y = CASES[name]
    observed = abs(stats.spearmanr(x, y).statistic)
    every = [abs(stats.spearmanr(x, shuffled).statistic) for shuffled in permutations(y)]
    got = correlation(x, y, key=0)
    assert got.exact
    assert got.p == pytest.approx(np.mean([value >= observed - 1e-9 for value in every]))


def test_exact_p_equals_scipy_where_the_null_is_symmetric() -> None:
    x, y = _noisy(6, 4)

    def rho(a: np.ndarray) -> float:
        return float(stats.spearmanr(a, y).statistic)

    # All 720 of them, since 1000 are allowed.
    expected = stats.permutation_test((x,), rho, permutation_type="pairings", n_resamples=1000).pvalue
    assert correlation(x, y, key=0).p == pytest.approx(expected)


def test_random_p_is_close_to_the_asymptotic_one_and_repeats() -> None:
    x, y = _noisy(40, 5, noise=3.0)
    got = correlation(x, y, key=11)
    assert not got.exact
    assert got.p == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.02)
    assert got == correlation(x, y, key=11)
    assert got.p != correlation(x, y, key=12).p


def test_positive_control() -> None:
    x = np.arange(12.0)
    got = correlation(x, -np.exp(x), key=1)
    assert got.r == pytest.approx(-1)
    assert got.p == pytest.approx(1 / 10_001)
    six = correlation(x[:6], x[:6], key=1)
    assert six.p == pytest.approx(2 / 720)  # the identity and its reverse


def test_no_correlation_gives_uniform_p() -> None:
    random = np.random.default_rng(6)
    drawn = [correlation(random.normal(size=6), random.normal(size=6), key=0).p for _ in range(200)]
    assert np.mean([p is not None and p <= 0.1 for p in drawn]) == pytest.approx(0.1, abs=0.06)


def test_interval_holds_rho_and_needs_five_pairs() -> None:
    x, y = _noisy(30, 8)
    got = correlation(x, y, key=2)
    assert got.low is not None and got.high is not None and got.r is not None
    assert -1 <= got.low < got.r < got.high <= 1
    assert correlation(x[:4], y[:4], key=2).low is None


def test_too_few_pairs_and_a_constant_side_say_why() -> None:
    two = correlation([1, 2], [2, 1], key=0)
    assert (two.r, two.p, two.n) == (None, None, 2) and "at least 3" in str(two.reason)
    assert correlation([], [], key=0).reason is not None
    constant = correlation([1, 2, 3], [5, 5, 5], key=0)
    assert constant.r is None and "second" in str(constant.reason)
    assert "first" in str(correlation([5, 5, 5], [1, 2, 3], key=0).reason)


def test_torch_is_not_imported() -> None:
    code = "import sys, probes.statistics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
