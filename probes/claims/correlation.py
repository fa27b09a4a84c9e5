"""The correlation over conditions that claims and reports share: what counts as one condition, and how many models.

The models of a condition are one **cluster**, which is one point of the correlation, and so are conditions that have
the same measurement of a model in common: the same x, or the same y. Where conditions differ in fine-tuning alone one
alignment of a model would count several times else. Different measurements of one model, as of the languages that it
reads, are conditions of their own, and what they show is of that model.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import atanh, nan, tanh
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from probes.claims.estimates import DECIDED, SAME, Outcome
from probes.claims.observed import GIVEN, Measured, ModelFingerprints, ModelSeeds, Replicates, Series
from probes.claims.spec import Relation
from probes.report.numbers import plural
from probes.results.pooling import Condition
from probes.statistics import Correlation, CorrelationKind, Interval, correlation, mean_of

Point = tuple[str, ...]
"""What a condition of a correlation is told by, as its labels of the axes."""
KEY = 0
"""Key of the random permutations and resamples."""
FEWEST = 5
"""Conditions of a correlation that can be decided: the p of all orders of four is 2 / 24 at least."""
RESAMPLED = 60
"""Of more conditions than this p is Student's and the interval Fisher's: resampling many takes seconds."""


class Pair(NamedTuple):
    """x and y of a model in a condition.

    point    what the condition is told by
    models   what the model is known by (two studies may know it by two); nothing where it is not known
    model    its seeds, where they are told
    """

    point: Point
    x: float
    y: float
    models: frozenset[ModelFingerprints] = frozenset()
    model: ModelSeeds | None = None

    @property
    def pretrainings(self) -> set[str]:
        """Those that the numbers rest on, by fingerprints; nothing where they are not known."""
        given = self.model is not None and not self.model.pretraining
        return {known.pretraining for known in self.models} or ({GIVEN} if given else set())


@dataclass(frozen=True)
class Correlated:
    """A correlation over conditions, and what it is of.

    pairs       of x and y, one for each model of a condition
    models      how many there are; None where one is not known
    share       conditions were taken together, since they have the same measurement of a model
    one_model   all pairs are known to rest on one pretraining
    """

    found: Correlation
    pairs: int
    models: int | None
    share: bool
    one_model: bool

    @property
    def conditions(self) -> str:
        """What its n is of."""
        return plural(self.found.clusters, "condition") + (" that share no measurement" if self.share else "")

    @property
    def pairs_of_models(self) -> str:
        """As 15 pairs of 3 models; 15 models where each has one pair; 15 pairs where the models are not known."""
        if self.models == self.pairs:
            return plural(self.models, "model")
        return plural(self.pairs, "pair") + ("" if self.models is None else f" of {plural(self.models, 'model')}")

    @property
    def text(self) -> str:
        """The conditions, and the pairs where these are more or not each of a model of its own."""
        plain = self.pairs == self.found.clusters and self.models in (None, self.pairs)
        return self.conditions if plain else f"{self.conditions}, {self.pairs_of_models}"


def clustered(
    pairs: Sequence[Sequence[float]],
    conditions: Sequence[str],
    kind: CorrelationKind = "spearman",
    blocks: Sequence[str] | None = None,
) -> Correlation:
    """Correlation over conditions of (x, y) ``pairs`` [n], each a model of one of the ``conditions`` [n].

    A condition is one point, the means over its models; the order of the pairs changes nothing.

    Of more than RESAMPLED conditions in one block p is that of Student's t and the interval Fisher's, whose variance is
    1 / (n − 3) for Pearson's r and that of Bonett & Wright (2000), (1 + ρ² / 2) / (n − 3), for Spearman's ρ, n the
    number of conditions: with that many they agree with what resampling finds.
    """
    clusters: dict[str, list[tuple[str, float, float]]] = {}
    for name, block, (one, other) in zip(conditions, blocks or [""] * len(pairs), pairs, strict=True):
        clusters.setdefault(name, []).append((block, one, other))
    in_order = sorted(sorted(rows) for rows in clusters.values())
    ordered = [(i, *row) for i, rows in enumerate(in_order) for row in rows]
    x, y = (np.array([row[side] for row in ordered], np.float64) for side in (2, 3))
    count = len(clusters)
    left, right = (np.array([np.mean([row[side] for row in rows]) for rows in in_order]) for side in (1, 2))
    if count <= RESAMPLED or blocks is not None or kind == "kendall" or np.ptp(left) == 0 or np.ptp(right) == 0:
        return correlation(x, y, KEY, kind, blocks=[row[1] for row in ordered], clusters=[row[0] for row in ordered])
    r = float((stats.spearmanr(left, right) if kind == "spearman" else stats.pearsonr(left, right)).statistic)
    found = Correlation(kind, len(x), 1, count, r)
    if abs(r) >= 1 - 1e-12:
        return replace(found, p=0.0, low=r, high=r)
    p = 2 * float(stats.t.sf(abs(r) * ((count - 2) / (1 - r**2)) ** 0.5, count - 2))
    variance = (1 + r**2 / 2 if kind == "spearman" else 1) / (count - 3)
    half = float(stats.norm.ppf(0.975)) * variance**0.5
    return replace(found, p=p, low=tanh(atanh(r) - half), high=tanh(atanh(r) + half))


def correlate_pairs(
    pairs: Sequence[Pair], kind: CorrelationKind = "spearman", blocks: Sequence[str] | None = None
) -> Correlated:
    """The correlation of x and y over the conditions of ``pairs`` [n], in ``blocks`` [n] if there are some."""
    measured: dict[Point, dict[ModelFingerprints, tuple[float, float]]] = {}
    for pair in pairs:  # in single precision: means of one number over unlike many seeds differ by rounding
        numbers = float(np.float32(pair.x)), float(np.float32(pair.y))
        measured.setdefault(pair.point, {}).update(dict.fromkeys(pair.models, numbers))
    clusters = dict(zip(measured, _one_measurement(list(measured.values())), strict=True))
    names = [str(clusters[pair.point]) for pair in pairs]
    found = clustered([(pair.x, pair.y) for pair in pairs], names, kind, blocks)
    models = len(set().union(*(pair.models for pair in pairs))) if all(pair.models for pair in pairs) else None
    pretrainings = [pair.pretrainings for pair in pairs]
    one_model = all(pretrainings) and len(set().union(*pretrainings)) == 1
    return Correlated(found, len(pairs), models, len(set(names)) < len(clusters), one_model)


def _one_measurement(measured: Sequence[Mapping[ModelFingerprints, tuple[float, float]]]) -> list[int]:
    """For each condition, by the x and y of its models, the number of the first one that repeats the measurement of one
    side: the same x, or the same y, of every model that both have. One model may have two numbers alike by chance."""
    of_model: dict[ModelFingerprints, list[int]] = {}
    for number, one in enumerate(measured):
        for model in one:
            of_model.setdefault(model, []).append(number)
    links: list[set[tuple[int, int]]] = [set() for _ in measured]
    for first, second in {pair for numbers in of_model.values() for pair in combinations(numbers, 2)}:
        both = measured[first].keys() & measured[second].keys()
        if any(all(measured[first][model][side] == measured[second][model][side] for model in both) for side in (0, 1)):
            links[first].add((first, second))
            links[second].add((first, second))
    return connected_groups(links)


def connected_groups(collections: Sequence[Collection[Hashable]]) -> list[int]:
    """For each collection the number of the first one that it has an item in common with, or with one that has, and so
    on; its own number where there is none before it.

    >>> connected_groups([{"a"}, {"b"}, {"a", "c"}, {"c"}, ()])
    [0, 1, 0, 0, 4]
    """
    names = {name: number for number, name in enumerate({name for one in collections for name in one})}
    ends = [(number, len(collections) + names[name]) for number, one in enumerate(collections) for name in one]
    size = len(collections) + len(names)
    rows, columns = np.array(ends, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(ends), np.int8), (rows, columns)), (size, size))
    first: dict[int, int] = {}
    components = connected_components(graph, directed=False)[1][: len(collections)].tolist()
    return [first.setdefault(component, number) for number, component in enumerate(components)]


def outcome_of_correlation(ours: Interval | None, p: float | None, relation: Relation) -> Outcome:
    """Whether a correlation is on the side of 0 that ``relation`` says: where its interval does not have 0 inside, and
    ``p``, where there is one, is .05 or less.

    Of few conditions the bootstrap's interval alone decides too often: of five, in 13 % of all orders.
    """
    if ours is None or ours.low is None or ours.high is None:
        return "inconclusive"
    if ours.low <= 0 <= ours.high or (p is not None and p > DECIDED):
        return "inconclusive"
    if p is None and abs(ours.mean) > 1 - SAME:  # all draws of a perfect one are perfect: its interval says nothing
        return "inconclusive"
    return "holds" if (ours.mean > 0) == (relation == "greater") else "fails"


def shared_by_all(sides: Sequence[Series], axes: Sequence[str]) -> list[Series]:
    """The conditions that all points of a correlation have, so that points are means over the same: a point is what has
    the same labels of ``axes``, which all conditions have.

    Of the axes that both sides have, the labels are such as both have; other axes (as tasks, which an alignment has
    none of) are each side's own. Axes that have one label at each point (as a language that goes with a pair) do not
    count.
    """
    joint = set.intersection(*({axis for condition in side for axis, _ in condition} for side in sides))
    kept = _of_all_points(set.intersection(*({_only(c, joint) for c in side} for side in sides)), axes)
    found = []
    for side in sides:
        of_side = _of_all_points([c for c in side if _only(c, joint) in kept], axes)
        found.append({condition: parts for condition, parts in side.items() if condition in of_side})
    return found


def _point(condition: Condition, axes: Sequence[str]) -> Point:
    labels = dict(condition)
    return tuple(labels[axis] for axis in axes)


def _only(condition: Condition, axes: Collection[str]) -> Condition:
    return tuple(item for item in condition if item[0] in axes)


def _of_all_points(conditions: Collection[Condition], axes: Sequence[str]) -> set[Condition]:
    """Those whose labels of the other axes occur at every point."""
    points: dict[Point, list[Condition]] = {}
    for condition in conditions:
        points.setdefault(_point(condition, axes), []).append(condition)
    others = {axis for condition in conditions for axis, _ in condition} - set(axes)
    inner = [axis for axis in others if any(len({_only(c, {axis}) for c in group}) > 1 for group in points.values())]
    every = [{_only(condition, inner) for condition in group} for group in points.values()]
    common = set.intersection(*every) if every else set()
    return {condition for condition in conditions if _only(condition, inner) in common}


def pairs_by_axes(sides: Sequence[Series], axes: Sequence[str]) -> list[Pair]:
    """x and y (``sides``) of each model that both sides have at a point of the ``axes``."""
    x, y = (_by_axes(series, axes) for series in sides)
    known: dict[tuple[Point, ModelSeeds], set[ModelFingerprints]] = {}
    for condition, parts in (item for side in sides for item in side.items()):
        for model, name in (pair for one in parts.values() if isinstance(one, Measured) for pair in one.models):
            known.setdefault((_point(condition, axes), model), set()).add(name)
    return [
        Pair(point, value, y[point][model], frozenset(known.get((point, model), ())), model)
        for point, models in x.items()
        for model, value in models.items()
        if model in y.get(point, {})
    ]


def _by_axes(series: Series, axes: Sequence[str]) -> dict[Point, dict[ModelSeeds, float]]:
    """Labels of the ``axes`` → model → mean over the other axes and the seeds of fine-tuning that all of these have, of
    those that are numbers; NaN where there is none."""
    at_point: dict[Point, list[Replicates]] = {}
    for condition, parts in series.items():
        at_point.setdefault(_point(condition, axes), []).extend(parts.values())
    found: dict[Point, dict[ModelSeeds, float]] = {}
    for point, replicates in at_point.items():
        models: dict[ModelSeeds, list[float]] = {}
        for one in set(replicates[0]).intersection(*replicates[1:]):
            models.setdefault(one[0], []).append(sum(part[one] for part in replicates) / len(replicates))
        means = {model: mean_of(values) for model, values in sorted(models.items())}
        found[point] = {model: nan if mean is None else mean for model, mean in means.items()}
    return found
