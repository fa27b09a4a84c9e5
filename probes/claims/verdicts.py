"""The verdict of a claim: its comparisons are looked up in results, tested one by one, and combined.

comparisons.py and correlation.py test a single comparison. A claim has one of five verdicts:

    replicates          Every comparison that could be made holds by itself. All of them have to hold, so chance gives
                        this verdict in at most 5 % of cases, whatever their number, and nothing is corrected
                        (intersection–union test, Berger 1982). An ``order`` holds if each step of it does.
    mostly replicates   Not all hold, but at 5 % more than half of them are shown to hold, by Benjamini & Heller's
                        test of the partial conjunction (2008, Simes' version). It takes at least three comparisons.
    does not replicate  The comparisons contradict the claim together: Simes' test (1986) rejects at 5 % that all
                        hold.
    inconclusive        Anything else.
    not run             No comparison could be made, or a claim with ``require_all`` misses one.

A single comparison counts as failed after Holm's correction over the claim. If one fails, the claim does not replicate.
A comparison that is a mean over several conditions (such as language pairs) is also made for each condition alone, and
these outcomes are counted. They decide nothing unless the comparison has ``none_against``. Then each of them may fail
the claim, but need not hold.

Comparisons whose conditions have the same axes are made over their common conditions. With ``minus`` a gap of gaps is
tested: (left − subtracted from left) − (right − subtracted from right). If the measure has no values, its
``fallback_measure`` is read, and the text names the measure that was read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Literal, get_args

from probes.claims.comparisons import Comparison, Outcome, against_region, decided
from probes.claims.correlation import correlation_of
from probes.claims.estimates import DECIDED, NOTHING, Unit, common_conditions, counted, estimate_over, named
from probes.claims.observed import Results, Series, restricted, with_fallback
from probes.claims.power import MOST, models_needed
from probes.claims.spec import OF_PROBE, Claim, Compare, Order, Quantity, Relation
from probes.results.pooling import Condition, drop_shared_runs
from probes.statistics import Interval, corrected

Word = Literal["replicates", "mostly replicates", "does not replicate", "inconclusive", "not run"]
WORDS: tuple[Word, ...] = get_args(Word)
EARLIER = "before Holm's correction"
Decided = Literal[Outcome, "most hold"]
"""Outcome of a claim."""
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
        ours: The interval of the comparison that decided, or of r for a correlation. It is None if nothing was run.
        n: The number of replicates behind ``ours``: models, or what ``unit`` names.
        text: All comparisons in words.
        one_model: True if all replicates of a side, or all pairs of a correlation, come from one pretraining.
        tally: A text for several comparisons: the numbers that hold and that were not run, and the one of ``ours``.
        what: The comparison that ``ours`` belongs to.
        expected: The region that the claim expects for ``what``. It is empty for a correlation.
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

    @property
    def outcomes(self) -> list[Outcome]:
        """Outcomes of the comparisons that were run."""
        return [part.outcome for part in self.parts if part.interval is not None]

    @property
    def needed(self) -> float | None:
        """The number of models, or of what ``unit`` names, that would decide an inconclusive claim.

        The present means and spreads are assumed to be the true ones. If a comparison leans against the claim, this is
        the number at which the first such comparison would fail. Otherwise it is the number at which all would hold. It
        is None if it is not known.
        """
        if self.verdict != "inconclusive":
            return None
        tests = sum(part.tested is not None for part in self.parts)
        left = [part for part in self.parts if part.outcome == "inconclusive"]
        numbers = [part.tested_by and models_needed(*part.tested_by, tests) for part in left]
        known = [(part.outside < part.inside, n) for part, n in zip(left, numbers, strict=True) if n is not None]
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


def corrected_parts(parts: Sequence[Comparison]) -> list[Comparison]:
    """Return comparisons with their outcomes. A failure is corrected by Holm over all that may fail the claim."""
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


def decide(run: Sequence[Comparison]) -> tuple[Decided, Comparison]:
    """Return the outcome of a claim, from the comparisons that were run, and the comparison that decides."""
    tested = sorted((one for part in run for one in part.may_fail if one.tested is not None), key=attrgetter("outside"))
    if _any_is_shown([one.outside for one in tested]):
        return "fails", tested[0]
    still_open = next((part for part in run if part.outcome == "inconclusive"), None)
    if still_open is None:
        return "holds", run[0]
    most = len(run) // 2 + 1
    last = sorted(run, key=attrgetter("inside"))[most - 1 :]  # most hold exactly if any of these does
    return ("most hold", last[0]) if _any_is_shown([one.inside for one in last]) else ("inconclusive", still_open)


def _any_is_shown(rising: Sequence[float]) -> bool:
    """Return whether Simes' test rejects at 5 %. The p values are in ascending order."""
    return any(p * len(rising) <= DECIDED * rank for rank, p in enumerate(rising, 1))


def _tally(run: Sequence[Comparison], total: int, deciding: Comparison) -> str:
    """Describe how many comparisons and single conditions hold, if there are several."""
    told = []
    if total > 1:
        lost = f", {total - len(run)} of {total} not run" if len(run) < total else ""
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


# --- the comparisons of a claim ---


@dataclass(frozen=True)
class _Sides:
    """The sides of a comparison.

    Attributes:
        conditions: The conditions that all sides have.
        value: Number that is subtracted from the difference.
        none_against: True if a single condition can fail the claim.
    """

    what: str
    sides: tuple[Series, ...]
    conditions: Sequence[Condition]
    relation: Relation
    margin: float = 0.0
    value: float = 0.0
    none_against: bool = False

    def tested(self) -> Comparison:
        """Compare the means over all conditions, and the sides in each condition alone."""
        sides, conditions = drop_shared_runs(self.sides, self.conditions)

        def test(what: str, over: Sequence[Condition]) -> Comparison:
            return against_region(what, estimate_over(sides, over), self.relation, self.margin, self.value)

        whole = test(self.what, conditions)
        if len(conditions) < 2 or whole.interval is None:
            return whole
        every = list(dict.fromkeys(condition for side in sides for condition in side))
        singles = tuple(test(f"{self.what}: {named([one], every)}", [one]) for one in conditions)
        return replace(whole, singles=singles, none_against=self.none_against)


def comparisons_of(claim: Claim, results: Results) -> list[Comparison]:
    """Return the comparisons of a claim, each tested as if it were alone."""
    found = [_compared(compare, results) for compare in claim.compare or ()]
    found += [sides for order in claim.order or () for sides in _ordered(order, results)]
    parts = [sides.tested() for sides in _over_the_same(found)]
    return parts + [correlation_of(entry, results) for entry in claim.correlate or ()]


def _looked_up(entry: Compare | Order, results: Results) -> list[tuple[Quantity, Series]]:
    """Return the quantities of an entry, with measurements by the axes that no quantity names."""
    quantities = [with_fallback(quantity, results) for quantity in entry.quantities()]
    axes = {axis for quantity in quantities for axis in quantity.where} if len(quantities) > 1 else set[str]()
    return [(quantity, restricted(results.series(quantity, axes), entry.restrict_to)) for quantity in quantities]


def _compared(compare: Compare, results: Results) -> _Sides:
    """Look up the sides of a comparison and their common conditions."""
    quantities, sides = zip(*_looked_up(compare, results), strict=True)
    left, *others = quantities
    what = _name(left, others[0] if others else None)
    if len(others) > 1:
        what = f"({_name(left, others[1])}) − ({_name(others[0], others[2])})"
    value = compare.value or 0.0
    what += f" − {value:g}" if value else ""
    conditions = common_conditions(sides)
    return _Sides(what, sides, conditions, compare.relation, compare.points, value, compare.none_against)


def _ordered(order: Order, results: Results) -> list[_Sides]:
    """Return the steps over common conditions, then a step for each quantity without measurements."""
    found = _looked_up(order, results)
    there = [one for one in found if one[1]]
    relation: Relation = "greater" if order.direction == "rising" else "less"
    shared = common_conditions([series for _, series in there]) if there else []
    steps = [
        _Sides(_name(after, before), (of_after, of_before), shared, relation)
        for (before, of_before), (after, of_after) in pairwise(there)
    ]
    lost = [quantity for quantity, series in found if not series][: len(found) - max(1, len(there))]
    return steps + [_Sides(_name(quantity, None), ({},), [], relation) for quantity in lost]


def _over_the_same(comparisons: Sequence[_Sides]) -> list[_Sides]:
    """Restrict comparisons whose conditions have the same axes to their common conditions."""
    kept: dict[frozenset[str], set[Condition]] = {}
    axes = [frozenset(axis for condition in one.conditions for axis, _ in condition) for one in comparisons]
    for one, of in zip(comparisons, axes, strict=True):
        if one.conditions:
            kept[of] = kept.get(of, set(one.conditions)) & set(one.conditions)
    return [
        one
        if len(one.conditions) == len(kept.get(of, ()))
        else replace(one, conditions=[c for c in one.conditions if c in kept[of]])
        for one, of in zip(comparisons, axes, strict=True)
    ]


def _name(left: Quantity, right: Quantity | None) -> str:
    """Name the sides: the labels that both have, the measure, and the labels that differ."""
    if right is None:
        return " ".join([*left.where.values(), *_averaged(left), _measure(left)])
    measures = {_measure(left), _measure(right)}
    of_left, of_right = (
        " ".join(
            [
                *(label for axis, label in one.where.items() if other.where.get(axis) != label),
                *(_averaged(one) if one.average != other.average else []),
                *([_measure(one)] if len(measures) > 1 else []),
                *(f"without {axis}" for axis in one.exclude_axes if axis not in other.exclude_axes),
            ]
        )
        or "the other"
        for one, other in ((left, right), (right, left))
    )
    shared = [label for axis, label in left.where.items() if right.where.get(axis) == label]
    in_common = " ".join([*shared, *(measures if len(measures) == 1 else [])])
    return f"{in_common}, {of_left} − {of_right}".removeprefix(", ")


def _averaged(quantity: Quantity) -> list[str]:
    """Name the labels that a quantity is a mean over."""
    return [f"mean of {', '.join(labels)}" for labels in quantity.average.values() if labels]


def _measure(quantity: Quantity) -> str:
    layer = "" if quantity.layer is None else f" ({quantity.layer} layer)"
    return quantity.measure.removeprefix(OF_PROBE) + layer
