"""Claims judged by results: five verdicts, and one rule for each.

Differences, their intervals and when a comparison holds, fails or is open: estimates.py.

**The verdict** of a claim:

    not run             none of its comparisons could be made; or not all of a claim that says ``whole``
    differs             one fails
    too small to tell   none fails, one is open
    agrees in sign      all that could be made hold
    agrees in order     the same for an ``order``: every thing that was run is above (or below) the one before it

Means and differences are over the same conditions in all comparisons of a claim whose conditions have the same axes.

With ``minus`` what is judged is a gap of gaps: (left − what is taken off it) − (right − what is taken off it). With
``instead`` another measure is read where nothing was measured of the first; the text says which.

A correlation agrees or differs where its interval (bootstrap over conditions, their models together) does not have 0
inside and its p (permutations of the same), where there is one, is .05 or less. It is too small to tell else, as it is
with fewer than five conditions, and of five with any but a perfect one; a perfect one without a p is, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from probes.report.numbers import plural
from probes.statistics import Interval
from probes.study.judged.claims import Claim, Compare, Correlate, Order, Relation
from probes.study.judged.correlated import (
    correlate_pairs,
    outcome_of_correlation,
    pairs_by_axes,
    shared_by_all,
)
from probes.study.judged.estimates import (
    LEVEL,
    NOTHING,
    Estimate,
    Outcome,
    Unit,
    common_conditions,
    estimate_over,
    outcome_of,
)
from probes.study.judged.observed import Condition, Results, Series, drop_shared_runs
from probes.study.judged.papers import Quantity

Word = Literal["agrees in sign", "agrees in order", "differs", "too small to tell", "not run"]
WORDS: tuple[Word, ...] = get_args(Word)
REST: dict[Outcome, str] = {"fails": "against", "open": "open"}
"""What is said of comparisons that do not hold."""


@dataclass(frozen=True)
class Comparison:
    """What a claim compares, over ``conditions`` that all ``sides`` have."""

    what: str
    sides: tuple[Series, ...]
    conditions: Sequence[Condition]
    relation: Relation
    margin: float = 0.0
    value: float = 0.0


@dataclass(frozen=True)
class JudgedComparison:
    """One comparison of a claim: ``what`` is compared, ours, how it came out, ``why`` it was not run, and what would
    hold (``asked``)."""

    what: str
    ours: Estimate | None
    outcome: Outcome
    why: str = ""
    asked: str = ""

    def text(self) -> str:
        """As a sentence without a stop: as ``A − B (asked > 0): 3.1 (1.0 … 5.2), n = 3 models: holds``."""
        if self.ours is None:
            return f"{self.what}: not run, {self.why}"
        return f"{self.what} (asked {self.asked}): {self.ours.text()}: {self.outcome}"


@dataclass(frozen=True)
class Verdict:
    """What results say of a claim.

    ours        the interval of the comparison that decided (of a correlation: of r); None where nothing was run
    n, unit     what it is of, and how many
    text        all comparisons in words
    one_model   every replicate of a side, or every pair of a correlation, comes from one pretraining
    tally       of several comparisons, how many hold and how many were not run, and which one ``ours`` is of
    """

    verdict: Word
    ours: Interval | None
    n: int
    text: str
    parts: tuple[JudgedComparison, ...] = ()
    unit: Unit = "models"
    one_model: bool = False
    tally: str = ""


def judge(claim: Claim, results: Results) -> Verdict:
    """Judge a claim by the rule of this module."""
    if claim.correlate is not None:
        return _judge_correlation(claim.correlate, results)
    comparisons = [_compared(compare, results) for compare in claim.compare or ()]
    for order in claim.order or ():
        comparisons += _ordered(order, results)
    parts = tuple(map(_part, _over_the_same(comparisons)))
    run = [part for part in parts if part.ours is not None]
    left = [part for part in parts if part.ours is None and part.why != NOTHING]
    said = "; ".join(part.text() for part in run or left)
    if not run:
        return Verdict("not run", None, 0, said or f"{NOTHING} claim", parts)
    deciding = next((p for outcome in ("fails", "open") for p in run if p.outcome == outcome), run[0])
    ours = deciding.ours
    assert ours is not None, "it was run"
    holds: Word = "agrees in order" if claim.order else "agrees in sign"
    word: Word = {"fails": "differs", "open": "too small to tell"}.get(deciding.outcome, holds)  # type: ignore[assignment]
    said = f"{len(run)} of {len(parts)} comparisons were run. {said}" if len(run) < len(parts) else said
    said = "; ".join([said, *(part.text() for part in left)])
    if claim.whole and len(run) < len(parts):
        return Verdict("not run", None, 0, f"a part shows nothing of it: {said}", parts)
    tally = _tally(run, len(parts), deciding)
    return Verdict(word, ours.interval, ours.interval.n, said, parts, ours.unit, ours.one_model, tally)


def _tally(run: Sequence[JudgedComparison], total: int, deciding: JudgedComparison) -> str:
    """Of those that were run and of ``total`` in all; "" of a claim of one comparison, whose verdict says all."""
    if total < 2:
        return ""
    counts = Counter(part.outcome for part in run)
    others = "".join(f", {counts[outcome]} {word}" for outcome, word in REST.items() if counts[outcome])
    others += f", {total - len(run)} of {total} not run" if len(run) < total else ""
    return f"{counts['holds']} of {len(run)} hold{others}; ours is {deciding.what}"


def _part(comparison: Comparison) -> JudgedComparison:
    what, relation, margin = comparison.what, comparison.relation, comparison.margin
    found = estimate_over(*drop_shared_runs(comparison.sides, comparison.conditions))
    if found.ours is None:
        return JudgedComparison(what, None, "not run", found.why)
    estimated, value = found.ours.interval, comparison.value
    low, high = (None if bound is None else bound - value for bound in (estimated.low, estimated.high))
    interval = Interval(estimated.mean - value, low, high, estimated.n, estimated.level)
    asked = {"near": f"within ±{margin:g}", "greater": f"> {margin:g}", "less": f"< {-margin or 0:g}"}[relation]
    outcome = outcome_of(interval, relation, margin)
    return JudgedComparison(what, replace(found.ours, interval=interval), outcome, asked=asked)


def _compared(compare: Compare, results: Results) -> Comparison:
    """The sides of a comparison, over what all of them have; of one side, over all that it has."""
    left, *others = (_as_measured(quantity, results) for quantity in compare.quantities())
    if not others:
        assert compare.value is not None, "checked"
        side, what = results.series(left), f"{_name(left, None)}{f' − {compare.value:g}' if compare.value else ''}"
        return Comparison(what, (side,), list(side), compare.relation, compare.margin, compare.value)
    named = {axis for quantity in (left, *others) for axis in quantity.where}
    sides = tuple(results.series(quantity, named) for quantity in (left, *others))
    what = _name(left, others[0])
    if len(others) > 1:
        what = f"({_name(left, others[1])}) − ({_name(others[0], others[2])})"
    return Comparison(what, sides, common_conditions(sides), compare.relation, compare.margin)


def _as_measured(quantity: Quantity, results: Results) -> Quantity:
    """With the measure that is read instead, where nothing was measured of its own."""
    if quantity.instead is None or results.series(quantity):
        return quantity
    return replace(quantity, measure=quantity.instead)


def _ordered(order: Order, results: Results) -> list[Comparison]:
    """Each thing that was run against the one before it, over what all of them have; the others are not run."""
    wanted = [_as_measured(quantity, results) for quantity in order.quantities()]
    named = {axis for quantity in wanted for axis in quantity.where}
    found = [(quantity, results.series(quantity, named)) for quantity in wanted]
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
    return quantity.measure.removeprefix("probe:") + layer


def _judge_correlation(claim: Correlate, results: Results) -> Verdict:
    axes = (*claim.over, *claim.by)
    read = [_as_measured(quantity, results) for quantity in claim.quantities()]
    both = [results.series(quantity) for quantity in read]
    sides = [
        {
            condition: parts
            for condition, parts in series.items()
            for labels in [dict(condition)]
            if labels.keys() >= set(axes) and all(labels[axis] in among for axis, among in claim.among.items())
        }
        for series in drop_shared_runs(both, common_conditions(both))[0]
    ]
    shared = shared_by_all(sides, axes)
    pairs = pairs_by_axes(shared, axes)
    known = [pair for pair in pairs if math.isfinite(pair.x) and math.isfinite(pair.y)]
    what = f"{claim.kind} of {read[0].measure} and {read[1].measure}"
    if not known:
        why = "no pair is of numbers" if pairs else "its points share no condition" if all(sides) else NOTHING
        return Verdict("not run", None, 0, f"{what}: not run, {why}")
    blocks = ["\t".join(pair.point[len(claim.over) :]) for pair in known] if claim.by else None
    correlated = correlate_pairs(known, claim.kind, blocks)
    found = correlated.found
    ours = None if found.r is None else Interval(found.r, found.low, found.high, found.clusters, LEVEL)
    bounds = "" if found.low is None or found.high is None else f" ({found.low:.2f} … {found.high:.2f})"
    p = "" if found.p is None else f", p = {found.p:.3g}"
    r = "" if found.r is None else f"{found.r:.2f}{bounds}{p}, "
    lost, alone = len(pairs) - len(known), max(len(one) - len(of) for one, of in zip(sides, shared, strict=True))
    said = [f"{what}: {r}n = {correlated.text}", found.reason, found.no_interval]
    said += [f"{plural(lost, 'pair')} left out, not a number"] if lost else []
    said += [f"{plural(alone, 'condition')} left out, which not all points have"] if alone else []
    outcome = outcome_of_correlation(ours, found.p, "greater" if claim.expect == "positive" else "less")
    words: dict[Outcome, Word] = {"holds": "agrees in sign", "fails": "differs"}
    # measures name no model: layers of the same seeds are of one, conditions that differ in anything else need not be
    layers = claim.over == ["layer"] and len({pair.model for pair in known}) == 1
    one_model, text = correlated.one_model or layers, "; ".join(filter(None, said))
    return Verdict(words.get(outcome, "too small to tell"), ours, found.clusters, text, (), "conditions", one_model)
