"""Look-up of results: from a quantity of a claim or table to numbers by condition and replicate.

A **condition** is given by the labels that a quantity does not name. The **replicates** of a condition differ in seeds
only: in the model, which is a pretraining and any later adjustment, and in the fine-tuning seed. Measures of a model
that was not fine-tuned, such as alignment, have no fine-tuning seed. Values of one replicate at one place are averaged
here. All other means are taken in estimates.py, over the conditions that all sides of a comparison have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from probes.claims.spec import OF_PROBE, Layer, Quantity
from probes.results.curves import Summary, summary
from probes.results.labels import is_seed
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.pooling import Condition, Runs
from probes.results.read import columns_of, labels_of
from probes.results.schema import Labels

OBJECTIVES = {"mlm": "MLM", "xlm": "XLM", "dict_mlm": "DICT-MLM", "align_mlm": "ALIGN-MLM"}
PLAIN = {"pretrain.objective.kind": "objective", "pretrain.language": "transform"}
"""Key of a plain axis → its name in papers and claims. The axis keeps its key if a named axis has that name."""
AFTER = ("adjust", "finetuned", "tuned", "transfer", "tasks", "probes")
"""First parts of the keys whose seeds do not affect the pretraining."""
GIVEN = "given"
"""Fingerprint of the pretraining of a given model, which no study made. A study has at most one given model."""
PROBE = "probe"
"""Extra axis of the conditions of a measure that several probes of a cell have."""


class ModelSeeds(NamedTuple):
    """The seeds of a pretraining ("" for a given model) and of its adjustment."""

    pretraining: str
    adjustment: str


class ModelFingerprints(NamedTuple):
    """The fingerprints of a pretraining (GIVEN for a given model) and of its adjustment ("" for none)."""

    pretraining: str
    adjustment: str


Replicate = tuple[ModelSeeds, int | None]
"""Model and fine-tuning seed."""
Replicates = dict[Replicate, float]
"""Replicate → value. NaN is a value, so that notes can name the replicates that are left out."""


class Measured(dict[Replicate, float]):
    """Replicates with their runs and their models, as far as these are known.

    Attributes:
        runs: Names of the runs. The set is empty if the run of a replicate is not known.
        models: Seeds and fingerprints of the known models.
        censored: Replicates whose value is a lower bound, because their curve does not reach a threshold.
    """

    runs: Runs = frozenset()
    models: frozenset[tuple[ModelSeeds, ModelFingerprints]] = frozenset()
    censored: frozenset[Replicate] = frozenset()


Series = dict[Condition, dict[Condition, Replicates]]
"""Condition → labels of the axes that are averaged within it (a part) → replicates."""


class _Row(NamedTuple):
    replicate: Replicate
    layer: int | None
    step: int | None
    value: float
    run: str
    probe: str
    model: ModelFingerprints | None


_Rows = tuple[Mapping[tuple[str, str], Sequence[_Row]], bool]
"""The rows of a measure by labels and task, and True if several probes have the measure under the same labels."""


class Results:
    """Measurements of one or several studies, looked up by labels and measure."""

    def __init__(self, table: pd.DataFrame, later: Collection[str] = ()) -> None:
        """Index a table of measurements.

        Args:
            table: The table of a study, or the ``pooled`` tables of several studies.
            later: Named axes of seeds that the pretraining does not depend on.
        """
        self._table = table
        self._places = self._table.groupby("measure", observed=True).indices
        self._points: dict[str, _Rows] = {}
        pairs = self._table[["labels", "task"]].drop_duplicates().itertuples(index=False, name=None)
        self._labels = {(text, task): labels_and_seeds(text, task, frozenset(later)) for text, task in pairs}
        self._number = {place: number for number, place in enumerate(self._labels)}
        self._index: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        for place, (labels, *_) in self._labels.items():
            for item in labels.items():
                self._index[item].add(place)

    def series(self, quantity: Quantity, apart: Iterable[str] = ()) -> Series:
        """Return the measured values of a quantity by condition, part and replicate, or {} if there are none.

        Args:
            quantity: The quantity. A condition that lacks a label of ``quantity.average`` is left out.
            apart: Axes that do not separate conditions. Their labels, like those of ``quantity.average``, separate the
                parts of a condition.
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
            left_out = left_out | {"task"}  # the rows of each task repeat it
        points, several = self._of_measure(measure)
        rows: dict[tuple[Condition, Condition], dict[Replicate, list[_Row]]] = defaultdict(lambda: defaultdict(list))
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
            values = {replicate: _summary(of, quantity) for replicate, of in replicates.items()}
            known = Measured((replicate, one.value) for replicate, one in values.items() if one is not None)
            known.censored = frozenset(replicate for replicate, one in values.items() if one and one.censored)
            of_known = [point for replicate in known for point in replicates[replicate]]
            known.runs = _runs(of_known, quantity.layer)
            known.models = frozenset((point.replicate[0], point.model) for point in of_known if point.model)
            found.setdefault(condition, {})[part] = known
        return found

    def _of_measure(self, measure: str) -> _Rows:
        """Return the rows of a measure, read from the table once."""
        if measure in self._points:
            return self._points[measure]
        rows = self._table.iloc[self._places.get(measure, [])]
        names = ("row", "labels", "task", "pretrain_seed", "seed", "pretrain", "adjust", "layer", "step", "value")
        found: dict[tuple[str, str], list[_Row]] = {}
        for row, labels, task, pretrained, seed, pretrain, adjust, *rest_of_row in zip(
            *columns_of(rows, (*names, "run", "probe")), strict=True
        ):
            _, first, rest = self._labels[labels, task]
            replicate = model_seeds(pretrained, first, rest), None if measure in ALIGNMENT_MEASURES else seed
            known = fingerprints_of(pretrain, adjust, pretrained) if row >= 0 else None
            found.setdefault((labels, task), []).append(_Row._make((replicate, *rest_of_row, known)))
        several = any(len({point.probe for point in of}) > 1 for of in found.values())
        self._points[measure] = found, several
        return found, several


def with_fallback(quantity: Quantity, results: Results) -> Quantity:
    """Return the quantity, with its fallback measure if its own measure has no values."""
    if quantity.fallback_measure is None or results.series(quantity):
        return quantity
    return replace(quantity, measure=quantity.fallback_measure)


def restricted(series: Series, restrict_to: Mapping[str, Collection[str]]) -> Series:
    """Return the conditions with an allowed label on each axis of ``restrict_to`` (axis → allowed labels)."""
    allowed = restrict_to.items()
    return {c: parts for c, parts in series.items() if all(dict(c).get(axis) in labels for axis, labels in allowed)}


def labels_and_seeds(
    of_cell: Labels | Mapping[str, str], task: str, later: Collection[str]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Split the labels of a cell into labels and seeds.

    Args:
        of_cell: The labels of the cell.
        task: The name of the task, which becomes the label of the axis ``task``, or "" for none.
        later: Named axes of seeds that the pretraining does not depend on.

    Returns:
        Three values. The first is axis → label without the axes of seeds, the second has the seeds of the pretraining,
        and the third has the seeds of the stages after it. A seed is the text ``AXIS LABEL``. The axis
        ``pretrain.seed`` is left out, because the table has a column for it.
    """
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
    """Return the seeds of a model. All seeds of a given model belong to its adjustment.

    Args:
        pretrained: The seed of the pretraining, or None for a given model.
        first: Further seeds of the pretraining, as texts.
        rest: Seeds of the stages after the pretraining, as texts.
    """
    if pretrained is None:
        return ModelSeeds("", ", ".join([*first, *rest]))
    return ModelSeeds(", ".join((str(pretrained), *first)), ", ".join(rest))


def fingerprints_of(pretrain: str | None, adjust: str | None, seed: str | int | None) -> ModelFingerprints | None:
    """Return the model of a row of results from its fingerprints, or None if the model is not known.

    A row without a fingerprint of a pretraining belongs to the given model if it has no ``pretrain_seed`` either. If it
    has a seed, the model is not known.

    >>> fingerprints_of("ab12", "", "0"), fingerprints_of("", "", 0)
    (ModelFingerprints(pretraining='ab12', adjustment=''), None)
    >>> fingerprints_of(None, "cd34", None)
    ModelFingerprints(pretraining='given', adjustment='cd34')
    """
    return ModelFingerprints(pretrain or GIVEN, adjust or "") if pretrain or seed in (None, "") else None


def is_after(key: str) -> bool:
    """Return whether the pretraining does not depend on a dotted key of the settings, such as ``adjust.seed``."""
    return key.partition(".")[0] in AFTER


def _runs(points: Sequence[_Row], layer: Layer | None) -> Runs:
    if not all(point.run for point in points):
        return frozenset()
    return frozenset(f"{point.run} {point.layer}" if layer == "each" else point.run for point in points)


def _summary(points: Sequence[_Row], quantity: Quantity) -> Summary | None:
    """Return the value of a quantity in the rows of a replicate, or None if it has none."""
    if quantity.curve is None:
        value = _at(points, quantity.layer)
        return None if value is None else Summary(value)
    of_steps: dict[int, list[_Row]] = defaultdict(list)
    for point in points:
        if point.step is not None:
            of_steps[point.step].append(point)
    values = {step: _at(of, quantity.layer) for step, of in of_steps.items()}
    return summary(((step, value) for step, value in values.items() if value is not None), quantity.curve)


def _at(points: Sequence[_Row], layer: Layer | None) -> float | None:
    """Return the mean value at ``layer`` after the last step, or None if there is no such layer."""
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
