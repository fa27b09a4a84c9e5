"""The verdict of a claim, from the tests of its comparisons.

How one comparison is tested: estimates.py. A claim has one of five verdicts:

    replicates          Every comparison that could be made holds by itself. All of them have to hold, so chance gives
                        this verdict in at most 5 % of cases, whatever their number, and nothing is corrected
                        (intersection–union test, Berger 1982). An ``order`` holds if each step of it does.
    mostly replicates   Not all hold, but more than half of them are shown to at 5 %: Benjamini & Heller's test of the
                        partial conjunction (2008, Simes' version). It takes at least three comparisons.
    does not replicate  The comparisons contradict the claim together: Simes' test (1986) rejects at 5 % that all
                        hold.
    inconclusive        Anything else.
    not run             No comparison could be made, or not all of a claim with ``require_all``.

A single comparison counts as failed after Holm's correction over the claim; if one fails, the claim does not replicate.
A comparison that is a mean over several conditions (such as language pairs) is also made for each condition alone, and
these outcomes are counted. They decide nothing unless the comparison has ``none_against``: then each of them may fail
the claim, but need not hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, get_args

from probes.claims.comparisons import JudgedComparison, comparisons_of
from probes.claims.estimates import DECIDED, NOTHING, Outcome, Unit, counted, decided
from probes.claims.observed import Results
from probes.claims.power import MOST
from probes.claims.spec import Claim
from probes.statistics import Interval, corrected

Word = Literal["replicates", "mostly replicates", "does not replicate", "inconclusive", "not run"]
WORDS: tuple[Word, ...] = get_args(Word)
EARLIER = "before Holm's correction"
Decided = Literal[Outcome, "most hold"]
"""How a claim comes out."""
WORD_OF: dict[Decided, Word] = {
    "holds": "replicates",
    "most hold": "mostly replicates",
    "fails": "does not replicate",
    "inconclusive": "inconclusive",
    "not run": "not run",
}


@dataclass(frozen=True)
class Verdict:
    """The verdict of a claim on some results.

    Attributes:
        ours: The interval of the comparison that decided, or of r for a correlation. None if nothing was run.
        n: The number of models, or of whatever ``unit`` counts, that it is over.
        text: All comparisons in words.
        one_model: Every replicate of a side, or every pair of a correlation, comes from one pretraining.
        tally: Of several comparisons, how many hold and how many were not run, and which one ``ours`` belongs to.
        what: The comparison that ``ours`` belongs to.
        expected: The region that the claim expects there. Empty for a correlation.
    """

    verdict: Word
    ours: Interval | None
    n: int
    text: str
    parts: tuple[JudgedComparison, ...] = ()
    unit: Unit = "models"
    one_model: bool = False
    tally: str = ""
    what: str = ""
    expected: str = ""

    @property
    def outcomes(self) -> list[Outcome]:
        """Outcomes of the comparisons that were run."""
        return [part.outcome for part in self.parts if part.interval is not None]

    @property
    def needed(self) -> float | None:
        """The number of models (or whatever ``unit`` counts) that would decide an inconclusive claim.

        Means and spreads are taken as they are. If a comparison leans against the claim, the number is for the first
        such comparison to fail. Otherwise it is for all to hold. None if it is not known.
        """
        if self.verdict != "inconclusive":
            return None
        tests = sum(part.tested is not None for part in self.parts)
        left = [part for part in self.parts if part.outcome == "inconclusive"]
        numbers = [(part.leans_outside, part.needed(tests)) for part in left]
        known = [(against, number) for against, number in numbers if number is not None]
        if any(against for against, _ in known):
            return min(number for against, number in known if against)
        return max((number for _, number in known), default=None) if len(known) == len(numbers) else None

    @property
    def still_needed(self) -> str:
        """Number of models needed, in words: ``needs about 26 models``.

        The text is empty if the number is unknown.
        """
        needed = self.needed
        if needed is None:
            return ""
        return (
            f"needs about {counted(int(needed), self.unit)}" if needed <= MOST else f"needs over {MOST:,} {self.unit}"
        )


def judge(claim: Claim, results: Results) -> Verdict:
    """Return the verdict of a claim by the rules of this module."""
    parts = corrected_parts(comparisons_of(claim, results))
    run = [part for part in parts if part.interval is not None]
    left = [part for part in parts if part.interval is None and part.why != NOTHING]
    said = "; ".join(part.text() for part in run or left)
    if not run:
        return Verdict("not run", None, 0, said or f"{NOTHING} claim", tuple(parts))
    outcome, deciding = decide(run)
    ours = deciding.interval
    assert ours is not None, "it was run"
    word = WORD_OF[outcome]
    said = f"{len(run)} of {len(parts)} comparisons were run. {said}" if len(run) < len(parts) else said
    said = "; ".join([said, *(part.text() for part in left)])
    if claim.require_all and len(run) < len(parts):
        return Verdict("not run", None, 0, f"the claim needs all of its comparisons: {said}", tuple(parts))
    number, tally = ours if math.isfinite(ours.mean) else None, _tally(run, len(parts), deciding)
    return Verdict(
        word, number, ours.n, said, tuple(parts), deciding.unit, deciding.one_model, tally, deciding.what,
        deciding.expected,
    )  # fmt: skip


def corrected_parts(parts: Sequence[JudgedComparison]) -> list[JudgedComparison]:
    """Return comparisons with their outcomes. A failure is corrected by Holm over all that may fail the claim."""
    groups = [_may_fail(part) for part in parts]
    stands = iter(corrected([one.tested for group in groups for one in group]))
    found = []
    for part, group in zip(parts, groups, strict=True):
        settled = [_settled(one, next(stands)) for one in group]
        found.append(replace(settled[0], singles=tuple(settled[1:]) or part.singles))
    return found


def _settled(part: JudgedComparison, outside: float | None) -> JudgedComparison:
    """Return the comparison with the outcome by its corrected p value."""
    if outside is None:
        return part
    outcome = decided(part.inside, outside)
    changed = outcome != part.outcome
    said = part.said + (f"; fails {EARLIER}" if changed else "")
    return replace(part, outcome=outcome, said=said, against_alone=changed)


def decide(run: Sequence[JudgedComparison]) -> tuple[Decided, JudgedComparison]:
    """Return how a claim comes out, from its comparisons that were run, and which of them decides."""
    tested = sorted(
        (one for part in run for one in _may_fail(part) if one.tested is not None), key=attrgetter("outside")
    )
    if _any_is_shown([one.outside for one in tested]):
        return "fails", tested[0]
    still_open = next((part for part in run if part.outcome == "inconclusive"), None)
    if still_open is None:
        return "holds", run[0]
    most = len(run) // 2 + 1
    last = sorted(run, key=attrgetter("inside"))[most - 1 :]  # most hold exactly if any of these does
    return ("most hold", last[0]) if _any_is_shown([one.inside for one in last]) else ("inconclusive", still_open)


def _any_is_shown(rising: Sequence[float]) -> bool:
    """Return the result of Simes' test of p values, smallest first."""
    return any(p * len(rising) <= DECIDED * rank for rank, p in enumerate(rising, 1))


def _may_fail(part: JudgedComparison) -> list[JudgedComparison]:
    """Return the tests of a comparison that may fail the claim."""
    return [part, *(part.singles if part.none_against else ())]


def _tally(run: Sequence[JudgedComparison], total: int, deciding: JudgedComparison) -> str:
    """Return how many comparisons and single conditions hold. Empty if there is only one."""
    told = []
    if total > 1:
        lost = f", {total - len(run)} of {total} not run" if len(run) < total else ""
        told.append(f"{_count(run)}{lost}; ours is {deciding.what}")
    if singles := [one for part in run for one in part.singles if one.interval is not None]:
        told.append(f"by condition {_count(singles)}")
    return "; ".join(told)


def _count(parts: Sequence[JudgedComparison]) -> str:
    counts = Counter(part.outcome for part in parts)
    others = f", {_of(counts['fails'])}" if counts["fails"] else ""
    others += f", {counts['inconclusive']} inconclusive" if counts["inconclusive"] else ""
    earlier = sum(part.against_alone for part in parts)
    held = "holds" if counts["holds"] == 1 else "hold"
    return f"{counts['holds']} of {len(parts)} {held}{others}{f' ({_of(earlier)} {EARLIER})' if earlier else ''}"


def _of(failed: int) -> str:
    return f"{failed} fails" if failed == 1 else f"{failed} fail"
