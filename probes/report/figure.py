"""Figures of a study as SVG text: restrained, colour-blind safe, byte-identical for equal input.

Drawn with matplotlib's object interface (no pyplot state, no display). One ink colour stands
for all text and axes: inline it becomes ``currentColor``, so the figure follows the page
into dark mode; a figure of its own gets a white ground.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

INK = "#1f2328"
# Okabe & Ito (2008), without yellow, which is too light on white; order by mutual contrast.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
STYLE: Any = {
    "svg.hashsalt": "synthlang",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.parse_math": False,  # a name may hold a dollar sign
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


@dataclass(frozen=True)
class Figure:
    """A drawn figure: ``name`` is its file name, ``alt`` says in words what it shows."""

    name: str
    svg: str
    alt: str
    caption: str


def draw(width: float, height: float, paint: Callable[[Canvas], None]) -> str:
    """SVG text of a canvas of ``width`` × ``height`` inches that ``paint`` fills.

    Settings of the user's matplotlibrc are left out: they would change the bytes.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        canvas = Canvas(figsize=(width, height), layout="constrained")
        canvas.patch.set_visible(False)
        FigureCanvasSVG(canvas)
        paint(canvas)
        for axes in canvas.axes:
            axes.patch.set_visible(False)
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    return re.sub(r"\s*\n\s*", "\n", text)


def inline_svg(figure: Figure) -> str:
    """For use inside a page: ids of its own, the page's ink, no namespace, a text alternative."""
    svg = figure.svg.replace("xlink:href=", "href=").replace(INK, "currentColor")
    svg = re.sub(r'\s(xmlns(:\w+)?)="[^"]*"', "", svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{figure.name}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(figure.alt, quote=True)}"', 1).rstrip()


def standalone_svg(figure: Figure) -> str:
    """For use as a file: white ground and a title."""
    head, _, rest = figure.svg.partition(">")
    ground = f'<title>{escape(figure.alt)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{ground}{rest.rstrip()}\n'


def slug(text: str, number: int) -> str:
    """A file name that is safe and unique within its kind.

    >>> slug("POS/<b>", 2)
    '2-pos-b'
    """
    return "-".join([str(number), *re.findall(r"[a-z0-9]+", text.lower())])[:60]


def shorten(text: str, length: int = 34) -> str:
    """Text that fits beside an axis."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name in order of appearance, the same in every figure of a report."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(names))}


def markers(names: Sequence[str]) -> dict[str, str]:
    """A marker for each name in order of appearance."""
    return {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(dict.fromkeys(names))}
