from __future__ import annotations

import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from probes.statistics import Interval, bootstrap_interval, correlation, mean_interval
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
