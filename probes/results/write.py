"""What a study writes: results.csv and .parquet, a row for each cell, task and seed; measures.csv and .parquet, a row
for each cell, probe and measured number; and in both a column for each axis, so that what was varied can be plotted and
correlated by name."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pretrain.config import PretrainConfig
from probes.results import measures
from probes.results.labels import axis_titles, numbers_of
from probes.results.measures import Measured, alignment_measures, perplexities, probe_measures
from probes.statistics import Interval, mean_interval
from probes.study.cell import Cell
from probes.study.stage import DONE, PROBES, RESULT, RUNS
from synthlang.files import atomic_file, read_json
from synthlang.store import Store

COLUMNS = {
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
"""Scores in percent points; ``labels`` and ``mixed`` (field in the other language → score; null: none) are JSON;
``pretrain``, ``transfer``, ``probe`` (the alignment) and ``adjust`` are fingerprints; ``perplexity`` is of the
parent; ``alignment_forward`` is of all words from the parent to the other language, the direction of ALIGN-MLM, the
other alignments are means of both directions; ``moved_…`` tell how far fine-tuning on the parent moved the body
(probes/transfer/movement.py), null of results of versions that did not record it; ``majority`` is the score of the
majority baseline on the test set of SUP, or of ZS where nothing was trained on the target language."""
MOVED = {"moved_embeddings": "embeddings", "moved_layers": "layers"}
"""Column → what the record of a fit calls it."""
SCORES = ("task", "metric", "seed", "parent", "sup", "zs", "delta", "language")
ALIGNMENT, FORWARD = "alignment_all", "alignment_forward"
"""The mean of both directions, and from the original to the derived language, as ALIGN-MLM prints it."""
ALIGNMENTS = {
    ALIGNMENT: ("all", "mean"),
    "alignment_dictionary": ("in_dictionary", "mean"),
    "alignment_held_out": ("held_out", "mean"),
    FORWARD: ("all", "forward"),
}
"""Column → words and direction of the alignment."""
FIXED = frozenset({*COLUMNS, *measures.COLUMNS})
"""Columns that no axis hides."""
THERE = "pretrain.seed"
"""An axis that has a column already, ``pretrain_seed``."""
MIXED = "mixed "  # in front of a field, among the scores of a transfer
DIGITS = 4
GROUP = 1 << 16
"""Rows in memory at once, and rows of a row group of a parquet file."""
Range = tuple[float, float]
RETRIEVAL = r"(.*\.)?(cosine|csls)\.(mean|forward|backward)(\.p@\d+)?"
PERCENT: Range = (0.0, 100.0)
DIFFERENCE: Range = (-100.0, 100.0)
SHARE: Range = (0.0, 1.0)
AT_LEAST_ZERO: Range = (0.0, math.inf)
AT_LEAST_ONE: Range = (1.0, math.inf)
Drops = Mapping[str, Mapping[str, int]]
"""Data → reason → how many were left out or changed."""


class Tables:
    """The rows of the tables of a study; ``of_cell``: name of a cell → stage → key (stage.py), ``seeds`` those of the
    transfer.

    Results of trainings, transfers and alignments are read once, what probes found each time, since it may be large.
    """

    def __init__(
        self, cells: Sequence[Cell], of_cell: Mapping[str, Mapping[str, str]], seeds: Sequence[int], store: Store
    ) -> None:
        self._cells, self._of_cell, self._seeds, self._store = cells, of_cell, seeds, store
        self._read: dict[str, dict[str, Any]] = {}
        self._drops: dict[str, Drops] = {}

    def rows(self, done: Collection[str], cells: Sequence[Cell] | None = None) -> Iterator[dict[str, Any]]:
        """A row for each transfer, of ``cells`` (all of them), whose key is in ``done``, with all that its row tells of
        the model."""
        for cell in self._cells if cells is None else cells:
            stages = self._of_cell[cell.name]
            if any(stages[name] not in done for name in ("pretrain", "alignment", "adjust") if name in stages):
                continue
            alignment = _alignment(cell, stages)
            common = {**_named(cell), **_of_run(cell.pretrain), "probe": alignment}
            common |= {stage: stages.get(stage) for stage in ("pretrain", "adjust")} | dict.fromkeys(ALIGNMENTS)
            if alignment is not None:
                common |= alignment_columns(self._aligned(cell, alignment))
            common["perplexity"] = self._perplexities(cell, done).get("parent")
            for name in cell.tasks:
                for seed in self._seeds:
                    key = stages[f"transfer {name} seed {seed}"]
                    if key in done:
                        yield {**common, **self._transfer(key), "task_name": name, "transfer": key}

    def measures(self, done: Collection[str]) -> Iterator[dict[str, Any]]:
        """A row for each number of each probe of each cell, what every run has first."""
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            common = {**_named(cell), "pretrain_seed": _of_run(cell.pretrain)["pretrain_seed"]}
            known = self._perplexities(cell, done).items()
            found = ((measures.PERPLEXITIES + name, None, None, value) for name, value in known)
            yield from _measure_rows(common, measures.PRETRAIN, found)
            if (alignment := _alignment(cell, stages)) is not None and alignment in done:
                result = self._aligned(cell, alignment)
                yield from _measure_rows(common, measures.ALIGNMENT, alignment_measures(result))
            for name in cell.probes:
                key = stages[f"probe {name}"]
                if key in done:
                    yield from _measure_rows(common, name, probe_measures(self._json("probe", key, PROBES)))

    def dropped(self, done: Collection[str]) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
        """Stage → data → reason → how many sentences, pairs, words … were left out or changed.

        ``least`` and ``most`` in one stage, in how many ``stages`` any, ``of`` how many that read such data. A stage
        that cells share counts once.
        """
        found: dict[str, dict[str, Drops]] = {}
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            named = [(stage, stages[stage]) for stage in RUNS if stage in stages]
            for name in cell.tasks:
                named += [(f"transfer {name}", stages[f"transfer {name} seed {seed}"]) for seed in self._seeds]
            for stage, key in named:
                if key in done:
                    found.setdefault(stage, {})[key] = self._drops_of(stage, key)
        return {stage: _extents(list(drops.values())) for stage, drops in found.items()}

    def _json(self, kind: str, key: str, file: str) -> Any:
        return read_json(self._store.path(kind, key) / file)

    def _aligned(self, cell: Cell, key: str) -> dict[str, Any]:
        """The quick alignment of the language that all tasks of the cell are transferred to; of a run's first one where
        they name none of the run."""
        if key not in self._read:
            self._read[key] = self._json("alignment", key, RESULT)
        result, named = self._read[key], _named_by_tasks(cell)
        return {**result, **result.get("languages", {}).get(named.pop(), {})} if len(named) == 1 else result

    def _perplexities(self, cell: Cell, done: Collection[str]) -> dict[str, float]:
        """Of the cell's pretraining (measures.py); nothing of a cell without one, or whose run is not done."""
        key = self._of_cell[cell.name].get("pretrain")
        if cell.pretrain is None or key is None or key not in done:
            return {}
        if key not in self._read:
            found = perplexities(self._store.path("pretrain", key), cell.pretrain)
            self._read[key] = {name: round(value, DIGITS) for name, value in found.items()}
        return self._read[key]

    def _transfer(self, key: str) -> dict[str, Any]:
        if key not in self._read:
            result = self._json("transfer", key, RESULT)
            scores, metric = result["scores"], result["metric"]
            mixed = {t.removeprefix(MIXED): metrics[metric] for t, metrics in scores.items() if t.startswith(MIXED)}
            self._read[key] = {name: result[name] for name in SCORES}
            self._read[key]["mixed"] = json.dumps(mixed, sort_keys=True) if mixed else None
            self._read[key] |= moved_columns(result.get("fits", {}).get("source", []))
            baseline = result.get("majority", {})
            self._read[key]["majority"] = baseline.get("sup", baseline.get("zs"))
            texts = {f"aligned text {name}": text["counts"] for name, text in result.get("aligned", {}).items()}
            self._drops[key] = {**result.get("drops", {}), **texts}
        return self._read[key]

    def _drops_of(self, stage: str, key: str) -> Drops:
        if stage.startswith("transfer "):
            self._transfer(key)
        elif key not in self._drops:
            self._drops[key] = self._json(RUNS[stage], key, DONE).get("counts", {})
        return self._drops[key]


def alignment_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the quick alignment of a run fills; null where there is no such word."""
    scores = result["scores"] or {}
    found = {
        column: (scores.get(words) or {}).get("cosine", {}).get(way) for column, (words, way) in ALIGNMENTS.items()
    }
    return {column: None if value is None else round(value, DIGITS) for column, value in found.items()}


def moved_columns(fits: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The columns that the fits on the parent's language fill, of a search the means over the settings that are kept;
    null where one does not tell how far it moved the body."""
    found: dict[str, float | None] = {}
    for column, name in MOVED.items():
        values = [fit.get("moved", {}).get(name) for fit in fits]
        found[column] = None if not values or None in values else round(sum(values) / len(values), DIGITS)
    return found


def _of_run(config: PretrainConfig | None) -> dict[str, Any]:
    """The columns that the pretraining of a cell fills, all null for a cell on a finished model."""
    if config is None:
        return {"source": None, "objective": None, "pretrain_seed": None}
    return {"source": config.all_languages[0].source, "objective": config.objective.kind, "pretrain_seed": config.seed}


def _extents(of_stages: Sequence[Drops]) -> dict[str, dict[str, dict[str, int]]]:
    """Data → reason → the extent of the counts of several stages; counts of 0 are no reason."""
    reading = Counter(data for drops in of_stages for data in drops)
    counts: dict[str, dict[str, list[int]]] = {}
    for drops in of_stages:
        for data, reasons in drops.items():
            for reason, number in reasons.items():
                if number:
                    counts.setdefault(data, {}).setdefault(reason, []).append(number)
    return {
        data: {
            reason: {"least": min(numbers) if len(numbers) == reading[data] else 0, "most": max(numbers)}
            | {"stages": len(numbers), "of": reading[data]}
            for reason, numbers in reasons.items()
        }
        for data, reasons in counts.items()
    }


def _alignment(cell: Cell, stages: Mapping[str, str]) -> str | None:
    """The stage of the quick alignment of a cell. An adjusted cell has none: that of its run is of the embeddings
    before, which the adjustment moves, and what they align then is a matter of probes. Nor has one that is scored on
    the parent alone, which no alignment is of."""
    if cell.pretrain is not None and _named_by_tasks(cell) == {cell.pretrain.all_languages[0].name}:
        return None
    return None if "adjust" in stages else stages.get("alignment")


def _named_by_tasks(cell: Cell) -> set[str]:
    """The languages that the tasks of a cell are transferred to, as they name them."""
    return {str(task.language) for task in cell.tasks.values()}


def _named(cell: Cell) -> dict[str, Any]:
    return {"cell": cell.name, "labels": json.dumps(dict(cell.labels), ensure_ascii=False)}


def _measure_rows(common: Mapping[str, Any], probe: str, found: Iterator[Measured]) -> Iterator[dict[str, Any]]:
    for measure, layer, step, value in found:
        yield {**common, "probe": probe, "measure": measure, "layer": layer, "step": step, "value": value}


class AxisColumns:
    """The columns of the axes of cells.

    An axis is called by the last part of its key, by all of it where another axis or column has that name, and
    ``axis_NAME`` where a named one is called like a fixed column, with a number where that is taken too. ``types`` are
    column → type: whole numbers, numbers or texts; a percentage is a number as it is written.
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

    def of(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The rows with the values of their cells; null for a cell without the axis."""
        for row in rows:
            yield {**row, **self._of_cell[row["cell"]]}


def _typed(labels: Iterable[str]) -> tuple[pa.DataType, dict[str, Any]]:
    """The type of a column with these labels, and label → value."""
    numbers = numbers_of(labels)
    if numbers is None:
        return pa.string(), {label: label for label in labels}
    if all(label.strip("+-").isdecimal() and abs(int(label)) < 2**63 for label in numbers):
        return pa.int64(), {label: int(label) for label in numbers}
    return pa.float64(), dict(numbers)


def write_results(
    folder: Path, rows: Iterable[Mapping[str, Any]], axes: Mapping[str, pa.DataType] | None = None
) -> None:
    """Write results.csv and results.parquet; ``axes`` are the columns of axes."""
    write_table(folder, "results", {**COLUMNS, **(axes or {})}, rows)


def write_table(folder: Path, name: str, columns: Mapping[str, pa.DataType], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write ``NAME.csv`` and ``NAME.parquet`` atomically and in bounded memory; the same rows give the same bytes.

    A column that a row lacks is null.
    """
    schema, rest = pa.schema(list(columns.items())), iter(rows)
    with atomic_file(folder / f"{name}.csv", "w") as text, atomic_file(folder / f"{name}.parquet") as binary:
        lines = csv.DictWriter(text, list(columns), lineterminator="\n")
        lines.writeheader()
        with pq.ParquetWriter(binary, schema) as tables:
            group, is_first = list(islice(rest, GROUP)), True
            while group or is_first:  # without rows there is one empty group
                lines.writerows(group)
                tables.write_table(pa.Table.from_pylist(group, schema=schema))
                group, is_first = list(islice(rest, GROUP)), False


def range_of(column: str) -> Range | None:
    """Of a column of results (``zs``), or a measure of a probe by its path; None where it is not known.

    >>> range_of("delta"), range_of("probe:words.scores.all.csls.mean"), range_of("words.types")
    ((-100.0, 100.0), (0.0, 100.0), None)
    """
    if column == "delta":
        return DIFFERENCE
    if re.fullmatch(RETRIEVAL, column) or re.fullmatch(r"parent|sup|zs|majority|mixed.*|alignment[^.]*", column):
        return PERCENT
    if column in MOVED:
        return AT_LEAST_ZERO
    if column == "perplexity" or column.startswith(measures.PERPLEXITIES):
        return AT_LEAST_ONE
    return SHARE if re.fullmatch(r"(.*\.)?auc", column) else None


def interval_within(values: Sequence[float], column: str) -> Interval:
    """The 95 % t interval of values of a column or measure, with what it can be."""
    return replace(mean_interval(values), within=range_of(column))
