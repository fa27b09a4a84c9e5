"""Which replicates of two sides are a pair: the rule is that of estimates.py.

One side may be adjusted, several times for each pretraining, and the other not at all: they have no replicate in common
then, but the pretrainings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from probes.study.judged.observed import Model, Replicate, Replicates


class Pairs(NamedTuple):
    """``differences``: left − right of each pair, by what its sides have in common; ``alone``: the replicates of a side
    that are in no pair."""

    differences: Replicates
    alone: set[Replicate]


def pairs(left: Replicates, right: Replicates) -> Pairs | None:
    """The pairs of two sides, neither empty, where their differences are what is counted; None of sides not paired."""
    as_they_are, by_pretraining = (_matched(left, right, name) for name in (_itself, _its_pretraining))
    if pretrainings(as_they_are.differences) < 2 <= pretrainings(by_pretraining.differences):
        return by_pretraining
    models = [{model for model, _ in side} for side in (left, right, as_they_are.differences)]
    return as_they_are if len(models[2]) > 1 or models[0] == models[1] == models[2] else None


def pretrainings(replicates: Replicates) -> int:
    """How many there are."""
    return len({model.pretraining for model, _ in replicates})


def _matched(left: Replicates, right: Replicates, name: Callable[[Replicate], Replicate]) -> Pairs:
    """Pairs of the same ``name``: of each side the mean over those that have it."""
    a, b = _means(left, name), _means(right, name)
    differences = {one: a[one] - b[one] for one in a if one in b}
    return Pairs(differences, {one for one in left.keys() | right.keys() if name(one) not in differences})


def _means(side: Mapping[Replicate, float], name: Callable[[Replicate], Replicate]) -> Replicates:
    held: dict[Replicate, list[float]] = defaultdict(list)
    for one, value in side.items():
        held[name(one)].append(value)
    return {one: sum(values) / len(values) for one, values in held.items()}


def _itself(one: Replicate) -> Replicate:
    return one


def _its_pretraining(one: Replicate) -> Replicate:
    model, seed = one
    return Model(model.pretraining, ""), seed
