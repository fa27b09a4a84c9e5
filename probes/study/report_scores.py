"""Means and intervals of a study: per cell, and per condition over its pretraining seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from probes.statistics import Interval, RankCorrelation, mean_interval, rank_correlation
from probes.study.report_data import Cell, ResultRow, Study

CORRELATION_KEY = 0
"""Key of the random permutations and resamples of the report's correlations."""

T = TypeVar("T")


@dataclass(frozen=True)
class CellScore:
    """One cell on one task: means over transfer seeds (percent points)."""

    cell: str
    source: str
    language: str
    objective: str
    task: str
    metric: str
    parent: Interval | None
    sup: Interval | None
    zs: Interval | None
    delta: Interval | None
    alignment_all: float | None
    alignment_dictionary: float | None
    alignment_held_out: float | None
    pretrain: str
    deltas: tuple[float, ...]
    """Δ of each transfer seed, the dots of the figure."""


@dataclass(frozen=True)
class Condition:
    """Cells that differ in seeds only, on one task.

    With several pretraining runs the intervals are over runs (each the mean of its transfer
    seeds); with one they are over transfer seeds and say nothing of another pretraining.
    """

    label: str
    source: str
    language: str
    objective: str
    task: str
    runs: int
    delta: Interval | None
    alignment: Interval | None


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> dict[Any, list[T]]:
    """Items by key, groups and items in order of appearance."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _interval(values: Iterable[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return mean_interval(known) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    interval = _interval(values)
    return None if interval is None else interval.mean


def in_study_order(study: Study) -> list[ResultRow]:
    """Rows in the order of the study's cells, then of tasks and seeds."""
    place = {cell.name: i for i, cell in enumerate(study.cells)}
    tasks = list(grouped(study.rows, lambda row: row.task))

    def order(row: ResultRow) -> tuple[int, int, float, str]:
        number = float(row.seed) if row.seed.isdigit() else float("inf")
        return place.get(row.cell, len(place)), tasks.index(row.task), number, row.seed

    return sorted(study.rows, key=order)


def cell_scores(rows: Sequence[ResultRow]) -> list[CellScore]:
    """One record per cell × task, in order of appearance."""
    return [_cell_score(group) for group in grouped(rows, lambda row: (row.cell, row.task)).values()]


def _cell_score(rows: list[ResultRow]) -> CellScore:
    first = rows[0]
    return CellScore(
        cell=first.cell,
        source=first.source,
        language=first.language,
        objective=first.objective,
        task=first.task,
        metric=first.metric,
        parent=_interval(row.parent for row in rows),
        sup=_interval(row.sup for row in rows),
        zs=_interval(row.zs for row in rows),
        delta=_interval(row.delta for row in rows),
        alignment_all=_mean(row.alignment_all for row in rows),
        alignment_dictionary=_mean(row.alignment_dictionary for row in rows),
        alignment_held_out=_mean(row.alignment_held_out for row in rows),
        pretrain=first.pretrain,
        deltas=tuple(row.delta for row in rows if row.delta is not None),
    )


def is_seed(key: str) -> bool:
    """Whether a dotted config key sets a seed: replicates differ in these only.

    >>> is_seed("pretrain.seed"), is_seed("objective.alpha")
    (True, False)
    """
    last = key.rsplit(".", 1)[-1]
    return last in ("seed", "seeds") or last.endswith("_seed")


def conditions(study: Study, scores: Sequence[CellScore]) -> list[Condition]:
    """Group the cells of each task that differ in nothing but seeds."""
    cells = {cell.name: cell for cell in study.cells}

    def settings(score: CellScore) -> dict[str, Any]:
        return _settings(cells.get(score.cell))

    def identity(score: CellScore) -> tuple[str, ...]:
        what = json.dumps(settings(score), sort_keys=True, default=str)
        return score.task, score.source, score.language, score.objective, what

    groups = grouped(scores, identity)
    result = []
    for (task, source, language, objective, _), members in groups.items():
        rivals = [group[0] for key, group in groups.items() if key[:4] == (task, source, language, objective)]
        label = objective
        if len(rivals) > 1:
            own, others = settings(members[0]), [settings(rival) for rival in rivals]
            varied = [key for key in own if any(other.get(key) != own[key] for other in others)]
            label += f" ({', '.join(f'{key}={own[key]}' for key in varied) or members[0].cell})"
        runs = list(grouped(members, lambda score: score.pretrain).values())
        result.append(_condition(label, members[0], runs))
    return result


def _settings(cell: Cell | None) -> dict[str, Any]:
    return {} if cell is None else {key: value for key, value in cell.overrides.items() if not is_seed(key)}


def _condition(label: str, first: CellScore, runs: list[list[CellScore]]) -> Condition:
    if len(runs) > 1:
        delta = _interval(_mean(value for score in run for value in score.deltas) for run in runs)
    else:
        delta = _interval(value for score in runs[0] for value in score.deltas)
    alignment = _interval(_mean(score.alignment_all for score in run) for run in runs)
    return Condition(label, first.source, first.language, first.objective, first.task, len(runs), delta, alignment)


def correlate(scores: Sequence[CellScore], which: str) -> RankCorrelation:
    """Spearman correlation of an alignment column with Δ over the cell means that have both."""
    pairs = [
        (getattr(score, which), score.delta.mean)
        for score in scores
        if score.delta is not None and getattr(score, which) is not None
    ]
    return rank_correlation([a for a, _ in pairs], [d for _, d in pairs], CORRELATION_KEY)
