"""Sections that compare Δ with the alignment of the models, and with their movement in fine-tuning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from probes.figures.drawing import colours, slug
from probes.figures.scatter import Point, delta_scatter
from probes.report.page import Block, Paragraph, Section
from probes.report.scores import Material, delta_axis, grouped
from probes.report.summary import correlations
from probes.results.labels import axes_that_set, is_of_tuning, numbers_of

SCATTERS = 4
ALIGNMENT = ("alignment", "Word-embedding alignment, all types (%)")
MOVEMENTS = {
    "moved_embeddings": ("movement of word embeddings", "Movement of word embeddings, mean ‖e′ − e‖ / ‖e‖"),
    "moved_layers": ("movement of the layers", "Movement of the layers, ‖W′ − W‖ / ‖W‖"),
}
"""Column of the results → the measure on the horizontal axis of its figures: its name, and the label of the axis."""
OF_MOVEMENT = (
    "The figures show how far fine-tuning on the source language moved the weights of the model without its head. For "
    "word embeddings this is the mean of ‖e′ − e‖ / ‖e‖ over the embeddings e that changed, or 0 if all are frozen. "
    "For the layers it is ‖W′ − W‖ / ‖W‖ of all their weights as one vector."
)


def alignment(material: Material) -> Section | None:
    """Return the section on Δ over the alignment, or None without scores.

    The section has figures by task, as far as the budget of figures allows, and a table of correlations. If no cell has
    both an alignment and a Δ, a note takes their place.
    """
    points = _points(material, "alignment_all")
    if not material.rows:
        return None
    if not points:
        return Section("Alignment and transfer", [Paragraph("No cell has both an alignment and a Δ.", "note")])
    blocks = _by_task(material, points, "alignment", ALIGNMENT)
    return Section("Alignment and transfer", [*blocks, *correlations({task: material.tasks[task] for task in points})])


def movements(material: Material) -> Section | None:
    """Return the section on Δ over the movement of the models in fine-tuning, with at most two figures for each task.

    Points are not grouped by an axis of numbers that sets the fine-tuning, since the position of a point already shows
    its effect.

    Returns:
        The section, or None if no axis that sets the fine-tuning changes a movement.
    """
    layout, tuning = material.layout, axes_that_set(material.study.config, is_of_tuning)
    axes = [axis for axis in layout.axes if axis in tuning or is_of_tuning(axis)]
    if not any(_differ(material, column, axes) for column in MOVEMENTS):
        return None
    numbers = [axis for axis in axes if numbers_of(layout.axes[axis]) is not None]
    blocks: list[Block] = [Paragraph(OF_MOVEMENT)]
    for column, across in MOVEMENTS.items():
        points = _points(material, column, *numbers)
        moved = {task: of for task, of in points.items() if any(point.x > 0 for point in of)}
        blocks += _by_task(material, moved, column.replace("_", "-"), across)
    return Section("How far fine-tuning moved the model", blocks)


def _differ(material: Material, column: str, axes: Collection[str]) -> bool:
    """Return whether a change of ``axes`` alone changes the mean of a column in some task."""
    groups = grouped(material.conditions, lambda c: (c.task, material.layout.without(c.labels, *axes))).values()
    return any(len({c.mean(column) for c in alike} - {None}) > 1 for alike in groups)


def _points(material: Material, column: str, *left_out: str) -> dict[str, list[Point]]:
    """Return the points of each task: a cell's value in the column and its Δ.

    Points are grouped by all axes except the main one and ``left_out``.
    """
    layout, points = material.layout, dict[str, list[Point]]()
    for c in material.cells:
        value = c.mean(column)
        if value is not None and c.delta is not None:
            group = layout.without(c.labels, *left_out, *filter(None, [layout.main]))
            points.setdefault(c.task, []).append(Point(value, c.delta, c.label, layout.name(c.labels), group))
    return points


def _by_task(
    material: Material, tasks: Mapping[str, Sequence[Point]], name: str, across: tuple[str, str]
) -> list[Block]:
    """Draw a figure for each task, as the budget allows, with a colour for every label of the main axis."""
    layout = material.layout
    main = layout.main
    labels = [] if main is None else [layout.text(main, {main: label}) for label in layout.axes[main]]
    palette = colours(labels or [layout.alone])
    draws = [
        partial(
            delta_scatter, f"{name}-{slug(task, i)}", task, points, palette, delta_axis(material.tasks[task]), across
        )
        for i, (task, points) in enumerate(tasks.items(), 1)
    ]
    return material.budget.draw(draws, SCATTERS)
