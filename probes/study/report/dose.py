"""Dose–response: scores over the numbers of an axis (the strength of a transform, the share of a dictionary)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from probes.figures.drawing import COLOURS, Figure, slug
from probes.figures.lines import Series, dose_response, interval_series
from probes.report.numbers import plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.study.labels import numbers_of
from probes.study.report.data import Budget
from probes.study.report.scores import Condition, Scores, delta_axis, grouped, metric_name

NOTE = "Bands: 95 % t intervals over pretraining runs, or over fine-tuning seeds where there is one run."
MISSING = "–"
FIGURES = 12
"""Most figures of one axis."""

Lines = dict[str, list[tuple[float, Condition]]]
"""The other labels of a line → its points in order of the number."""


def numeric_axes(scores: Scores) -> dict[str, dict[str, float]]:
    """Axis → label → number, of the axes that vary and whose labels are all numbers."""
    found = {}
    for axis, labels in scores.layout.axes.items():
        numbers = numbers_of([label for label in labels if label != MISSING])
        if numbers is not None and len(set(numbers.values())) > 1:
            found[axis] = numbers
    return found


def dose_responses(scores: Scores, budget: Budget) -> Section | None:
    """Curves of every numeric axis and task, and their numbers; None where no axis has numbers."""
    blocks: list[Block] = []
    for place, (axis, numbers) in enumerate(numeric_axes(scores).items(), 1):
        title = scores.layout.titles[axis]
        tasks = {task: _lines(scores, members, axis, numbers) for task, members in scores.tasks.items()}
        tasks = {task: lines for task, lines in tasks.items() if lines}
        if not tasks:
            continue
        wanted = _wanted(title, tasks, place, {number: label for label, number in numbers.items()})
        given = budget.take(len(wanted), FIGURES)
        if given:
            blocks.append(Figures([draw() for draw in wanted[:given]]))
        if given < len(wanted):
            left = plural(len(wanted) - given, "further figure")
            blocks.append(Paragraph(f"{title}: {left} left out; the table has the numbers.", "note"))
        if max(map(len, tasks.values())) > len(COLOURS):
            blocks.append(Paragraph(f"{title}: figures have the first {len(COLOURS)} lines.", "note"))
        blocks.append(Folded(f"Numbers by {title}", [_table(title, place, tasks, axis)]))
    return Section("Dose–response", blocks) if blocks else None


def _lines(scores: Scores, conditions: Sequence[Condition], axis: str, numbers: dict[str, float]) -> Lines:
    """The lines that have points at several numbers."""
    held = grouped((c for c in conditions if c.labels.get(axis) in numbers),
                   lambda c: scores.layout.without(c.labels, axis))  # fmt: skip
    lines = {
        name: sorted(((numbers[c.labels[axis]], c) for c in members), key=lambda point: point[0])
        for name, members in held.items()
    }
    return {name: points for name, points in lines.items() if len({x for x, _ in points}) > 1}


def _wanted(
    title: str, tasks: dict[str, Lines], place: int, written: Mapping[float, str]
) -> list[Callable[[], Figure]]:
    """How to draw Δ of each task, the alignment (the same for all), and ZS with SUP of each task."""
    figure = partial(_figure, dose=title, written=written)
    name = f"dose-{slug(title, place)}"
    gaps: list[Callable[[], Figure]] = []
    scores: list[Callable[[], Figure]] = []
    aligned: list[Callable[[], Figure]] = []
    for number, (task, lines) in enumerate(tasks.items(), 1):
        known, of_task = [c for points in lines.values() for _, c in points], f"{name}-{slug(task, number)}"
        if _known(lines, "delta"):
            gaps.append(partial(figure, f"{of_task}-delta", f"{task}: Δ", lines, ("delta",), delta_axis(known)))
        if _known(lines, "zs"):
            what, label = f"{task}: ZS and SUP", f"{metric_name(known)} (%)"
            note = "Solid: ZS; dashed: SUP. "
            scores.append(partial(figure, f"{of_task}-scores", what, lines, ("zs", "sup"), label, note))
        if not aligned and _known(lines, "alignment_all"):
            label = "word-embedding alignment (%)"
            aligned.append(partial(figure, f"{name}-alignment", "Alignment", lines, ("alignment_all",), label))
    return [*gaps, *aligned, *scores]


def _known(lines: Lines, column: str) -> bool:
    return any(c.interval(column) is not None for points in lines.values() for _, c in points)


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


def _table(title: str, place: int, tasks: dict[str, Lines], axis: str) -> Table:
    header = [title, "Other settings", "Task", "Seeds", "ZS", "SUP", "Δ", "Alignment, all types"]
    columns = ("zs", "sup", "delta", "alignment_all")
    body = [
        [c.labels[axis], name or "–", task, c.seeds, *(c.interval(column) for column in columns)]
        for task, lines in tasks.items()
        for name, points in lines.items()
        for _, c in points
    ]
    caption = f"Scores by {title}. Means and 95 % t intervals, percent."
    return Table(caption, header, body, 4, f"dose-{slug(title, place)}", 100).without_constant(("Δ",))
