"""The results of studies, looked up by the labels of their cells: rows of results and of measures as numbers.

A **condition** is what the labels that a quantity does not name are; the **replicates** of a condition differ in seeds
only: a model (a pretraining, and what was done to it since) and a seed of fine-tuning on it. What is measured of a
model without fine-tuning, as alignment, has no second one. Nothing is averaged here but values of one replicate at one
set of labels, as two studies have them: what means are over must be the same for all that is compared (estimates.py).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from probes.study.judged.quantities import Layer, Quantity
from probes.study.labels import is_seed
from synthlang.errors import InputError

SCORES = ("parent", "sup", "zs", "delta")
ALIGNMENT = {
    "alignment_all": "alignment.scores.all.cosine.mean",
    "alignment_dictionary": "alignment.scores.in_dictionary.cosine.mean",
    "alignment_held_out": "alignment.scores.held_out.cosine.mean",
}
"""Column of the results → the same as a measure, which cells without a task have too."""
OBJECTIVES = {"mlm": "MLM", "xlm": "XLM", "dict_mlm": "DICT-MLM", "align_mlm": "ALIGN-MLM"}
PLAIN = {"pretrain.objective.kind": "objective", "pretrain.language": "transform"}
"""Key of a plain axis → the name that papers and claims have for it, so that it does as well as a named one; beside an
axis of that name it keeps its key."""
AFTER = ("adjust", "tuned", "transfer", "tasks", "probes")
"""First parts of the keys of seeds that the pretraining does not depend on."""
GIVEN = "given"
"""Stands for the fingerprint of a pretraining that is not ours; a study has one given model."""
PROBE = "probe"
"""What tells the conditions of a measure apart where several probes of a cell have it."""


class Run(NamedTuple):
    """A run that several studies may have: what names it, and those that have it under these labels, a bit each."""

    name: tuple[str, ...]
    studies: int


class Model(NamedTuple):
    """The seeds of a pretraining, "" of a given model, and those of what was done to it since."""

    pretraining: str
    adjustment: str


class Known(NamedTuple):
    """What tells a model from others: the fingerprints of its pretraining, GIVEN of a given model, and of its
    adjustment, "" of none."""

    pretraining: str
    adjustment: str


Condition = tuple[tuple[str, str], ...]
"""(axis, label), sorted."""
Replicate = tuple[Model, int | None]
"""Model and seed of fine-tuning."""
Replicates = dict[Replicate, float]
"""NaN is a value, too: what is left out is told."""


class Measured(dict[Replicate, float]):
    """Replicates with the runs they are of, name → studies (no runs where one is not known), and their models, where
    they are known."""

    runs: Mapping[tuple[str, ...], int] = {}
    models: frozenset[tuple[Model, Known]] = frozenset()


Series = dict[Condition, dict[Condition, Replicates]]
"""Condition → labels of the axes that are averaged within it → replicates."""


class _Point(NamedTuple):
    replicate: Replicate
    layer: int | None
    step: int | None
    value: float
    run: Run | None = None
    probe: str = ""
    model: Known | None = None


class Results:
    """What studies measured, in memory; rows of a measure are read when it is first asked for."""

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]] = (),
        measures: Iterable[Mapping[str, Any]] = (),
        later: Collection[str] = (),
    ) -> None:
        """From rows with the columns of results.parquet and of measures.parquet.

        ``pretrain`` and ``adjust`` of a row of results name its model, if it has them. With several studies ``run``
        names what was fine-tuned, ``untuned`` what its alignment is of; ``run`` and ``studies`` of a measure are
        columns. ``later``: named axes of seeds that the pretraining does not depend on.
        """
        self._later = frozenset(later)
        self._labels: list[dict[str, str]] = []
        self._index: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._numbers: dict[tuple[str, str | None], tuple[int, tuple[list[str], list[str]]]] = {}
        self._points: dict[str, dict[int, list[_Point]]] = {}
        self._waiting: dict[str, list[pa.Table]] = {}
        for row in rows:
            self._add_scores(row)
        for row in measures:
            self._add_measure(row)

    def series(self, quantity: Quantity, apart: Iterable[str] = ()) -> Series:
        """What was measured, by condition.

        Within a condition are the labels of ``quantity.average``, where it names some (a condition that lacks one is
        left out), and of the axes ``apart``, which tell no conditions apart.
        """
        wanted = {axis: set(labels) for axis, labels in quantity.average.items() if labels}
        inside = (set(apart) - set(quantity.average)) | set(wanted)
        found = self._found(quantity, quantity.measure.removeprefix("probe:"), inside)
        if not found and quantity.measure in ALIGNMENT:
            found = self._found(quantity, ALIGNMENT[quantity.measure], inside)
        kept: Series = {}
        for condition, parts in found.items():
            held = {part: one for part, one in parts.items() if one and _are_wanted(part, wanted)}
            if held and all(labels <= {dict(part).get(axis) for part in held} for axis, labels in wanted.items()):
                kept[condition] = held
        return kept

    def wait_with(self, table: pa.Table) -> None:
        """Add the rows of a measures.parquet, to be read measure by measure."""
        rows = table.take(pc.sort_indices(table["measure"]))  # stable; NumPy's arrays would make pyarrow load pandas
        runs, start = pc.run_end_encode(rows["measure"].combine_chunks()), 0
        for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            self._waiting.setdefault(name, []).append(rows.slice(start, end - start))
            start = end

    def _found(self, quantity: Quantity, measure: str, inside: set[str]) -> Series:
        for table in self._waiting.pop(measure, ()):
            for row in table.to_pylist():
                self._add_measure(row)
        left_out = set(quantity.where) - set(quantity.average)
        if measure in ALIGNMENT:
            left_out = left_out | {"task"}  # each task's rows repeat it
        held: dict[tuple[Condition, Condition], dict[Replicate, list[_Point]]] = defaultdict(lambda: defaultdict(list))
        points = self._points.get(measure, {})
        several = any(len({point.probe for point in of_labels}) > 1 for of_labels in points.values())
        for number in self._matching(quantity.where):
            items = [item for item in self._labels[number].items() if item[0] not in left_out]
            part = tuple(item for item in items if item[0] in inside)
            rest = tuple(item for item in items if item[0] not in inside)
            for point in points.get(number, ()):
                more: Condition = (("layer", str(point.layer)),) if quantity.layer == "each" else ()
                more += ((PROBE, point.probe),) if several else ()
                held[rest + more, part][point.replicate].append(point)
        found: Series = {}
        for (condition, part), replicates in held.items():
            values = {replicate: _at(points, quantity.layer) for replicate, points in replicates.items()}
            known = Measured((replicate, value) for replicate, value in values.items() if value is not None)
            known.runs = _runs((point for one in known for point in replicates[one]), quantity.layer)
            known.models = frozenset((one[0], point.model) for one in known for point in replicates[one] if point.model)
            found.setdefault(condition, {})[part] = known
        return found

    def _matching(self, where: Mapping[str, str]) -> Iterator[int]:
        """The labels that have all of ``where``, in the order of the rows."""
        if not where:
            return iter(range(len(self._labels)))
        return iter(sorted(set.intersection(*(self._index.get(item, set()) for item in where.items()))))

    def _add_scores(self, row: Mapping[str, Any]) -> None:
        number, model = self._row(row, row.get("task_name") or row["task"])
        tuned, untuned = (model, row["seed"]), (model, None)
        known = known_by(row.get("pretrain"), row.get("adjust"), row["pretrain_seed"])
        values = [(name, tuned, row[name]) for name in SCORES]
        for field, value in _mapping(row.get("mixed")).items():
            values += [(f"mixed {field}", tuned, value), ("mixed", tuned, value)]
        held = [(name, replicate, value, row.get("run")) for name, replicate, value in values]
        held += [(name, untuned, row.get(name), row.get("untuned")) for name in ALIGNMENT]
        for name, replicate, value, run in held:
            if value is not None:
                self._add(name, number, _Point(replicate, None, None, value, run, model=known))

    def _add_measure(self, row: Mapping[str, Any]) -> None:
        number, model = self._row(row, None)
        run = Run((row["run"],), int(row["studies"])) if row.get("run") else None
        place = row["layer"], row["step"]
        self._add(row["measure"], number, _Point((model, None), *place, row["value"], run, row.get("probe") or ""))

    def _add(self, measure: str, number: int, point: _Point) -> None:
        self._points.setdefault(measure, {}).setdefault(number, []).append(point)

    def _row(self, row: Mapping[str, Any], task: str | None) -> tuple[int, Model]:
        """The number of the row's labels, and its model."""
        key = (row.get("labels") or "{}", task)
        if key not in self._numbers:
            labels, seeds = _labels_and_seeds(key[0], self._later)
            if task is not None:
                labels["task"] = task
            self._numbers[key] = len(self._labels), seeds
            for item in labels.items():
                self._index[item].add(len(self._labels))
            self._labels.append(dict(sorted(labels.items())))
        number, (first, later) = self._numbers[key]
        seed = row["pretrain_seed"]
        if seed is None:  # a given model: what varies was done to it
            return number, Model("", ", ".join((*first, *later)))
        return number, Model(", ".join((str(seed), *first)), ", ".join(later))


def _labels_and_seeds(text: str, after: Collection[str]) -> tuple[dict[str, str], tuple[list[str], list[str]]]:
    """Axis → label without seeds; and the seeds of the pretraining, but the one that has a column, and later ones."""
    labels, first, later = dict[str, str](), list[str](), list[str]()
    held = _mapping(text)
    for axis, label in sorted(held.items()):
        if not is_seed(axis):
            name = axis if PLAIN.get(axis) in held else PLAIN.get(axis, axis)
            labels[name] = str(label) if name == axis else OBJECTIVES.get(str(label), str(label))
        elif axis != "pretrain.seed":
            (later if axis in after or is_after(axis) else first).append(f"{axis} {label}")
    return labels, (first, later)


def known_by(pretrain: str | None, adjust: str | None, seed: str | int | None) -> Known | None:
    """The model of a row of results, by its fingerprints and its ``pretrain_seed``: without either it is the given one,
    with a seed alone it is not known.

    >>> known_by("ab12", "", "0"), known_by(None, "cd34", None), known_by("", "", 0)
    (Known(pretraining='ab12', adjustment=''), Known(pretraining='given', adjustment='cd34'), None)
    """
    return Known(pretrain or GIVEN, adjust or "") if pretrain or seed in (None, "") else None


def is_after(key: str) -> bool:
    """Whether the pretraining does not depend on a key of the settings."""
    return key.partition(".")[0] in AFTER


def _mapping(text: str | None) -> dict[str, Any]:
    try:
        held = json.loads(text or "{}")
    except json.JSONDecodeError:
        held = None
    if not isinstance(held, dict):
        raise InputError(f"what a row says of its cell must be a JSON object, not {text!r}")
    return held


def _runs(points: Iterable[_Point], layer: Layer | None) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for point in points:
        if point.run is None:
            return {}
        name = (*point.run.name, str(point.layer)) if layer == "each" else point.run.name
        found[name] = found.get(name, 0) | point.run.studies
    return found


def _are_wanted(part: Condition, wanted: Mapping[str, set[str]]) -> bool:
    labels = dict(part)
    return all(labels.get(axis) in known for axis, known in wanted.items())


def _at(points: Sequence[_Point], layer: Layer | None) -> float | None:
    """The value at ``layer`` after the last step, values of one place averaged; None if there is no such layer."""
    if len(points) == 1 and not isinstance(layer, int):
        return points[0].value
    last = max(-1 if point.step is None else point.step for point in points)
    final = [point for point in points if point.step is None] or [point for point in points if point.step == last]
    layers: dict[int, list[float]] = defaultdict(list)
    for point in final:
        layers[-1 if point.layer is None else point.layer].append(point.value)
    if len(layers) > 1:
        layers.pop(-1, None)  # a sum over all layers
    values = [sum(layers[number]) / len(layers[number]) for number in sorted(layers)]
    if isinstance(layer, int):
        return values[sorted(layers).index(layer)] if layer in layers else None
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
