"""What a claim asks of results: its comparisons, each of which sides and over which conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from probes.study.judged.claims import Compare, Order, Relation
from probes.study.judged.estimates import common
from probes.study.judged.observed import Condition, Results, Series
from probes.study.judged.once import once
from probes.study.judged.quantities import Quantity


@dataclass(frozen=True)
class Asked:
    """What is compared, over ``conditions`` that all ``sides`` have."""

    what: str
    sides: tuple[Series, ...]
    conditions: Sequence[Condition]
    relation: Relation
    margin: float = 0.0
    value: float = 0.0


def compared(compare: Compare, results: Results) -> Asked:
    """The sides of a comparison, over what all of them have; of one side, over all that it has."""
    left, *others = (as_measured(quantity, results) for quantity in compare.quantities())
    if not others:
        assert compare.value is not None, "checked"
        side, what = results.series(left), f"{_name(left, None)}{f' − {compare.value:g}' if compare.value else ''}"
        return Asked(what, (side,), list(side), compare.relation, compare.margin, compare.value)
    named = {axis for quantity in (left, *others) for axis in quantity.where}
    sides = tuple(results.series(quantity, named) for quantity in (left, *others))
    what = _name(left, others[0])
    if len(others) > 1:
        what = f"({_name(left, others[1])}) − ({_name(others[0], others[2])})"
    return Asked(what, sides, common(sides), compare.relation, compare.margin)


def as_measured(quantity: Quantity, results: Results) -> Quantity:
    """With the measure that is read instead, where nothing was measured of its own."""
    if quantity.instead is None or results.series(quantity):
        return quantity
    return replace(quantity, measure=quantity.instead)


def ordered(order: Order, results: Results) -> list[Asked]:
    """Each thing that was run against the one before it, over what all of them have; the others are not run."""
    wanted = [as_measured(quantity, results) for quantity in order.quantities()]
    named = {axis for quantity in wanted for axis in quantity.where}
    found = [(quantity, results.series(quantity, named)) for quantity in wanted]
    there = [one for one in found if one[1]]
    relation: Relation = "greater" if order.direction == "rising" else "less"
    shared = common([series for _, series in there]) if there else []
    asked = [
        Asked(_name(after, before), (of_after, of_before), shared, relation)
        for (before, of_before), (after, of_after) in pairwise(there)
    ]
    lost = [quantity for quantity, series in found if not series][: len(wanted) - max(1, len(there))]
    return asked + [Asked(_name(quantity, None), ({},), [], relation) for quantity in lost]


def over_the_same(asked: Sequence[Asked]) -> list[Asked]:
    """Comparisons whose conditions have the same axes are over the conditions that all of them have."""
    groups: dict[frozenset[str], list[Sequence[Condition]]] = {}
    for one in asked:
        if one.conditions:
            groups.setdefault(_axes(one), []).append(one.conditions)
    kept = {axes: set(held[0]).intersection(*held[1:]) for axes, held in groups.items()}
    return [
        replace(one, conditions=[c for c in one.conditions if c in kept[_axes(one)]]) if one.conditions else one
        for one in asked
    ]


def counted_once(one: Asked) -> Asked:
    """With runs that stand under several labels under one."""
    sides, conditions = once(one.sides, one.conditions)
    return replace(one, sides=sides, conditions=conditions)


def _axes(one: Asked) -> frozenset[str]:
    return frozenset(axis for condition in one.conditions for axis, _ in condition)


def _name(left: Quantity, right: Quantity | None) -> str:
    """What is compared: the labels that both have, the measure, and the labels that differ."""
    if right is None:
        return " ".join([*left.where.values(), *_averaged(left), _measure(left)])
    common = [label for axis, label in left.where.items() if right.where.get(axis) == label]
    mine, others = (
        " ".join(
            [
                *(label for axis, label in one.where.items() if other.where.get(axis) != label),
                *(_averaged(one) if one.average != other.average else []),
                *([_measure(one)] if _measure(one) != _measure(other) else []),
            ]
        )
        for one, other in ((left, right), (right, left))
    )
    shared = [*common, *([_measure(left)] if _measure(left) == _measure(right) else [])]
    return f"{' '.join(shared)}, {mine or 'the other'} − {others or 'the other'}".removeprefix(", ")


def _averaged(quantity: Quantity) -> list[str]:
    """The labels it is a mean over, where it names some."""
    return [f"mean of {', '.join(labels)}" for labels in quantity.average.values() if labels]


def _measure(quantity: Quantity) -> str:
    layer = "" if quantity.layer is None else f" ({quantity.layer} layer)"
    return quantity.measure.removeprefix("probe:") + layer
