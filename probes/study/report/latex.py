"""Tables of a report as files: LaTeX with booktabs, and CSV with every row and full digits."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from probes.report.blocks import LONG, Table
from probes.report.numbers import Entry, entry_text
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


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is, on one line.

    >>> escaped("50% of $x_i$ → −1")
    '50\\% of \\$x\\_i\\$ $\\rightarrow$ $-$1'
    """
    return SIGNS.sub(lambda sign: CHARACTERS[sign[0]], " ".join(text.split()))


def latex_table(table: Table) -> str:
    r"""A ``table`` with ``\toprule`` … of the package booktabs; as many rows as the report shows.

    Put ``\usepackage{booktabs}`` before the document and ``\input`` the file.
    """
    caption, rows = table.shown()
    longest = [max((len(entry_text(row[i], table.digits)) for row in rows), default=0) for i in range(table.texts)]
    wide = sum(length > LONG for length in longest)
    texts = (f"p{{{0.5 / wide:.2f}\\linewidth}}" if length > LONG else "l" for length in longest)
    columns = "".join(texts) + "r" * (len(table.header) - table.texts)
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escaped(caption)}}}", rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _line(table.header, table.digits), r"\midrule",
        *(_line(row, table.digits) for row in rows), r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _line(entries: Sequence[Entry], digits: int) -> str:
    cells = []
    for entry in entries:
        first, _, second = (escaped(part) for part in entry_text(entry, digits).partition("\n"))
        cells.append(f"{first} {{\\footnotesize ({second})}}" if second else first)
    return " & ".join(cells) + r" \\"


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
