"""Paired tests against SciPy and exact enumeration; calibration under the null; corrections."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from probes.statistics import Correction, corrected, paired_t_test, permutation_test
from synthlang.errors import InputError
from tests.test_statistics_intervals import f1


def spans(items: int, rng: np.random.Generator, quality: float, gold: np.ndarray) -> np.ndarray:
    right = rng.binomial(gold, quality)
    return np.stack([right, gold, right + rng.integers(0, 2, items)], axis=1).astype(float)


def two_systems(items: int, seed: int, better: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, items)
    return spans(items, rng, 0.6, gold), spans(items, rng, 0.6 + better, gold)


@pytest.mark.parametrize("seed", range(10))
def test_t_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    a, b = rng.normal(size=(3, n)), rng.normal(0.2, 1, size=(5, n))
    expected = stats.ttest_rel(b.mean(axis=0), a.mean(axis=0))
    got = paired_t_test(a, b)
    found = (got.t, got.p, got.n, got.difference)
    assert found == pytest.approx((expected.statistic, expected.pvalue, n, b.mean() - a.mean()))
    assert paired_t_test(b, a).p == pytest.approx(got.p)
    assert paired_t_test(a[0], b[0]).p == pytest.approx(stats.ttest_rel(a[0], b[0]).pvalue)


def test_t_without_spread() -> None:
    a = np.array([[0.0, 100, 0], [0.1, 50, 100]])
    same = paired_t_test(a, a)
    assert (same.t, same.p, same.difference) == (0, 1, 0)
    # the same values in another order of seeds: equal but for rounding
    thirds = np.array([[0.1, 0.7], [0.2, 0.1], [0.3, 0.4]])
    assert paired_t_test(thirds, thirds[::-1]).p == 1
    shifted = paired_t_test(thirds, thirds + 0.3)
    assert (shifted.t, shifted.p) == (None, None) and "the same for every item" in str(shifted.reason)
    one = paired_t_test([1.0], [2.0])
    assert (one.p, one.difference, one.n) == (None, 1.0, 1) and "at least two items" in str(one.reason)
    with pytest.raises(InputError):
        paired_t_test([], [])


@pytest.mark.parametrize("seed", range(5))
def test_permutation_is_close_to_exact_enumeration(seed: int) -> None:
    a, b = two_systems(9, seed, better=0.2)
    observed = abs(f1(b.sum(axis=0)) - f1(a.sum(axis=0)))
    hits: int = 0
    for swaps in product([False, True], repeat=9):
        swap = np.array(swaps)[:, None]
        left, right = np.where(swap, b, a).sum(axis=0), np.where(swap, a, b).sum(axis=0)
        hits += int(abs(f1(right) - f1(left)) >= observed - 1e-9)
    got = permutation_test(a, b, f1, key=seed, rounds=20_000)
    assert got.p == pytest.approx(hits / 2**9, abs=0.015)
    assert abs(got.difference) == pytest.approx(observed)


def test_permutation_finds_a_difference() -> None:
    got = permutation_test(*two_systems(400, 1, better=0.2), f1, key=1)
    assert (got.p, got.rounds, got.n) == (1 / 1001, 1000, 400)
    assert got.difference > 5
    assert permutation_test(*two_systems(400, 1, better=0.2), f1, key=2, rounds=99).p == 1 / 100


def test_permutation_of_equal_systems_and_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = two_systems(50, 3)
    assert permutation_test(a, a, f1, key=1).p == 1
    assert permutation_test(a, b, f1, key=1) == permutation_test(a, b, f1, key=1)
    assert permutation_test(a, b, f1, key=1).p == permutation_test(b, a, f1, key=1).p
    assert len({permutation_test(a, b, f1, key=key).p for key in range(5)}) > 1
    monkeypatch.setattr("probes.statistics.paired.BLOCK", 100)  # two rows a block
    many = permutation_test(a, b, f1, key=9, rounds=5000).p
    assert permutation_test(a, b, f1, key=1).p == pytest.approx(many, abs=0.06)
    with pytest.raises(InputError):
        permutation_test(np.zeros((0, 3)), np.zeros((0, 3)), f1, key=1)


def plain_holm(p: list[float]) -> list[float]:
    """The smallest level at which the step-down procedure rejects: the largest of (m − rank) · p up to each one."""
    ranked = sorted(range(len(p)), key=lambda i: p[i])
    result = [0.0] * len(p)
    for rank, i in enumerate(ranked):
        result[i] = min(1.0, max((len(p) - r) * p[ranked[r]] for r in range(rank + 1)))
    return result


@pytest.mark.parametrize("seed", range(10))
def test_corrections_equal_plain_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(int(rng.integers(1, 12))) ** 3, 2).tolist()
    assert corrected(p) == pytest.approx(plain_holm(p))
    assert corrected(p, "none") == p


@pytest.mark.parametrize(
    ("method", "expected"),
    [("holm", [0.03, 0.06, None, 0.06]), ("bh", [0.03, 0.04, None, 0.04]), ("none", [0.01, 0.04, None, 0.03])],
)
def test_corrections_by_hand(method: Correction, expected: list[float | None]) -> None:
    """A test that could not be made is no comparison."""
    found = corrected([0.01, 0.04, None, 0.03], method)
    assert found[2] is None
    assert [p for p in found if p is not None] == pytest.approx([p for p in expected if p is not None])
    assert corrected([], method) == [] and corrected([None, None], method) == [None, None]
