"""The results of studies, looked up by the labels of their cells: results.parquet and measures.parquet as numbers.

A **condition** is what the labels that a quantity does not name are; the **replicates** of a condition differ in seeds
only: a model (a pretraining run, or an adjustment) and a seed of fine-tuning on it. What is measured of a model without
fine-tuning, as alignment, has no second one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
"""Key of a plain axis → the name that papers and claims have for it, so that it does as well as a named one."""
RESULT_COLUMNS = ("task", "seed", "pretrain_seed", *SCORES)
LATER_COLUMNS = ("task_name", "labels", "mixed", *ALIGNMENT)
"""Columns that may be missing; ``mixed`` is JSON, field → score of pairs of texts in two languages."""
MEASURE_COLUMNS = ("labels", "pretrain_seed", "measure", "layer", "step", "value")

Condition = tuple[tuple[str, str], ...]
"""(axis, label), sorted."""
Replicate = tuple[str, int | None]
"""Model and seed of fine-tuning."""
Replicates = dict[Replicate, float]


class _Point(NamedTuple):
    replicate: Replicate
    layer: int | None
    step: int | None
    value: float


class Results:
    """What studies measured, in memory; rows of a measure are read when it is first asked for."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = (), measures: Iterable[Mapping[str, Any]] = ()) -> None:
        """From rows with the columns of results.parquet and of measures.parquet."""
        self._labels: list[dict[str, str]] = []
        self._index: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._numbers: dict[tuple[str, str | None], tuple[int, str]] = {}
        self._points: dict[str, dict[int, list[_Point]]] = {}
        self._waiting: dict[str, list[pa.Table]] = {}
        for row in rows:
            self._add_scores(row)
        for row in measures:
            self._add_measure(row)

    def series(self, quantity: Quantity, apart: Iterable[str] = ()) -> dict[Condition, Replicates]:
        """Condition → its replicates; several values of one replicate, as of two studies, are averaged.

        A replicate that lacks a label of ``quantity.average`` is left out. The axes ``apart`` tell no conditions apart.
        """
        left_out = {*quantity.where, *apart} - set(quantity.average)
        found = self._found(quantity, quantity.measure.removeprefix("probe:"), left_out)
        if not found and quantity.measure in ALIGNMENT:
            found = self._found(quantity, ALIGNMENT[quantity.measure], left_out)
        for axis, wanted in quantity.average.items():
            found = _averaged(found, axis, wanted)
        return {condition: replicates for condition, replicates in found.items() if replicates}

    def wait_with(self, table: pa.Table) -> None:
        """Add the rows of a measures.parquet, to be read measure by measure."""
        codes = table["measure"].combine_chunks().dictionary_encode()
        order = np.argsort(codes.indices.to_numpy(), kind="stable")
        ends = np.cumsum(np.bincount(codes.indices.to_numpy(), minlength=len(codes.dictionary)))
        rows, start = table.take(order), 0
        for name, end in zip(codes.dictionary.to_pylist(), ends.tolist(), strict=True):
            self._waiting.setdefault(name, []).append(rows.slice(start, end - start))
            start = end

    def _found(self, quantity: Quantity, measure: str, left_out: set[str]) -> dict[Condition, Replicates]:
        for table in self._waiting.pop(measure, ()):
            for row in table.to_pylist():
                self._add_measure(row)
        held: dict[Condition, dict[Replicate, list[_Point]]] = defaultdict(lambda: defaultdict(list))
        if measure in ALIGNMENT:
            left_out = left_out | {"task"}  # each task's rows repeat it
        points = self._points.get(measure, {})
        for number in self._matching(quantity.where):
            condition = tuple(sorted(item for item in self._labels[number].items() if item[0] not in left_out))
            for point in points.get(number, ()):
                layer = (("layer", str(point.layer)),) if quantity.layer == "each" else ()
                held[condition + layer][point.replicate].append(point)
        found: dict[Condition, Replicates] = {}
        for condition, replicates in held.items():
            values = {replicate: _at(points, quantity.layer) for replicate, points in replicates.items()}
            found[condition] = {replicate: value for replicate, value in values.items() if value is not None}
        return found

    def _matching(self, where: Mapping[str, str]) -> Iterator[int]:
        """The labels that have all of ``where``, in the order of the rows."""
        if not where:
            return iter(range(len(self._labels)))
        return iter(sorted(set.intersection(*(self._index.get(item, set()) for item in where.items()))))

    def _add_scores(self, row: Mapping[str, Any]) -> None:
        number, model = self._row(row, row.get("task_name") or row["task"])
        tuned, untuned = (model, row["seed"]), (model, None)
        values = [(name, tuned, row[name]) for name in SCORES]
        values += [(name, untuned, row.get(name)) for name in ALIGNMENT]
        for field, value in _mapping(row.get("mixed")).items():
            values += [(f"mixed {field}", tuned, value), ("mixed", tuned, value)]
        for name, replicate, value in values:
            if value is not None:
                self._add(name, number, _Point(replicate, None, None, value))

    def _add_measure(self, row: Mapping[str, Any]) -> None:
        number, model = self._row(row, None)
        self._add(row["measure"], number, _Point((model, None), row["layer"], row["step"], row["value"]))

    def _add(self, measure: str, number: int, point: _Point) -> None:
        self._points.setdefault(measure, {}).setdefault(number, []).append(point)

    def _row(self, row: Mapping[str, Any], task: str | None) -> tuple[int, str]:
        """The number of the row's labels, and its model: the seeds that it has."""
        key = (row.get("labels") or "{}", task)
        if key not in self._numbers:
            labels, seeds = _labels_and_seeds(key[0])
            if task is not None:
                labels["task"] = task
            self._numbers[key] = len(self._labels), seeds
            for item in labels.items():
                self._index[item].add(len(self._labels))
            self._labels.append(labels)
        number, seeds = self._numbers[key]
        seed = row["pretrain_seed"]
        return number, seeds if seed is None else f"{seed} {seeds}"


def load_results(*folders: Path) -> Results:
    """Of finished or unfinished studies, several together; a study that has measured nothing yet has no number.

    Raises InputError for a folder that is not there and for files that are no tables of a study.
    """
    results = Results()
    for folder in folders:
        if not folder.is_dir():
            raise InputError("no such folder", folder)
        table = _read(folder / "results.parquet", RESULT_COLUMNS, LATER_COLUMNS)
        for row in () if table is None else table.to_pylist():
            results._add_scores(row)
        table = _read(folder / "measures.parquet", MEASURE_COLUMNS, ())
        if table is not None:
            results.wait_with(table)
    return results


def mean_over(parts: Sequence[Replicates]) -> Replicates:
    """The mean of all ``parts`` for each replicate that all of them have."""
    shared = set(parts[0]).intersection(*parts[1:])
    return {one: sum(part[one] for part in parts) / len(parts) for one in parts[0] if one in shared}


def _read(path: Path, needed: Sequence[str], welcome: Sequence[str]) -> pa.Table | None:
    if not path.exists():
        return None
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := [name for name in needed if name not in names]:
                raise InputError(f"columns missing: {', '.join(missing)}; run the study again", path)
            return file.read(columns=[*needed, *(name for name in welcome if name in names)])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not parquet: {str(error).splitlines()[0]}", path) from error


def _labels_and_seeds(text: str) -> tuple[dict[str, str], str]:
    """Axis → label without seeds; and the seeds, but that of the pretraining, which has a column."""
    labels, seeds = dict[str, str](), []
    for axis, label in sorted(_mapping(text).items()):
        if not is_seed(axis):
            name = PLAIN.get(axis, axis)
            labels[name] = str(label) if name == axis else OBJECTIVES.get(str(label), str(label))
        elif axis != "pretrain.seed":
            seeds.append(f"{axis} {label}")
    return labels, ", ".join(seeds)


def _mapping(text: str | None) -> dict[str, Any]:
    try:
        held = json.loads(text or "{}")
    except json.JSONDecodeError:
        held = None
    if not isinstance(held, dict):
        raise InputError(f"what a row says of its cell must be a JSON object, not {text!r}")
    return held


def _averaged(found: Mapping[Condition, Replicates], axis: str, wanted: Sequence[str]) -> dict[Condition, Replicates]:
    """The mean over the labels of an axis: all the ``wanted`` ones, or those that are there."""
    held: dict[Condition, list[Replicates]] = defaultdict(list)
    for condition, replicates in found.items():
        label = dict(condition).get(axis)
        if label in wanted or not wanted:
            held[tuple(item for item in condition if item[0] != axis)].append(replicates)
    return {rest: mean_over(parts) for rest, parts in held.items() if len(parts) >= len(wanted)}


def _at(points: Sequence[_Point], layer: Layer | None) -> float | None:
    """The value at ``layer`` after the last step, values of one place averaged; None if there is no such layer."""
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
