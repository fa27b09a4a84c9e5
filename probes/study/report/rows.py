"""The rows of results.csv, read for the report."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from probes.study.report.measures import labels_of, text_of
from synthlang.errors import InputError
from synthlang.files import read_lines

SCORES = ("parent", "sup", "zs", "delta")
ALIGNMENTS = ("alignment_all", "alignment_dictionary", "alignment_held_out")
LATER = ("task_name", "labels", "pretrain_seed", "adjust", "mixed")
"""Columns that a results.csv may lack."""


@dataclass(frozen=True)
class ResultRow:
    """One line of results.csv: a cell × task × transfer seed. Scores are percent points, None where empty."""

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
        texts = {f.name: text_of(row.get(f.name)) for f in fields(cls) if f.name not in (*numbers, "labels")}
        texts["task_name"] = texts["task_name"] or texts["task"]
        return cls(**texts, **numbers, labels=labels_of(row.get("labels")))  # type: ignore[arg-type]


def read_results(path: Path) -> tuple[ResultRow, ...]:
    """Every row of a results.csv; a missing column or a wrong number is an InputError with its line."""
    lines = [line for _, line in read_lines(path)]
    reader = csv.DictReader(line + "\n" for line in lines)
    missing = {f.name for f in fields(ResultRow)} - set(reader.fieldnames or ()) - set(LATER)
    if lines and missing:
        raise InputError(f"columns missing: {', '.join(sorted(missing))}", path, 1)
    rows = []
    for row in reader:
        try:
            rows.append(ResultRow.parse(row))
        except ValueError as error:
            raise InputError(str(error), path, reader.line_num) from error
    return tuple(rows)


def _number(name: str, value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    return number if math.isfinite(number) else None
