"""Tables of a report as files: LaTeX with booktabs, and CSV with every row and full digits."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from probes.report.blocks import Table
from probes.report.numbers import Entry, entry_text
from probes.statistics import Interval
from probes.study.report.latex_fit import Part, breakable, parts_of, width_of

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
    cells = [[_parted(entry, table.digits) for entry in row] for row in (header, *rows)]
    widths = [[width_of(first) + 0.95 * width_of(f" ({rest})" if rest else "") for first, rest in row] for row in cells]
    parts = parts_of(widths, table.texts, caption)
    text = "% needs " + r"\usepackage{array,booktabs,longtable,pdflscape}" + "\n"
    for number, part in enumerate(parts, 1):
        named = f" Part {number} of {len(parts)}." if len(parts) > 1 else ""
        label = table.name + (f"-{number}" if number > 1 else "")
        lines = [_line([row[i] for i in part.columns], part) for row in cells]
        titles = rf"\caption{{{escaped(caption + named)}}}", rf"\label{{tab:{label}}}"
        text += "\n".join(_set(part, table.texts, titles, lines)) + "\n"
    return text


def _set(part: Part, texts: int, titles: tuple[str, str], lines: Sequence[str]) -> list[str]:
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


def _parted(entry: Entry, digits: int) -> tuple[str, str]:
    first, _, second = entry_text(entry, digits).partition("\n")
    return first, second


def _line(cells: Sequence[tuple[str, str]], part: Part) -> str:
    found = []
    for (first, second), width in zip(cells, part.widths, strict=True):
        size = r"\footnotesize" if part.size in ("", r"\small") else r"\scriptsize"
        text = escaped(first) + (rf" {{{size} ({escaped(second)})}}" if second else "")
        found.append(text if width is None else breakable(text))
    return " & ".join(found) + r" \\"


def csv_table(table: Table) -> str:
    """Every row; a column that has an interval becomes four: mean, low, high and n. Nothing is rounded for readers."""
    wide = [any(isinstance(row[i], Interval) for row in table.rows) for i in range(len(table.header))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = [" ".join(entry_text(name).split()) for name in table.header]
    writer.writerow(
        name
        for title, several in zip(header, wide, strict=True)
        for name in ((title, f"{title} low", f"{title} high", f"{title} n") if several else (title,))
    )
    for row in table.rows:
        writer.writerow(
            value for entry, several in zip(row, wide, strict=True) for value in _values(entry, several=several)
        )
    return text.getvalue()


def _values(entry: Entry, *, several: bool) -> list[str]:
    if isinstance(entry, Interval):
        return [*("" if x is None else DIGITS.format(x) for x in (entry.mean, entry.low, entry.high)), str(entry.n)]
    if entry is None:
        one = ""
    elif isinstance(entry, float):
        one = DIGITS.format(entry)
    else:
        one = str(entry) if isinstance(entry, int) else " ".join(entry_text(entry).split())
    return [one, "", "", ""] if several else [one]
