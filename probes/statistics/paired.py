"""Whether two systems that answered the same items differ: paired tests, and p values corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from probes.statistics.intervals import BLOCK, Floats, Score, generator, values_of

TEST_ROUNDS = 1_000
"""As in "The Impact of Cross-Lingual Adjustment" (2022), section 4."""
CONSTANT = 1e-9  # differences of a score in percent that are no farther apart are equal but for rounding


@dataclass(frozen=True)
class PairedTest:
    """What a test found: b − a over ``n`` pairs, or no p and the ``reason`` why; p is two-sided."""

    difference: float
    n: int
    p: float | None = None
    t: float | None = None
    """Student's t, of a t-test."""
    rounds: int | None = None
    """How many permutations were drawn, of a permutation test."""
    reason: str | None = None


def paired_t_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Student's t-test of the differences b − a of items, averaged over seeds first.

    a, b   [items] or [seeds, items]: the same items in the same order; the numbers of seeds may differ

    t = mean(d) / (s / √n), n − 1 degrees of freedom. No difference on any item: t = 0 and p = 1. One item alone, or
    the same difference ≠ 0 on every item, has no spread to judge by: no t and no p.
    """
    left, right = (np.atleast_2d(values_of(values, (1, 2))).mean(axis=0) for values in (a, b))
    assert left.shape == right.shape, (left.shape, right.shape)
    d = right - left
    n, mean = len(d), float(d.mean())
    if not (np.abs(d) > CONSTANT).any():
        return PairedTest(mean, n, p=1.0, t=0.0)
    if n < 2:
        return PairedTest(mean, n, reason="one item has no spread to test against")
    if np.ptp(d) <= CONSTANT:
        return PairedTest(mean, n, reason="the difference is the same on every item: no spread to test against")
    found = stats.ttest_rel(right, left)
    return PairedTest(mean, n, p=float(found.pvalue), t=float(found.statistic))


def permutation_test(a: ArrayLike, b: ArrayLike, score: Score, key: int, rounds: int = TEST_ROUNDS) -> PairedTest:
    """Whether score(b) − score(a) is more than chance: each round swaps the two systems on about half of the rows.

    a, b   [rows, k]: what each row adds to the sums of ``score``. A row is what may be swapped: an item, or a
           prediction of one seed where those of all seeds stand one after the other

    p = (1 + hits) / (1 + rounds); a hit is a round whose |difference| reaches the observed one (Phipson & Smyth 2010).
    Memory is that of the statistics and a block of rounds.
    """
    assert rounds > 0, rounds
    left, right = values_of(a, (2,)), values_of(b, (2,))
    assert left.shape == right.shape, (left.shape, right.shape)
    totals = left.sum(axis=0), right.sum(axis=0)
    observed = float(score(totals[1]) - score(totals[0]))
    change = (right - left)[(left != right).any(axis=1)]  # swapping equal rows changes nothing
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
    """The p values in the same order, each at most 1; None, of a test that could not be made, counts as no comparison.

    holm   the chance of any false finding stays below the level (Holm 1979)
    bh     the expected share of false ones among the findings does (Benjamini & Hochberg 1995)
    none   as they are
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
    """The i-th smallest of m times m − i + 1, no smaller than the one before it."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(steps, 1.0)
    return result
