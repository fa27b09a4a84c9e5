"""How a LaTeX table is set so that it fits a page: upright or across it, in what size, in how many parts.

Widths are estimated for Computer Modern, the letters a little too wide rather than too narrow, and compared with the
page of ``article`` with its usual margins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from probes.report.blocks import LONG

UPRIGHT, ACROSS = 340.0, 540.0
"""Width of a line in points, upright and across the page."""
HEIGHT = 480.0
"""Of a table with its caption that does not go on over the page."""
GAP, LINE = 12.0, 12.5
"""Between two columns, and from line to line, in points."""
WIDE_LETTERS = frozenset("mwMW%@−→←↔×≥≤±—…")
SIZES = (("", 1.0), (r"\small", 0.9), (r"\footnotesize", 0.8))
SMALLEST = (r"\scriptsize", 0.72)


BREAKS = re.compile(r"(?<=[.,/=:;+-])(?=[^\s.,/=:;+-])|(?<=[0-9a-f]{8})(?=[0-9a-f]{8})")
"""Signs in a long word, and the middle of a fingerprint."""


@dataclass(frozen=True)
class Part:
    """Columns of a table that fit beside one another; ``widths`` of those whose text is wrapped, in points."""

    columns: tuple[int, ...]
    widths: tuple[float | None, ...]
    size: str
    across: bool
    long: bool
    """Whether it may be taller than a page."""


def width_of(text: str) -> float:
    """Points of a line of text of ten points."""
    return sum(8.5 if c in WIDE_LETTERS else 7.4 if c.isupper() or ord(c) > 0x2E7F else 5.1 for c in text)


def parts_of(widths: Sequence[Sequence[float]], texts: int, caption: str) -> tuple[Part, ...]:
    """The parts of a table whose cells, the header first, are so wide [rows][columns]; the first ``texts`` are texts.

    A column of texts is at most as wide as LONG letters, and wrapped if it has more. What does not fit even across a
    page in small letters is cut into parts, each with the first columns again: what a row is of.
    """
    most = [max(row[i] for row in widths) for i in range(len(widths[0]))]
    wrap = [i < texts and width > width_of("n" * LONG) for i, width in enumerate(most)]
    natural = [width_of("n" * LONG) if wrapped else width for width, wrapped in zip(most, wrap, strict=True)]
    pages = [(size, scale, False, UPRIGHT) for size, scale in SIZES]
    pages += [(size, scale, True, ACROSS) for size, scale in (*SIZES, SMALLEST)]
    fitting = [page for page in pages if page[1] * sum(natural) + GAP * len(natural) <= page[3]]
    page = (fitting or pages[-1:])[0]
    groups = [tuple(range(len(natural)))]
    if not fitting:
        groups = list(_groups([page[1] * width + GAP for width in natural], texts, page[3]))
    # columns that are wrapped share the room that is left over, since that makes fewer lines
    return tuple(_part(group, widths, natural, wrap, page, caption) for group in groups)


def _groups(widths: Sequence[float], texts: int, line: float) -> Iterator[tuple[int, ...]]:
    """Columns for each part: the texts, or where they take more than half a line the first of them, and what fits."""
    first = texts if texts < len(widths) and sum(widths[:texts]) <= line / 2 else 1
    keys, room = tuple(range(first)), line - sum(widths[:first])
    group: list[int] = []
    for column in range(first, len(widths)):
        if group and sum(widths[i] for i in group) + widths[column] > room:
            yield (*keys, *group)
            group = []
        group.append(column)
    yield (*keys, *group)


def _part(
    group: tuple[int, ...],
    cells: Sequence[Sequence[float]],
    natural: Sequence[float],
    wrap: Sequence[bool],
    page: tuple[str, float, bool, float],
    caption: str,
) -> Part:
    size, scale, across, line = page
    wrapped = sum(wrap[i] for i in group)
    spare = max(0.0, line - sum(scale * natural[i] + GAP for i in group)) / max(1, wrapped)
    widths = [min(line - GAP, scale * natural[i] + spare) if wrap[i] else None for i in group]
    lines = 0
    for row in cells:
        # words end lines before they are full
        lines += max(1 if w is None else ceil(1.25 * scale * row[i] / w) for i, w in zip(group, widths, strict=True))
    height = LINE * (scale * lines + 2 + ceil(width_of(caption) / line))
    return Part(group, tuple(widths), size, across, height > HEIGHT or across)


def breakable(text: str, longest: int = 12) -> str:
    r"""LaTeX text with places where a word of more letters may go on on the next line: after signs, and between digits.

    >>> breakable("transfer.length=128, a")
    'transfer.\\allowbreak{}length=\\allowbreak{}128, a'
    """
    return " ".join(word if len(word) <= longest else BREAKS.sub(r"\\allowbreak{}", word) for word in text.split(" "))
