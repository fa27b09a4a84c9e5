"""What a study folder holds, read for the report: nothing is trusted to be there but study.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probes.report.numbers import first_few, plural
from probes.study.record import STUDY
from probes.study.table import ALIGNMENTS, SCORES, is_score, labels_of, read_table, text_of
from synthlang.config import load_yaml
from synthlang.errors import InputError
from synthlang.files import read_json, read_lines

STUDY_FORMAT = 2
NAMED = 5
"""Most values without a number that are named."""
WITHOUT_CONTEXT = {
    "maps.embeddings.words.csls.mean.p@1": "embeddings, rotated",
    "maps.embeddings.static.words.csls.mean.p@1": "static vectors, rotated",
    "maps.embeddings.before.csls.mean.p@1": "embeddings, no map",
}
"""Measures that are drawn without a layer or a step (words_alone.py), and what they are called."""
FEW_CELLS = 200
FIGURES, FIGURES_OF_MANY = 40, 8
"""Most figures of a report, and of one of more than FEW_CELLS cells, which is to be done in seconds."""


@dataclass(frozen=True)
class Cell:
    """A cell of the grid: its labels, what it changes in the base config and what became of it."""

    name: str
    labels: Mapping[str, str]
    overrides: Mapping[str, Any]
    status: str
    error: str | None
    log: str
    stages: Mapping[str, str]
    run: str | None
    folder: Path | None
    """The run folder, where it is at hand."""
    store: Path | None = None
    """The folder of stages, where it is at hand."""

    def stage(self, name: str) -> Path | None:
        """The folder of a stage, as ``probe NAME``, where it is at hand."""
        if self.store is None or name not in self.stages:
            return None
        path = self.store / f"{name.split(' ', maxsplit=1)[0]}-{self.stages[name]}"
        return path if path.parent == self.store and path.is_dir() else None


@dataclass(frozen=True)
class Study:
    """The folder's content; ``notes`` say what was missing or could not be read."""

    folder: Path
    name: str
    title: str
    fingerprint: str
    scale: str
    """In words: tiny, lab, paper or the size of the model; "" where nothing tells."""
    config: Mapping[str, Any]
    settings: Mapping[str, Any]
    """Every setting that cells have in common (resolved.py)."""
    environment: Mapping[str, Any]
    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    seconds: Mapping[str, float]
    dropped: Any
    table: pd.DataFrame
    """What was measured (table.py)."""
    notes: tuple[str, ...]

    def count(self, status: str) -> int:
        """The number of cells with this status."""
        return sum(cell.status == status for cell in self.cells)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """The rows of the table that probes measured at a layer or a step, or of words without context."""
        placed = self.table["layer"].notna() | self.table["step"].notna()
        return self.table[placed | self.table["measure"].isin(list(WITHOUT_CONTEXT))]


class Budget:
    """How many figures a report may still draw: each takes about a tenth of a second and 50 KB of the page."""

    def __init__(self, cells: int) -> None:
        self.many = cells > FEW_CELLS
        self.left = FIGURES_OF_MANY if self.many else FIGURES

    def take(self, wanted: int = 1, most: int | None = None) -> int:
        """How many of ``wanted`` figures may be drawn, at most ``most`` (of many cells a quarter of it)."""
        limit = self.left if most is None else min(self.left, max(1, most // 4) if self.many else most)
        given = min(wanted, limit)
        self.left -= given
        return given


def read_study(folder: Path) -> Study:
    """Read ``study.json`` (needed), ``results.parquet`` and ``measures.parquet`` (may be missing)."""
    path = folder / STUDY
    if not folder.is_dir():
        raise InputError("is no study folder", folder)
    raw = read_json(path)
    if not isinstance(raw, dict) or not isinstance(raw.get("cells", []), list):
        raise InputError("not a study: an object with a list of cells is needed", path)
    if raw.get("format") != STUDY_FORMAT:
        raise InputError(
            f"is of format {raw.get('format', 1)}, this version of synthlang reads {STUDY_FORMAT}; run the study again",
            path,
        )
    name = text_of(raw.get("name")) or folder.resolve().name
    roots = _roots(folder, text_of(raw.get("store")))
    cells = tuple(_cell(cell, folder, roots) for cell in raw.get("cells", []) if isinstance(cell, dict))
    table = read_table(folder, {cell.name: cell.stages for cell in cells})
    scored = (folder / "results.parquet").exists()
    notes = _not_numbers(table) if scored else ("results.parquet is missing: no cell has been scored yet.",)
    axes = raw.get("axes") or dict.fromkeys(axis for cell in cells for axis in cell.labels)
    study = Study(
        folder=folder,
        name=name,
        title=text_of(raw.get("title")) or name,
        fingerprint=text_of(raw.get("fingerprint")),
        scale="",
        config=_mapping(raw.get("config")),
        settings=_mapping(raw.get("settings")),
        environment=_mapping(raw.get("environment")),
        axes=tuple(map(str, axes)),
        cells=cells,
        seconds={str(k): float(v) for k, v in _mapping(raw.get("seconds")).items() if isinstance(v, int | float)},
        dropped=raw.get("dropped"),
        table=table,
        notes=notes,
    )
    return replace(study, scale=_scale(study))


def names_of(studies: Sequence[Study]) -> list[str]:
    """The studies' names, with the start of the fingerprint where two have the same."""
    held = [study.name for study in studies]
    return [
        study.name if held.count(study.name) == 1 else f"{study.name} {study.fingerprint[:6] or i}"
        for i, study in enumerate(studies, 1)
    ]


def _not_numbers(table: pd.DataFrame) -> tuple[str, ...]:
    """A note that counts the values that are NaN or infinite and names the first."""
    wrong = table[is_score(table) & table["measure"].isin([*SCORES, *ALIGNMENTS]) & ~np.isfinite(table["value"])]
    found = [
        f"{cell}, {task}, fine-tuning seed {seed}: {measure}"
        for cell, task, seed, measure in zip(
            *(wrong[name] for name in ("cell", "task", "seed", "measure")), strict=True
        )
    ]
    if not found:
        return ()
    named = first_few(found, NAMED, "; ")
    what = "value of results.parquet is" if len(found) == 1 else "values of results.parquet are"
    return (f"{len(found)} {what} not a number, left out of every mean and shown among the seeds: {named}.",)


def _roots(folder: Path, store: str) -> list[Path]:
    """The study's folder, and that of its stages: a report reads nothing else."""
    return [folder.resolve(), *([(folder / store).resolve()] if store else [])]


def _run_folder(folder: Path, roots: Sequence[Path], run: str | None) -> Path | None:
    """The run folder of a cell; None if it is not there, or in none of these places."""
    if not run:
        return None
    path = (folder / run).resolve()
    return path if path.is_dir() and any(path.is_relative_to(root) for root in roots) else None


def _scale(study: Study) -> str:
    """What the study calls its scale, else the size of the first run's model and how much it read, else ""."""
    if said := text_of(study.config.get("scale")):
        return said
    folder = next((cell.folder for cell in study.cells if cell.folder), None)
    config = load_yaml(folder / "config.yaml") if folder is not None and (folder / "config.yaml").is_file() else {}
    model, batch = _mapping(config.get("model")), _mapping(config.get("batch"))
    try:
        tokens = config["steps"] * batch["rows"] * batch["length"]
        size, unit = next((s, u) for s, u in ((1e9, "billion"), (1e6, "million"), (0, "thousand")) if tokens >= s)
        return f"{plural(model['layers'], 'layer')} of {model['hidden']}, {tokens / (size or 1e3):,.3g} {unit} tokens"
    except (KeyError, TypeError):  # a run that starts from a checkpoint, say
        return ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _cell(raw: dict[str, Any], folder: Path, roots: Sequence[Path]) -> Cell:
    run = None if raw.get("run") is None else str(raw["run"])
    return Cell(
        name=text_of(raw.get("name")),
        labels=labels_of(_mapping(raw.get("labels"))),
        overrides=_mapping(raw.get("overrides")),
        status=text_of(raw.get("status")) or "pending",
        error=None if raw.get("error") is None else str(raw["error"]),
        log=text_of(raw.get("log")),
        stages={str(k): text_of(v) for k, v in _mapping(raw.get("stages")).items()},
        run=run,
        folder=_run_folder(folder, roots, run),
        store=roots[-1] if len(roots) > 1 else None,
    )


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
