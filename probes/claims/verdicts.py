"""The verdict of a claim: the outcomes of its comparisons, combined.

sides.py looks up the comparisons of a claim. comparisons.py and correlation.py test a single one. The verdicts:

    replicates          Every comparison that could be made holds. The p value for the claim is the largest p of its
                        comparisons. All of them have to hold, so nothing is corrected (intersection–union test,
                        Berger 1982). An ``order`` holds if each step of it does.
    does not replicate  The opposite of a comparison is shown. The p value against the claim is the smallest p of its
                        comparisons after Holm's correction.
    inconclusive        Anything else.
    not yet judged      Planned models are missing (planned.py).
    not run             No comparison could be made, or a claim with ``require_all`` misses one. If no comparison could
                        be made and a reason is a score at the majority baseline, the claim is inconclusive instead.

Either p value decides at 5 %. The confirmed claims of a paper are decided together, at a false discovery rate of 5 %
under any dependence (Benjamini & Yekutieli 2001). Both p values of each claim belong to the family, and those of a
claim that is not yet judged count as 1.

The number of comparisons that hold and fail (after Holm's correction) is counted beside the verdict. A comparison that
is a mean over several conditions (such as language pairs) is also made for each condition alone, and these outcomes are
counted. They decide nothing unless the comparison has ``none_against``. Then each of them may fail the claim, but need
not hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar, get_args

from scipy import stats

from probes.claims.comparisons import Comparison, Outcome, decided
from probes.claims.estimates import DECIDED, NOTHING, Unit
from probes.claims.observed import Results
from probes.claims.planned import Plan, Status, status_of
from probes.claims.power import MOST, Needed, needed
from probes.claims.sides import comparisons_of
from probes.claims.spec import Claim
from probes.statistics import Interval, corrected

Word = Literal["replicates", "does not replicate", "inconclusive", "not yet judged", "not run"]
WORDS: tuple[Word, ...] = get_args(Word)
EARLIER = "before Holm's correction"
WORD_OF: dict[Outcome, Word] = {
    "holds": "replicates",
    "fails": "does not replicate",
    "inconclusive": "inconclusive",
    "not run": "not run",
}


class PValues(NamedTuple):
    """The p values for a claim and against it.

    Attributes:
        replicates: The largest p value of the comparisons for the claim.
        opposite: The smallest p value against the claim, after Holm's correction.
    """

    replicates: float = 1.0
    opposite: float = 1.0

    @property
    def outcome(self) -> Outcome:
        """The outcome at 5 %. A shown opposite counts first, since a single condition may fail a mean that holds."""
        return "fails" if self.opposite <= DECIDED else decided(self.replicates, 1.0)


UNTESTED = PValues()


@dataclass(frozen=True)
class Verdict:
    """The verdict of a claim on some results.

    Attributes:
        verdict: The verdict in words.
        ours: The interval of the comparison that decided, or of r for a correlation. It is None if nothing was run, or
            if r is not defined.
        n: The number of replicates behind ``ours``, in the unit ``unit``.
        text: All comparisons in words. For a claim that is not yet judged, the text counts the finished models.
        parts: The comparisons of the claim. It is empty for a claim that is not yet judged.
        unit: The kind of the replicates.
        one_model: True if all replicates of a side, or all pairs of a correlation, come from one pretraining.
        tally: A text for a claim with several comparisons or conditions: how many of them hold, fail, are inconclusive
            or were not run, and which comparison ``ours`` belongs to.
        what: The comparison that ``ours`` belongs to.
        expected: The region that the claim expects for ``what``. It is empty for a correlation over conditions.
        p: The p values for the claim and against it.
        adjusted: The same p values, adjusted over the claims of the paper. They decide a confirmed verdict. None stands
            for verdicts before ``decided_together``, exploratory verdicts, and verdicts that were not run.
        plans: The planned models of each study that the verdict rests on.
    """

    verdict: Word
    ours: Interval | None
    n: int
    text: str
    parts: tuple[Comparison, ...] = ()
    unit: Unit = "models"
    one_model: bool = False
    tally: str = ""
    what: str = ""
    expected: str = ""
    p: PValues = UNTESTED
    adjusted: PValues | None = None
    plans: tuple[Plan, ...] = ()

    @property
    def status(self) -> Status:
        """Status of the verdict: confirmed, exploratory or not yet judged."""
        return status_of(self.plans)

    @property
    def outcomes(self) -> list[Outcome]:
        """Outcomes of the comparisons that were run."""
        return [part.outcome for part in self.parts if part.interval is not None]

    @property
    def needed(self) -> Needed | None:
        """The interval of the number of replicates (see ``unit``) that would decide an inconclusive claim.

        If a comparison leans against the claim, the first such comparison would fail at these numbers. Otherwise all
        comparisons would hold. The interval follows from the intervals of the effect sizes (power.py). The value is
        None for any other verdict, and if the numbers cannot be estimated, as for correlations over conditions.
        """
        if self.verdict != "inconclusive":
            return None
        tests = sum(part.tested is not None for part in self.parts)
        left = [part for part in self.parts if part.outcome == "inconclusive"]
        numbers = [part.tested_by and needed(*part.tested_by, tests) for part in left]
        known = [(part.outside < part.inside, n) for part, n in zip(left, numbers, strict=True) if n is not None]
        if against := [number for leans, number in known if leans]:
            return Needed(*map(min, zip(*against, strict=True)))
        return Needed(*map(max, zip(*(n for _, n in known), strict=True))) if len(known) == len(numbers) > 0 else None

    @property
    def still_needed(self) -> str:
        """The interval ``needed`` in words: ``needs 8 to 60 models``.

        A number above MOST is written as ``over 1,000``. The text is empty if ``needed`` is None.
        """
        if self.needed is None:
            return ""
        numbers = [str(int(number)) if number <= MOST else f"over {MOST:,}" for number in self.needed]
        return f"needs {' to '.join(dict.fromkeys(numbers))} {self.unit}"


V = TypeVar("V", bound=Verdict)


def judge(claim: Claim, results: Results, plans: Sequence[Plan] = ()) -> Verdict:
    """Return the verdict of a claim by the rules of this module, as if it were the only claim of its paper.

    ``decided_together`` corrects the confirmed verdicts of a paper.

    Args:
        claim: The claim.
        results: The results, of planned models only if there are ``plans``.
        plans: The planned models of each study. The claim is not yet judged before all planned models are finished.
    """
    if status_of(plans) == "not yet judged":
        told = "; ".join(plan.progress for plan in plans if not plan.complete)
        return Verdict("not yet judged", None, 0, told, plans=tuple(plans))
    return replace(_judged(claim, results), plans=tuple(plans))


def _judged(claim: Claim, results: Results) -> Verdict:
    parts = corrected_parts(comparisons_of(claim, results))
    run = [part for part in parts if part.interval is not None]
    left = [part for part in parts if part.interval is None and part.why != NOTHING]
    said = "; ".join(part.text() for part in run or left)
    if not run:
        word: Word = "inconclusive" if any(part.at_floor for part in parts) else "not run"
        return Verdict(word, None, 0, said or f"{NOTHING} claim", tuple(parts))
    said = f"{len(run)} of {len(parts)} comparisons were run. {said}" if len(run) < len(parts) else said
    said = "; ".join([said, *(part.text() for part in left)])
    if claim.require_all and len(run) < len(parts):
        return Verdict("not run", None, 0, f"the claim needs all of its comparisons: {said}", tuple(parts))
    p = p_values(run)
    return _decided(Verdict("inconclusive", None, 0, said, tuple(parts), p=p), p)


def _decided(one: V, p: PValues) -> V:
    """Return a verdict with the outcome that p values of its claim decide, and with the interval that decided it."""
    chosen = deciding([part for part in one.parts if part.interval is not None], p.outcome)
    ours = chosen.interval
    assert ours is not None, "it was run"
    return replace(
        one,
        verdict=WORD_OF[p.outcome],
        ours=ours if math.isfinite(ours.mean) else None,
        n=ours.n,
        unit=chosen.unit,
        one_model=chosen.one_model,
        tally=_tally(one.parts, chosen),
        what=chosen.what,
        expected=chosen.expected,
    )


def decided_together(judged: Sequence[V]) -> list[V]:
    """Decide the confirmed verdicts on a paper's claims by p values that are adjusted over these claims.

    The adjustment controls the false discovery rate (Benjamini & Yekutieli 2001). A verdict that is not yet judged also
    gets adjusted p values. Exploratory verdicts, verdicts that were not run, and the order do not change.
    """
    family = [number for number, one in enumerate(judged) if one.status != "exploratory" and one.verdict != "not run"]
    found = list(judged)
    if family:
        adjusted = stats.false_discovery_control([judged[number].p for number in family], axis=None, method="by")
        for number, pair in zip(family, adjusted.reshape(-1, 2).tolist(), strict=True):
            one, p = replace(judged[number], adjusted=PValues(*pair)), PValues(*pair)
            found[number] = _decided(one, p) if one.status == "confirmed" and one.outcomes else one
    return found


def corrected_parts(parts: Sequence[Comparison]) -> list[Comparison]:
    """Return comparisons with the outcomes after Holm's correction over all tests that may fail the claim."""
    stands = iter(corrected([one.tested for part in parts for one in part.may_fail]))
    found = []
    for part in parts:
        first, *singles = [_settled(one, next(stands)) for one in part.may_fail]
        found.append(replace(first, singles=tuple(singles)) if singles else first)
    return found


def _settled(part: Comparison, outside: float | None) -> Comparison:
    """Return the comparison with its outcome decided by the corrected p value."""
    if outside is None:
        return part
    outcome = decided(part.inside, outside)
    if outcome == part.outcome:
        return part
    return replace(part, outcome=outcome, said=f"{part.said}; fails {EARLIER}", against_alone=True)


def p_values(run: Sequence[Comparison]) -> PValues:
    """Return the p values of a claim, from the comparisons that were run, of which there must be at least one."""
    tested = [one.tested for part in run for one in part.may_fail]
    against = [p for p in corrected(tested) if p is not None]
    return PValues(max(part.inside for part in run), min(against, default=1.0))


def deciding(run: Sequence[Comparison], outcome: Outcome) -> Comparison:
    """Return the comparison whose p value is that of the claim.

    If the claim fails, this is the comparison with the smallest p against it. Otherwise it is the comparison with the
    largest p for it.

    Args:
        run: The comparisons that were run, at least one.
        outcome: The outcome of the claim.
    """
    if outcome == "fails":
        return min((one for part in run for one in part.may_fail), key=lambda one: one.outside)
    return max(run, key=lambda one: one.inside)


def _tally(parts: Sequence[Comparison], deciding: Comparison) -> str:
    """Describe how many comparisons and single conditions hold, if there are several."""
    told, run = [], [part for part in parts if part.interval is not None]
    if len(parts) > 1:
        floored = sum(part.at_floor for part in parts)
        lost = f", {floored} of {len(parts)} at the floor" if floored else ""
        left = len(parts) - len(run) - floored
        lost += f", {left} of {len(parts)} not run" if left else ""
        told.append(f"{_count(run)}{lost}; ours is {deciding.what}")
    if singles := [one for part in run for one in part.singles if one.interval is not None]:
        told.append(f"by condition {_count(singles)}")
    return "; ".join(told)


def _count(parts: Sequence[Comparison]) -> str:
    counts = Counter(part.outcome for part in parts)
    others = f", {_of(counts['fails'])}" if counts["fails"] else ""
    others += f", {counts['inconclusive']} inconclusive" if counts["inconclusive"] else ""
    earlier = sum(part.against_alone for part in parts)
    held = "holds" if counts["holds"] == 1 else "hold"
    return f"{counts['holds']} of {len(parts)} {held}{others}{f' ({_of(earlier)} {EARLIER})' if earlier else ''}"


def _of(failed: int) -> str:
    return f"{failed} fails" if failed == 1 else f"{failed} fail"
