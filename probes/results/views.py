"""Views of the table of measurements.

results.csv has a row for each transfer. measures.csv has a row for each number of a pretraining, an alignment or a
probe. Both have a column for each axis.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa

from probes.results import scores
from probes.results.labels import axis_titles, numbers_of
from probes.results.schema import Measurement
from probes.results.scores import MIXED
from probes.study.cell import Cell

RESULTS = {
    "cell": pa.string(),
    "source": pa.string(),
    "language": pa.string(),
    "objective": pa.string(),
    "task": pa.string(),
    "metric": pa.string(),
    "seed": pa.int64(),
    "pretrain_seed": pa.int64(),
    "parent": pa.float64(),
    "sup": pa.float64(),
    "zs": pa.float64(),
    "delta": pa.float64(),
    "alignment_all": pa.float64(),
    "alignment_dictionary": pa.float64(),
    "alignment_held_out": pa.float64(),
    "pretrain": pa.string(),
    "transfer": pa.string(),
    "probe": pa.string(),
    "task_name": pa.string(),
    "labels": pa.string(),
    "adjust": pa.string(),
    "mixed": pa.string(),
    "perplexity": pa.float64(),
    "moved_embeddings": pa.float64(),
    "moved_layers": pa.float64(),
    "alignment_forward": pa.float64(),
    "majority": pa.float64(),
}
"""Columns of results.csv.

Scores are in percent, and ``delta`` is in points. ``labels`` is JSON. ``mixed`` is JSON with a score for each field in
the other language, or null. ``pretrain``, ``transfer``, ``probe`` (the alignment) and ``adjust`` are fingerprints.
``perplexity`` is the perplexity of the source language. ``alignment_forward`` is over all words from the source to the
other language, as in ALIGN-MLM. The other alignments are means of both directions. ``moved_…`` are the relative
movements of the model in fine-tuning on the source language (probes/transfer/movement.py), or null in results of
versions that did not record them. ``majority`` is the score of the majority baseline on the test set of SUP, or on that
of ZS if nothing was trained on the target language.
"""
MEASURES = {
    "cell": pa.string(),
    "labels": pa.string(),
    "pretrain_seed": pa.int64(),
    "probe": pa.string(),
    "measure": pa.string(),
    "layer": pa.int64(),
    "step": pa.int64(),
    "value": pa.float64(),
}
"""Columns of measures.csv."""
FIXED = frozenset({*RESULTS, *MEASURES})
"""Names of fixed columns, which a column of an axis cannot have."""
THERE = "pretrain.seed"
"""The axis that gets no column, because the fixed column ``pretrain_seed`` has its labels."""


def result_rows(measurements: Iterable[Measurement]) -> Iterator[dict[str, Any]]:
    """Yield a row of results.csv for each transfer in a sequence of scores, without the columns of axes.

    The scores of one transfer must be adjacent.
    """
    return (result_row(list(of)) for _, of in groupby(measurements, attrgetter("row")))


def result_row(of_transfer: Sequence[Measurement]) -> dict[str, Any]:
    """Return the row of results.csv for the scores of one transfer, without the columns of axes."""
    first = of_transfer[0]
    values = {one.measure: one.value for one in of_transfer}
    fields = {name.removeprefix(f"{MIXED} "): value for name, value in values.items() if name.startswith(f"{MIXED} ")}
    texts = {name: getattr(first, name) for name in ("source", "language", "objective", "pretrain", "adjust")}
    return {
        "cell": first.cell,
        "labels": _labels_text(first),
        "task": first.task_kind,
        "task_name": first.task,
        "metric": first.metric,
        "seed": first.seed,
        "pretrain_seed": first.pretrain_seed,
        "transfer": first.transfer,
        "probe": first.alignment or None,
        **{name: text or None for name, text in texts.items()},
        **{name: values.get(name) for name in scores.COLUMNS},
        MIXED: json.dumps(fields, sort_keys=True) if fields else None,
    }


def measure_row(one: Measurement) -> dict[str, Any]:
    """Return the row of measures.csv for a measurement that is no score of a task, without the columns of axes."""
    return {**{name: getattr(one, name) for name in MEASURES}, "labels": _labels_text(one)}


def _labels_text(one: Measurement) -> str:
    return json.dumps(one.labels.mapping, ensure_ascii=False)


class AxisColumns:
    """The columns of the axes of cells.

    A column has the short name of its axis (see ``axis_titles``), with ``_`` in place of spaces. If another axis or
    column has that name, the column is named after the whole key. If that name is also taken, the column is
    ``axis_KEY``, with a number if necessary. The axis ``pretrain.seed`` has no column.

    Args:
        cells: The cells of the study.

    Attributes:
        types: Column → its type: whole numbers, numbers or texts. A percentage is a number without its sign.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        axes = dict.fromkeys(axis for cell in cells for axis in cell.labels if axis != THERE)
        self.types: dict[str, pa.DataType] = {}
        self._of_cell: dict[str, dict[str, Any]] = {cell.name: {} for cell in cells}
        for axis, title in axis_titles(axes).items():
            names = (title.replace(" ", "_"), axis, f"axis_{axis}")
            numbered = (f"axis_{axis}_{number}" for number in count(2))
            column = next(name for name in chain(names, numbered) if name not in FIXED | self.types.keys())
            labels = dict.fromkeys(cell.labels[axis] for cell in cells if axis in cell.labels)
            self.types[column], values = _typed(labels)
            for cell in cells:
                self._of_cell[cell.name][column] = values.get(cell.labels.get(axis, ""))

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of a view with the axis values of its cell added. An axis that the cell lacks has None."""
        return {**row, **self._of_cell[row["cell"]]}


def _typed(labels: Iterable[str]) -> tuple[pa.DataType, dict[str, Any]]:
    """Return the type of a column of labels, and the typed value of each label."""
    numbers = numbers_of(labels)
    if numbers is None:
        return pa.string(), {label: label for label in labels}
    if all(label.strip("+-").isdecimal() and abs(int(label)) < 2**63 for label in numbers):
        return pa.int64(), {label: int(label) for label in numbers}
    return pa.float64(), dict(numbers)
