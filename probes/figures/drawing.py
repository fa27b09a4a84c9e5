"""Drawings as SVG inside a page and as SVG and PNG files: colour-blind safe, and byte-identical for equal input.

The module uses matplotlib's object interface, so it needs no pyplot state and no display. All text and axes have one
colour, ``INK``. In a page, this colour becomes ``currentColor``, so that the figure follows the page into dark mode. A
figure in a file has a white background. Text is drawn as shapes, so it is the same on every machine. Only a label that
the font cannot write (see ``writable``) remains text, which the fonts of the reader display.
"""

from __future__ import annotations

import codecs
import io
import math
import re
import textwrap
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import findfont, get_font

from probes.statistics import Floats
from synthlang.files import atomic_file

INK = "#1f2328"
FONT = "DejaVu Sans"  # comes with matplotlib, so it is the same everywhere
# Okabe & Ito (2008), without yellow, which is too light on white; order by mutual contrast.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
STYLE: Any = {
    "svg.hashsalt": "synthlang",
    "svg.fonttype": "path",
    "font.family": FONT,
    "font.size": 9.5,
    "text.parse_math": False,  # a name may contain a dollar sign
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.unicode_minus": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "round",
}
WIDTH = 4.8  # inches; text of 9.5 points stays readable at the width of a phone
DPI = 250  # pixels per inch, so that a PNG is 1,200 pixels wide
NOTE_POINTS = 7.5
TITLE_WRAP = 11.5  # size in points of plain text that is as wide as bold text of 10 points
CHARACTERS = 18  # letters of a note in an inch of width
WORDS, NAME = 30, 6
"""Maximum number of words in an alternative text, and in a name in it."""


@dataclass(frozen=True)
class Figure:
    """A drawn figure.

    Attributes:
        name: The file name without its ending.
        svg: The SVG text, without background and caption.
        alt: The alternative text.
        caption: The caption, which may be "".
    """

    name: str
    svg: str
    alt: str
    caption: str


class _Renderer(RendererSVG):
    """SVG renderer that keeps text without glyphs as text, for the fonts of the reader, at an estimated width."""

    def draw_text(self, gc: Any, x: float, y: float, s: str, *args: Any, **options: Any) -> None:
        with mpl.rc_context({} if writable(s) else {"svg.fonttype": "none"}):
            super().draw_text(gc, x, y, s, *args, **options)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        if not writable(s):
            s = "".join(c if _has_glyph(c) else "—" if _is_wide(c) else "n" for c in s)
        measure: Callable[..., tuple[float, float, float]] = super().get_text_width_height_descent
        return measure(s, prop, ismath)


_RENDERER: Callable[..., Any] = _Renderer  # the base class of _Renderer has no types


class _Canvas(FigureCanvasSVG):
    def print_svg(self, filename: Any, **_options: Any) -> None:
        self.figure.dpi = 72
        width, height = self.figure.get_size_inches() * 72
        renderer: Any = _RENDERER(width, height, codecs.getwriter("utf-8")(filename), metadata={"Date": None})
        self.figure.draw(renderer)
        renderer.finalize()


@lru_cache(maxsize=10_000)
def writable(text: str) -> bool:
    """Return whether the font has each letter of a text, and no letter needs shaping or right-to-left layout.

    A text with a control character cannot be drawn. Shaping depends on how matplotlib was built. Without shaping,
    Arabic and Devanagari are drawn incorrectly.
    """
    return all(
        unicodedata.bidirectional(letter) not in ("R", "AL")
        and unicodedata.category(letter) not in ("Mc", "Me", "Cc", "Cs")
        and _has_glyph(letter)
        for letter in text
    )


@lru_cache(maxsize=100_000)
def _has_glyph(letter: str) -> bool:
    return get_font(findfont(FONT)).get_char_index(ord(letter)) != 0


def _is_wide(letter: str) -> bool:
    """Return whether a letter is about twice as wide as others, as in Chinese, Japanese and Korean."""
    return unicodedata.east_asian_width(letter) in ("W", "F")


@contextmanager
def _painted(
    width: float, height: float, paint: Callable[[Canvas], None], backend: Callable[[Canvas], Any], **options: Any
) -> Iterator[tuple[Canvas, Any]]:
    """Yield a canvas that ``paint`` has filled, and its backend. The size is in inches.

    Settings of the user's matplotlibrc are ignored, because they would change the bytes.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        canvas = Canvas(figsize=(width, height), layout="constrained", **options)
        writer = backend(canvas)
        paint(canvas)
        yield canvas, writer


def draw(width: float, height: float, paint: Callable[[Canvas], None]) -> str:
    """Return the SVG text of a canvas of ``width`` × ``height`` inches that ``paint`` fills."""
    with _painted(width, height, paint, _Canvas) as (canvas, writer):
        canvas.patch.set_visible(False)
        for axes in canvas.axes:
            axes.patch.set_visible(False)
        buffer = io.BytesIO()
        writer.print_svg(buffer)  # ``savefig`` would draw it twice
    text = buffer.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    return re.sub(r"\s*\n\s*", "\n", text)


def png(width: float, height: float, paint: Callable[[Canvas], None]) -> bytes:
    """Return the PNG of a canvas of ``width`` × ``height`` inches that ``paint`` fills.

    The picture has DPI pixels per inch, a white background and the style of the SVG figures, but no date or version.
    """
    with _painted(width, height, paint, FigureCanvasAgg, dpi=DPI) as (canvas, _):
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def inline_svg(figure: Figure) -> str:
    """Return the SVG for use in a page, with unique ids, the text colour of the page and an alternative text."""
    svg = figure.svg.replace("xlink:href=", "href=").replace(INK, "currentColor")
    svg = re.sub(r'\s(xmlns(:\w+)?)="[^"]*"', "", svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{figure.name}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(figure.alt, quote=True)}"', 1).rstrip()


def standalone_svg(figure: Figure) -> str:
    """Return the SVG for use as a file, on white, with the alternative text as title and the caption as description."""
    head, _, rest = figure.svg.partition(">")
    about = f"<title>{escape(figure.alt)}</title>"
    about += f"<desc>{escape(figure.caption)}</desc>" if figure.caption else ""
    ground = f'{about}<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{ground}{rest.rstrip()}\n'


def slug(text: str, number: int) -> str:
    """Return a file name of ``number`` and the ASCII letters and digits of ``text``, at most 60 characters long.

    Different numbers give different names.

    >>> slug("POS/<b>", 2)
    '2-pos-b'
    """
    return "-".join([str(number), *re.findall(r"[a-z0-9]+", text.lower())])[:60]


def shorten(text: str, length: int = 34) -> str:
    """Shorten text to ``length`` letters, so that it fits beside an axis. A wide letter counts twice.

    >>> shorten("a label", 5), shorten("日本語です", 8)
    ('a la…', '日本語…')
    """
    text = " ".join(text.split())
    ends = list(accumulate(1 + _is_wide(letter) for letter in text))
    return text if not ends or ends[-1] <= length else text[: bisect_right(ends, length - 1)] + "…"


def alternative(what: str, values: Iterable[tuple[str, float]], form: str = "{:.1f}") -> str:
    """Return an alternative text of at most WORDS words with the subject, the lowest value and the highest value.

    Args:
        what: The subject, which is shortened if necessary.
        values: Name and value of each point. A value that is NaN or infinite is left out.
        form: Format of a value, for ``str.format``.

    >>> alternative("Bars of Δ", [("MLM", 19.2), ("XLM", 7.1), ("DICT-MLM", 9.0)])
    'Bars of Δ: from 7.1 (XLM) to 19.2 (MLM).'
    """
    known = [(value, name) for name, value in values if math.isfinite(value)]
    ends = [f"{form.format(value)} ({_words(name, NAME)})" for value, name in (min(known), max(known))] if known else []
    told = f": from {ends[0]} to {ends[1]}" if len(set(ends)) > 1 else f": {ends[0]}" if ends else ""
    return f"{_words(what.rstrip('.'), WORDS - len(told.split()) + 1 if told else WORDS)}{told}."


def _words(text: str, most: int) -> str:
    """Return the first words of a text, followed by an ellipsis if there are more."""
    words = text.split()
    return text if len(words) <= most else " ".join(words[:most]) + "…"


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return a colour for each name in order of appearance. After the last of COLOURS, they start again."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(names))}


def markers(names: Sequence[str]) -> dict[str, str]:
    """Return a marker for each name in order of appearance. After the last of MARKERS, they start again."""
    return {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(dict.fromkeys(names))}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure before it is drawn.

    Attributes:
        name: The file name without its ending.
        title: The title.
        paint: The function that draws on a canvas.
        note: Text after the title in the caption.
        alt: The alternative text.
        height: Height in inches. The width is WIDTH.
    """

    name: str
    title: str
    paint: Callable[[Canvas], None]
    note: str
    alt: str
    height: float

    def figure(self) -> Figure:
        """Draw the figure for a page. Title and note become its caption."""
        svg = draw(WIDTH, self.height, self.paint)
        return Figure(self.name, svg, self.alt, f"{self.title}. {self.note}")

    def write(self, folder: Path) -> list[Path]:
        """Write ``name``.svg and ``name``.png atomically, and return both paths.

        Equal input gives equal bytes. Another version of matplotlib may change the bytes of a PNG, and of an SVG in
        which text is measured.

        Raises:
            DiskError: A file cannot be written.
        """
        lines = len(_wrapped(self.title, TITLE_WRAP)), len(_wrapped(self.note, NOTE_POINTS))
        height = self.height + 0.17 * lines[0] + 0.135 * lines[1] + 0.1
        svg = standalone_svg(Figure(self.name, draw(WIDTH, height, self._paint_all), self.alt, ""))
        paths = [folder / f"{self.name}.svg", folder / f"{self.name}.png"]
        for path, content in zip(paths, (svg.encode(), png(WIDTH, height, self._paint_all)), strict=True):
            with atomic_file(path) as handle:
                handle.write(content)
        return paths

    def _paint_all(self, canvas: Canvas) -> None:
        title = "\n".join(_wrapped(self.title, TITLE_WRAP))
        canvas.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        canvas.supxlabel("\n".join(_wrapped(self.note, NOTE_POINTS)), x=0.01, ha="left", fontsize=NOTE_POINTS)
        self.paint(canvas)


def _wrapped(text: str, points: float) -> list[str]:
    # letters of the note are narrower than letters of the title
    return textwrap.wrap(text, int(WIDTH * CHARACTERS * NOTE_POINTS / points))


def legend_above(axes: Axes, handles: Sequence[Artist] | None = None) -> None:
    """Put a legend in two columns between the title and the axes, where it covers no line.

    ``handles`` are the entries of the legend (default: everything on the axes that has a label).
    """
    handles = axes.get_legend_handles_labels()[0] if handles is None else handles
    place: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
    axes.legend(handles=list(handles), borderaxespad=0.2, fontsize=8.5, handletextpad=0.5, **place)


def grid(axes: Axes, axis: Literal["both", "x", "y"]) -> None:
    """Draw faint grid lines for the ticks of one axis or both, behind the data."""
    axes.grid(axis=axis, color=INK, alpha=0.12, linewidth=0.7)
    axes.set_axisbelow(True)


def place_labels(
    axes: Axes,
    labels: Sequence[tuple[str, tuple[float, float], str]],
    taken: Floats,
    gap: float,
    lines: Floats | None = None,
    *,
    most: int | None = None,
    **style: Any,
) -> list[tuple[float, float, float, float]]:
    """Place labels greedily, each on one of eight sides of its point, ``gap`` points away.

    A label must be inside the frame, and must cover neither an earlier label nor one of the boxes ``taken``. Among the
    possible sides, the one that covers the fewest points of ``lines`` is used, or the first of equal ones. A label
    without a possible side is left out. The layout of the canvas must be done before the call.

    Args:
        axes: The axes that the points are on.
        labels: Text, point (x, y in data coordinates) and colour of each label.
        taken: [n, 4] boxes as x0 y0 x1 y1 in pixels.
        gap: Distance of a label from its point, in points of 1/72 inch.
        lines: [m, 2] points of lines in pixels (default: none).
        most: Maximum number of labels to place (default: all).
        **style: Further keywords of matplotlib's ``annotate``.

    Returns:
        The boxes of the placed labels, as x0 y0 x1 y1 in pixels.
    """
    canvas, frame, lines = axes.get_figure(), np.array(axes.bbox.extents), np.empty((0, 2)) if lines is None else lines
    scale = float(canvas.dpi) / 72 if canvas is not None else 1.0
    sizes: dict[str, tuple[float, float]] = {}
    placed = list[tuple[float, float, float, float]]()
    for text, point, colour in labels:
        if text not in sizes:
            probe = axes.text(0, 0, text, **style)
            box = probe.get_window_extent()
            probe.remove()
            sizes[text] = box.width, box.height
        place = np.asarray(axes.transData.transform(point))
        boxes = place + _sides(*sizes[text], gap * scale)  # [8, 2, 2]
        low, high = boxes[:, 0], boxes[:, 1]
        apart = (low[:, None] >= taken[None, :, 2:]) | (high[:, None] <= taken[None, :, :2])
        covers = (~apart.any(2)).sum(1) + 3 * ((low < frame[:2]) | (high > frame[2:])).any(1)
        crossed = ((lines >= low[:, None]) & (lines <= high[:, None])).all(2).sum(1)
        best = int(np.lexsort((crossed, covers))[0])
        if covers[best]:
            continue
        placed.append(tuple(boxes[best].reshape(4).tolist()))
        taken = np.vstack([taken, boxes[best].reshape(4)])
        offset = (low[best] - place) / scale
        at: Any = {"textcoords": "offset points", "ha": "left", "va": "bottom", "in_layout": False}
        axes.annotate(text, point, tuple(offset), color=colour, **at, **style)
        if len(placed) == most:
            break
    return placed


def _sides(width: float, height: float, gap: float) -> Floats:
    """Return the boxes [8, 2, 2] for a label around the origin: four sides, then four corners."""
    near = 0.7 * gap
    x, y = (-gap - width, -width / 2, gap), (-gap - height, -height / 2, gap)
    left, below = -near - width, -near - height
    corners = [(x[2], y[1]), (x[0], y[1]), (x[1], y[2]), (x[1], y[0])]
    corners += [(near, near), (left, near), (near, below), (left, below)]
    low = np.array(corners)
    return np.stack([low, low + np.array([width, height])], axis=1)
