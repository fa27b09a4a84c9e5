"""The number of models that would decide an inconclusive comparison, if its mean and spread stayed as they are.

The **power** of m models is the probability that they decide the comparison. Student's t test against an end of the
region, at the level α, has the noncentrality δ = |mean − end| / standard error. Its power is P(T > t(1 − α; f)), where
T is noncentral t with f degrees of freedom and δ (Cohen 1988, chapter 2). If n models have the standard error s, then m
models have s · √(n/m), and f grows in proportion to m − 1. A mean inside the region has to be shown to lie above the
lower end and below the upper end, so the power is at least 1 minus the sum of both risks. A mean outside has to be
shown to lie beyond the nearer end.

The number is a guide for the next study and not a promise, since a mean of few models is itself uncertain.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from scipy import special

from probes.claims.comparisons import Region
from probes.claims.estimates import DECIDED, Estimate

POWER = 0.8
MOST = 1_000
"""Largest number of models that is given."""


def power(ours: Estimate, expected: Region, models: int, tests: int = 1) -> float:
    """Return the probability that ``models`` models decide the comparison, if the truth is as ``ours``.

    A failure is corrected for ``tests`` tests by Bonferroni, which is the strictest step of Holm.
    """
    assert ours.standard_error is not None, "the spread is known"
    standard_error = ours.standard_error * math.sqrt(ours.n / models)
    degrees_of_freedom = (models - 1) * ours.degrees_of_freedom / (ours.n - 1)
    ends = [end for end in (expected.low, expected.high) if math.isfinite(end)]
    inside = expected.low < ours.mean < expected.high
    level = DECIDED / expected.sides / (1 if inside else tests)
    critical = special.stdtrit(degrees_of_freedom, 1 - level)
    far = [abs(ours.mean - end) / standard_error for end in ends]
    risks = [
        float(special.nctdtr(degrees_of_freedom, distance, critical)) for distance in (far if inside else [min(far)])
    ]
    return max(0.0, 1.0 - sum(risks))


def models_needed(ours: Estimate, expected: Region, tests: int = 1) -> float | None:
    """Return the fewest models with 80 % power: infinity for more than ``MOST``, None if the spread is not known."""
    if not ours.has_spread:
        return None
    numbers = range(2, MOST + 1)
    place = bisect_left(numbers, POWER, key=lambda models: power(ours, expected, models, tests))
    return numbers[place] if place < len(numbers) else math.inf
