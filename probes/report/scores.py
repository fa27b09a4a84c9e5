"""Means and intervals of the scores of a study, for each cell and for each condition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import pandas as pd

from probes.claims.estimates import over_models
from probes.report.data import FAILED, Study
from probes.report.figures import FigureBudget
from probes.report.numbers import Badge, Entry
from probes.results.labels import Layout, axes_that_set, is_of_languages, layout_of, settings_of
from probes.results.measures import TOKENS_PER_WORD, interval_within
from probes.results.read import columns_of, distinct, is_score, labels_of
from probes.results.scores import PERPLEXITY, SCORES
from probes.statistics import Interval, mean_of, numbers_among
from synthlang.wording import plural

T = TypeVar("T")

CLIPPED = (
    "If an interval exceeds the range of possible scores (0 to 100, or −100 to 100 for Δ), the page shows it up to the "
    "limit. The files tables/*.csv have the exact bounds."
)
FAILED_TRAINING = Badge("not learned", "bad")
OF_ROW = ("cell", "task", "metric", "seed", "pretrain_seed", "pretrain", "adjust", FAILED)
Column = tuple[str, Sequence[Entry]]
"""Title and entries of a column of a table."""


@dataclass(frozen=True)
class Row:
    """Scores of a cell on a task with one fine-tuning seed.

    Attributes:
        cell: Name of the cell.
        labels: Axis → label of the cell, with seeds.
        task: Name of the task in the study.
        metric: Metric of the task.
        seed: Seed of fine-tuning, or None if it is not recorded.
        pretrain_seed: Seed of the pretraining, or None for a given model.
        pretrain: Fingerprint of the pretraining, or "".
        adjust: Fingerprint of the adjustment, or "".
        failed: The reason why the run is excluded, or "".
        values: Score → value, without scores that were not measured. Values are in percent, except for perplexity,
            movements and tokens per word.
    """

    cell: str
    labels: Mapping[str, str]
    task: str
    metric: str
    seed: int | None
    pretrain_seed: int | None
    pretrain: str
    adjust: str
    failed: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Condition:
    """Cells that differ only in seeds, on one task. Excluded runs form separate conditions.

    With several pretraining runs, an interval is over runs, since the fine-tuning seeds of one run are not independent.
    The value of a run is the mean over its fine-tuning seeds. With one run, an interval is over fine-tuning seeds and
    does not cover other pretrainings.

    Attributes:
        labels: Axis → label, without the axes of seeds.
        label: The labels of the axes that vary in the study, joined.
        task: Name of the task.
        rows: The scores of all cells and fine-tuning seeds.
    """

    labels: Mapping[str, str]
    label: str
    task: str
    rows: Sequence[Row]

    @property
    def first(self) -> Row:
        """The first row, for the values that all rows share."""
        return self.rows[0]

    @property
    def has_failed(self) -> bool:
        """True if the runs are excluded."""
        return bool(self.first.failed)

    @cached_property
    def clusters(self) -> list[list[Row]]:
        """Rows grouped by pretraining run. With one run or a given model, rows are grouped by cell (adjustment)."""
        runs = grouped(self.rows, lambda row: row.pretrain or row.cell)
        return list((runs if len(runs) > 1 else grouped(self.rows, lambda row: row.cell)).values())

    @property
    def runs(self) -> int:
        """The number of groups in ``clusters``: pretraining runs, or cells of one run or of a given model."""
        return len(self.clusters)

    @property
    def pretrainings(self) -> int:
        """The number of pretrainings behind the runs. A given model counts as one."""
        return len({row.pretrain for row in self.rows})

    @property
    def seeds(self) -> str:
        """Text with the numbers of models and seeds: ``1 model × 3 seeds`` or, if unequal, ``2 models, 5 seeds``.

        Cells on one pretraining that differ in other seeds are adjustments: ``2 models × 3 adjustments × 1 seed``. If
        a row has NaN, or lacks a score that another row has, the number of complete rows follows.
        """
        made = [Counter(row.adjust for row in cluster) for cluster in self.clusters]
        sizes = [size for of_run in made for size in of_run.values()]
        several = self.runs in {1, self.pretrainings}
        counts = [("model" if several else "adjustment", self.runs, self.runs), ("seed", sizes[0], len(self.rows))]
        if max(map(len, made)) > 1:
            counts.insert(1, ("adjustment", len(made[0]), sum(map(len, made))))
        alike = len(set(sizes)) == 1 == len(set(map(len, made)))
        told = (plural(each if alike else total, name) for name, each, total in counts)
        text = (" × " if alike else ", ").join(told)
        names = [name for name in SCORES if any(name in row.values for row in self.rows)]
        whole = sum(len(numbers_among(map(row.values.get, names))) == len(names) for row in self.rows)
        return text if whole == len(self.rows) else f"{text}, {whole} of {len(self.rows)} with every score"

    @cached_property
    def delta(self) -> Interval | None:
        """Interval of Δ = SUP − ZS, or None if no row has Δ."""
        return self.interval("delta")

    def values(self, column: str) -> list[float]:
        """Return the values of a score behind its interval: the means of runs, or the values of seeds for a single run.

        An alignment has one value for each run, and a perplexity has one value for each pretraining.
        """
        values, unit = over_models((row.pretrain or row.cell, row.cell, row.values.get(column)) for row in self.rows)
        of_runs = column.startswith("alignment") and unit == "fine-tuning seeds"
        of_pretrainings = column == PERPLEXITY and unit != "models"
        return [sum(values) / len(values)] if values and (of_runs or of_pretrainings) else values

    def interval(self, column: str) -> Interval | None:
        """Return the 95 % t interval of a score, or None if no row has a finite value of the score."""
        values = self.values(column)
        return interval_within(values, column) if values else None

    def mean(self, column: str) -> float | None:
        """Return the mean of a score over all rows, or None if no row has a finite value of the score."""
        return mean_of(row.values.get(column) for row in self.rows)


@dataclass(frozen=True)
class Material:
    """A study and its scores, from which the sections of a report are made.

    Attributes:
        study: The study.
        rows: All rows of scores.
        cells: A condition for each single cell on each task, without excluded runs.
        conditions: The conditions on each task, without excluded runs.
        failed: The conditions of excluded runs.
        layout: The order and the titles of the axes.
        budget: The number of figures that may still be drawn.
        claimed: Measures of probes that claims read, which are drawn first.
    """

    study: Study
    rows: Sequence[Row]
    cells: Sequence[Condition]
    conditions: Sequence[Condition]
    failed: Sequence[Condition]
    layout: Layout
    budget: FigureBudget
    claimed: Sequence[str] = ()

    @property
    def every(self) -> list[Condition]:
        """All conditions. Those of excluded runs come last."""
        return [*self.conditions, *self.failed]

    @property
    def tasks(self) -> dict[str, list[Condition]]:
        """Task → its conditions."""
        return grouped(self.conditions, lambda condition: condition.task)

    @property
    def by_settings(self) -> list[list[Condition]]:
        """All conditions, grouped by settings. A group has one condition for each task."""
        return list(grouped(self.every, lambda c: (c.has_failed, *sorted(c.labels.items()))).values())


def scores_of(study: Study, claimed: Sequence[str] = (), budget: FigureBudget | None = None) -> Material:
    """Return the scores of a study. Rows of a task that differ only in seeds form a condition.

    Args:
        study: The study.
        claimed: Measures of probes that claims read.
        budget: The number of figures that may be drawn (default: by the number of cells).
    """
    rows = _rows(study)
    settings = [settings_of(row.labels, row.cell) for row in rows]
    of_measures = (settings_of(labels_of(text), cell) for cell, text in distinct(study.measured, "cell", "labels"))
    planned = (settings_of(cell.labels, cell.name) for cell in study.cells)
    languages = axes_that_set(study.config, is_of_languages)
    layout = layout_of(study.axes, [*settings, *of_measures], study.name, languages, planned)
    of_cell = {row.cell: labels for row, labels in zip(rows, settings, strict=True)}

    def conditions(rows: Sequence[Row]) -> list[Condition]:
        found = grouped(rows, lambda row: (row.task, *sorted(of_cell[row.cell].items())))
        return [Condition(dict(of), layout.full_name(dict(of)), task, alike) for (task, *of), alike in found.items()]

    learned, failed = ([row for row in rows if bool(row.failed) is beyond] for beyond in (False, True))
    by_cell = grouped(learned, lambda row: (row.cell, row.task))
    cells = [Condition(of_cell[cell], cell, task, of) for (cell, task), of in by_cell.items()]
    budget = budget or FigureBudget(len(study.cells))
    return Material(study, rows, cells, conditions(learned), conditions(failed), layout, budget, claimed)


def _rows(study: Study) -> list[Row]:
    """Return the rows, ordered by cell, task and seed."""
    table = study.measured[is_score(study.measured)]
    values: dict[int, dict[str, float]] = defaultdict(dict)
    for row, measure, value in zip(*columns_of(table, ("row", "measure", "value")), strict=True):
        values[row][measure] = value
    cut = study.measured[study.measured["measure"] == TOKENS_PER_WORD]
    per_word = {cell: {TOKENS_PER_WORD: value} for cell, value in zip(*columns_of(cut, ("cell", "value")), strict=True)}
    lines = table.drop_duplicates("row")
    rows = [
        Row(
            labels=labels_of(labels),
            values=values[row] | per_word.get(rest[0], {}),
            **dict(zip(OF_ROW, rest, strict=True)),
        )
        for row, labels, *rest in zip(*columns_of(lines, ("row", "labels", *OF_ROW)), strict=True)
    ]
    place = {cell.name: i for i, cell in enumerate(study.cells)}
    tasks = {task: i for i, task in enumerate(dict.fromkeys(row.task for row in rows))}

    def order(row: Row) -> tuple[int, int, float]:
        return place.get(row.cell, len(place)), tasks[row.task], float("inf") if row.seed is None else row.seed

    return sorted(rows, key=order)


def conditions_of(table: pd.DataFrame, layout: Layout) -> pd.Series[str]:
    """Return the name of the condition of each row of a table."""
    pairs = distinct(table, "cell", "labels")
    names = {cell: layout.full_name(settings_of(labels_of(text), cell)) for cell, text in pairs}
    return table["cell"].astype(str).map(names)


def metric_name(conditions: Sequence[Condition]) -> str:
    """Return the metric of a task in words: ``token_accuracy`` becomes "token accuracy".

    Several metrics are joined by a slash. Without a metric, the result is "the score".
    """
    names = sorted({c.first.metric.replace("_", " ") for c in conditions if c.first.metric})
    return " / ".join(names) or "the score"


def delta_axis(conditions: Sequence[Condition]) -> str:
    """Return the label of an axis that shows Δ."""
    return f"Δ = SUP − ZS (points of {metric_name(conditions)})"


def axis_columns(
    layout: Layout, conditions: Sequence[Mapping[str, str]], axes: Iterable[str] | None = None
) -> list[Column]:
    """Return the labels of conditions as columns of a table, or a column of their names if there is no axis.

    Args:
        layout: The order and the titles of the axes.
        conditions: Axis → label of each condition.
        axes: The axes that have a column (default: all that vary).
    """
    found = {axis: [of.get(axis, "–") for of in conditions] for axis in (layout.axes if axes is None else axes)}
    columns: list[Column] = [(layout.titles[axis], labels) for axis, labels in found.items()]
    return columns or [("study", [layout.full_name(of) for of in conditions])]


def by_rows(columns: Sequence[Column]) -> tuple[list[str], list[list[Entry]]]:
    """Return the header and the rows of a table with these columns."""
    entries = (entries for _, entries in columns)
    return [title for title, _ in columns], [list(row) for row in zip(*entries, strict=True)]


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> dict[Any, list[T]]:
    """Group items by key. Groups and items stay in order of appearance."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def intervals_over_models(table: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], Interval]:
    """Return the 95 % t interval of each measure for each combination of ``keys``.

    The interval is over pretrainings. For a single pretraining it is over adjustments, and for a single model over
    fine-tuning seeds.

    Args:
        table: The measurements.
        keys: Names of columns.

    Returns:
        (values of ``keys``, measure) → the interval. A group without a finite value is left out.
    """
    lines = zip(*columns_of(table, (*keys, "measure", "pretrain", "cell", "value")), strict=True)
    found = grouped(lines, lambda line: line[:-3])
    values = {key: over_models(line[-3:] for line in of)[0] for key, of in found.items()}
    return {key: interval_within(known, key[-1]) for key, known in values.items() if known}
