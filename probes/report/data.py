"""What a study folder holds, read for the report: only study.json has to be there."""

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
from probes.results.measures import ALIGNMENT_MEASURES, OF_PARENT, PERPLEXITIES
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
"""What study.json has that is read; all of it may be missing."""
LIKE = "like"
"""What a cell of a kept study has beside: the name of an earlier one, which overrides what it does not say itself."""
NAMED = 5
"""Most values without a number, and cells that failed training, that are named."""
FAILED = "failed"
WITHOUT_CONTEXT = {
    "maps.embeddings.words.csls.mean.p@1": "embeddings, rotated",
    "maps.embeddings.static.words.csls.mean.p@1": "static vectors, rotated",
    "maps.embeddings.before.csls.mean.p@1": "embeddings, no map",
}
"""Measures that are drawn without a layer or a step (layers.words_alone), and what they are called."""
FEW_CELLS = 200
FIGURES, FIGURES_OF_MANY = 40, 8
"""Most figures of a report, and of one of more than FEW_CELLS cells, which is to be done in seconds."""


@dataclass(frozen=True)
class Cell:
    """A cell of the grid: its labels, what it changes in the base config and what became of it.

    keys     what a stage is called → its key
    stages   the same, of those that are done; ``store`` has their folders
    run      the folder of its model, from ``of``, that of the study
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
        """The run folder, where it is at hand."""
        return self._at_hand(self.of / self.run) if self.run else None

    def stage(self, name: str) -> Path | None:
        """The folder of a stage, as ``probe NAME``, where it is at hand."""
        kind, key = name.split(" ", maxsplit=1)[0], self.stages.get(name)
        return self._at_hand(self.store / f"{kind}-{key}") if key else None

    def _at_hand(self, path: Path) -> Path | None:
        """A report reads nothing outside the store."""
        path = path.resolve()
        return path if path.is_dir() and path.is_relative_to(self.store.resolve()) else None


@dataclass(frozen=True, config=ConfigDict(arbitrary_types_allowed=True))
class Study:
    """The folder's content.

    scale      in words: tiny, lab, paper or the size of the model; "" where nothing tells
    settings   every setting that cells have in common
    measured   all of it (table.py), with a column more: ``failed``, why a model counts as failed training, or ""
    examples   a sentence of each language, with its ``language`` and a ``cell`` that has it
    notes      say what was missing or could not be read
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
        """The number of cells with this status."""
        return sum(cell.status == status for cell in self.cells)

    @property
    def waiting(self) -> int:
        """The number of cells that are not run yet."""
        return len(self.cells) - self.count("done") - self.count("failed")

    @cached_property
    def table(self) -> pd.DataFrame:
        """What counts: rows of models that have learned. All that compares, averages or judges reads these."""
        return self.measured[self.measured[FAILED] == ""].drop(columns=FAILED)

    @cached_property
    def failed(self) -> dict[str, str]:
        """Cell → why it failed training: as a whole, or on a task."""
        rows = self.measured[self.measured[FAILED] != ""]
        found: dict[str, list[str]] = {}
        for cell, why in distinct(rows, "cell", FAILED):
            found.setdefault(cell, []).append(why)
        return {cell: "; ".join(several) for cell, several in found.items()}

    @property
    def failed_on(self) -> set[tuple[str, str]]:
        """Cell and task of the scores of models that failed training."""
        return set(distinct(self.measured[(self.measured[FAILED] != "") & is_score(self.measured)], "cell", "task"))

    @property
    def told_failed(self) -> str:
        """How many cells failed training, and the first of them; "" if none did."""
        named = [f"{cell} ({why})" for cell, why in self.failed.items()]
        cells = plural(self.measured["cell"].nunique(), "cell")
        told = f"{len(named):,} of {cells} did not learn, and every mean, comparison and claim leaves them out"
        return f"{told}: {first_few(named, NAMED, '; ')}." if named else ""

    @cached_property
    def perplexities(self) -> pd.DataFrame:
        """The rows of the perplexity of pretrainings, also of those that failed."""
        names = [name for name in self.measured["measure"].unique() if name.startswith(PERPLEXITIES)]
        return self.measured[self.measured["measure"].isin(names)]

    @cached_property
    def measures(self) -> pd.DataFrame:
        """The rows of the table that probes measured at a layer or a step, or of words without context."""
        placed = self.table["layer"].notna() | self.table["step"].notna()
        return self.table[placed | self.table["measure"].isin(list(WITHOUT_CONTEXT))]


class FigureBudget:
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
    if not isinstance(raw, dict):
        raise InputError("not a study: an object with a list of cells is needed", path)
    if raw.get("format") != FORMAT:
        raise InputError(
            f"is of format {raw.get('format', 1)}, this version of synthlang reads {FORMAT}; run the study again", path
        )
    known = {"name": folder.resolve().name} | {key: raw[key] for key in RECORDED if raw.get(key) is not None}
    store = folder / str(raw.get("store") or "")
    try:
        known["cells"] = [{**cell, "of": folder, "store": store} for cell in _whole(known.get("cells", ()))]
        study = Study(**known)
    except (KeyError, TypeError) as error:
        raise InputError("not a study: an object with a list of cells is needed", path) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"not a study: {'.'.join(map(str, first['loc']))}: {first['msg']}", path) from error
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
    """The cells with all that they override: one that is like an earlier one has written what differs alone."""
    overrides = dict[str, Mapping[str, Any]]()
    for cell in cells:
        own = {key: value for key, value in {**cell}.items() if key != LIKE}
        if LIKE in cell:
            own["overrides"] = {**overrides[cell[LIKE]], **own["overrides"]}
        overrides[own.get("name", "")] = own.get("overrides", {})
        yield own


def names_of(studies: Sequence[Study]) -> list[str]:
    """The studies' names, with the start of the fingerprint where two have the same."""
    names = [study.name for study in studies]
    return [
        study.name if names.count(study.name) == 1 else f"{study.name} {study.fingerprint[:6] or i}"
        for i, study in enumerate(studies, 1)
    ]


def _not_numbers(table: pd.DataFrame) -> tuple[str, ...]:
    """A note that counts the values that are NaN or infinite and names the first."""
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
    """A note that counts the cells that a limit of perplexity cannot judge."""
    known = table.loc[table["measure"].isin(OF_PARENT), "cell"]
    number = table["cell"].nunique() - known.nunique()
    if limits.perplexity is None or not number:
        return ()
    return (f"The limit of perplexity cannot judge {plural(number, 'cell')}: no perplexity of the parent is known.",)


def _scale(study: Study) -> str:
    """What the study calls its scale, else the size of the first run's model and how much it read, else ""."""
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
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}
