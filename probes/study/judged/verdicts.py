"""Claims judged by results: six verdicts, and one rule for each.

Differences, their intervals and when a comparison holds, fails or is open: estimates.py.

**The verdict** of a claim, which all of its comparisons have to show:

    not run             none of its comparisons could be made; or not all of a claim that says ``whole``
    differs             they are against it together: that all of them hold is rejected at 5 % by Simes' test (1986),
                        whatever their number
    agrees in sign      all that could be made hold, each by itself: as all have to, chance has them agree in 5 % at
                        most, whatever their number (an intersection–union test, Berger 1982); nothing is corrected
    agrees in order     the same for an ``order``: every thing that was run is above (or below) the one before it
    mostly agrees       not all do, but it is shown at 5 % that more than half of them hold: Benjamini & Heller's test
                        (2008, Simes' version) of the partial conjunction; of one or two these are all
    too small to tell   anything else

Each comparison has a verdict, too: it fails where it does after Holm's correction over all of the claim, and where one
does, the claim differs. One that is a mean over several conditions (as over pairs of languages) is also made of each by
itself, and these verdicts are counted. They decide nothing, but where it says ``none_against``: there they may be
against the claim as well, and need not hold.

Means and differences are over the same conditions in all comparisons of a claim whose conditions have the same axes.

With ``minus`` what is judged is a gap of gaps: (left − what is taken off it) − (right − what is taken off it). With
``instead`` another measure is read where nothing was measured of the first; the text says which.

A correlation holds or fails where its interval (bootstrap over conditions, their models together) does not have 0
inside and its p (permutations of the same), where there is one, is .05 or less. It is open else, as it is of five
conditions with any but a perfect one; a perfect one without a p is, too. With fewer than five it is not run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Literal, get_args

from probes.report.numbers import plural
from probes.statistics import Interval, corrected
from probes.study.judged.claims import Claim, ClaimEntry, Compare, Correlate, Order, Relation
from probes.study.judged.correlated import (
    FEWEST,
    correlate_pairs,
    outcome_of_correlation,
    pairs_by_axes,
    shared_by_all,
)
from probes.study.judged.estimates import (
    DECIDED,
    LEVEL,
    NOTHING,
    Outcome,
    Unit,
    common_conditions,
    decided,
    estimate_over,
    named,
    region,
)
from probes.study.judged.observed import Condition, Results, Series, drop_shared_runs
from probes.study.judged.papers import OF_PROBE, Quantity

Word = Literal["agrees in sign", "agrees in order", "mostly agrees", "differs", "too small to tell", "not run"]
WORDS: tuple[Word, ...] = get_args(Word)
COUNTED: dict[Outcome, str] = {"fails": "against", "open": "too small to tell"}
"""What is said of comparisons that do not hold."""
EARLIER = "against before Holm's correction"
Decided = Literal[Outcome, "most hold"]
"""How a claim comes out."""


@dataclass(frozen=True)
class Comparison:
    """What a claim compares, over ``conditions`` that all ``sides`` have."""

    what: str
    sides: tuple[Series, ...]
    conditions: Sequence[Condition]
    relation: Relation
    margin: float = 0.0
    value: float = 0.0
    none_against: bool = False


@dataclass(frozen=True)
class JudgedComparison:
    """One comparison of a claim.

    what           is compared
    interval       ours, by which it is decided; None where it was not run, and ``why``
    p              two-sided, of 0
    inside         p of what would hold (``asked``, where it is no correlation)
    outside        p of the contrary
    said           ours in words
    singles        the same of each condition by itself, where it is a mean over several
    none_against   one of these may make the claim differ
    against_alone  it fails by itself, but not after Holm's correction
    """

    what: str
    interval: Interval | None = None
    outcome: Outcome = "not run"
    unit: Unit = "models"
    one_model: bool = False
    p: float | None = None
    inside: float = 1.0
    outside: float = 1.0
    asked: str = ""
    said: str = ""
    why: str = ""
    singles: tuple[JudgedComparison, ...] = ()
    none_against: bool = False
    against_alone: bool = False

    @property
    def tested(self) -> float | None:
        """The p that it is against the claim; None where nothing could be tested."""
        return None if self.interval is None or (self.p is None and self.outside == 1) else self.outside

    def text(self) -> str:
        """As a sentence without a stop: as ``A − B (asked > 0): 3.1 (1.0 … 5.2), n = 3 models: holds``."""
        if self.interval is None:
            return f"{self.what}: not run, {self.why}"
        if not self.asked:
            return f"{self.what}: {self.said}"
        return f"{self.what} (asked {self.asked}): {self.said}: {self.outcome}"


@dataclass(frozen=True)
class Verdict:
    """What results say of a claim.

    ours        the interval of the comparison that decided (of a correlation: of r); None where nothing was run
    n, unit     what it is of, and how many
    text        all comparisons in words
    one_model   every replicate of a side, or every pair of a correlation, comes from one pretraining
    tally       of several comparisons, how many hold and how many were not run, and which one ``ours`` is of
    what        is compared in that one
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


def judge(claim: Claim, results: Results) -> Verdict:
    """Judge a claim by the rule of this module."""
    comparisons = [_compared(compare, results) for compare in claim.compare or ()]
    for order in claim.order or ():
        comparisons += _ordered(order, results)
    parts = [_part(comparison) for comparison in _over_the_same(comparisons)]
    parts = corrected_parts(parts + [_correlation(entry, results) for entry in claim.correlate or ()])
    run = [part for part in parts if part.interval is not None]
    left = [part for part in parts if part.interval is None and part.why != NOTHING]
    said = "; ".join(part.text() for part in run or left)
    if not run:
        return Verdict("not run", None, 0, said or f"{NOTHING} claim", tuple(parts))
    outcome, deciding = decide(run)
    ours = deciding.interval
    assert ours is not None, "it was run"
    words: dict[Decided, Word] = {"fails": "differs", "open": "too small to tell", "most hold": "mostly agrees"}
    word = words.get(outcome, "agrees in order" if claim.order else "agrees in sign")
    said = f"{len(run)} of {len(parts)} comparisons were run. {said}" if len(run) < len(parts) else said
    said = "; ".join([said, *(part.text() for part in left)])
    if claim.whole and len(run) < len(parts):
        return Verdict("not run", None, 0, f"a part shows nothing of it: {said}", tuple(parts))
    number, tally = ours if math.isfinite(ours.mean) else None, _tally(run, len(parts), deciding)
    return Verdict(word, number, ours.n, said, tuple(parts), deciding.unit, deciding.one_model, tally, deciding.what)


def corrected_parts(parts: Sequence[JudgedComparison]) -> list[JudgedComparison]:
    """With their outcomes: what holds by itself, and what fails after Holm's correction over all that may."""
    groups = [_may_fail(part) for part in parts]
    stands = iter(corrected([one.tested for group in groups for one in group]))
    found = []
    for part, group in zip(parts, groups, strict=True):
        settled = [_settled(one, next(stands)) for one in group]
        found.append(replace(settled[0], singles=tuple(settled[1:]) or part.singles))
    return found


def _settled(part: JudgedComparison, outside: float | None) -> JudgedComparison:
    """With the outcome by its corrected p."""
    if outside is None:
        return part
    outcome = decided(part.inside, outside)
    changed = outcome != part.outcome
    said = part.said + (f"; {EARLIER}" if changed else "")
    return replace(part, outcome=outcome, said=said, against_alone=changed)


def decide(run: Sequence[JudgedComparison]) -> tuple[Decided, JudgedComparison]:
    """Of the comparisons of a claim that were run: how it comes out, and which one decides."""
    tested = sorted(
        (one for part in run for one in _may_fail(part) if one.tested is not None), key=attrgetter("outside")
    )
    if _any_is_shown([one.outside for one in tested]):
        return "fails", tested[0]
    still_open = next((part for part in run if part.outcome == "open"), None)
    if still_open is None:
        return "holds", run[0]
    most = len(run) // 2 + 1
    last = sorted(run, key=attrgetter("inside"))[most - 1 :]  # that most hold is that any of these does
    return ("most hold", last[0]) if _any_is_shown([one.inside for one in last]) else ("open", still_open)


def _any_is_shown(rising: Sequence[float]) -> bool:
    """Simes' test of p values, smallest first."""
    return any(p * len(rising) <= DECIDED * rank for rank, p in enumerate(rising, 1))


def _may_fail(part: JudgedComparison) -> list[JudgedComparison]:
    """What of a comparison may be against the claim."""
    return [part, *(part.singles if part.none_against else ())]


def _tally(run: Sequence[JudgedComparison], total: int, deciding: JudgedComparison) -> str:
    """How many of those that were run hold, and of the conditions they are over; "" where the verdict says all."""
    told = []
    if total > 1:
        lost = f", {total - len(run)} of {total} not run" if len(run) < total else ""
        told.append(f"{_count(run)}{lost}; ours is {deciding.what}")
    if singles := [one for part in run for one in part.singles if one.interval is not None]:
        told.append(f"by condition {_count(singles)}")
    return "; ".join(told)


def _count(parts: Sequence[JudgedComparison]) -> str:
    counts = Counter(part.outcome for part in parts)
    others = "".join(f", {counts[outcome]} {word}" for outcome, word in COUNTED.items() if counts[outcome])
    earlier = sum(part.against_alone for part in parts)
    return f"{counts['holds']} of {len(parts)} agree{others}{f' ({earlier} {EARLIER})' if earlier else ''}"


def _part(comparison: Comparison) -> JudgedComparison:
    sides, conditions = drop_shared_runs(comparison.sides, comparison.conditions)
    whole = _estimated(replace(comparison, sides=sides, conditions=conditions))
    if len(conditions) < 2 or whole.interval is None:
        return whole
    every = list(dict.fromkeys(condition for side in sides for condition in side))
    single = [
        _estimated(replace(comparison, what=f"{comparison.what}: {named([one], every)}", sides=sides, conditions=[one]))
        for one in conditions
    ]
    return replace(whole, singles=tuple(single), none_against=comparison.none_against)


def _estimated(comparison: Comparison) -> JudgedComparison:
    margin, asked = comparison.margin, region(comparison.relation, comparison.margin)
    found = estimate_over(comparison.sides, comparison.conditions)
    if found.ours is None:
        return JudgedComparison(comparison.what, why=found.why)
    ours = replace(found.ours, mean=found.ours.mean - comparison.value)
    inside, outside = asked.p_values(ours)
    words = {
        "greater": f"> {margin:g}",
        "less": f"< {-margin or 0:g}",
        "no_less": f"> {-margin:g}, one-sided",
        "no_more": f"< {margin:g}, one-sided",
        "near": f"within ±{margin:g}, two one-sided tests",
    }[comparison.relation]
    return JudgedComparison(
        comparison.what, ours.interval_at(asked.level), decided(inside, outside), ours.unit, ours.one_model, ours.p,
        inside, outside, words, ours.text(level=asked.level),
    )  # fmt: skip


def _compared(compare: Compare, results: Results) -> Comparison:
    """The sides of a comparison, over what all of them have; of one side, over all that it has."""
    left, *others = (_as_measured(quantity, results) for quantity in compare.quantities())
    axes = {axis for quantity in (left, *others) for axis in quantity.where} if others else ()
    sides = tuple(_among(results.series(quantity, axes), compare) for quantity in (left, *others))
    what = _name(left, others[0] if others else None)
    if len(others) > 1:
        what = f"({_name(left, others[1])}) − ({_name(others[0], others[2])})"
    value = compare.value or 0.0
    what += f" − {value:g}" if value else ""
    conditions = common_conditions(sides)
    return Comparison(what, sides, conditions, compare.relation, compare.points, value, compare.none_against)


def _among(series: Series, entry: ClaimEntry) -> Series:
    """Without the conditions that do not count."""
    return {
        condition: parts
        for condition, parts in series.items()
        if all(dict(condition).get(axis) in labels for axis, labels in entry.among.items())
    }


def _as_measured(quantity: Quantity, results: Results) -> Quantity:
    """With the measure that is read instead, where nothing was measured of its own."""
    if quantity.instead is None or results.series(quantity):
        return quantity
    return replace(quantity, measure=quantity.instead)


def _ordered(order: Order, results: Results) -> list[Comparison]:
    """Each thing that was run against the one before it, over what all of them have; the others are not run."""
    wanted = [_as_measured(quantity, results) for quantity in order.quantities()]
    axes = {axis for quantity in wanted for axis in quantity.where}
    found = [(quantity, _among(results.series(quantity, axes), order)) for quantity in wanted]
    there = [one for one in found if one[1]]
    relation: Relation = "greater" if order.direction == "rising" else "less"
    shared = common_conditions([series for _, series in there]) if there else []
    comparisons = [
        Comparison(_name(after, before), (of_after, of_before), shared, relation)
        for (before, of_before), (after, of_after) in pairwise(there)
    ]
    lost = [quantity for quantity, series in found if not series][: len(wanted) - max(1, len(there))]
    return comparisons + [Comparison(_name(quantity, None), ({},), [], relation) for quantity in lost]


def _over_the_same(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Comparisons whose conditions have the same axes are over the conditions that all of them have."""
    kept: dict[frozenset[str], set[Condition]] = {}
    axes = [frozenset(axis for condition in one.conditions for axis, _ in condition) for one in comparisons]
    for one, of in zip(comparisons, axes, strict=True):
        if one.conditions:
            kept[of] = kept.get(of, set(one.conditions)) & set(one.conditions)
    return [
        replace(one, conditions=[c for c in one.conditions if c in kept[of]]) if one.conditions else one
        for one, of in zip(comparisons, axes, strict=True)
    ]


def _name(left: Quantity, right: Quantity | None) -> str:
    """What is compared: the labels that both have, the measure, and the labels that differ."""
    if right is None:
        return " ".join([*left.where.values(), *_averaged(left), _measure(left)])
    measures = {_measure(left), _measure(right)}
    of_left, of_right = (
        " ".join(
            [
                *(label for axis, label in one.where.items() if other.where.get(axis) != label),
                *(_averaged(one) if one.average != other.average else []),
                *([_measure(one)] if len(measures) > 1 else []),
                *(f"without {axis}" for axis in one.without if axis not in other.without),
            ]
        )
        or "the other"
        for one, other in ((left, right), (right, left))
    )
    shared = [label for axis, label in left.where.items() if right.where.get(axis) == label]
    in_common = " ".join([*shared, *(measures if len(measures) == 1 else [])])
    return f"{in_common}, {of_left} − {of_right}".removeprefix(", ")


def _averaged(quantity: Quantity) -> list[str]:
    """The labels it is a mean over, where it names some."""
    return [f"mean of {', '.join(labels)}" for labels in quantity.average.values() if labels]


def _measure(quantity: Quantity) -> str:
    layer = "" if quantity.layer is None else f" ({quantity.layer} layer)"
    return quantity.measure.removeprefix(OF_PROBE) + layer


def _correlation(claim: Correlate, results: Results) -> JudgedComparison:
    axes = (*claim.over, *claim.by)
    read = [_as_measured(quantity, results) for quantity in claim.quantities()]
    both = [results.series(quantity) for quantity in read]
    sides = [
        _among({condition: parts for condition, parts in series.items() if dict(condition).keys() >= set(axes)}, claim)
        for series in drop_shared_runs(both, common_conditions(both))[0]
    ]
    shared = shared_by_all(sides, axes)
    pairs = pairs_by_axes(shared, axes)
    known = [pair for pair in pairs if math.isfinite(pair.x) and math.isfinite(pair.y)]
    of = " ".join(label for axis, label in read[0].where.items() if read[1].where.get(axis) == label)
    what = f"{claim.kind} of {read[0].measure} and {read[1].measure}{f', {of}' if of else ''}"
    if not known:
        why = "no pair is of numbers" if pairs else "its points share no condition" if all(sides) else NOTHING
        return JudgedComparison(what, why=why)
    blocks = ["\t".join(pair.point[len(claim.over) :]) for pair in known] if claim.by else None
    correlated = correlate_pairs(known, claim.kind, blocks)
    found = correlated.found
    if found.clusters < FEWEST:
        return JudgedComparison(what, why=f"{correlated.conditions}, and with fewer than {FEWEST} nothing is decided")
    ours = Interval(math.nan if found.r is None else found.r, found.low, found.high, found.clusters, LEVEL)
    bounds = "" if found.low is None or found.high is None else f" ({found.low:.2f} … {found.high:.2f})"
    p = "" if found.p is None else f", p = {found.p:.3g}"
    r = "" if found.r is None else f"{found.r:.2f}{bounds}{p}, "
    lost, alone = len(pairs) - len(known), max(len(one) - len(of) for one, of in zip(sides, shared, strict=True))
    said = [f"{r}n = {correlated.text}", found.reason, found.no_interval]
    said += [f"{plural(lost, 'pair')} left out, not a number"] if lost else []
    said += [f"{plural(alone, 'condition')} left out, which not all points have"] if alone else []
    relation: Relation = "greater" if claim.expect == "positive" else "less"
    outcome = outcome_of_correlation(None if found.r is None else ours, found.p, relation)
    p_value = DECIDED if found.p is None else found.p
    # measures name no model: layers of the same seeds are of one, conditions that differ in anything else need not be
    layers = claim.over == ["layer"] and len({pair.model for pair in known}) == 1
    return JudgedComparison(
        what, ours, outcome, "conditions", correlated.one_model or layers, found.p,
        p_value if outcome == "holds" else 1.0, p_value if outcome == "fails" else 1.0,
        said="; ".join(filter(None, said)),
    )  # fmt: skip
