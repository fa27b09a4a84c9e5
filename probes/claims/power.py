"""The number of models that would decide an inconclusive comparison, as an interval.

The **power** of m models is the probability that they decide the comparison. Student's t test against an end of the
region, at the level α, has the noncentrality δ = |mean − end| / standard error. Its power is P(T > t(1 − α; f)), where
T is noncentral t with f degrees of freedom and δ (Cohen 1988, chapter 2). If n models have the standard error s, then m
models have s · √(n/m), and f grows in proportion to m − 1. A mean inside the region has to be shown to lie above the
lower end and below the upper end, so the power is at least 1 minus the sum of both risks. A mean outside has to be
shown to lie beyond the nearer end.

The effect size (mean − end) / standard deviation is itself uncertain after few models. Its confidence interval follows
from noncentral t: the bounds are the values of δ under which the observed t is exceeded with a probability of 10 and
90 % (Steiger & Fouladi 1997). The fewest models belong to the upper bound, the most to the lower one. If the lower
bound is not above 0, no number of models is enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from probes.claims.comparisons import Region
from probes.claims.estimates import DECIDED, Estimate

POWER = 0.8
EFFECT_LEVEL = 0.8
"""Confidence level of the interval of the effect size. At 95 % it always contains 0 while a claim is undecided."""
MOST = 1_000
"""Largest number of models that is computed. Larger numbers are infinity."""


def power(ours: Estimate, expected: Region, models: int, tests: int = 1, level: float = DECIDED) -> float:
    """Return the probability (0 to 1) that ``models`` models decide a comparison, if the truth is as in ``ours``.

    The power is 1 − Σ P(T ≤ t(1 − α; f)) over the ends that are tested, and at least 0 (Cohen 1988). The docstring of
    the module defines the symbols.

    Args:
        ours: The estimate, whose spread must be known.
        expected: The region that the claim expects.
        models: The number of models, at least 2.
        tests: Number of tests that may fail the claim. A failure is corrected for this number by Bonferroni, which is
            the strictest step of Holm.
        level: Largest p value of a decided test.
    """
    assert ours.standard_error is not None, "the spread is known"
    standard_error = ours.standard_error * math.sqrt(ours.n / models)
    degrees_of_freedom = (models - 1) * ours.degrees_of_freedom / (ours.n - 1)
    inside = expected.contains(ours.mean)
    of_one_side = level / expected.sides / (1 if inside else tests)
    critical = special.stdtrit(degrees_of_freedom, 1 - of_one_side)
    far = [abs(ours.mean - end) / standard_error for end in expected.ends]
    risks = special.nctdtr(degrees_of_freedom, far if inside else min(far), critical)
    return max(0.0, 1.0 - float(np.nan_to_num(risks).sum()))  # SciPy has NaN where the probability underflows


class Needed(NamedTuple):
    """The numbers of models for 80 % power at both ends of the interval of the effect size. Above MOST they are ∞.

    Attributes:
        fewest: The number of models at the upper bound of the effect size.
        most: The number of models at the lower bound of the effect size.
    """

    fewest: float
    most: float


def needed(ours: Estimate, expected: Region, tests: int = 1) -> Needed | None:
    """Return the interval of the number of models that would decide a comparison, or None if the spread is not known.

    The ends follow from the 80 % confidence interval of the effect size (Steiger & Fouladi 1997), as the docstring of
    the module explains. The arguments are as for ``power``.
    """
    if not ours.has_spread or ours.standard_error is None:
        return None
    end = expected.nearest_end(ours.mean)
    away = ours.mean - end
    t, side = abs(away) / ours.standard_error, 1 if away >= 0 else -1
    near, far = (
        float(special.nctdtrinc(ours.degrees_of_freedom, 0.5 + half, t))
        for half in (EFFECT_LEVEL / 2, -EFFECT_LEVEL / 2)
    )
    ends, inside = expected.ends, expected.contains(ours.mean)
    centre = abs(sum(ends) / 2 - end) if len(ends) > 1 and inside else math.inf  # beyond it the other end is nearer
    means = (end + side * min(delta * ours.standard_error, centre) for delta in (far, near))
    fewest, most = (models_needed(replace(ours, mean=mean), expected, tests) for mean in means)
    return Needed(fewest, most if near > 0 else math.inf)


def models_needed(ours: Estimate, expected: Region, tests: int = 1) -> float:
    """Return the fewest models with 80 % power for the effect size of ``ours``, or infinity for more than MOST.

    The arguments are as for ``power``.
    """
    numbers = range(2, MOST + 1)
    place = bisect_left(numbers, POWER, key=lambda models: power(ours, expected, models, tests))
    return numbers[place] if place < len(numbers) else math.inf
