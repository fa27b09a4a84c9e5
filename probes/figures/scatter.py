"""Scatter plots of Δ against a measure of the models, and of any two columns of results in groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from probes.figures.drawing import (
    INK,
    MARKERS,
    WIDTH,
    Figure,
    alternative,
    colours,
    draw,
    grid,
    markers,
    place_labels,
    shorten,
)
from probes.statistics import Correlation, Interval

LABELLED = 24
"""Maximum number of conditions with labels. With more conditions, hardly any label has room."""
SINGLE = 16
"""Number of points above which markers are smaller."""
INTERVALS = 100
"""Number of points above which intervals are not drawn, because they would overlap."""
NAMES = 7
"""Maximum number of names in a legend, which is the number of colours."""
ACROSS = 3
MOST = 12
"""Maximum number of panels. The table has all groups."""
SYMBOLS = {"spearman": "ρ", "kendall": "τ", "pearson": "r"}


@dataclass(frozen=True)
class Point:
    """A cell of a study.

    Attributes:
        x: The measure on the horizontal axis.
        delta: Δ with its interval.
        cell: The name of the cell.
        name: The name of its condition, which has a colour.
        group: The group of its condition, which has a marker.
    """

    x: float
    delta: Interval
    cell: str
    name: str
    group: str


def delta_scatter(
    file: str, task: str, points: Sequence[Point], palette: Mapping[str, str], axis: str, across: tuple[str, str]
) -> Figure:
    """Draw a point for each cell, with the measure ``across`` on the horizontal axis and mean Δ on the vertical axis.

    Args:
        file: Name of the file.
        task: Name of the task, for the caption.
        points: The points, at least one.
        palette: Name of a condition → its colour.
        axis: Label of the vertical axis.
        across: The measure on the horizontal axis: its name in the alternative text, and the label of the axis.
    """
    groups = list(dict.fromkeys(point.group for point in points))
    shapes = markers(groups if len(groups) <= len(MARKERS) else ["" for _ in groups])
    conditions = list(dict.fromkeys((point.name, point.group) for point in points))
    few = len(points) <= SINGLE

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axhline(0, color=INK, linewidth=0.7, alpha=0.4)
        for name, group in conditions:
            members = [point for point in points if (point.name, point.group) == (name, group)]
            x, y = [point.x for point in members], [point.delta.mean for point in members]
            drawn = axes.plot(x, y, linestyle="", marker=shapes.get(group, "o"), color=palette[name], zorder=3)[0]
            drawn.set(markersize=7 if few else 5, markeredgecolor=INK, markeredgewidth=0.5)
        if len(points) <= INTERVALS:
            _intervals(axes, points, palette)
        grid(axes, "both")
        axes.margins(0.12)
        axes.set_xlabel(across[1])
        axes.set_ylabel(axis)
        _legend(canvas, {point.name: palette[point.name] for point in points}, shapes if len(shapes) > 1 else {})
        if len(conditions) <= LABELLED:
            _label(canvas, axes, points, conditions)

    svg = draw(WIDTH, 3.9, paint)
    alt = alternative(f"Scatter: Δ on {task} against {across[0]}", ((p.cell, p.delta.mean) for p in points))
    caption = f"{task}: each point is a model (cell)."
    has_lines = len(points) <= INTERVALS and any(point.delta.low is not None for point in points)
    caption += " Lines are 95 % t intervals of Δ over fine-tuning seeds." if has_lines else ""
    return Figure(file, svg, alt, caption)


def _intervals(axes: Axes, points: Sequence[Point], palette: Mapping[str, str]) -> None:
    shown = [(point.x, point.delta.shown, palette[point.name]) for point in points]
    known = [(x, d.low, d.high, colour) for x, d, colour in shown if d.low is not None and d.high is not None]
    if known:
        x, low, high, shades = zip(*known, strict=True)
        axes.vlines(x, low, high, colors=list(shades), linewidth=1, alpha=0.6)  # a tuple of two is (colour, alpha)


def _legend(canvas: Canvas, palette: Mapping[str, str], shapes: Mapping[str, str]) -> None:
    handles = [
        Line2D([], [], linestyle="", marker="o", color=c, label=shorten(o)) for o, c in list(palette.items())[:NAMES]
    ]
    handles += [
        Line2D([], [], linestyle="", marker=m, color="none", markeredgecolor=INK, label=shorten(group))
        for group, m in shapes.items()
    ]
    canvas.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=8.5, handletextpad=0.3)


def _label(canvas: Canvas, axes: Axes, points: Sequence[Point], conditions: Sequence[tuple[str, str]]) -> None:
    """Label each condition once, beside one of its points with room for the label.

    If no point has room, the colour and the marker in the legend identify the condition.
    """
    canvas.draw_without_rendering()
    taken = []
    for point in points:
        delta = point.delta.shown
        bounds = [delta.mean if bound is None else bound for bound in (delta.low, delta.high)]
        (x, y), (_, low), (_, high) = axes.transData.transform([(point.x, value) for value in (delta.mean, *bounds)])
        taken += [(x - 5, y - 5, x + 5, y + 5), (x - 1, low, x + 1, high)]
    for name, group in conditions:
        text = shorten(", ".join(filter(None, (name, group))), 26)
        places = [(p.x, p.delta.mean) for p in points if (p.name, p.group) == (name, group)]
        taken += place_labels(axes, [(text, place, INK) for place in places], np.array(taken), 5.0, most=1, fontsize=8)


@dataclass(frozen=True)
class Panel:
    """The rows of one group and their correlation.

    Attributes:
        name: Name of the group.
        points: (x, y, name of the block) of each row.
        found: The correlation of x and y, or None if none was computed.
    """

    name: str
    points: tuple[tuple[float, float, str], ...]
    found: Correlation | None


def scatter(x: str, y: str, panels: Sequence[Panel], block: str) -> Figure:
    """Draw one column of results against another, for the first MOST groups side by side.

    Args:
        x: Name of the column on the horizontal axis.
        y: Name of the column on the vertical axis.
        panels: The groups, at least one.
        block: Title of the legend, which lists the blocks if there are several.
    """
    shown = panels[:MOST]
    blocks = [name for panel in shown for _, _, name in panel.points]
    palette, shapes = colours(blocks), markers(blocks)
    across = min(ACROSS, len(shown))
    down = math.ceil(len(shown) / across)

    def paint(canvas: Canvas) -> None:
        places = canvas.subplots(down, across, squeeze=False)
        for axes, panel in zip(places.flat, shown, strict=False):
            _panel(axes, panel, palette, shapes)
        for axes in list(places.flat)[len(shown) :]:
            axes.set_visible(False)
        canvas.supxlabel(x.replace("_", " "), fontsize=9.5)
        canvas.supylabel(y.replace("_", " "), fontsize=9.5)
        if len(palette) > 1:
            handles = [
                Line2D([], [], linestyle="", marker=shapes[name], color=colour, label=shorten(name))
                for name, colour in palette.items()
            ]
            canvas.legend(handles=handles, title=block, loc="outside upper left", ncols=3, fontsize=8.5)

    svg = draw(1.0 + 3.1 * across, 0.9 + 2.7 * down, paint)
    known = [(panel.name, panel.found.r) for panel in shown if panel.found is not None and panel.found.r is not None]
    alt = alternative(f"Scatter of {y} against {x}; correlation", known, "{:.2f}")
    rest = f" The first {MOST} of {len(panels)} groups." if len(panels) > MOST else ""
    return Figure("correlation", svg, alt, f"{y} against {x}.{rest}")


def _panel(axes: Axes, panel: Panel, palette: dict[str, str], shapes: dict[str, str]) -> None:
    for name, colour in palette.items():
        points = [(x, y) for x, y, block in panel.points if block == name]
        style: Any = {"linestyle": "", "markersize": 5.5, "mec": INK, "mew": 0.4, "alpha": 0.85}
        if points:
            axes.plot(*zip(*points, strict=True), marker=shapes[name], color=colour, **style)
    axes.set_title(f"{shorten(panel.name, 40)}\n{_said(panel)}", fontsize=9)
    grid(axes, "both")
    axes.margins(0.1)


def _said(panel: Panel) -> str:
    """Describe the correlation of a panel in one line."""
    found = panel.found
    if found is None or found.r is None:
        return f"n = {len(panel.points)}" + (f", {found.reason}" if found is not None and found.reason else "")
    p = "" if found.p is None else f", p = {found.p:.3g}"
    return f"{SYMBOLS[found.kind]} = {found.r:+.2f}{p}, n = {found.n}"
