"""Reading of a study folder for a report. Only study.json is required."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from probes.results.curves import Threshold
from probes.results.measures import ALIGNMENT_MEASURES, OF_PARENT, PERPLEXITIES, measure_of
from probes.results.read import distinct, failed_training, is_score, read_table
from probes.results.scores import SCORES
from probes.study.config import LearnedConfig
from probes.study.record import STUDY, check_format
from synthlang.catalogue import load_yaml
from synthlang.config import StrictModel, parse
from synthlang.config_errors import type_reason
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.wording import first_few, plural

LIKE = "like"
"""Key of an archived cell with the name of an earlier cell.

The cell has the overrides of the earlier cell. An override in the record of the cell itself replaces the shared one.
"""
NAMED = 5
"""Maximum number of values that are not numbers, or of excluded runs, that a note lists."""
FAILED = "failed"
"""Name of the column with the reason why a run is excluded, or ""."""
NOT_A_STUDY = "is not the record of a study, which is a JSON object with a list of cells"
AGAIN = "restore the file, or run the study again in another folder"
WITHOUT_CONTEXT = {
    "maps.embeddings.words.csls.mean.p@1": "embeddings, rotated",
    "maps.embeddings.static.words.csls.mean.p@1": "static vectors, rotated",
    "maps.embeddings.before.csls.mean.p@1": "embeddings, no map",
}
"""Measure of the section "Words without context" → its name there. These measures have neither layer nor step."""


class _Rules(StrictModel):
    """Keys of the config of a study that a report applies to the results."""

    learned: LearnedConfig = LearnedConfig()
    thresholds: dict[str, Threshold] = Field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A cell of the grid with its labels, its changes to the base config, and its state.

    Attributes:
        name: Name of the cell.
        labels: Axis → label.
        overrides: Dotted key → value.
        status: ``done``, ``failed`` or ``pending``.
        error: Error of the first failed stage, in one line, or None.
        log: The traceback of this error, or "".
        keys: Name of each stage → its planned key.
        stages: Name of each finished stage → its key.
        run: Folder of the model, relative to the folder ``of``, or None if no pretraining or adjustment
            of the cell is finished.
        of: Folder of the study.
        store: Folder of the stages.
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
        """The folder of the model, or None if the cell has no model or the folder is not in the store."""
        return self._at_hand(self.of / self.run) if self.run else None

    def stage(self, name: str) -> Path | None:
        """Return the folder of a finished stage such as ``probe NAME``, or None if there is none in the store."""
        kind, key = name.split(" ", maxsplit=1)[0], self.stages.get(name)
        return self._at_hand(self.store / f"{kind}-{key}") if key else None

    def _at_hand(self, path: Path) -> Path | None:
        """Return a path if it is a folder inside the store, else None. A report reads no other folder."""
        path = path.resolve()
        return path if path.is_dir() and path.is_relative_to(self.store.resolve()) else None


@dataclass(frozen=True, config=ConfigDict(arbitrary_types_allowed=True))
class Study:
    """The content of a study folder. Every key of study.json except ``format`` may be missing.

    Attributes:
        name: Name of the study.
        title: Title of the report.
        fingerprint: Hash of the name, the seeds and all settings of the cells.
        config: The config of the study. A joined study has the config of each of its studies by name.
        environment: The date, the machine and the versions of packages of the last run.
        axes: The axes of the grid.
        cells: The cells of the grid, in the order of study.json.
        scale: Size of models and data: tiny, lab, paper or a description of the model. It is "" if not known.
        settings: The settings of the cells by section. A setting that differs between cells is "(differs)".
        seconds: Name of the folder of a stage → seconds that the stage took.
        dropped: Counts of left-out data, as `Tables.dropped` returns them.
        measured: All measurements. The column ``failed`` has the reason why a run is excluded, or "".
        examples: One sentence of each language: its ``text``, its ``language``, and a ``cell`` with the language.
        notes: Sentences on missing and unreadable data.
        folder: The folder of the study. A joined study has the folder of its first study.
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
    folder: Path = Path()

    @property
    def configs(self) -> list[Mapping[str, Any]]:
        """The config of the study, or those of the studies of a joined report."""
        return [self.config, *(part for part in self.config.values() if isinstance(part, Mapping))]

    def count(self, status: str) -> int:
        """Return the number of cells in a state: ``done``, ``failed`` or ``pending``."""
        return sum(cell.status == status for cell in self.cells)

    @property
    def waiting(self) -> int:
        """The number of cells that have not been run."""
        return len(self.cells) - self.count("done") - self.count("failed")

    @cached_property
    def table(self) -> pd.DataFrame:
        """Measurements without excluded runs. All means, comparisons and tests use these rows."""
        return self.measured[self.measured[FAILED] == ""].drop(columns=FAILED)

    @cached_property
    def failed(self) -> dict[str, str]:
        """Cell → the reasons why its run is excluded, as a whole or on a task."""
        rows = self.measured[self.measured[FAILED] != ""]
        found: dict[str, list[str]] = {}
        for cell, why in distinct(rows, "cell", FAILED):
            found.setdefault(cell, []).append(why)
        return {cell: "; ".join(several) for cell, several in found.items()}

    @property
    def told_failed(self) -> str:
        """Note with the number of cells with excluded runs and the names of the first NAMED, or "" without any."""
        named = [f"{cell} ({why})" for cell, why in self.failed.items()]
        cells = plural(self.measured["cell"].nunique(), "cell")
        told = f"{len(named):,} of {cells} did not learn and are excluded from means, comparisons and claims"
        return f"{told}: {first_few(named, NAMED, '; ')}." if named else ""

    @cached_property
    def perplexities(self) -> pd.DataFrame:
        """Rows with the perplexities of pretrainings at selected checkpoints, including those of excluded runs."""
        names = [name for name in self.measured["measure"].unique() if name.startswith(PERPLEXITIES)]
        return self.measured[self.measured["measure"].isin(names) & self.measured["step"].isna()]


def read_study(folder: Path) -> Study:
    """Read the files of a study folder. Only study.json is required.

    Raises:
        InputError: study.json is missing, damaged or of another version. The error is also raised if the convergence
            criterion or a threshold in study.json is wrong, or if a table or the config of a run cannot be read.
    """
    path = folder / STUDY
    raw = read_json(path)
    if not isinstance(raw, dict):
        raise InputError(NOT_A_STUDY, path, hint=AGAIN, code="format")
    check_format(raw, path)
    known = {"name": folder.resolve().name} | {key: value for key, value in raw.items() if value is not None}
    store, known["folder"] = folder / str(raw.get("store") or ""), folder
    try:
        known["cells"] = [{**cell, "of": folder, "store": store} for cell in _whole(known.get("cells", ()))]
        study = Study(**known)
    except (KeyError, TypeError) as error:
        raise InputError(NOT_A_STUDY, path, hint=AGAIN, code="format") from error
    except ValidationError as error:
        first = error.errors()[0]
        reason = "is required" if first["type"] == "missing" else type_reason(first)
        raise InputError(reason, path, keys=[str(part) for part in first["loc"]], hint=AGAIN, code="type") from error
    table = read_table(folder, {cell.name: cell.stages for cell in study.cells})
    try:
        given = {key: value for key in _Rules.model_fields if (value := study.config.get(key))}
        limits = parse(_Rules, given).learned
    except InputError as error:
        raise error.inside("config", path=path) from error
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
    """Yield the cells, with the overrides of archived cells completed from the earlier cell that ``like`` names."""
    overrides = dict[str, Mapping[str, Any]]()
    for cell in cells:
        own = {key: value for key, value in {**cell}.items() if key != LIKE}
        if LIKE in cell:
            own["overrides"] = {**overrides[cell[LIKE]], **own.get("overrides", {})}
        overrides[own.get("name", "")] = own.get("overrides", {})
        yield own


def titled(table: pd.DataFrame) -> list[str]:
    """Return the names of those measures in a table whose declaration has a title, each once."""
    known = ((name, measure_of(name)) for name in table["measure"].unique())
    return [name for name, measure in known if measure is not None and measure.title]


def _not_numbers(table: pd.DataFrame) -> tuple[str, ...]:
    """Return a note with the number of values that are NaN or infinite, and the first of them."""
    wrong = table[
        is_score(table) & table["measure"].isin([*SCORES, *ALIGNMENT_MEASURES]) & ~np.isfinite(table["value"])
    ]
    if wrong.empty:
        return ()
    lines = wrong[["cell", "task", "seed", "measure"]].itertuples(index=False)
    named = [f"{cell}, {task}, fine-tuning seed {seed}: {measure}" for cell, task, seed, measure in lines]
    what = "value of results.parquet is" if len(named) == 1 else "values of results.parquet are"
    told = first_few(named, NAMED, "; ")
    return (f"{len(named)} {what} not a number. Means leave them out. The table of seeds shows them: {told}.",)


def _not_known(table: pd.DataFrame, limits: LearnedConfig) -> tuple[str, ...]:
    """Return a note on cells without a known perplexity, if the study limits the perplexity."""
    known = table.loc[table["measure"].isin(OF_PARENT), "cell"]
    number = table["cell"].nunique() - known.nunique()
    if limits.perplexity is None or not number:
        return ()
    cells = plural(number, "cell")
    return (f"The limit of perplexity is not applied to {cells}, because the source perplexity is not known.",)


def _scale(study: Study) -> str:
    """Return the declared scale, or else the size of the first model and its training data, or else ""."""
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
