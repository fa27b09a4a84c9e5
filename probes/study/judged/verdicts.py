"""Claims judged by results: five verdicts, and one rule for each.

Differences, their intervals and when a comparison holds, fails or is open: estimates.py.

**The verdict** of a claim:

    not run             none of its comparisons could be made
    differs             one fails
    too small to tell   none fails, one is open
    agrees in sign      all that could be made hold
    agrees in order     the same for an ``order``: every thing that was run is above (or below) the one before it

A correlation agrees or differs where its interval (bootstrap over conditions, their models together) does not have 0
inside, and is too small to tell else, as it is with fewer than five conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from probes.statistics import Interval, correlation
from probes.study.judged.claims import Claim, Compare, Correlate, Order, Relation
from probes.study.judged.estimates import LEVEL, Estimate, Outcome, between, estimate, outcome_of
from probes.study.judged.observed import Condition, Replicates, Results, mean_over
from probes.study.judged.quantities import Quantity
from synthlang.rng import key_of

Word = Literal["agrees in sign", "agrees in order", "differs", "too small to tell", "not run"]
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Part:
    """One comparison of a claim: ``what`` is compared, ours, and how it came out."""

    what: str
    ours: Estimate | None
    outcome: Outcome

    def text(self) -> str:
        """As a sentence without a stop."""
        return f"{self.what}: {'not run' if self.ours is None else self.ours.text()}"


@dataclass(frozen=True)
class Verdict:
    """What results say of a claim.

    ours    the interval of the comparison that decided (of a correlation: of r); None where nothing was run
    n       the models or seeds it is of (of a correlation: the conditions)
    text    all comparisons in words
    """

    verdict: Word
    ours: Interval | None
    n: int
    text: str
    parts: tuple[Part, ...] = ()


def judge(claim: Claim, results: Results) -> Verdict:
    """Judge a claim by the rule of this module."""
    if claim.correlate is not None:
        return _judge_correlation(claim.correlate, results)
    parts = [_compared(compare, results) for compare in claim.compare or ()]
    for order in claim.order or ():
        parts += _ordered(order, results)
    run = [part for part in parts if part.outcome != "not run"]
    said = "; ".join(part.text() for part in run or parts)
    if not run:
        return Verdict("not run", None, 0, said, tuple(parts))
    deciding = next((p for outcome in ("fails", "open") for p in run if p.outcome == outcome), run[0])
    assert deciding.ours is not None, "it was run"
    holds: Word = "agrees in order" if claim.order else "agrees in sign"
    word: Word = {"fails": "differs", "open": "too small to tell"}.get(deciding.outcome, holds)  # type: ignore[assignment]
    missing = f"{len(run)} of {len(parts)} comparisons were run. " if len(run) < len(parts) else ""
    return Verdict(word, deciding.ours.interval, deciding.ours.interval.n, missing + said, tuple(parts))


def _compared(compare: Compare, results: Results) -> Part:
    left = compare.left.within(compare)
    if compare.right is not None:
        right = compare.right.within(compare)
        sides = [results.series(side, {*left.where, *right.where}) for side in (left, right)]
        return _part(_name(left, right), between(*sides), compare.relation, compare.margin)
    of_left = results.series(left)
    assert compare.value is not None, "checked"
    found = estimate(mean_over(list(of_left.values()))) if of_left else None
    if found is not None and compare.value:
        found = Estimate(_moved(found.interval, compare.value), found.unit)
    what = f"{_name(left, None)}{f' − {compare.value:g}' if compare.value else ''}"
    return _part(what, found, compare.relation, compare.margin)


def _ordered(order: Order, results: Results) -> Iterator[Part]:
    """Each thing that was run against the one before it; the others are not run."""
    wanted = order.quantities()
    named = {axis for quantity in wanted for axis in quantity.where}
    found = [(quantity, results.series(quantity, named)) for quantity in wanted]
    there = [one for one in found if one[1]]
    relation: Relation = "greater" if order.direction == "rising" else "less"
    for (before, of_before), (after, of_after) in pairwise(there):
        yield _part(_name(after, before), between(of_after, of_before), relation, 0.0)
    for quantity, _ in [one for one in found if not one[1]][: len(wanted) - max(1, len(there))]:
        yield Part(_name(quantity, None), None, "not run")


def _part(what: str, ours: Estimate | None, relation: Relation, margin: float) -> Part:
    return Part(what, ours, "not run" if ours is None else outcome_of(ours.interval, relation, margin))


def _moved(held: Interval, by: float) -> Interval:
    low, high = (None if bound is None else bound - by for bound in (held.low, held.high))
    return Interval(held.mean - by, low, high, held.n, held.level)


def _name(left: Quantity, right: Quantity | None) -> str:
    """What is compared: the labels that both have, the measure, and the labels that differ."""
    if right is None:
        return " ".join([*left.where.values(), _measure(left)])
    common = [label for axis, label in left.where.items() if right.where.get(axis) == label]
    mine, others = (
        " ".join(
            [
                *(label for axis, label in one.where.items() if other.where.get(axis) != label),
                *([_measure(one)] if _measure(one) != _measure(other) else []),
            ]
        )
        for one, other in ((left, right), (right, left))
    )
    shared = [*common, *([_measure(left)] if _measure(left) == _measure(right) else [])]
    return f"{' '.join(shared)}, {mine or 'the other'} − {others or 'the other'}".removeprefix(", ")


def _measure(quantity: Quantity) -> str:
    layer = "" if quantity.layer is None else f" ({quantity.layer} layer)"
    return quantity.measure.removeprefix("probe:") + layer


def _judge_correlation(claim: Correlate, results: Results) -> Verdict:
    axes = (*claim.over, *claim.by)
    x, y = (_by_axes(results.series(side.within(claim)), axes) for side in (claim.x, claim.y))
    rows = []
    for key in x:
        of_x, of_y = (_of_models(side[key]) if key in side else {} for side in (x, y))
        rows += [(key, of_x[model], of_y[model]) for model in of_x if model in of_y]
    what = f"{claim.kind} of {claim.x.measure or claim.measure} and {claim.y.measure or claim.measure}"
    if not rows:
        return Verdict("not run", None, 0, f"{what}: not run")
    found = correlation(
        [row[1] for row in rows], [row[2] for row in rows], key_of("claim-correlation", what), claim.kind,
        clusters=["\t".join(row[0]) for row in rows], level=LEVEL,
        blocks=["\t".join(row[0][len(claim.over) :]) for row in rows] if claim.by else None,
    )  # fmt: skip
    why = found.reason or found.no_interval
    if found.r is None or found.low is None or found.high is None:
        ours = None if found.r is None else Interval(found.r, None, None, found.clusters, LEVEL)
        said = "" if found.r is None else f" {found.r:.2f},"
        return Verdict("too small to tell", ours, found.clusters, f"{what}:{said} {why}")
    interval = Interval(found.r, found.low, found.high, found.clusters, LEVEL)
    outcome = outcome_of(interval, "greater" if claim.expect == "positive" else "less")
    words: dict[Outcome, Word] = {"holds": "agrees in sign", "fails": "differs"}
    p = "" if found.p is None else f", p = {found.p:.3g}"
    bounds = f"({found.low:.2f} … {found.high:.2f}){p}, {found.clusters} conditions, {len(rows)} models"
    said = f"{what}: {found.r:.2f} {bounds}"
    return Verdict(words.get(outcome, "too small to tell"), interval, found.clusters, said)


def _by_axes(series: Mapping[Condition, Replicates], axes: Sequence[str]) -> dict[tuple[str, ...], Replicates]:
    """Labels of the ``axes`` → the mean over the other axes; conditions without one of the axes are left out."""
    held: dict[tuple[str, ...], list[Replicates]] = {}
    for condition, replicates in series.items():
        labels = dict(condition)
        if all(axis in labels for axis in axes):
            held.setdefault(tuple(labels[axis] for axis in axes), []).append(replicates)
    return {key: mean_over(parts) for key, parts in held.items()}


def _of_models(replicates: Replicates) -> dict[str, float]:
    """Model → mean over its seeds of fine-tuning."""
    found: dict[str, list[float]] = {}
    for (model, _), value in replicates.items():
        found.setdefault(model, []).append(value)
    return {model: sum(values) / len(values) for model, values in found.items()}
