"""The table of measurements: the type of a row, and the Arrow schema that is derived from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, get_type_hints

import pyarrow as pa

MEASUREMENTS = "measurements.parquet"
"""Name of the file of the table in the folder of a study."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a cell by axis, as a value that can be compared, hashed and put into a column.

    Two values are equal if they have the same axes with the same labels, in any order.
    """

    mapping: Mapping[str, str]

    @cached_property
    def _key(self) -> frozenset[tuple[str, str]]:
        return frozenset(self.mapping.items())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._key == other._key


class Measurement(NamedTuple):
    """A number that a study measured, which is a row of the table of measurements.

    Where a field does not apply to a measurement, text is empty and a number is None, except for ``row``. A measurement
    of a probe has no task, for example, and a measurement of a given model has no pretraining.
    """

    cell: str
    """Name of the cell of the grid."""
    labels: Labels
    """Labels of the cell, axis → label."""
    row: int = -1
    """Number of the row of results.parquet with the value, or −1 for a measurement of a pretraining or a probe."""
    task: str = ""
    """Name of the task in the study."""
    task_kind: str = ""
    """Kind of the task, such as pos."""
    metric: str = ""
    """Metric of the task."""
    source: str = ""
    """Source of the first language of the pretraining."""
    language: str = ""
    """Language that the task is transferred to."""
    objective: str = ""
    """Kind of the pretraining objective."""
    pretrain_seed: int | None = None
    """Seed of the pretraining."""
    seed: int | None = None
    """Seed of fine-tuning."""
    pretrain: str = ""
    """Fingerprint of the pretraining."""
    adjust: str = ""
    """Fingerprint of the adjustment."""
    transfer: str = ""
    """Fingerprint of the transfer, for a score of a task."""
    alignment: str = ""
    """Fingerprint of the alignment of the run, for a score of a task."""
    run: str = ""
    """Name of the measured run, which is the same in all studies that share the run."""
    probe: str = ""
    """Name of the probe in the study, or "alignment" or "pretrain" for the measures that every run has."""
    measure: str = ""
    """Name of the measure: a score such as zs, or the path of a number in the result of a probe."""
    layer: int | None = None
    """Layer of the model, where 0 is the embeddings."""
    step: int | None = None
    """Step of the pretraining."""
    value: float | None = None
    """The number. It is None for a score that the task lacks, and NaN if training or scoring broke down."""
    unit: str = ""
    """Unit of the value, such as percent."""
    least: float | None = None
    """Least possible value, or None if the range is not known."""
    most: float | None = None
    """Greatest possible value, or None if the range is not known."""
    over: str = ""
    """Population of a mean, a share or a count, such as "test items"."""


_ARROW: Mapping[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    int | None: pa.int64(),
    float | None: pa.float64(),
    Labels: pa.map_(pa.string(), pa.string()),
}
COLUMNS: dict[str, pa.DataType] = {name: _ARROW[kind] for name, kind in get_type_hints(Measurement).items()}
"""Columns of measurements.parquet and their types."""
SCHEMA = pa.schema(list(COLUMNS.items()))


def table_of(rows: Sequence[Measurement]) -> pa.Table:
    """Return the rows as an Arrow table of `SCHEMA`."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(COLUMNS, ())
    labels = columns.pop("labels")
    arrays = {name: pa.array(values, COLUMNS[name]) for name, values in columns.items()}
    return pa.table([_labels_array(labels) if name == "labels" else arrays[name] for name in COLUMNS], SCHEMA)


def _labels_array(labels: Iterable[Labels]) -> pa.Array:
    """Return a column of maps. Each distinct value is converted once, since many rows share it."""
    numbers: dict[Labels, int] = {}
    codes = [numbers.setdefault(one, len(numbers)) for one in labels]
    distinct = pa.array([list(one.mapping.items()) for one in numbers], COLUMNS["labels"])
    return distinct.take(pa.array(codes, pa.int32()))
