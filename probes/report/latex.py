"""Tables of a report as files: CSV with every row, and LaTeX in the style of the package booktabs."""

from __future__ import annotations

import csv
import io

import pandas as pd

from probes.report.numbers import Entry, entry_text
from probes.report.page import Shown, Table
from probes.statistics import Interval

CHARACTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "]": "{]}",  # a bracket after \\ would be its argument
    '"': "''", "−": "$-$", "–": "--", "—": "---", "…": r"\ldots{}", "Δ": r"$\Delta$", "ρ": r"$\rho$",
    "α": r"$\alpha$", "β": r"$\beta$", "→": r"$\rightarrow$", "←": r"$\leftarrow$", "↔": r"$\leftrightarrow$",
    "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$", "±": r"$\pm$", "·": r"$\cdot$", "\u00a0": "~",
}  # fmt: skip
"""Character that LaTeX interprets, or that the usual fonts of pdflatex lack → its replacement."""
ESCAPES = str.maketrans(CHARACTERS)
NEEDS = "% needs \\usepackage{array,booktabs,longtable}\n"
WRAPPED = r">{\raggedright\arraybackslash}p{4cm}"
"""Format of a column that has long texts."""
DIGITS = "{:.6g}"
ENDS = ("", " low", " high", " n")


def csv_table(table: Table) -> str:
    """Return a table as CSV, including the rows and columns that the page leaves out.

    Integers are in full. Other numbers have six significant digits. A column with an interval in any row becomes
    four columns: mean, lower bound, upper bound and n.
    """
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
    """Return the entry as text on one line. A float has six significant digits."""
    if isinstance(entry, float):
        return DIGITS.format(entry)
    return "" if entry is None else str(entry) if isinstance(entry, int) else " ".join(entry_text(entry).split())


def latex_table(table: Table) -> str:
    r"""Return a table as a ``longtable`` of LaTeX, with the rows and columns that the page shows.

    The document needs ``\usepackage{array,booktabs,longtable}`` and reads the file with ``\input``.
    """
    caption, header, rows = table.shown()
    frame = pd.DataFrame([[_cell(cell) for cell in row] for row in rows], columns=[_cell(cell) for cell in header])
    long = [any(row[i].css.startswith("long") for row in rows) for i in range(len(header))]
    texts = table.texts - sum(column < table.texts for column in table.hidden)
    formats = [WRAPPED if wrapped else "l" if i < texts else "r" for i, wrapped in enumerate(long)]
    style = frame.style.hide(axis="index")
    return NEEDS + style.to_latex(
        column_format="".join(formats),
        hrules=True,
        label=f"tab:{table.name}",
        caption=escaped(caption),
        environment="longtable",
    )


def _cell(cell: Shown) -> str:
    """Format a cell, with its second line small and in brackets."""
    return escaped(cell.text) + (rf" {{\footnotesize ({escaped(cell.small)})}}" if cell.small else "")


def escaped(text: str) -> str:
    r"""Return LaTeX that prints the text as it is, on one line.

    >>> escaped("50% of $x_i$ → −1")
    '50\\% of \\$x\\_i\\$ $\\rightarrow$ $-$1'
    """
    return " ".join(text.split()).translate(ESCAPES)
