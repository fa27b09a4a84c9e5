"""Limit on the number of figures of a report, and drawing of curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from probes.figures.drawing import COLOURS, Figure
from probes.figures.lines import Series, interval_series, lines_over
from probes.report.numbers import where_bounds
from probes.report.page import Block, Figures, Paragraph
from probes.statistics import Interval
from synthlang.wording import plural

FEW_CELLS = 200
FIGURES, FIGURES_OF_MANY = 40, 8
"""Largest number of figures of a report, and of a report with more than FEW_CELLS cells.

A report is thus written within seconds.
"""
Lines = Mapping[str, Mapping[float, Interval]]
"""Name of a line → place → interval, ordered by place."""


class FigureBudget:
    """Number of figures that a report may still draw.

    A figure takes about 0.1 seconds and 50 KB of the page.

    Args:
        cells: Number of cells of the study. A study with more than FEW_CELLS has a smaller budget.

    Attributes:
        many: True if the study has more than FEW_CELLS cells.
        left: Number of figures that may still be drawn.
    """

    def __init__(self, cells: int) -> None:
        self.many = cells > FEW_CELLS
        self.left = FIGURES_OF_MANY if self.many else FIGURES

    def take(self, wanted: int = 1, most: int = FIGURES) -> int:
        """Reserve figures for a section, and reduce the budget by their number.

        Args:
            wanted: Number of figures that could be drawn.
            most: Largest number for this section. A study with more than FEW_CELLS cells gets a quarter of this
                number, but at least 1.

        Returns:
            The number of figures that may be drawn.
        """
        given = min(wanted, self.left, max(1, most // 4) if self.many else most)
        self.left -= given
        return given

    def draw(self, wanted: Sequence[Callable[[], Figure]], most: int) -> list[Block]:
        """Draw as many figures as the budget allows, at most ``most``, and count the other figures in a note.

        Args:
            wanted: Functions that draw the figures.
            most: Largest number of these figures.

        Returns:
            A block with the figures and a block with the note, each only if it has content.
        """
        figures = [draw() for draw in wanted[: self.take(len(wanted), most)]]
        blocks: list[Block] = [Figures(figures)] if figures else []
        if left := len(wanted) - len(figures):
            told = f"{plural(left, 'further figure')} left out. The tables have the numbers."
            blocks.append(Paragraph(told, "note"))
        return blocks


def curves(
    name: str,
    title: str,
    lines: Lines,
    axes: tuple[str, str],
    note: str,
    bands: str,
    *,
    dashed: Lines | None = None,
    ticks: Mapping[float, str] | None = None,
    log_y: bool = False,
) -> Figure:
    """Draw the first lines with their intervals, one for each colour.

    Args:
        name: Name of the file.
        title: Title of the figure.
        lines: The lines by name. At least one of the lines that are drawn must have a point.
        axes: Labels of the horizontal and of the vertical axis.
        note: Text after the title in the caption.
        bands: Text about the bands, which is left out if no point has an interval.
        dashed: Lines that are drawn dashed in the colour of the line with the same name.
        ticks: Label of each place, if the places are numbers of an axis of the study.
        log_y: True for a vertical axis on a log scale, if all values are above 0.
    """
    points = chain.from_iterable(line.values() for line in (*lines.values(), *(dashed or {}).values()))
    note = " ".join(filter(None, (note, where_bounds(points, bands))))
    series = list[Series]()
    for line, first in list(lines.items())[: len(COLOURS)]:
        if first:
            series.append(interval_series(line, list(first), list(first.values())))
        if second := (dashed or {}).get(line):
            series.append(interval_series(line, list(second), list(second.values()), pair=bool(first)))
    return lines_over(name, title, series, axes, note, ticks, log_y=log_y).figure()
