"""Comparisons with their outcomes: tests of whether a true value lies in the region that a claim expects.

Each end of a region is a one-sided test of Student's t:

    relation      region            sides   holds if
    greater       > margin            2     the value is above, at 5 % two-sided
    less          < −margin           2     the value is below, at 5 % two-sided
    non_inferior  > −margin           1     one test at 5 %, which allows any larger value
    non_superior  < margin            1     one test at 5 % in the other direction
    equivalent    within ±margin      1     two one-sided tests at 5 % both hold (Schuirmann 1987)

A comparison fails if the value lies outside at the same level, and is inconclusive otherwise. A true value just outside
the region is therefore counted as inside with a probability of at most 5 %. A true value just inside is counted as
outside with a probability of at most 5 %. For ``equivalent``, this is at most 10 %, because the region has two ends. A
comparison is also inconclusive if n < 2, or if all replicates have the same value, as collapsed models do. The interval
that is shown is the interval that decides: 95 % for two sides, 90 % for one side. verdicts.py combines the comparisons
of a claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from probes.claims.estimates import DECIDED, Estimate, EstimateOrWhy, Unit
from probes.claims.spec import Relation
from probes.statistics import Interval

Outcome = Literal["holds", "fails", "inconclusive", "not run"]


class Region(NamedTuple):
    """The region between ``low`` and ``high`` that a comparison expects the true value in.

    Attributes:
        low: The lower end, or −∞.
        high: The upper end, or ∞.
        sides: Number of sides of the tests.
        words: The region in words.
    """

    low: float
    high: float
    sides: Literal[1, 2]
    words: str

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends that are finite."""
        return tuple(end for end in (self.low, self.high) if math.isfinite(end))

    def contains(self, value: float) -> bool:
        """Return whether a value lies inside the region."""
        return self.low < value < self.high

    def nearest_end(self, value: float) -> float:
        """Return the finite end that is nearest to a value."""
        return min(self.ends, key=lambda end: abs(value - end))

    @property
    def level(self) -> float:
        """Confidence level of the interval that decides a comparison: 0.95 for two sides, 0.9 for one side."""
        return 1 - DECIDED * 2 / self.sides

    def p_values(self, ours: Estimate) -> tuple[float, float]:
        """Return the p values of the tests that show the true value inside, and outside, the region.

        Each finite end has a one-sided p value for each of the two hypotheses. The p value for inside is the largest
        over the ends, and the p value for outside the smallest, each times ``sides`` and at most 1. Both are 1 if the
        spread of the estimate is not known.
        """
        inside, outside = 0.0, 1.0
        for bound, side in ((self.low, 1), (self.high, -1)):
            if math.isfinite(bound):
                inside = max(inside, ours.p_above(bound, side))
                outside = min(outside, ours.p_above(bound, -side))
        return min(1.0, inside * self.sides), min(1.0, outside * self.sides)


def region(relation: Relation, margin: float = 0.0) -> Region:
    """Return the region of a relation, by the table of this module.

    Args:
        relation: The relation.
        margin: The margin, in the unit of the compared values.
    """
    match relation:
        case "greater":
            return Region(margin, math.inf, 2, f"> {margin:g}")
        case "less":
            return Region(-math.inf, -margin, 2, f"< {-margin or 0:g}")
        case "non_inferior":
            return Region(-margin, math.inf, 1, f"> {-margin:g}, one-sided")
        case "non_superior":
            return Region(-math.inf, margin, 1, f"< {margin:g}, one-sided")
        case "equivalent":
            return Region(-margin, margin, 1, f"within ±{margin:g}, two one-sided tests")


def outcome_of(ours: Estimate, expected: Region) -> Outcome:
    """Return the outcome of one comparison, without correction for other comparisons."""
    return decided(*expected.p_values(ours))


def decided(inside: float, outside: float) -> Outcome:
    """Return the outcome for the p values of the tests that show the true value inside, and outside, the region."""
    return "holds" if inside <= DECIDED else "fails" if outside <= DECIDED else "inconclusive"


@dataclass(frozen=True)
class Comparison:
    """A comparison of a claim with its test.

    Attributes:
        what: The compared quantities, in words.
        interval: The interval that decides, or None if the comparison was not run.
        outcome: The outcome of the test.
        unit: The kind of the replicates of the interval.
        one_model: True if all replicates of a side, or all pairs of a correlation, come from one pretraining.
        p: Two-sided p value of the hypothesis that the true value is 0. It is None if the spread is not known.
        inside: p value of the test that shows the true value inside the expected region.
        outside: p value of the test that shows the true value outside the region.
        said: The estimate with its interval, in words.
        why: The reason why the comparison was not run or not judged, or "".
        singles: The comparison for each condition alone, if the compared value is a mean over several conditions.
        none_against: True if each of the ``singles`` may fail the claim.
        at_floor: True if the comparison was not judged because a score is at the majority baseline.
        against_alone: True if the comparison fails by itself, but not after Holm's correction.
        tested_by: The estimate and the region of the test. It is None for a correlation over conditions, and for a
            comparison that was not run.
    """

    what: str
    interval: Interval | None = None
    outcome: Outcome = "not run"
    unit: Unit = "models"
    one_model: bool = False
    p: float | None = None
    inside: float = 1.0
    outside: float = 1.0
    said: str = ""
    why: str = ""
    singles: tuple[Comparison, ...] = ()
    none_against: bool = False
    at_floor: bool = False
    against_alone: bool = False
    tested_by: tuple[Estimate, Region] | None = None

    @property
    def may_fail(self) -> tuple[Comparison, ...]:
        """Tests that may fail the claim: this comparison and, with ``none_against``, its single conditions."""
        return (self, *(self.singles if self.none_against else ()))

    @property
    def expected(self) -> str:
        """The region that the claim expects, in words, or "" if ``tested_by`` is None."""
        return "" if self.tested_by is None else self.tested_by[1].words

    @property
    def tested(self) -> float | None:
        """The p value of the test that contradicts the claim, or None if there was no test."""
        return None if self.interval is None or (self.p is None and self.outside == 1) else self.outside

    def text(self) -> str:
        """Return the comparison in words: ``A − B (expected > 0): 3.1 (1.0 … 5.2), n = 3 models: holds``.

        Without an interval, the text is ``A − B: not run, REASON`` or ``A − B: not judged, REASON``.
        """
        if self.interval is None:
            return f"{self.what}: {'not judged' if self.at_floor else 'not run'}, {self.why}"
        if not self.expected:
            return f"{self.what}: {self.said}"
        return f"{self.what} (expected {self.expected}): {self.said}: {self.outcome}"


def against_region(
    what: str, found: EstimateOrWhy, relation: Relation, margin: float = 0.0, value: float = 0.0
) -> Comparison:
    """Compare an estimate with the region that a relation expects it in.

    Args:
        what: The compared quantities, in words.
        found: The estimate. Without one, the outcome is ``not run``.
        relation: The relation to ``value``, for example ``greater``.
        margin: The margin of the relation, in the unit of the estimate.
        value: The number to compare with, in the same unit.
    """
    if found.ours is None:
        return Comparison(what, why=found.why)
    ours, expected = found.ours, region(relation, margin)
    if value:
        ours = replace(ours, mean=ours.mean - value)
    inside, outside = expected.p_values(ours)
    return Comparison(
        what, ours.interval_at(expected.level), decided(inside, outside), ours.unit, ours.one_model, ours.p,
        inside, outside, ours.text(level=expected.level), tested_by=(ours, expected),
    )  # fmt: skip
