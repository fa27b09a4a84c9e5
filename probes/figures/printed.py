"""Our numbers beside those of a paper: bars with intervals, and a diamond for each number that the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from probes.figures.bars import under_headings
from probes.figures.drawing import INK, Figure, alternative, colours, draw, grid, shorten
from probes.statistics import Interval

PANEL, ALONE, NAMES = 1.3, 3.3, 1.35
"""Width in inches of one of several panels, of a single panel, and of the names at the left.

A row of panels is as wide as a phone, on which text of 9.5 points can be read.
"""
ACROSS = 3
"""Maximum number of panels side by side."""
ROW, HEADING = 0.215, 1.4
"""Height of a bar in inches, and height of a heading in bars."""
MOST = 60
"""Maximum number of bars in a panel. More bars would be taller than a page."""


@dataclass(frozen=True)
class Bar:
    """A bar with our number, and the number of the paper if it prints one.

    Attributes:
        panel: The panel, such as a task.
        group: Heading above the bars of a group, or "" for no heading.
        name: Name of the bar.
        ours: Our number with its interval.
        printed: The number of the paper, or None.
        values: Our number for each model or seed, if they are known.
    """

    panel: str
    group: str
    name: str
    ours: Interval
    printed: float | None = None
    values: Sequence[float] = ()


def bars_beside(
    file: str,
    title: str,
    bars: Sequence[Bar],
    note: str,
    *,
    most: int,
    palette: Mapping[str, str] | None = None,
    one_scale: bool = True,
    axis: str = "",
) -> Figure:
    """Draw our numbers as bars and the printed numbers as diamonds, in panels side by side with the same rows.

    The first ``most`` panels and the first MOST rows are drawn.

    Args:
        file: File name of the figure.
        title: Title of the figure.
        bars: All bars, at least one, with the panel and the group of each.
        note: Text after the title in the caption.
        most: Maximum number of panels.
        palette: Name of a bar → colour (default: by order of appearance). Figures with one palette have the same
            colours.
        one_scale: True to give all panels the same scale, if they have the same unit.
        axis: Label of the horizontal axis (default: none).
    """
    every = list(dict.fromkeys(bar.panel for bar in bars))
    panels = every[:most]
    bars = [bar for bar in bars if bar.panel in panels]
    shades = palette or colours([bar.name for bar in bars])
    rows = list(dict.fromkeys((bar.group, bar.name) for bar in bars))
    shown = rows[:MOST]
    groups = {group: [(name, (of, name)) for of, name in shown if of == group] for group, _ in shown}

    def paint(canvas: Canvas) -> None:
        grids = canvas.subplots(down, across, squeeze=False, sharex=one_scale)
        for number, axes in enumerate(grids.flat):
            first = grids.flat[number - number % across]
            if axes is first:
                places = {row: y for y, row in under_headings(axes, groups, lambda name, _: name, 22)}
            else:
                _without_rows(axes, first)
            axes.xaxis.set_major_locator(MaxNLocator(3 if across > 1 else 6))
            axes.set_visible(number < len(panels))
            if number < len(panels):
                axes.set_title(shorten(panels[number], 20 if across > 1 else 40))
                of = [bar for bar in bars if bar.panel == panels[number] and (bar.group, bar.name) in places]
                _paint(axes, [(places[bar.group, bar.name], bar) for bar in of], shades)
        if axis:
            canvas.supxlabel(axis, fontsize=9)
        canvas.legend(handles=_legend(bars), loc="outside upper left", ncols=3, fontsize=8.5)

    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    height = 0.5 + down * (0.6 + ROW * (len(shown) + HEADING * sum(map(bool, groups))))
    names = (", ".join(filter(None, (bar.panel, bar.group, bar.name))) for bar in bars)
    alt = alternative(f"Bars: {title}", zip(names, (bar.ours.mean for bar in bars), strict=True))
    drawing = draw(NAMES + (PANEL * across if across > 1 else ALONE), height, paint)
    return Figure(file, drawing, alt, _caption(title, note, most, len(every), len(rows)))


def _caption(title: str, note: str, most: int, panels: int, rows: int) -> str:
    """Return the caption of a figure that may show only some of ``panels`` tasks and ``rows`` conditions."""
    note += f" The first {most} of {panels} tasks." if panels > most else ""
    caption = f"{title.removesuffix('.')}. {note.strip()}".strip()
    return caption + (f" The first {MOST} of {rows:,} conditions." if rows > MOST else "")


def _without_rows(axes: Axes, first: Axes) -> None:
    """Give a panel the rows of the leftmost panel beside it, without their labels."""
    axes.set(ylim=first.get_ylim(), yticks=[])
    axes.spines["left"].set_visible(False)
    grid(axes, "x")


def _paint(axes: Axes, bars: Sequence[tuple[float, Bar]], palette: Mapping[str, str]) -> None:
    """Draw bars, intervals, seeds and diamonds. For speed, each of these kinds is one artist of matplotlib."""
    shades = [palette[bar.name] for _, bar in bars]
    axes.barh([y for y, _ in bars], [bar.ours.mean for _, bar in bars], height=0.66, color=shades, alpha=0.75)
    shown = [(y, bar.ours.shown) for y, bar in bars]
    lines = [(y, one.low, one.high) for y, one in shown if one.low is not None and one.high is not None]
    if lines:
        axes.hlines(*zip(*lines, strict=True), color=INK, linewidth=1.2)
    of_seeds = [(value, y + 0.2) for y, bar in bars for value in bar.values]
    of_paper = [(bar.printed, y) for y, bar in bars if bar.printed is not None]
    for points, style in ((of_seeds, SEED), (of_paper, DIAMOND)):
        if points:
            axes.plot(*zip(*points, strict=True), **style)
    axes.axvline(0, color=INK, linewidth=0.7)


SEED: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 3.2, "color": "white", "mec": INK, "mew": 0.7}
DIAMOND: dict[str, Any] = {**SEED, "marker": "D", "markersize": 5.0, "mew": 1.1, "zorder": 3, "clip_on": False}


def _legend(bars: Sequence[Bar]) -> list[Line2D]:
    handles = [Line2D([], [], color=INK, linewidth=1.2, label="ours, 95 % interval")]
    handles += [Line2D([], [], label="one seed", **SEED)] if any(bar.values for bar in bars) else []
    printed = any(bar.printed is not None for bar in bars)
    return handles + ([Line2D([], [], label="the paper", **DIAMOND)] if printed else [])
