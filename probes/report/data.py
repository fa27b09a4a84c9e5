"""Read the files of a study folder for a report. Only study.json must be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from probes.report.numbers import first_few, plural
from probes.results.measures import ALIGNMENT_MEASURES, OF_PARENT, PERPLEXITIES, measure_of
from probes.results.read import distinct, failed_training, is_score, read_table
from probes.results.scores import SCORES
from probes.study.config import LearnedConfig
from probes.study.record import FORMAT, STUDY
from synthlang.catalogue import load_yaml
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json

RECORDED = (
    "name",
    "title",
    "fingerprint",
    "config",
    "settings",
    "environment",
    "axes",
    "cells",
    "seconds",
    "dropped",
    "examples",
)
"""Keys of study.json that are read; each may be missing."""
LIKE = "like"
"""Key of a cell in an archived study: the name of an earlier cell, whose overrides hold unless they are given again."""
NAMED = 5
"""Largest number of values without a number, and of cells that failed training, that a note names."""
FAILED = "failed"
NOT_A_STUDY = "is not the record of a study, which is an object with a list of cells"
WITHOUT_CONTEXT = {
    "maps.embeddings.words.csls.mean.p@1": "embeddings, rotated",
    "maps.embeddings.static.words.csls.mean.p@1": "static vectors, rotated",
    "maps.embeddings.before.csls.mean.p@1": "embeddings, no map",
}
"""Measures that have neither layer nor step (section "Words without context"), and their names."""
FEW_CELLS = 200
FIGURES, FIGURES_OF_MANY = 40, 8
"""Largest number of figures of a report, and of a report of more than FEW_CELLS cells, which must take seconds."""


@dataclass(frozen=True)
class Cell:
    """A cell of the grid: its labels, what it changes in the base config, and its state.

    Attributes:
        keys: Name of each stage → its planned key.
        stages: The same for the stages that are done; their folders are in ``store``.
        run: Folder of the model, relative to ``of``, the folder of the study.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    status: str = "pending"
    error: str | None = None
    log: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None
    of: Path = Path()
    store: Path = Path()

    @property
    def folder(self) -> Path | None:
        """The run folder; None where it is not at hand."""
        return self._at_hand(self.of / self.run) if self.run else None

    def stage(self, name: str) -> Path | None:
        """Return the folder of a stage such as ``probe NAME``; None where it is not at hand."""
        kind, key = name.split(" ", maxsplit=1)[0], self.stages.get(name)
        return self._at_hand(self.store / f"{kind}-{key}") if key else None

    def _at_hand(self, path: Path) -> Path | None:
        """Return the path if it is a folder inside the store. A report reads nothing outside."""
        path = path.resolve()
        return path if path.is_dir() and path.is_relative_to(self.store.resolve()) else None


@dataclass(frozen=True, config=ConfigDict(arbitrary_types_allowed=True))
class Study:
    """The content of a study folder.

    Attributes:
        scale: Size of models and data in words: tiny, lab, paper or the size of the model; "" where it is not known.
        settings: Every setting that all cells have in common.
        measured: All measurements, with one column more: ``failed``, why a model counts as failed training, or "".
        examples: One sentence of each language, with its ``language`` and a ``cell`` that has it.
        notes: Sentences on what was missing or could not be read.
    """

    name: str
    title: str = ""
    fingerprint: str = ""
    scale: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    dropped: Any = None
    examples: tuple[Mapping[str, str], ...] = ()
    measured: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: tuple[str, ...] = ()

    def count(self, status: str) -> int:
        """Return the number of cells in this state."""
        return sum(cell.status == status for cell in self.cells)

    @property
    def waiting(self) -> int:
        """The number of cells that have not been run."""
        return len(self.cells) - self.count("done") - self.count("failed")

    @cached_property
    def table(self) -> pd.DataFrame:
        """Measurements of models that have learned.

        Everything that compares, averages or tests reads these rows.
        """
        return self.measured[self.measured[FAILED] == ""].drop(columns=FAILED)

    @cached_property
    def failed(self) -> dict[str, str]:
        """Cell → why its training failed, as a whole or on a task."""
        rows = self.measured[self.measured[FAILED] != ""]
        found: dict[str, list[str]] = {}
        for cell, why in distinct(rows, "cell", FAILED):
            found.setdefault(cell, []).append(why)
        return {cell: "; ".join(several) for cell, several in found.items()}

    @property
    def failed_on(self) -> set[tuple[str, str]]:
        """Cells and tasks of the scores of models that failed training."""
        return set(distinct(self.measured[(self.measured[FAILED] != "") & is_score(self.measured)], "cell", "task"))

    @property
    def told_failed(self) -> str:
        """The note that counts and names the cells that failed training; "" if none did."""
        named = [f"{cell} ({why})" for cell, why in self.failed.items()]
        cells = plural(self.measured["cell"].nunique(), "cell")
        told = f"{len(named):,} of {cells} did not learn, and every mean, comparison and claim leaves them out"
        return f"{told}: {first_few(named, NAMED, '; ')}." if named else ""

    @cached_property
    def perplexities(self) -> pd.DataFrame:
        """Rows of the perplexity of pretrainings, including those that failed training."""
        names = [name for name in self.measured["measure"].unique() if name.startswith(PERPLEXITIES)]
        return self.measured[self.measured["measure"].isin(names)]

    @cached_property
    def measures(self) -> pd.DataFrame:
        """The measurements that have a layer or a step, are of words without context, or have a title."""
        placed = self.table["layer"].notna() | self.table["step"].notna()
        return self.table[placed | self.table["measure"].isin([*WITHOUT_CONTEXT, *titled(self.table)])]


class FigureBudget:
    """Number of figures that a report may still draw.

    A figure takes about 0.1 seconds and 50 KB of the page.
    """

    def __init__(self, cells: int) -> None:
        self.many = cells > FEW_CELLS
        self.left = FIGURES_OF_MANY if self.many else FIGURES

    def take(self, wanted: int = 1, most: int | None = None) -> int:
        """Take figures from the budget.

        Args:
            wanted: Number of figures that could be drawn.
            most: Largest number for this section; of a study of many cells a quarter of it.

        Returns:
            The number of figures that may be drawn.
        """
        limit = self.left if most is None else min(self.left, max(1, most // 4) if self.many else most)
        given = min(wanted, limit)
        self.left -= given
        return given


def read_study(folder: Path) -> Study:
    """Read study.json (needed), results.parquet and measures.parquet (may be missing).

    Raises:
        InputError: If study.json is missing or of another version, or if a table cannot be read.
    """
    path = folder / STUDY
    if not folder.is_dir():
        raise InputError("is not a folder", folder, hint="name the folder of a study", code="missing")
    raw = read_json(path)
    if not isinstance(raw, dict):
        raise InputError(NOT_A_STUDY, path, code="format")
    if raw.get("format") != FORMAT:
        reason = f"has format {raw.get('format', 1)}, and this version of synthlang reads {FORMAT}"
        raise InputError(reason, path, hint="run the study again", code="format")
    known = {"name": folder.resolve().name} | {key: raw[key] for key in RECORDED if raw.get(key) is not None}
    store = folder / str(raw.get("store") or "")
    try:
        known["cells"] = [{**cell, "of": folder, "store": store} for cell in _whole(known.get("cells", ()))]
        study = Study(**known)
    except (KeyError, TypeError) as error:
        raise InputError(NOT_A_STUDY, path, code="format") from error
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"is not what a study records: {first['msg']}"
        raise InputError(reason, path, keys=[str(part) for part in first["loc"]], code="type") from error
    table = read_table(folder, {cell.name: cell.stages for cell in study.cells})
    limits = parse(LearnedConfig, study.config.get("learned") or {}, path)
    scored = (folder / "results.parquet").exists()
    notes = _not_numbers(table) if scored else ("results.parquet is missing: no cell has been scored yet.",)
    return replace(
        study,
        title=study.title or study.name,
        scale=_scale(study),
        axes=study.axes or tuple(dict.fromkeys(axis for cell in study.cells for axis in cell.labels)),
        measured=table.assign(**{FAILED: failed_training(table, limits)}),
        notes=(*notes, *_not_known(table, limits)),
    )


def _whole(cells: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Fill in what a cell of an archived study leaves out because it is like an earlier one."""
    overrides = dict[str, Mapping[str, Any]]()
    for cell in cells:
        own = {key: value for key, value in {**cell}.items() if key != LIKE}
        if LIKE in cell:
            own["overrides"] = {**overrides[cell[LIKE]], **own["overrides"]}
        overrides[own.get("name", "")] = own.get("overrides", {})
        yield own


def titled(table: pd.DataFrame) -> list[str]:
    """Return the measures in a table whose declarations have a title."""
    known = ((name, measure_of(name)) for name in table["measure"].unique())
    return [name for name, measure in known if measure is not None and measure.title]


def names_of(studies: Sequence[Study]) -> list[str]:
    """Return the studies' names, followed by the start of the fingerprint where two have the same name."""
    names = [study.name for study in studies]
    return [
        study.name if names.count(study.name) == 1 else f"{study.name} {study.fingerprint[:6] or i}"
        for i, study in enumerate(studies, 1)
    ]


def _not_numbers(table: pd.DataFrame) -> tuple[str, ...]:
    """Return a note that counts the values that are NaN or infinite and names the first."""
    wrong = table[
        is_score(table) & table["measure"].isin([*SCORES, *ALIGNMENT_MEASURES]) & ~np.isfinite(table["value"])
    ]
    if wrong.empty:
        return ()
    lines = wrong[["cell", "task", "seed", "measure"]].itertuples(index=False)
    named = [f"{cell}, {task}, fine-tuning seed {seed}: {measure}" for cell, task, seed, measure in lines]
    what = "value of results.parquet is" if len(named) == 1 else "values of results.parquet are"
    told = first_few(named, NAMED, "; ")
    return (f"{len(named)} {what} not a number. Means leave them out; the table of seeds shows them: {told}.",)


def _not_known(table: pd.DataFrame, limits: LearnedConfig) -> tuple[str, ...]:
    """Return a note that counts the cells whose perplexity is not known although the study limits it."""
    known = table.loc[table["measure"].isin(OF_PARENT), "cell"]
    number = table["cell"].nunique() - known.nunique()
    if limits.perplexity is None or not number:
        return ()
    cells = plural(number, "cell")
    return (f"The limit of perplexity cannot judge {cells}: the perplexity of the source language is not known.",)


def _scale(study: Study) -> str:
    """Return the declared scale, else the size of the first model and of its training data, else ""."""
    if said := study.config.get("scale"):
        return str(said)
    folder = next((folder for cell in study.cells if (folder := cell.folder)), None)
    config = load_yaml(folder / "config.yaml") if folder is not None and (folder / "config.yaml").is_file() else {}
    try:
        tokens = config["steps"] * config["batch"]["rows"] * config["batch"]["length"]
        size, unit = next((s, u) for s, u in ((1e9, "billion"), (1e6, "million"), (0, "thousand")) if tokens >= s)
        model = config["model"]
        return f"{plural(model['layers'], 'layer')} of {model['hidden']}, {tokens / (size or 1e3):,.3g} {unit} tokens"
    except (KeyError, TypeError):  # a run that starts from a checkpoint, say
        return ""


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, Mapping) else {}
