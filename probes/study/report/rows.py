"""The rows of results.parquet, read for the report: the only reader of results there is (results.csv is an export)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from probes.study.report.measures import labels_of, read_columns, text_of
from probes.study.results import COLUMNS
from synthlang.errors import InputError

SCORES = ("parent", "sup", "zs", "delta")
ALIGNMENTS = ("alignment_all", "alignment_dictionary", "alignment_held_out")
LATER = ("task_name", "labels", "pretrain_seed", "adjust", "mixed")
"""Columns that a results.parquet may lack."""


@dataclass(frozen=True)
class ResultRow:
    """One row of results.parquet: a cell × task × transfer seed.

    Scores are percent points, None where there is none; NaN and infinity stay what they are.
    """

    cell: str
    source: str
    language: str
    objective: str
    task: str
    task_name: str
    """The name of the task in the study, by which its tasks are told apart."""
    labels: Mapping[str, str]
    """Axis → label of the cell."""
    seed: str
    pretrain_seed: str
    parent: float | None
    sup: float | None
    zs: float | None
    delta: float | None
    metric: str
    alignment_all: float | None
    alignment_dictionary: float | None
    alignment_held_out: float | None
    pretrain: str
    transfer: str
    probe: str
    adjust: str
    mixed: str
    """Scores of pairs of texts in two languages, field → score as JSON."""

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> ResultRow:
        """From a mapping with these columns; further columns are left out. ValueError names a wrong value."""
        numbers = {name: _number(name, row.get(name)) for name in (*SCORES, *ALIGNMENTS)}
        texts = {name: text_of(row.get(name)) for name in TEXTS}
        texts["task_name"] = texts["task_name"] or texts["task"]
        return cls(**texts, **numbers, labels=labels_of(row.get("labels")))  # type: ignore[arg-type]


TEXTS = tuple(f.name for f in fields(ResultRow) if f.name not in (*SCORES, *ALIGNMENTS, "labels"))


def read_results(path: Path) -> tuple[ResultRow, ...]:
    """Every row of a results.parquet; InputError for a missing column, or what a column cannot hold, with its row."""
    table = read_columns(path, {field.name: COLUMNS[field.name] for field in fields(ResultRow)}, LATER)
    rows = []
    for number, row in enumerate(table.to_pylist(), 1):
        try:
            rows.append(ResultRow.parse(row))
        except ValueError as error:
            raise InputError(f"row {number}: {error}", path) from error
    return tuple(rows)


def _number(name: str, value: Any) -> float | None:
    if value is None or isinstance(value, int | float):
        return None if value is None else float(value)
    raise ValueError(f"{name} must be a number, not {value!r}")
