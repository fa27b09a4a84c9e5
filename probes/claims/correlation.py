"""Correlations over conditions, as claims and reports test them.

A correlation has one point per **cluster**. The models of a condition form one cluster. Conditions with the same x or
the same y of a model belong to one cluster too. Otherwise one alignment would count once for each way of fine-tuning
its model. Different measurements of one model, such as those of its languages, are separate conditions, and a
correlation over them holds for that model only.

Layers of one model depend on one another. A correlation over layers is therefore computed within each model, and its
mean over models is tested like any other mean (estimates.py).

A correlation over conditions holds or fails if its interval (bootstrap over conditions, with the models of a condition
together) excludes 0 and its permutation p, if there is one, is at most .05. Otherwise it is inconclusive. With five
conditions, only a perfect correlation that has a p can be decided. With fewer than five, the correlation is not run.
Over more than RESAMPLED conditions, interval and p are those of ``clustered``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import atanh, isfinite, nan, tanh
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from probes.claims.comparisons import Comparison, Outcome, against_region
from probes.claims.estimates import DECIDED, LEVEL, NOTHING, SAME, EstimateOrWhy, common_conditions, counted, estimate
from probes.claims.observed import (
    GIVEN,
    Measured,
    ModelFingerprints,
    ModelSeeds,
    Replicates,
    Results,
    Series,
    restricted,
    with_fallback,
)
from probes.claims.spec import LAYER, Correlate, Relation
from probes.results.pooling import Condition, drop_shared_runs
from probes.statistics import Correlation, CorrelationKind, Interval, correlation, mean_of
from probes.statistics.correlation_values import permuted
from probes.statistics.correlations import groups_of
from synthlang.wording import plural

Point = tuple[str, ...]
"""The labels that identify a point, one per axis."""
KEY = 0
"""Random key of the permutations and resamples."""
FEWEST = 5
"""Fewest conditions of a correlation that can be decided. Over four, the p value is at least 2 / 24."""
LARGEST = 1 - 1e-9
"""Largest correlation whose z is finite."""
RESAMPLED = 60
"""Largest number of conditions that are resampled, since resampling more takes seconds.

With more conditions, p is Student's and the interval Fisher's.
"""


def correlation_of(claim: Correlate, results: Results) -> Comparison:
    """Return the comparison of an entry of ``correlate``, over conditions or over the layers within models."""
    axes = (*claim.over, *claim.by)
    read = [with_fallback(quantity, results) for quantity in claim.quantities()]
    both = [results.series(quantity) for quantity in read]
    sides = [
        restricted({c: parts for c, parts in series.items() if dict(c).keys() >= set(axes)}, claim.restrict_to)
        for series in drop_shared_runs(both, common_conditions(both))[0]
    ]
    shared = shared_by_all(sides, axes)
    pairs = pairs_by_axes(shared, axes)
    known = [pair for pair in pairs if isfinite(pair.x) and isfinite(pair.y)]
    of = " ".join(label for axis, label in read[0].where.items() if read[1].where.get(axis) == label)
    what = f"{claim.kind} of {read[0].measure} and {read[1].measure}{f', {of}' if of else ''}"
    what += f", within {', '.join(claim.by)}" if claim.by else ""
    if not known:
        why = "no pair is of numbers" if pairs else "its points share no condition" if all(sides) else NOTHING
        return Comparison(what, why=why)
    if LAYER in claim.over:
        return _within_models(what, known, claim)
    blocks = ["\t".join(pair.point[len(claim.over) :]) for pair in known] if claim.by else None
    made = correlate_pairs(known, claim.kind, blocks)
    found = made.found
    if found.clusters < FEWEST:
        return Comparison(what, why=f"{made.conditions}, and with fewer than {FEWEST} nothing is decided")
    ours = Interval(nan if found.r is None else found.r, found.low, found.high, found.clusters, LEVEL)
    lost, alone = len(pairs) - len(known), max(len(one) - len(of) for one, of in zip(sides, shared, strict=True))
    said = [made.numbers, found.reason, found.no_interval]
    said += [f"{plural(lost, 'pair')} left out, not a number"] if lost else []
    said += [f"{plural(alone, 'condition')} left out, which not all points have"] if alone else []
    outcome = outcome_of_correlation(None if found.r is None else ours, found.p, _expected(claim))
    p = DECIDED if found.p is None else found.p
    p = 1.0 if outcome == "inconclusive" and p <= DECIDED else p  # its interval contains 0
    towards = (ours.mean > 0) == (_expected(claim) == "greater")
    return Comparison(
        what, ours, outcome, "conditions", made.one_model, found.p,
        p if towards else 1.0, 1.0 if towards else p, said="; ".join(filter(None, said)),
    )  # fmt: skip


def _expected(claim: Correlate) -> Relation:
    return "greater" if claim.expect == "positive" else "less"


def _within_models(what: str, pairs: Sequence[Pair], claim: Correlate) -> Comparison:
    """Test the mean over models of their correlations over layers, on the scale of Fisher's z = artanh r."""
    models: dict[ModelSeeds, list[Pair]] = {}
    for pair in pairs:
        assert pair.model is not None, "pairs of results have a model"
        models.setdefault(pair.model, []).append(pair)
    values: Replicates = {}
    for model, of in models.items():
        blocks = groups_of(np.unique(["\t".join(pair.point[len(claim.over) :]) for pair in of], return_inverse=True)[1])
        x, y = (np.array([pair[side] for pair in of], np.float64) for side in (1, 2))
        of_model = float(permuted(x[None], y, blocks, claim.kind)[0])
        if len({pair.point[: len(claim.over)] for pair in of}) >= FEWEST and isfinite(of_model):
            values[model, None] = atanh(max(-LARGEST, min(of_model, LARGEST)))
    why = f"no model has {FEWEST} layers whose measures vary"
    found = against_region(f"{what}, within models", EstimateOrWhy(estimate(values), why), _expected(claim))
    if found.interval is None:
        return found
    r = tanh(found.interval.mean)
    low, high = (None if z is None else tanh(z) for z in (found.interval.low, found.interval.high))
    bounds = "" if low is None or high is None else f" ({low:.2f} … {high:.2f})"
    said = f"{r:.2f}{bounds}, n = {counted(found.interval.n, found.unit)}"
    return replace(found, interval=replace(found.interval, mean=r, low=low, high=high), said=said)


class Pair(NamedTuple):
    """x and y of a model in a condition.

    Attributes:
        point: The labels of the condition, one for each axis of the correlation.
        x: The measure x, in its unit.
        y: The measure y, in its unit.
        models: The fingerprints of the model in each study that has the model. The set is empty if they are not known.
        model: The seeds of the model, if they are known.
    """

    point: Point
    x: float
    y: float
    models: frozenset[ModelFingerprints] = frozenset()
    model: ModelSeeds | None = None

    @property
    def pretrainings(self) -> set[str]:
        """Fingerprints of the pretrainings behind the numbers. The set is empty if they are not known."""
        given = self.model is not None and not self.model.pretraining
        return {known.pretraining for known in self.models} or ({GIVEN} if given else set())


@dataclass(frozen=True)
class Correlated:
    """A correlation over conditions, with the numbers of pairs and models.

    Attributes:
        found: The correlation, whose clusters are conditions.
        pairs: The number of pairs of x and y, one for each model of a condition.
        models: The number of models, or None if one of them is not known.
        share: True if conditions were joined because they share a measurement of a model.
        one_model: True if all pairs are known to come from one pretraining.
    """

    found: Correlation
    pairs: int
    models: int | None
    share: bool
    one_model: bool

    @property
    def conditions(self) -> str:
        """The number of conditions, in words."""
        return plural(self.found.clusters, "condition") + (" that share no measurement" if self.share else "")

    @property
    def pairs_of_models(self) -> str:
        """The numbers of pairs and models in words, such as ``15 pairs of 3 models``.

        The text is ``15 models`` if each model has one pair, and ``15 pairs`` if the models are not known.
        """
        if self.models == self.pairs:
            return plural(self.models, "model")
        return plural(self.pairs, "pair") + ("" if self.models is None else f" of {plural(self.models, 'model')}")

    @property
    def numbers(self) -> str:
        """The known numbers in words, such as ``0.90 (0.60 … 0.97), p = 0.01, n = 12 conditions``.

        The number of pairs is part of the text unless each condition is one pair of a separate model.
        """
        r, p, low, high = self.found.r, self.found.p, self.found.low, self.found.high
        bounds = "" if low is None or high is None else f" ({low:.2f} … {high:.2f})"
        shown = "" if r is None else f"{r:.2f}{bounds}{'' if p is None else f', p = {p:.3g}'}, "
        plain = self.pairs == self.found.clusters and self.models in (None, self.pairs)
        return f"{shown}n = {self.conditions}" + ("" if plain else f", {self.pairs_of_models}")


def clustered(
    pairs: Sequence[Sequence[float]],
    conditions: Sequence[str],
    kind: CorrelationKind = "spearman",
    blocks: Sequence[str] | None = None,
) -> Correlation:
    """Correlate pairs over conditions. A condition is one point, the mean over its models.

    Pearson's and Spearman's coefficients of more than RESAMPLED conditions without ``blocks`` have Student's p and
    Fisher's 95 % interval. With n conditions, p is two-sided for t = r √((n − 2) / (1 − r²)) with n − 2 degrees of
    freedom. The interval is tanh(artanh r ± 1.96 σ). The variance σ² is 1 / (n − 3) for Pearson's r, and
    (1 + ρ² / 2) / (n − 3) for Spearman's ρ (Bonett & Wright 2000). A perfect correlation has p = 0 and an interval
    without width. With so many conditions, p and interval agree with resampling.

    All other correlations, and those of a constant x or y, are computed by ``probes.statistics.correlation``.

    Args:
        pairs: [n, 2] x and y of a model, which must be finite. The order of the pairs changes nothing.
        conditions: [n] The condition of each pair.
        kind: The coefficient.
        blocks: [n] The block of each pair (default: one block). Pairs are compared within blocks only.

    Raises:
        InputError: A value is NaN or infinite, and the correlation is resampled.
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
    """Correlate x and y over the conditions of some pairs.

    Args:
        pairs: [n] The pairs, whose x and y must be finite.
        kind: The coefficient.
        blocks: [n] The block of each pair (default: one block). Pairs are compared within blocks only.

    Raises:
        InputError: A value is NaN or infinite, and the correlation is resampled.
    """
    measured: dict[Point, dict[ModelFingerprints, tuple[float, float]]] = {}
    for pair in pairs:  # single precision: means over different numbers of seeds differ by rounding
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
    """Return the cluster of each condition. Conditions that share a measurement form a cluster.

    Two conditions share a measurement if all models that they have in common have the same x in both, or all have the
    same y. A single model with equal values is not enough if other models differ, since this may be chance.
    """
    of_model: dict[ModelFingerprints, list[int]] = {}
    for number, one in enumerate(measured):
        for model in one:
            of_model.setdefault(model, []).append(number)
    links = []
    for first, second in {pair for numbers in of_model.values() for pair in combinations(numbers, 2)}:
        one, other = measured[first], measured[second]
        both = one.keys() & other.keys()
        if any(all(one[model][side] == other[model][side] for model in both) for side in (0, 1)):
            links.append((first, second))
    rows, columns = np.array(links, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(links), np.int8), (rows, columns)), (len(measured), len(measured)))
    return [int(number) for number in connected_components(graph, directed=False)[1]]


def outcome_of_correlation(ours: Interval | None, p: float | None, relation: Relation) -> Outcome:
    """Return the outcome of a correlation: decided if its interval excludes 0 and ``p``, if known, is at most .05.

    A correlation of ±1 without a p is inconclusive, and so is a correlation without an interval. The bootstrap interval
    alone would decide too often over few conditions. Over five conditions, it decides 13 % of all permutations.
    """
    if ours is None or ours.low is None or ours.high is None:
        return "inconclusive"
    if ours.low <= 0 <= ours.high or (p is not None and p > DECIDED):
        return "inconclusive"
    if p is None and abs(ours.mean) > 1 - SAME:  # all draws of a perfect correlation are perfect
        return "inconclusive"
    return "holds" if (ours.mean > 0) == (relation == "greater") else "fails"


def shared_by_all(sides: Sequence[Series], axes: Sequence[str]) -> list[Series]:
    """Reduce both sides to the conditions that all points of a correlation have.

    All points are then means over the same conditions. A point is identified by its labels of ``axes``, which all
    conditions have. On an axis that both sides have, only the labels that both have are kept. An axis that only one
    side has, such as the task, restricts only that side. An axis with one label per point, such as the language of a
    pair, restricts neither.
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
    """Keep the conditions that every point has. A point is a combination of labels of ``axes``."""
    points: dict[Point, list[Condition]] = {}
    for condition in conditions:
        points.setdefault(_point(condition, axes), []).append(condition)
    others = {axis for condition in conditions for axis, _ in condition} - set(axes)
    inner = [axis for axis in others if any(len({_only(c, {axis}) for c in group}) > 1 for group in points.values())]
    every = [{_only(condition, inner) for condition in group} for group in points.values()]
    common = set.intersection(*every) if every else set()
    return {condition for condition in conditions if _only(condition, inner) in common}


def pairs_by_axes(sides: Sequence[Series], axes: Sequence[str]) -> list[Pair]:
    """Return x and y (``sides``) of each model that both sides have at a point of the ``axes``."""
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
    """Return the mean of each model by labels of ``axes``, over other axes and common fine-tuning seeds.

    Only finite numbers count. The mean is NaN if there are none.
    """
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
