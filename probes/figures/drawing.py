"""A figure that stands for itself: title, picture, and a note on how to read it, as SVG and as PNG."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from probes.report.figure import STYLE, Figure, draw, standalone_svg
from synthlang.files import atomic_file, safe_name

WIDTH = 4.8  # inches: text of 9.5 points is still read where the picture is as wide as a phone
DPI = 250  # so a PNG is 1,200 pixels wide
NOTE_POINTS = 7.5
TITLE_WRAP = 11.5  # a bold line of 10 points is as wide as a plain one of this
CHARACTERS = 18  # of a note in an inch of width


@dataclass(frozen=True, eq=False)
class Drawing:
    """What to draw: ``paint`` fills a canvas of ``height`` inches; ``alt`` says in words what it shows."""

    name: str
    title: str
    paint: Callable[[Canvas], None]
    note: str
    alt: str
    height: float = 3.4
    width: float = WIDTH

    def __post_init__(self) -> None:
        safe_name(self.name, "name of a figure")

    def figure(self) -> Figure:
        """For a page, where title and note stand beside the picture as its caption."""
        svg = draw(self.width, self.height, self.paint)
        return Figure(self.name, svg, self.alt, f"{self.title}. {self.note}")

    def write(self, folder: Path) -> list[Path]:
        """Write ``name``.svg and ``name``.png, each complete or not at all; equal input gives equal bytes.

        Bytes of the PNG, and of the SVG where text is measured, may differ between versions of matplotlib.
        """
        height = self.height + self._extra()
        svg = standalone_svg(Figure(self.name, draw(self.width, height, self._paint_all), self.alt, ""))
        paths = [folder / f"{self.name}.svg", folder / f"{self.name}.png"]
        for path, content in zip(paths, (svg.encode(), png(self.width, height, self._paint_all)), strict=True):
            with atomic_file(path) as handle:
                handle.write(content)
        return paths

    def _lines(self, text: str, points: float) -> list[str]:
        # the note in points that are narrower than those of the title
        return textwrap.wrap(text, int(self.width * CHARACTERS * NOTE_POINTS / points))

    def _extra(self) -> float:
        """Inches of title and note."""
        return 0.17 * len(self._lines(self.title, TITLE_WRAP)) + 0.135 * len(self._lines(self.note, NOTE_POINTS)) + 0.1

    def _paint_all(self, canvas: Canvas) -> None:
        canvas.suptitle(
            "\n".join(self._lines(self.title, TITLE_WRAP)), x=0.01, ha="left", fontsize=10, fontweight="bold"
        )
        note = "\n".join(self._lines(self.note, NOTE_POINTS))
        canvas.supxlabel(note, x=0.01, ha="left", fontsize=NOTE_POINTS)
        self.paint(canvas)


def legend_above(axes: Axes, handles: Sequence[Artist] | None = None) -> None:
    """A legend over the axes, in two columns, where no line runs and below the title."""
    handles = axes.get_legend_handles_labels()[0] if handles is None else handles
    place: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
    axes.legend(handles=list(handles), borderaxespad=0.2, fontsize=8.5, handletextpad=0.5, **place)


def png(width: float, height: float, paint: Callable[[Canvas], None]) -> bytes:
    """PNG of a canvas in inches, white, in the style of the SVG figures, without a date or version."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        canvas = Canvas(figsize=(width, height), layout="constrained", dpi=DPI)
        FigureCanvasAgg(canvas)
        paint(canvas)
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()
