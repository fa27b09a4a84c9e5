"""The results of studies, looked up by the labels of their cells: rows of the table (results/read.py) as numbers.

A **condition** is what the labels that a quantity does not name are; the **replicates** of a condition differ in seeds
only: a model (a pretraining, and what was done to it since) and a seed of fine-tuning on it. What is measured of a
model without fine-tuning, as alignment, has no second one. Nothing is averaged here but values of one replicate at one
set of labels, as two studies have them: what means are over must be the same for all that is compared (estimates.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from probes.claims.spec import OF_PROBE, Layer, Quantity
from probes.results.labels import is_seed
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.pooling import Condition, Runs
from probes.results.read import columns_of, labels_of
from probes.results.schema import Labels

OBJECTIVES = {"mlm": "MLM", "xlm": "XLM", "dict_mlm": "DICT-MLM", "align_mlm": "ALIGN-MLM"}
PLAIN = {"pretrain.objective.kind": "objective", "pretrain.language": "transform"}
"""Key of a plain axis → the name that papers and claims have for it, so that it does as well as a named one; beside an
axis of that name it keeps its key."""
AFTER = ("adjust", "finetuned", "tuned", "transfer", "tasks", "probes")
"""First parts of the keys of seeds that the pretraining does not depend on."""
GIVEN = "given"
"""Stands for the fingerprint of a pretraining that is not ours; a study has one given model."""
PROBE = "probe"
"""What tells the conditions of a measure apart where several probes of a cell have it."""


class ModelSeeds(NamedTuple):
    """The seeds of a pretraining, "" of a given model, and those of what was done to it since."""

    pretraining: str
    adjustment: str


class ModelFingerprints(NamedTuple):
    """What tells a model from others: the fingerprints of its pretraining, GIVEN of a given model, and of its
    adjustment, "" of none."""

    pretraining: str
    adjustment: str


Replicate = tuple[ModelSeeds, int | None]
"""Model and seed of fine-tuning."""
Replicates = dict[Replicate, float]
"""NaN is a value, too: what is left out is told."""


class Measured(dict[Replicate, float]):
    """Replicates with the runs they are of (none where one is not known), and their models, where they are known."""

    runs: Runs = frozenset()
    models: frozenset[tuple[ModelSeeds, ModelFingerprints]] = frozenset()


Series = dict[Condition, dict[Condition, Replicates]]
"""Condition → labels of the axes that are averaged within it → replicates."""


class _Point(NamedTuple):
    replicate: Replicate
    layer: int | None
    step: int | None
    value: float
    run: str
    probe: str
    model: ModelFingerprints | None


_Points = tuple[Mapping[tuple[str, str], Sequence[_Point]], bool]
"""The rows of a measure by their labels and task, and whether several probes have it under the same."""


class Results:
    """What studies measured, by the labels and the measure that are asked for."""

    def __init__(self, table: pd.DataFrame, later: Collection[str] = ()) -> None:
        """From a table of measurements, or of several studies what ``pooled`` makes of theirs.

        ``later``: named axes of seeds that the pretraining does not depend on.
        """
        self._table = table
        self._places = self._table.groupby("measure", observed=True).indices
        self._points: dict[str, _Points] = {}
        pairs = self._table[["labels", "task"]].drop_duplicates().itertuples(index=False, name=None)
        self._labels = {(text, task): labels_and_seeds(text, task, frozenset(later)) for text, task in pairs}
        self._number = {place: number for number, place in enumerate(self._labels)}
        self._index: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        for place, (labels, *_) in self._labels.items():
            for item in labels.items():
                self._index[item].add(place)

    def series(self, quantity: Quantity, apart: Iterable[str] = ()) -> Series:
        """What was measured, by condition.

        Within a condition are the labels of ``quantity.average``, where it names some (a condition that lacks one is
        left out), and of the axes ``apart``, which tell no conditions apart.
        """
        wanted = {axis: set(labels) for axis, labels in quantity.average.items() if labels}
        inside = (set(apart) - set(quantity.average)) | set(wanted)
        found = self._found(quantity, quantity.measure.removeprefix(OF_PROBE), inside)
        if not found and quantity.measure in ALIGNMENT_MEASURES:
            found = self._found(quantity, ALIGNMENT_MEASURES[quantity.measure], inside)
        kept: Series = {}
        for condition, parts in found.items():
            chosen = {
                part: one
                for part, one in parts.items()
                if one and all(dict(part).get(axis) in known for axis, known in wanted.items())
            }
            if chosen and all(labels <= {dict(part).get(axis) for part in chosen} for axis, labels in wanted.items()):
                kept[condition] = chosen
        return kept

    def _found(self, quantity: Quantity, measure: str, inside: set[str]) -> Series:
        left_out = set(quantity.where) - set(quantity.average)
        if measure in ALIGNMENT_MEASURES:
            left_out = left_out | {"task"}  # each task's rows repeat it
        points, several = self._of_measure(measure)
        rows: dict[tuple[Condition, Condition], dict[Replicate, list[_Point]]] = defaultdict(lambda: defaultdict(list))
        having = [self._index.get(item, set()) for item in quantity.where.items()]
        places = set.intersection(*having) & points.keys() if having else points.keys()
        for place in sorted(places, key=self._number.__getitem__):
            if not self._labels[place][0].keys().isdisjoint(quantity.exclude_axes):
                continue
            items = [item for item in self._labels[place][0].items() if item[0] not in left_out]
            part = tuple(item for item in items if item[0] in inside)
            rest = tuple(item for item in items if item[0] not in inside)
            for point in points[place]:
                more: Condition = (("layer", str(point.layer)),) if quantity.layer == "each" else ()
                more += ((PROBE, point.probe),) if several else ()
                rows[rest + more, part][point.replicate].append(point)
        found: Series = {}
        for (condition, part), replicates in rows.items():
            values = {replicate: _at(of, quantity.layer) for replicate, of in replicates.items()}
            known = Measured((replicate, value) for replicate, value in values.items() if value is not None)
            of_known = [point for replicate in known for point in replicates[replicate]]
            known.runs = _runs(of_known, quantity.layer)
            known.models = frozenset((point.replicate[0], point.model) for point in of_known if point.model)
            found.setdefault(condition, {})[part] = known
        return found

    def _of_measure(self, measure: str) -> _Points:
        """The rows of a measure, made when it is first asked for."""
        if measure in self._points:
            return self._points[measure]
        rows = self._table.iloc[self._places.get(measure, [])]
        names = ("row", "labels", "task", "pretrain_seed", "seed", "pretrain", "adjust", "layer", "step", "value")
        found: dict[tuple[str, str], list[_Point]] = {}
        for row, labels, task, pretrained, seed, pretrain, adjust, *rest_of_row in zip(
            *columns_of(rows, (*names, "run", "probe")), strict=True
        ):
            _, first, rest = self._labels[labels, task]
            replicate = model_seeds(pretrained, first, rest), None if measure in ALIGNMENT_MEASURES else seed
            known = fingerprints_of(pretrain, adjust, pretrained) if row >= 0 else None
            found.setdefault((labels, task), []).append(_Point._make((replicate, *rest_of_row, known)))
        several = any(len({point.probe for point in of}) > 1 for of in found.values())
        self._points[measure] = found, several
        return found, several


def labels_and_seeds(
    of_cell: Labels | Mapping[str, str], task: str, later: Collection[str]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Axis → label without seeds; the seeds of the pretraining, but the one that has a column, and those after it."""
    labels, before, after = {"task": task} if task else dict[str, str](), list[str](), list[str]()
    recorded = labels_of(of_cell)
    for axis, label in sorted(recorded.items()):
        if not is_seed(axis):
            name = axis if PLAIN.get(axis) in recorded else PLAIN.get(axis, axis)
            labels[name] = str(label) if name == axis else OBJECTIVES.get(str(label), str(label))
        elif axis != "pretrain.seed":
            (after if axis in later or is_after(axis) else before).append(f"{axis} {label}")
    return dict(sorted(labels.items())), before, after


def model_seeds(pretrained: int | None, first: Sequence[str], rest: Sequence[str]) -> ModelSeeds:
    """The seed of a pretraining with the other seeds that it depends on, and those of what was done to it since; of a
    given model all that varies was done to it."""
    if pretrained is None:
        return ModelSeeds("", ", ".join([*first, *rest]))
    return ModelSeeds(", ".join((str(pretrained), *first)), ", ".join(rest))


def fingerprints_of(pretrain: str | None, adjust: str | None, seed: str | int | None) -> ModelFingerprints | None:
    """The model of a row of results, by its fingerprints and its ``pretrain_seed``: without either it is the given one,
    with a seed alone it is not known.

    >>> fingerprints_of("ab12", "", "0"), fingerprints_of("", "", 0)
    (ModelFingerprints(pretraining='ab12', adjustment=''), None)
    >>> fingerprints_of(None, "cd34", None)
    ModelFingerprints(pretraining='given', adjustment='cd34')
    """
    return ModelFingerprints(pretrain or GIVEN, adjust or "") if pretrain or seed in (None, "") else None


def is_after(key: str) -> bool:
    """Whether the pretraining does not depend on a key of the settings."""
    return key.partition(".")[0] in AFTER


def _runs(points: Sequence[_Point], layer: Layer | None) -> Runs:
    if not all(point.run for point in points):
        return frozenset()
    return frozenset(f"{point.run} {point.layer}" if layer == "each" else point.run for point in points)


def _at(points: Sequence[_Point], layer: Layer | None) -> float | None:
    """The value at ``layer`` after the last step, values of one place averaged; None if there is no such layer."""
    if len(points) == 1 and not isinstance(layer, int):
        return points[0].value
    steps = {point.step for point in points}
    last = None if None in steps else max(steps, key=lambda step: step or 0)
    layers: dict[int, list[float]] = defaultdict(list)
    for point in points:
        if point.step == last:
            layers[-1 if point.layer is None else point.layer].append(point.value)
    if len(layers) > 1:
        layers.pop(-1, None)  # a sum over all layers
    means = {number: sum(of) / len(of) for number, of in sorted(layers.items())}
    if isinstance(layer, int):
        return means.get(layer)
    values = list(means.values())
    half = max(1, len(values) // 2)
    chosen = {
        "first": values[:1],
        "lower": values[:half],
        "upper": values[-half:],
        "middle": values[len(values) // 2 :][:1],
        "mean": values,
        "best": [max(values)],
    }.get(layer or "last", values[-1:])
    return sum(chosen) / len(chosen)
