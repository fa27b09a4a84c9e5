"""The comparisons of a claim, looked up in results.

Comparisons whose conditions have the same axes are made over their common conditions. With ``minus`` a gap of gaps is
tested: (left − subtracted from left) − (right − subtracted from right). If the measure has no values, its
``fallback_measure`` is read, and the text names the measure that was read. Conditions in which a score of
``above_floor`` is at the majority baseline are left out. If none is left, the comparison is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from probes.claims.comparisons import Comparison, against_region
from probes.claims.correlation import correlation_of
from probes.claims.estimates import common_conditions, estimate_over, named
from probes.claims.observed import Results, Series, restricted, with_fallback
from probes.claims.spec import OF_PROBE, Claim, Compare, Order, Quantity, Relation
from probes.results.curves import named_summary
from probes.results.pooling import Condition, drop_shared_runs
from probes.results.scores import MAJORITY


@dataclass(frozen=True)
class _Sides:
    """The sides of a comparison.

    Attributes:
        what: The compared quantities, in words.
        sides: Our measurements of one, two or four sides, as in ``estimate_over``.
        conditions: The conditions that all sides have.
        relation: The expected relation.
        margin: The margin of the relation.
        value: Number that is subtracted from the difference.
        none_against: True if a single condition can fail the claim.
        floors: A score that has to lie above the majority baseline, and the baseline.
    """

    what: str
    sides: tuple[Series, ...]
    conditions: Sequence[Condition]
    relation: Relation
    margin: float = 0.0
    value: float = 0.0
    none_against: bool = False
    floors: Sequence[tuple[Series, Series]] = ()

    def tested(self) -> Comparison:
        """Compare the means over the conditions above the floor, and the sides in each condition alone."""
        floored = [c for c in self.conditions if any(_at_floor(*floor, c) for floor in self.floors)]
        if not floored:
            return self._tested()
        told = f"at the majority baseline: {named(floored, self.conditions)}"
        if len(floored) == len(self.conditions):
            return Comparison(self.what, why=told, at_floor=True)
        above = tuple({c: parts for c, parts in side.items() if c not in floored} for side in self.sides)
        found = replace(self, sides=above, conditions=[c for c in self.conditions if c not in floored])._tested()
        return replace(found, said=f"{found.said}; left out, {told}")

    def _tested(self) -> Comparison:
        sides, conditions = drop_shared_runs(self.sides, self.conditions)

        def test(what: str, over: Sequence[Condition]) -> Comparison:
            return against_region(what, estimate_over(sides, over), self.relation, self.margin, self.value)

        whole = test(self.what, conditions)
        if len(conditions) < 2 or whole.interval is None:
            return whole
        every = list(dict.fromkeys(condition for side in sides for condition in side))
        singles = tuple(test(f"{self.what}: {named([one], every)}", [one]) for one in conditions)
        return replace(whole, singles=singles, none_against=self.none_against)


def _at_floor(score: Series, baseline: Series, condition: Condition) -> bool:
    """Return whether a score is not shown to be above the majority baseline in a condition."""
    if condition not in score or condition not in baseline:
        return False
    above = estimate_over([score, baseline], [condition]).ours
    return above is not None and (above.mean if above.interval.low is None else above.interval.low) <= 0


def comparisons_of(claim: Claim, results: Results) -> list[Comparison]:
    """Return the comparisons of a claim, each tested as if it were alone."""
    found = [_compared(compare, results) for compare in claim.compare or ()]
    found += [sides for order in claim.order or () for sides in _ordered(order, results)]
    parts = [sides.tested() for sides in _over_the_same(found)]
    return parts + [correlation_of(entry, results) for entry in claim.correlate or ()]


def _looked_up(entry: Compare | Order, results: Results) -> list[tuple[Quantity, Series]]:
    """Return each quantity of an entry, or the quantity of its fallback measure, with its measurements.

    Measurements are keyed by the labels of the axes that no quantity names. Only conditions that ``restrict_to`` allows
    are kept.
    """
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
    axes = {axis for quantity in (*quantities, *compare.floors()) for axis in quantity.where}
    floors = [
        (results.series(floor, axes), results.series(replace(floor, measure=MAJORITY), axes))
        for floor in compare.floors()
    ]
    conditions = common_conditions(sides)
    return _Sides(what, sides, conditions, compare.relation, compare.points, value, compare.none_against, floors)


def _ordered(order: Order, results: Results) -> list[_Sides]:
    """Return the n − 1 steps of an order of n quantities, over their common conditions.

    Steps between measured quantities come first. Steps without measurements fill up the number.
    """
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
    curve = "" if quantity.curve is None else f" ({named_summary(quantity.curve)})"
    return quantity.measure.removeprefix(OF_PROBE) + layer + curve
