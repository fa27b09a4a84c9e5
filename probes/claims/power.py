"""How many models would decide a comparison that is open, if its mean and spread stayed as they are.

The **power** of m models is the probability that they decide it. A test of Student's t against an end of the region, at
the level α, with the noncentrality δ = |mean − end| / error, has the power P(T > t(1 − α; f)) where T is noncentral t
with f degrees of freedom and δ (Cohen 1988, chapter 2). Of n models that were measured with a standard error s, m have
s · √(n/m), and f grows as m − 1 does. A mean inside the region has to be shown to be above the lower end and below the
upper one: the power is 1 − the sum of both risks at least. A mean outside has to be shown to be beyond the nearer end.

It is a guide for the next study and no promise, as a mean of few models is itself uncertain.
"""

from __future__ import annotations

import math

from scipy import special

from probes.claims.estimates import DECIDED, Estimate, Region

POWER = 0.8
MOST = 1_000
"""Models beyond which no number is told."""


def power(ours: Estimate, asked: Region, models: int, tests: int = 1) -> float:
    """The probability that as many models decide the comparison, were the truth as ``ours``.

    ``tests``: how many are corrected for where a comparison is to fail (Bonferroni's, the most that Holm's asks).
    """
    assert ours.error is not None, "something is known of the spread"
    error = ours.error * math.sqrt(ours.n / models)
    freedom = (models - 1) * ours.freedom / (ours.n - 1)
    ends = [end for end in (asked.low, asked.high) if math.isfinite(end)]
    inside = asked.low < ours.mean < asked.high
    level = DECIDED / asked.sides / (1 if inside else tests)
    critical = special.stdtrit(freedom, 1 - level)
    far = [abs(ours.mean - end) / error for end in ends]
    risks = [float(special.nctdtr(freedom, distance, critical)) for distance in (far if inside else [min(far)])]
    return max(0.0, 1.0 - sum(risks))


def models_needed(ours: Estimate, asked: Region, tests: int = 1) -> float | None:
    """The fewest models whose power is 80 %; infinity for more than ``MOST``, None where nothing is known of the
    spread."""
    if not ours.tells:
        return None
    low, high = 1, 2
    while power(ours, asked, high, tests) < POWER:
        if high >= MOST:
            return math.inf
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power(ours, asked, middle, tests) < POWER else (low, middle)
    return high
