"""Section on dose–response: scores over an axis of numbers, such as the strength of a transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from probes.figures.drawing import COLOURS, Figure, slug
from probes.report.figures import Lines, curves
from probes.report.numbers import Entry, where_bounds
from probes.report.page import Block, Folded, Paragraph, Section, Table
from probes.report.scores import Condition, Material, delta_axis, grouped, metric_name
from probes.results.labels import numbers_of

NOTE = "Bands are 95 % t intervals over pretraining runs, or over fine-tuning seeds where there is one run."
ZS_AND_SUP = "Solid lines show ZS, and dashed lines show SUP."
TITLE = "Dose–response"
MISSING = "–"
FIGURES = 12
"""Largest number of figures of an axis."""

Doses = dict[str, list[tuple[float, Condition]]]
"""Labels of the other axes → points of the line with these labels, ordered by their numbers."""


def dose_responses(material: Material) -> Section | None:
    """Return the section with curves over each axis of several numbers.

    The section is None if there is no such axis, or if no task has scores at two or more of its numbers.
    """
    blocks, layout = list[Block](), material.layout
    known = {axis: numbers_of([label for label in of if label != MISSING]) for axis, of in layout.axes.items()}
    numeric = {axis: numbers for axis, numbers in known.items() if numbers and len(set(numbers.values())) > 1}
    for place, (axis, numbers) in enumerate(numeric.items(), 1):
        title = layout.titles[axis]
        tasks = {task: _doses(material, members, axis, numbers) for task, members in material.tasks.items()}
        tasks = {task: lines for task, lines in tasks.items() if lines}
        if not tasks:
            continue
        name = f"dose-{slug(title, place)}"
        draws = _draws(name, title, tasks, {number: label for label, number in numbers.items()})
        blocks += material.budget.draw(draws, FIGURES)
        if max(map(len, tasks.values())) > len(COLOURS):
            blocks.append(Paragraph(f"{title}: figures have the first {len(COLOURS)} lines.", "note"))
        header = [title, "Other settings", "Task", "Seeds", "ZS", "SUP", "Δ", "Alignment, all types"]
        body: list[list[Entry]] = [
            [c.labels[axis], line or "–", task, c.seeds, *map(c.interval, ("zs", "sup", "delta", "alignment_all"))]
            for task, lines in tasks.items()
            for line, points in lines.items()
            for _, c in points
        ]
        caption = f"Scores by {title} in percent: means{where_bounds(chain(*body), ' and 95 % t intervals')}."
        table = Table(caption, header, body, 4, name, 100)
        blocks.append(Folded(f"Numbers by {title}", [table.without_constant()]))
    return Section(TITLE, blocks) if blocks else None


def _doses(material: Material, conditions: Sequence[Condition], axis: str, numbers: Mapping[str, float]) -> Doses:
    """Return the lines that have points at two or more doses."""
    points = ((numbers[c.labels[axis]], c) for c in conditions if c.labels.get(axis) in numbers)
    lines = grouped(points, lambda point: material.layout.without(point[1].labels, axis))
    return {
        name: sorted(members, key=lambda point: point[0])
        for name, members in lines.items()
        if len({x for x, _ in members}) > 1
    }


def _draws(name: str, dose: str, tasks: Mapping[str, Doses], ticks: Mapping[float, str]) -> list[Callable[[], Figure]]:
    """Return functions that draw Δ of each task, the alignment, and ZS with SUP of each task."""
    return [
        *_of_tasks(name, dose, tasks, ticks, "delta"),
        *list(_of_tasks(name, dose, tasks, ticks, "alignment_all"))[:1],
        *_of_tasks(name, dose, tasks, ticks, "zs"),
    ]


def _of_tasks(
    name: str, dose: str, tasks: Mapping[str, Doses], ticks: Mapping[float, str], column: str
) -> Iterator[Callable[[], Figure]]:
    """Yield a function that draws the score ``column``, for each task that has it."""
    for number, (task, doses) in enumerate(tasks.items(), 1):
        conditions = [c for points in doses.values() for _, c in points]
        if all(c.interval(column) is None for c in conditions):
            continue
        of_task = f"{name}-{slug(task, number)}"
        file, what, label, note = {
            "delta": (f"{of_task}-delta", f"{task}: Δ", delta_axis(conditions), ""),
            "alignment_all": (f"{name}-alignment", "Alignment", "word-embedding alignment (%)", ""),
            "zs": (f"{of_task}-scores", f"{task}: ZS and SUP", f"{metric_name(conditions)} (%)", ZS_AND_SUP),
        }[column]
        dashed = _lines(doses, "sup", what) if column == "zs" else None
        lines, title = _lines(doses, column, what), f"{what} over {dose}"
        yield partial(curves, file, title, lines, (dose, label), note, NOTE, dashed=dashed, ticks=ticks)


def _lines(doses: Doses, column: str, alone: str) -> Lines:
    """Return the lines of a score. A line without labels has the name ``alone``."""
    return {
        line or alone: {x: interval for x, c in points if (interval := c.interval(column)) is not None}
        for line, points in doses.items()
    }
