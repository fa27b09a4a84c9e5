"""Paired tests of two systems on the same items, and corrections for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from probes.statistics.intervals import BLOCK, Floats, Score, generator, values_of

TEST_ROUNDS = 1_000
"""Number of permutations, as in "The Impact of Cross-Lingual Adjustment" (2022), section 5.1."""
CONSTANT = 1e-9
"""Difference of two scores in percent up to which they count as equal."""


@dataclass(frozen=True)
class PairedTest:
    """The result of a test of b − a: a two-sided p, or a ``reason`` for its absence.

    Attributes:
        difference: The difference b − a, in the unit of the scores.
        n: Number of items of a t test, or of rows of a permutation test.
        p: The two-sided p value, 0 to 1, or None if the test is not possible.
        t: Student's t, or None for a permutation test or a test that is not possible.
        rounds: Number of permutations, or None for a t test.
        reason: The reason for a missing p, or None.
    """

    difference: float
    n: int
    p: float | None = None
    t: float | None = None
    rounds: int | None = None
    reason: str | None = None


def paired_t_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Test the differences b − a of items with Student's t, after averaging over seeds.

    t = mean(d) / (s / √n), where d are the n differences and s is their sample standard deviation, with n − 1 degrees
    of freedom (Student 1908). If no item differs, t = 0 and p = 1. A single item that differs, or equal differences ≠ 0
    for all items, have neither t nor p, because the spread is not known.

    Args:
        a: [items] or [seeds, items], the scores of the first system in percent.
        b: The scores of the other system on the same items in the same order. The number of seeds may differ.

    Raises:
        InputError: A system has no scores, or NaN or infinity is among them.
    """
    left, right = (np.atleast_2d(values_of(values, (1, 2))).mean(axis=0) for values in (a, b))
    assert left.shape == right.shape, (left.shape, right.shape)
    d = right - left
    n, mean = len(d), float(d.mean())
    if not (np.abs(d) > CONSTANT).any():
        return PairedTest(mean, n, p=1.0, t=0.0)
    if n < 2:
        return PairedTest(mean, n, reason="a t-test needs at least two items")
    if np.ptp(d) <= CONSTANT:
        return PairedTest(mean, n, reason="a t-test is not possible: the difference is the same for every item")
    found = stats.ttest_rel(right, left)
    return PairedTest(mean, n, p=float(found.pvalue), t=float(found.statistic))


def permutation_test(a: ArrayLike, b: ArrayLike, score: Score, key: int, rounds: int = TEST_ROUNDS) -> PairedTest:
    """Test score(b) − score(a) by swapping the two systems on about half of the rows in each round.

    p = (1 + hits) / (1 + rounds). A hit is a round whose |difference| is at least the observed |difference| (Phipson &
    Smyth 2010). If all rows are equal, p = 1 and nothing is drawn. ``scipy.stats.permutation_test`` would be slower,
    because it permutes whole arrays in each round.

    Args:
        a: [rows, k], the contribution of each row to the sums of ``score``. A row is the unit to swap: an item, or the
            prediction of one seed for an item.
        b: [rows, k], the contributions for the other system.
        score: A function from sums [..., k] to scores [...] in percent.
        key: The key of the random draws.
        rounds: Number of permutations.

    Raises:
        InputError: A system has no rows, or NaN or infinity is among its values.
    """
    assert rounds > 0, rounds
    left, right = values_of(a, (2,)), values_of(b, (2,))
    assert left.shape == right.shape, (left.shape, right.shape)
    totals = left.sum(axis=0), right.sum(axis=0)
    observed = float(score(totals[1]) - score(totals[0]))
    change = (right - left)[(left != right).any(axis=1)]  # swapping equal rows has no effect
    if not len(change):
        return PairedTest(observed, len(left), p=1.0, rounds=rounds)
    random = generator(key)
    size, hits = max(1, BLOCK // len(change)), 0
    for start in range(0, rounds, size):
        swapped = random.integers(2, size=(min(size, rounds - start), len(change)), dtype=np.uint8)
        moved: Floats = swapped.astype(np.float64) @ change
        found = score(totals[1] - moved) - score(totals[0] + moved)
        hits += int((np.abs(found) >= abs(observed) - CONSTANT).sum())
    return PairedTest(observed, len(left), p=(1 + hits) / (1 + rounds), rounds=rounds)


Correction = Literal["holm", "bh", "none"]


def corrected(p_values: Sequence[float | None], method: Correction = "holm") -> list[float | None]:
    """Return corrected p values in the same order. A None stays None and does not count as a test.

    For the i-th smallest p₍ᵢ₎ of m values, the corrected value is

        holm   the maximum of (m − j + 1) p₍ⱼ₎ over j ≤ i, but at most 1      (Holm 1979)
        bh     the minimum of m p₍ⱼ₎ / j over j ≥ i, but at most 1            (Benjamini & Hochberg 1995)

    Args:
        p_values: The p values, 0 to 1, or None.
        method: ``holm`` controls the probability of any false finding, ``bh`` controls the expected share of false
            findings, and ``none`` changes nothing.
    """
    assert method in ("holm", "bh", "none"), method
    known = np.array([p for p in p_values if p is not None], np.float64)
    assert ((known >= 0) & (known <= 1)).all(), known
    if method == "none" or not len(known):
        return list(p_values)
    found = _holm(known) if method == "holm" else np.asarray(stats.false_discovery_control(known), np.float64)
    rest = iter(found.tolist())
    return [None if p is None else next(rest) for p in p_values]


def _holm(p: Floats) -> Floats:
    """Return Holm's p values: the i-th smallest times m − i + 1, but at least its predecessor."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(steps, 1.0)
    return result
