"""Section on dose–response: scores over an axis of numbers, such as the strength of a transform."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from probes.figures.drawing import COLOURS, Figure, slug
from probes.figures.lines import Series, dose_response, interval_series
from probes.report.numbers import Entry
from probes.report.page import Block, Folded, Paragraph, Section, Table
from probes.report.scores import Condition, Material, ScoreTable, delta_axis, figure_blocks, grouped, metric_name
from probes.results.labels import numbers_of

NOTE = "Bands are 95 % t intervals over pretraining runs, or over fine-tuning seeds where there is one run."
TITLE = "Dose–response"
MISSING = "–"
FIGURES = 12
"""Largest number of figures of an axis."""

Lines = dict[str, list[tuple[float, Condition]]]
"""The other labels of a line → its points, ordered by the number."""


def dose_responses(material: Material) -> Section | None:
    """Return curves over every axis that varies and has only numbers as labels; None where there is none."""
    scores, blocks = material.scores, list[Block]()
    known = {
        axis: numbers_of([label for label in labels if label != MISSING]) for axis, labels in scores.layout.axes.items()
    }
    numeric = {axis: numbers for axis, numbers in known.items() if numbers and len(set(numbers.values())) > 1}
    for place, (axis, numbers) in enumerate(numeric.items(), 1):
        title = scores.layout.titles[axis]
        tasks = {task: _lines(scores, members, axis, numbers) for task, members in scores.tasks.items()}
        tasks = {task: lines for task, lines in tasks.items() if lines}
        if not tasks:
            continue
        name = f"dose-{slug(title, place)}"
        wanted = _wanted(name, title, tasks, {number: label for label, number in numbers.items()})
        blocks += figure_blocks(wanted, material.budget, FIGURES, title)
        if max(map(len, tasks.values())) > len(COLOURS):
            blocks.append(Paragraph(f"{title}: figures have the first {len(COLOURS)} lines.", "note"))
        header = [title, "Other settings", "Task", "Seeds", "ZS", "SUP", "Δ", "Alignment, all types"]
        body: list[list[Entry]] = [
            [c.labels[axis], line or "–", task, c.seeds, *map(c.interval, ("zs", "sup", "delta", "alignment_all"))]
            for task, lines in tasks.items()
            for line, points in lines.items()
            for _, c in points
        ]
        table = Table(f"Scores by {title} in percent: means and 95 % t intervals.", header, body, 4, name, 100)
        blocks.append(Folded(f"Numbers by {title}", [table.without_constant(("Δ",))]))
    return Section(TITLE, blocks) if blocks else None


def _lines(scores: ScoreTable, conditions: Sequence[Condition], axis: str, numbers: dict[str, float]) -> Lines:
    """Return the lines that have points at several numbers."""
    points = ((numbers[c.labels[axis]], c) for c in conditions if c.labels.get(axis) in numbers)
    lines = grouped(points, lambda point: scores.layout.without(point[1].labels, axis))
    return {
        name: sorted(members, key=lambda point: point[0])
        for name, members in lines.items()
        if len({x for x, _ in members}) > 1
    }


def _wanted(name: str, title: str, tasks: dict[str, Lines], written: Mapping[float, str]) -> list[Callable[[], Figure]]:
    """Return functions that draw Δ of each task, the alignment (the same for all tasks), and ZS with SUP."""
    figure = partial(_figure, dose=title, written=written)
    gaps: list[Callable[[], Figure]] = []
    scores: list[Callable[[], Figure]] = []
    aligned: list[Callable[[], Figure]] = []
    for number, (task, lines) in enumerate(tasks.items(), 1):
        conditions, of_task = [c for points in lines.values() for _, c in points], f"{name}-{slug(task, number)}"
        known = {column for column in ("delta", "zs", "alignment_all") if any(c.interval(column) for c in conditions)}
        if "delta" in known:
            gaps.append(partial(figure, f"{of_task}-delta", f"{task}: Δ", lines, ("delta",), delta_axis(conditions)))
        if "zs" in known:
            what, label = f"{task}: ZS and SUP", f"{metric_name(conditions)} (%)"
            note = "Solid lines are ZS, dashed lines SUP. "
            scores.append(partial(figure, f"{of_task}-scores", what, lines, ("zs", "sup"), label, note))
        if "alignment_all" in known and not aligned:
            label = "word-embedding alignment (%)"
            aligned.append(partial(figure, f"{name}-alignment", "Alignment", lines, ("alignment_all",), label))
    return [*gaps, *aligned, *scores]


def _figure(
    name: str,
    what: str,
    lines: Lines,
    columns: Sequence[str],
    label: str,
    note: str = "",
    *,
    dose: str,
    written: Mapping[float, str],
) -> Figure:
    series: list[Series] = []
    for line, points in list(lines.items())[: len(COLOURS)]:
        for column in columns:
            known = [(x, interval) for x, c in points if (interval := c.interval(column)) is not None]
            if known:
                xs, intervals = zip(*known, strict=True)
                pair = column != columns[0] and bool(series) and series[-1].name == (line or what)
                series.append(interval_series(line or what, xs, intervals, pair=pair))
    return dose_response(name, f"{what} over {dose}", series, dose, label, note + NOTE, written).figure()
