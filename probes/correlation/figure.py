"""A scatter for each group of rows, coloured by block, with the correlation above it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from probes.figures.drawing import INK, Figure, colours, draw, markers, shorten
from probes.statistics import Correlation

ACROSS = 3
MOST = 12
"""More panels than these nobody can read; the table has the rest."""
SYMBOLS = {"spearman": "ρ", "kendall": "τ", "pearson": "r"}


@dataclass(frozen=True)
class Panel:
    """The rows of one group: (x, y, block) each, and their correlation."""

    name: str
    points: tuple[tuple[float, float, str], ...]
    found: Correlation | None


def scatter(x: str, y: str, panels: Sequence[Panel], block: str) -> Figure:
    """The first MOST panels side by side; a legend names the blocks where there are several."""
    shown = panels[:MOST]
    blocks = [name for panel in shown for _, _, name in panel.points]
    palette, shapes = colours(blocks), markers(blocks)
    across = min(ACROSS, len(shown))
    down = math.ceil(len(shown) / across)

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(down, across, squeeze=False)
        for axes, panel in zip(grid.flat, shown, strict=False):
            _panel(axes, panel, palette, shapes)
        for axes in list(grid.flat)[len(shown) :]:
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
    said = "; ".join(f"{panel.name}: {_said(panel)}" for panel in shown)
    rest = f" The first {MOST} of {len(panels)} groups." if len(panels) > MOST else ""
    return Figure("correlation", svg, f"Scatter of {x} against {y}. {said}.{rest}", f"{y} against {x}.{rest}")


def _panel(axes: Axes, panel: Panel, palette: dict[str, str], shapes: dict[str, str]) -> None:
    for name, colour in palette.items():
        points = [(x, y) for x, y, block in panel.points if block == name]
        if points:
            xs, ys = zip(*points, strict=True)
            axes.plot(
                xs, ys, linestyle="", marker=shapes[name], markersize=5.5, color=colour, mec=INK, mew=0.4, alpha=0.85
            )
    axes.set_title(f"{shorten(panel.name, 40)}\n{_said(panel)}", fontsize=9)
    axes.grid(color=INK, alpha=0.12, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.margins(0.1)


def _said(panel: Panel) -> str:
    """The correlation in a line."""
    found = panel.found
    if found is None or found.r is None:
        return f"n = {len(panel.points)}" + (f", {found.reason}" if found is not None and found.reason else "")
    p = "" if found.p is None else f", p = {found.p:.3g}"
    return f"{SYMBOLS[found.kind]} = {found.r:+.2f}{p}, n = {found.n}"
