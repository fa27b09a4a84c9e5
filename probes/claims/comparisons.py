"""The comparisons and correlations of a claim, looked up in results and tested one by one.

Differences, their intervals and the outcome of a comparison: estimates.py. How the comparisons of a claim combine into
its verdict: verdicts.py. All comparisons of a claim whose conditions have the same axes are over the same conditions.

With ``minus`` a gap of gaps is tested: (left − subtracted from left) − (right − subtracted from right). With
``fallback_measure`` another measure is read if nothing was measured of the first, and the text names the one that was.

A correlation holds or fails if its interval (bootstrap over conditions, with the models of a condition together)
excludes 0 and its permutation p, if there is one, is at most .05. It is inconclusive otherwise, as any correlation over
five conditions is that is not perfect, and a perfect one without a p. It is not run over fewer than five.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from probes.claims.correlation import (
    FEWEST,
    correlate_pairs,
    outcome_of_correlation,
    pairs_by_axes,
    shared_by_all,
)
from probes.claims.estimates import (
    DECIDED,
    LEVEL,
    NOTHING,
    Estimate,
    Outcome,
    Region,
    Unit,
    common_conditions,
    decided,
    estimate_over,
    named,
    region,
)
from probes.claims.observed import Results, Series
from probes.claims.power import models_needed
from probes.claims.spec import OF_PROBE, Claim, ClaimEntry, Compare, Correlate, Order, Quantity, Relation
from probes.report.numbers import plural
from probes.results.pooling import Condition, drop_shared_runs
from probes.statistics import Interval


@dataclass(frozen=True)
class Comparison:
    """The sides of a comparison, over ``conditions`` that all of them have."""

    what: str
    sides: tuple[Series, ...]
    conditions: Sequence[Condition]
    relation: Relation
    margin: float = 0.0
    value: float = 0.0
    none_against: bool = False


@dataclass(frozen=True)
class JudgedComparison:
    """One comparison of a claim with its test.

    Attributes:
        what: The two sides, in words.
        interval: The interval that decides. None if the comparison was not run; ``why`` gives the reason.
        p: Two-sided p value of the hypothesis that the true value is 0.
        inside: p value of the claim's hypothesis.
        outside: p value of the opposite.
        expected: The region that the claim expects, in words. Empty for a correlation.
        said: The estimate, in words.
        singles: The same comparison for each condition alone, if it is a mean over several.
        none_against: Each of these may fail the claim.
        against_alone: It fails by itself, but not after Holm's correction.
        tested_by: The estimate and the region of the test. None for a correlation.
    """

    what: str
    interval: Interval | None = None
    outcome: Outcome = "not run"
    unit: Unit = "models"
    one_model: bool = False
    p: float | None = None
    inside: float = 1.0
    outside: float = 1.0
    expected: str = ""
    said: str = ""
    why: str = ""
    singles: tuple[JudgedComparison, ...] = ()
    none_against: bool = False
    against_alone: bool = False
    tested_by: tuple[Estimate, Region] | None = None

    @property
    def leans_outside(self) -> bool:
        """True if the mean contradicts the claim."""
        return self.outside < self.inside

    def needed(self, tests: int) -> float | None:
        """Return the number of models that would decide it, with ``tests`` tests in its claim (see power.py)."""
        return None if self.tested_by is None else models_needed(*self.tested_by, tests)

    @property
    def tested(self) -> float | None:
        """p value that it contradicts the claim. None if nothing could be tested."""
        return None if self.interval is None or (self.p is None and self.outside == 1) else self.outside

    def text(self) -> str:
        """Return it in words: ``A − B (expected > 0): 3.1 (1.0 … 5.2), n = 3 models: holds``."""
        if self.interval is None:
            return f"{self.what}: not run, {self.why}"
        if not self.expected:
            return f"{self.what}: {self.said}"
        return f"{self.what} (expected {self.expected}): {self.said}: {self.outcome}"


def comparisons_of(claim: Claim, results: Results) -> list[JudgedComparison]:
    """Return the comparisons of a claim, each tested as if it were alone."""
    comparisons = [_compared(compare, results) for compare in claim.compare or ()]
    for order in claim.order or ():
        comparisons += _ordered(order, results)
    parts = [_part(comparison) for comparison in _over_the_same(comparisons)]
    return parts + [_correlation(entry, results) for entry in claim.correlate or ()]


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
    margin, expected = comparison.margin, region(comparison.relation, comparison.margin)
    found = estimate_over(comparison.sides, comparison.conditions)
    if found.ours is None:
        return JudgedComparison(comparison.what, why=found.why)
    ours = replace(found.ours, mean=found.ours.mean - comparison.value)
    inside, outside = expected.p_values(ours)
    words = {
        "greater": f"> {margin:g}",
        "less": f"< {-margin or 0:g}",
        "non_inferior": f"> {-margin:g}, one-sided",
        "non_superior": f"< {margin:g}, one-sided",
        "equivalent": f"within ±{margin:g}, two one-sided tests",
    }[comparison.relation]
    return JudgedComparison(
        comparison.what, ours.interval_at(expected.level), decided(inside, outside), ours.unit, ours.one_model, ours.p,
        inside, outside, words, ours.text(level=expected.level), tested_by=(ours, expected),
    )  # fmt: skip


def _compared(compare: Compare, results: Results) -> Comparison:
    """Look up the sides of a comparison, over the conditions that all of them have."""
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
    """Return the conditions whose labels ``restrict_to`` allows."""
    return {
        condition: parts
        for condition, parts in series.items()
        if all(dict(condition).get(axis) in labels for axis, labels in entry.restrict_to.items())
    }


def _as_measured(quantity: Quantity, results: Results) -> Quantity:
    """Return the quantity with its fallback measure, if nothing was measured of its own."""
    if quantity.fallback_measure is None or results.series(quantity):
        return quantity
    return replace(quantity, measure=quantity.fallback_measure)


def _ordered(order: Order, results: Results) -> list[Comparison]:
    """Return each step of an order, over the conditions that all measured things have. The others are not run."""
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
    """Reduce comparisons whose conditions have the same axes to the conditions that all of them have."""
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
    """Return the sides in words: the labels that both have, the measure, and the labels that differ."""
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
    """Return the labels it is a mean over, if it names some."""
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
    # measures do not name their model: layers of the same seeds belong to one, other conditions need not
    layers = claim.over == ["layer"] and len({pair.model for pair in known}) == 1
    return JudgedComparison(
        what, ours, outcome, "conditions", correlated.one_model or layers, found.p,
        p_value if outcome == "holds" else 1.0, p_value if outcome == "fails" else 1.0,
        said="; ".join(filter(None, said)),
    )  # fmt: skip
