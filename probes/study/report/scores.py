"""Means and intervals of a study: per cell, and per condition over its pretraining and fine-tuning seeds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from probes.report.numbers import plural
from probes.statistics import Interval
from probes.study.labels import Layout, axes_that_set, is_of_languages, layout, settings_of
from probes.study.report.data import Study
from probes.study.report.ranges import interval_within
from probes.study.report.rows import SCORES, ResultRow

T = TypeVar("T")


@dataclass(frozen=True)
class CellScore:
    """One cell on one task: its rows, one for each fine-tuning seed (percent points)."""

    rows: tuple[ResultRow, ...]

    @property
    def first(self) -> ResultRow:
        """For what all rows have in common."""
        return self.rows[0]

    @cached_property
    def delta(self) -> Interval | None:
        """Mean Δ with its interval over fine-tuning seeds."""
        return self.interval("delta")

    def interval(self, column: str) -> Interval | None:
        """Of a column over fine-tuning seeds; None where no row has it."""
        return interval_of((getattr(row, column) for row in self.rows), column)

    def mean(self, column: str) -> float | None:
        """As ``interval``, the mean alone."""
        return mean_of(getattr(row, column) for row in self.rows)


@dataclass(frozen=True)
class Condition:
    """Cells that differ in seeds only, on one task.

    With several pretraining runs the intervals are over runs (each the mean of its fine-tuning seeds): seeds of one run
    are a cluster. With one they are over fine-tuning seeds and say nothing of another pretraining.
    """

    labels: Mapping[str, str]
    """Axis → label, without the axes of seeds."""
    label: str
    """The labels that vary in the study, joined."""
    task: str
    clusters: tuple[tuple[ResultRow, ...], ...]

    @property
    def first(self) -> ResultRow:
        """For what all rows have in common."""
        return self.clusters[0][0]

    @property
    def runs(self) -> int:
        """How many pretraining runs (or, of a given model, cells that differ in other seeds)."""
        return len(self.clusters)

    @property
    def pretrainings(self) -> int:
        """How many pretrainings the runs rest on; a given model is one."""
        return len({cluster[0].pretrain for cluster in self.clusters})

    @property
    def seeds(self) -> str:
        """``1 model × 3 seeds`` of fine-tuning, ``2 models, 5 seeds`` where they have not equally many.

        Cells on one pretraining that differ in other seeds are adjustments: ``2 models × 3 adjustments × 1 seed``.
        Where a row lacks a score that others have, or it is no number, how many have all is told.
        """
        rows = [row for cluster in self.clusters for row in cluster]
        made = [Counter(row.adjust for row in cluster) for cluster in self.clusters]
        sizes = [size for of_run in made for size in of_run.values()]
        several = self.runs in {1, self.pretrainings}
        counts = [("model" if several else "adjustment", self.runs, self.runs), ("seed", sizes[0], len(rows))]
        if max(map(len, made)) > 1:
            counts.insert(1, ("adjustment", len(made[0]), sum(map(len, made))))
        alike = len(set(sizes)) == 1 == len(set(map(len, made)))
        told = (plural(each if alike else total, name) for name, each, total in counts)
        text = (" × " if alike else ", ").join(told)
        held = [name for name in SCORES if any(getattr(row, name) is not None for row in rows)]
        whole = sum(all(known([getattr(row, name)]) for name in held) for row in rows)
        return text if whole == len(rows) else f"{text}, {whole} of {len(rows)} with every score"

    @cached_property
    def delta(self) -> Interval | None:
        """Δ = SUP − ZS."""
        return self.interval("delta")

    @cached_property
    def alignment(self) -> Interval | None:
        """Alignment of all types: one number a run."""
        return self.interval("alignment_all")

    def values(self, column: str) -> list[float]:
        """What the interval is over: means of runs, or seeds of the one run; an alignment has one value a run."""
        if self.runs > 1 or column.startswith("alignment"):
            means = [mean_of(getattr(row, column) for row in cluster) for cluster in self.clusters]
            return [mean for mean in means if mean is not None]
        return known(getattr(row, column) for row in self.clusters[0])

    def interval(self, column: str) -> Interval | None:
        """95 % t interval of a column; None where no row has it."""
        return interval_of(self.values(column), column)


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> dict[Any, list[T]]:
    """Items by key, groups and items in order of appearance."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def known(values: Iterable[float | None]) -> list[float]:
    """The values that are numbers."""
    return [value for value in values if value is not None and math.isfinite(value)]


def interval_of(values: Iterable[float | None], column: str) -> Interval | None:
    """The 95 % t interval of those values of a column that are numbers; None without any."""
    held = known(values)
    return interval_within(held, column) if held else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of those that are numbers; None without any."""
    held = known(values)
    return sum(held) / len(held) if held else None


def in_study_order(study: Study) -> list[ResultRow]:
    """Rows in the order of the study's cells, then of tasks and seeds."""
    place = {cell.name: i for i, cell in enumerate(study.cells)}
    tasks = {task: i for i, task in enumerate(dict.fromkeys(row.task_name for row in study.rows))}

    def order(row: ResultRow) -> tuple[int, int, float, str]:
        number = float(row.seed) if row.seed.isdigit() else float("inf")
        return place.get(row.cell, len(place)), tasks[row.task_name], number, row.seed

    return sorted(study.rows, key=order)


def cell_scores(rows: Sequence[ResultRow]) -> list[CellScore]:
    """One record per cell × task, in order of appearance."""
    return [CellScore(tuple(group)) for group in grouped(rows, lambda row: (row.cell, row.task_name)).values()]


@dataclass(frozen=True)
class Scores:
    """Everything that was scored: rows in order, a record a cell and a record a condition, each for every task."""

    rows: tuple[ResultRow, ...]
    cells: tuple[CellScore, ...]
    conditions: tuple[Condition, ...]
    layout: Layout

    @property
    def tasks(self) -> dict[str, list[Condition]]:
        """Conditions by task."""
        return grouped(self.conditions, lambda condition: condition.task)


def scores_of(study: Study) -> Scores:
    """The rows of a study, and what they come to; rows of a task that differ in nothing but seeds are one condition."""
    rows = in_study_order(study)
    settings = [settings_of(row.labels, row.cell) for row in rows]
    of_measures = (settings_of(measure.labels, measure.cell) for measure in study.measures)
    planned = (settings_of(cell.labels, cell.name) for cell in study.cells)
    languages = axes_that_set(study.config, is_of_languages)
    set_out = layout(study.axes, [*settings, *of_measures], study.name, languages, planned)
    groups: dict[Any, list[ResultRow]] = {}
    held: dict[Any, dict[str, str]] = {}
    for row, own in zip(rows, settings, strict=True):
        key = row.task_name, *sorted(own.items())
        groups.setdefault(key, []).append(row)
        held[key] = own
    conditions = [
        Condition(held[key], set_out.whole(held[key]), members[0].task_name, _clusters(members))
        for key, members in groups.items()
    ]
    return Scores(tuple(rows), tuple(cell_scores(rows)), tuple(conditions), set_out)


def _clusters(rows: Sequence[ResultRow]) -> tuple[tuple[ResultRow, ...], ...]:
    """Rows by pretraining run; of one run or a given model, by cell (they differ in the seed of the adjustment)."""
    runs = grouped(rows, lambda row: row.pretrain or row.cell)
    if len(runs) == 1:
        runs = grouped(rows, lambda row: row.cell)
    return tuple(tuple(run) for run in runs.values())
