"""Tables of a report as files: CSV with every row and full digits, and LaTeX with booktabs that fits a page.

Widths of LaTeX are estimated for Computer Modern, the letters a little too wide rather than too narrow, and compared
with the page of ``article`` with its usual margins.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from probes.report.numbers import Entry, entry_text
from probes.report.page import LONG, Shown, Table
from probes.statistics import Interval

CHARACTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "]": "{]}",  # a bracket after \\ would be its argument
    '"': "''", "−": "$-$", "–": "--", "—": "---", "…": r"\ldots{}", "Δ": r"$\Delta$", "ρ": r"$\rho$",
    "α": r"$\alpha$", "β": r"$\beta$", "→": r"$\rightarrow$", "←": r"$\leftarrow$", "↔": r"$\leftrightarrow$",
    "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$", "±": r"$\pm$", "·": r"$\cdot$", "\u00a0": "~",
}  # fmt: skip
"""What LaTeX acts on, and signs that pdflatex's usual fonts lack. Other letters stay as they are (UTF-8)."""
SIGNS = re.compile("[" + re.escape("".join(CHARACTERS)) + "]")
DIGITS = "{:.6g}"
ENDS = ("", " low", " high", " n")
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


def csv_table(table: Table) -> str:
    """Every row; a column that has an interval becomes four: mean, low, high and n. Nothing is rounded for readers."""
    wide = [any(isinstance(row[i], Interval) for row in table.rows) for i in range(len(table.header))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    titles = [_plain(name) for name in table.header]
    header = zip(titles, wide, strict=True)
    writer.writerow(f"{title}{end}" for title, several in header for end in (ENDS if several else ("",)))
    for row in table.rows:
        line: list[str] = []
        for entry, several in zip(row, wide, strict=True):
            if isinstance(entry, Interval):
                bounds = (entry.mean, entry.low, entry.high)
                line += [*("" if x is None else DIGITS.format(x) for x in bounds), str(entry.n)]
            else:
                line += [_plain(entry), *(["", "", ""] if several else [])]
        writer.writerow(line)
    return text.getvalue()


def _plain(entry: Entry) -> str:
    """One line, with all digits."""
    if isinstance(entry, float):
        return DIGITS.format(entry)
    return "" if entry is None else str(entry) if isinstance(entry, int) else " ".join(entry_text(entry).split())


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is, on one line.

    >>> escaped("50% of $x_i$ → −1")
    '50\\% of \\$x\\_i\\$ $\\rightarrow$ $-$1'
    """
    return SIGNS.sub(lambda sign: CHARACTERS[sign[0]], " ".join(text.split()))


def latex_table(table: Table) -> str:
    r"""The table with ``\toprule`` … of the package booktabs, so that it fits a page; as many rows as the report shows.

    One that fits is a ``table``, a longer one a ``longtable``, a wider one stands across the page or in several parts.
    Put ``\usepackage{array,booktabs,longtable,pdflscape}`` before the document and ``\input`` the file.
    """
    caption, header, rows = table.shown()
    cells = [header, *rows]
    widths = [[_width(c.text) + 0.95 * _width(f" ({c.small})" if c.small else "") for c in row] for row in cells]
    parts = _parts(widths, table.texts, caption)
    text = "% needs " + r"\usepackage{array,booktabs,longtable,pdflscape}" + "\n"
    for number, part in enumerate(parts, 1):
        named = f" Part {number} of {len(parts)}." if len(parts) > 1 else ""
        label = table.name + (f"-{number}" if number > 1 else "")
        titles = rf"\caption{{{escaped(caption + named)}}}", rf"\label{{tab:{label}}}"
        text += "\n".join(_set(part, table.texts, titles, [part.line(row) for row in cells])) + "\n"
    return text


def _set(part: _Part, texts: int, titles: tuple[str, str], lines: Sequence[str]) -> list[str]:
    """The lines of LaTeX of a part; the first of ``lines`` is the header."""
    columns = "".join(
        rf">{{\raggedright\arraybackslash}}p{{{width:.0f}pt}}" if width is not None else "l" if i < texts else "r"
        for i, width in zip(part.columns, part.widths, strict=True)
    )
    size = [part.size] if part.size else []
    head = [r"\toprule", lines[0], r"\midrule"]
    if not part.long:
        start = [r"\begin{table}", r"\centering", *titles, *size, rf"\begin{{tabular}}{{{columns}}}"]
        return [*start, *head, *lines[1:], r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    start = [r"\begin{landscape}" if part.across else r"\begingroup", *size, r"\setlength{\LTcapwidth}{\linewidth}"]
    first = [rf"\begin{{longtable}}{{{columns}}}", "".join(titles) + r" \\", *head, r"\endfirsthead"]
    later = [*head, r"\endhead", r"\bottomrule", r"\endfoot"]
    end = [r"\end{longtable}", r"\end{landscape}" if part.across else r"\endgroup"]
    return [*start, *first, *later, *lines[1:], *end]


class _Part(NamedTuple):
    """Columns of a table that fit beside one another; ``widths`` of those whose text is wrapped, in points; ``long``:
    it may be taller than a page."""

    columns: tuple[int, ...]
    widths: tuple[float | None, ...]
    size: str
    across: bool
    long: bool

    def line(self, row: Sequence[Shown]) -> str:
        found = []
        for cell, width in zip((row[i] for i in self.columns), self.widths, strict=True):
            size = r"\footnotesize" if self.size in ("", r"\small") else r"\scriptsize"
            text = escaped(cell.text) + (rf" {{{size} ({escaped(cell.small)})}}" if cell.small else "")
            found.append(text if width is None else _breakable(text))
        return " & ".join(found) + r" \\"


def _width(text: str) -> float:
    """Points of a line of text of ten points."""
    return sum(8.5 if c in WIDE_LETTERS else 7.4 if c.isupper() or ord(c) > 0x2E7F else 5.1 for c in text)


def _parts(cells: Sequence[Sequence[float]], texts: int, caption: str) -> list[_Part]:
    """The parts of a table whose cells, the header first, are so wide [rows][columns]; the first ``texts`` are texts.

    A column of texts is at most as wide as LONG letters, and wrapped if it has more. What does not fit even across a
    page in small letters is cut into parts, each with the first columns again: what a row is of.
    """
    most, longest = [max(column) for column in zip(*cells, strict=True)], _width("n" * LONG)
    wrap = [i < texts and width > longest for i, width in enumerate(most)]
    natural = [longest if wrapped else width for width, wrapped in zip(most, wrap, strict=True)]
    pages = [(size, scale, False, UPRIGHT) for size, scale in SIZES]
    pages += [(size, scale, True, ACROSS) for size, scale in (*SIZES, SMALLEST)]
    fitting = [page for page in pages if page[1] * sum(natural) + GAP * len(natural) <= page[3]]
    size, scale, across, line = (fitting or pages[-1:])[0]
    groups = [tuple(range(len(natural)))]
    if not fitting:
        groups = list(_groups([scale * width + GAP for width in natural], texts, line))
    parts = []
    for group in groups:
        # columns that are wrapped share the room that is left over, since that makes fewer lines
        spare = max(0.0, line - sum(scale * natural[i] + GAP for i in group)) / max(1, sum(wrap[i] for i in group))
        widths = tuple(min(line - GAP, scale * natural[i] + spare) if wrap[i] else None for i in group)
        lines = sum(  # words end lines before they are full
            max(1 if w is None else ceil(1.25 * scale * row[i] / w) for i, w in zip(group, widths, strict=True))
            for row in cells
        )
        height = LINE * (scale * lines + 2 + ceil(_width(caption) / line))
        parts.append(_Part(group, widths, size, across, height > HEIGHT or across))
    return parts


def _groups(widths: Sequence[float], texts: int, line: float) -> Iterator[tuple[int, ...]]:
    """Columns for each part: the texts, or where they take more than half a line the first of them, and what fits."""
    first = texts if texts < len(widths) and sum(widths[:texts]) <= line / 2 else 1
    group: list[int] = []
    for column in range(first, len(widths)):
        if group and sum(widths[i] for i in (*range(first), *group, column)) > line:
            yield (*range(first), *group)
            group = []
        group.append(column)
    yield (*range(first), *group)


def _breakable(text: str, longest: int = 12) -> str:
    r"""LaTeX text with places where a word of more letters may go on on the next line: after signs, and between digits.

    >>> _breakable("transfer.length=128, a")
    'transfer.\\allowbreak{}length=\\allowbreak{}128, a'
    """
    return " ".join(word if len(word) <= longest else BREAKS.sub(r"\\allowbreak{}", word) for word in text.split(" "))
