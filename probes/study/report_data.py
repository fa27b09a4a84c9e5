"""What a study folder holds, read for the report: nothing is trusted to be there but study.json."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import read_json, read_lines

SCORES = ("parent", "sup", "zs", "delta")
ALIGNMENTS = ("alignment_all", "alignment_dictionary", "alignment_held_out")


@dataclass(frozen=True)
class ResultRow:
    """One line of results.csv: a cell × task × transfer seed. Scores are percent points, None where empty."""

    cell: str
    source: str
    language: str
    objective: str
    task: str
    seed: str
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

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> ResultRow:
        """From a mapping with these columns; further columns are left out. ValueError names a wrong number."""
        numbers = {name: _number(name, row.get(name)) for name in (*SCORES, *ALIGNMENTS)}
        texts = {f.name: _text(row.get(f.name)) for f in fields(cls) if f.name not in numbers}
        return cls(**texts, **numbers)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Cell:
    """A cell of the grid: what it overrides in the base config and what became of it."""

    name: str
    overrides: Mapping[str, Any]
    status: str
    error: str | None
    stages: Mapping[str, str]
    run: str | None


@dataclass(frozen=True)
class Study:
    """The folder's content; ``notes`` say what was missing or could not be read."""

    folder: Path
    name: str
    title: str
    fingerprint: str
    config: Mapping[str, Any]
    environment: Mapping[str, Any]
    cells: tuple[Cell, ...]
    seconds: Mapping[str, float]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...]

    def count(self, status: str) -> int:
        """The number of cells with this status."""
        return sum(cell.status == status for cell in self.cells)


def read_study(folder: Path) -> Study:
    """Read ``study.json`` (needed) and ``results.csv`` (may be missing)."""
    raw = read_json(folder / "study.json")
    if not isinstance(raw, dict) or not isinstance(raw.get("cells", []), list):
        raise InputError("not a study: an object with a list of cells is needed", folder / "study.json")
    results = folder / "results.csv"
    notes = () if results.exists() else ("results.csv is missing: no cell has been scored yet.",)
    name = _text(raw.get("name")) or folder.resolve().name
    return Study(
        folder=folder,
        name=name,
        title=_text(raw.get("title")) or name,
        fingerprint=_text(raw.get("fingerprint")),
        config=_mapping(raw.get("config")),
        environment=_mapping(raw.get("environment")),
        cells=tuple(_cell(cell) for cell in raw.get("cells", []) if isinstance(cell, dict)),
        seconds={str(k): float(v) for k, v in _mapping(raw.get("seconds")).items() if isinstance(v, int | float)},
        rows=read_results(results) if results.exists() else (),
        notes=notes,
    )


def read_results(path: Path) -> tuple[ResultRow, ...]:
    """Every row of a results.csv; a missing column or a wrong number is an InputError with its line."""
    lines = [line for _, line in read_lines(path)]
    reader = csv.DictReader(line + "\n" for line in lines)
    missing = {f.name for f in fields(ResultRow)} - set(reader.fieldnames or ())
    if lines and missing:
        raise InputError(f"columns missing: {', '.join(sorted(missing))}", path, 1)
    rows = []
    for row in reader:
        try:
            rows.append(ResultRow.parse(row))
        except ValueError as error:
            raise InputError(str(error), path, reader.line_num) from error
    return tuple(rows)


def run_folder(study: Study, run: str | None) -> Path | None:
    """The run folder of a cell, or None if it has none or points out of the study folder."""
    if not run:
        return None
    path = (study.folder / run).resolve()
    return path if path.is_relative_to(study.folder.resolve()) and path.is_dir() else None


def read_metrics(path: Path) -> tuple[list[dict[str, float]], int]:
    """Finite numbers of each line of a metrics.jsonl, and the number of lines that could not be read.

    A run that was killed leaves half a last line: that is no reason to lose the report.
    """
    records, broken = [], 0
    for _, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            record = None
        if isinstance(record, dict) and _finite(record.get("step")):
            records.append({str(k): float(v) for k, v in record.items() if _finite(v)})
        else:
            broken += 1
    return records, broken


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(name: str, value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _cell(raw: dict[str, Any]) -> Cell:
    return Cell(
        name=_text(raw.get("name")),
        overrides=_mapping(raw.get("overrides")),
        status=_text(raw.get("status")) or "pending",
        error=None if raw.get("error") is None else str(raw["error"]),
        stages={str(k): _text(v) for k, v in _mapping(raw.get("stages")).items()},
        run=None if raw.get("run") is None else str(raw["run"]),
    )
