"""Pages of a report: blocks of content, and their rendering as HTML and Markdown by the templates in this package.

An HTML page is one file that has no script and loads nothing. The templates escape all text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from probes.figures.drawing import Figure, inline_svg
from probes.report.numbers import Badge, Entry, entry_text, number
from probes.statistics import Interval

LONG, LONGER = 30, 150
"""Largest numbers of characters of a text in a table that fits into a plain column, and into a wide column."""
EXACT = 9
"""Decimal places to which numbers are rounded before they are compared, because sums differ in their last digits."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph. The kind "note" marks a warning, "lead" the main result, and "text" any other paragraph."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Bullets:
    """A list of lines."""

    items: Sequence[str]


class Shown(NamedTuple):
    """A cell of a table on a page.

    Attributes:
        text: The first line of the entry.
        small: The other line of the entry, in small print below, or "".
        css: CSS class, which is ``number``, ``long``, ``longer`` or "" for a short text.
        badge: Kind of the badge (``good``, ``bad`` or ``open``), or "" without a badge.
    """

    text: str
    small: str
    css: str
    badge: str


class ShownTable(NamedTuple):
    """The part of a table that a page shows."""

    caption: str
    header: Sequence[Shown]
    rows: Sequence[Sequence[Shown]]


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers.

    Attributes:
        caption: The caption.
        header: The titles of the columns.
        rows: The entries of each row, one for each column.
        texts: Number of the first columns that are texts and aligned left. The other columns are numbers.
        name: Name of the file that holds the whole table, or "" without a file.
        limit: Largest number of rows on the page, or None for all rows. If there are more rows, the caption has their
            number.
        digits: Number of decimal places.
        hidden: Indices of the columns that the page leaves out. The CSV file has these columns.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    texts: int = 1
    name: str = ""
    limit: int | None = None
    digits: int = 1
    hidden: frozenset[int] = frozenset()

    def shown(self) -> ShownTable:
        """Return the part of the table that a page shows, without hidden columns and the rows after ``limit``."""
        caption, rows = self.caption, self.rows
        if self.limit is not None and len(rows) > self.limit:
            where = f", and tables/{self.name}.csv has all" if self.name else ""
            caption += f" The page has the first {self.limit:,} of {len(rows):,} rows{where}."
            rows = rows[: self.limit]
        return ShownTable(caption, self._shown(self.header), [self._shown(row) for row in rows])

    def without_constant(self) -> Table:
        """Return the table with each column hidden that has the same number in all rows, except for the column of Δ.

        The caption lists the hidden columns and their numbers. Columns with texts or whole numbers stay, and so do all
        columns of a table with one row. An interval counts as a number only if each known bound is equal to the mean.
        """
        found = {}
        for column in range(self.texts, len(self.header)) if len(self.rows) > 1 else ():
            numbers, title = {_one_number(row[column]) for row in self.rows}, self.header[column]
            value = numbers.pop()
            if not numbers and value is not None and title != "Δ":
                first, _, rest = title.partition("\n")
                found[column] = f"{f'{first} ({rest})' if rest else first} {number(value, self.digits)}"
        if not found:
            return self
        told = f"Only the CSV file has the columns with one value in all rows: {', '.join(found.values())}."
        return replace(self, caption=f"{self.caption} {told}", hidden=frozenset(found))

    def _shown(self, row: Sequence[Entry]) -> list[Shown]:
        return [self._cell(entry, column) for column, entry in enumerate(row) if column not in self.hidden]

    def _cell(self, entry: Entry, column: int) -> Shown:
        text, _, small = entry_text(entry, self.digits).partition("\n")
        css = "number"
        if column < self.texts:
            css = "" if len(text) <= LONG else "long" if len(text) <= LONGER else "longer"
        return Shown(text, small, css, entry.kind if isinstance(entry, Badge) else "")


def _one_number(entry: Entry) -> float | None:
    """Return a float, or the mean of an interval if no bound differs from it, or None for any other entry."""
    if isinstance(entry, Interval):
        bounds = (entry.mean, entry.shown.low, entry.shown.high)
        values = {round(value, EXACT) for value in bounds if value is not None}
        return values.pop() if len(values) == 1 else None
    return round(entry, EXACT) if isinstance(entry, float) else None


@dataclass(frozen=True)
class Terms:
    """Terms, each with lines that explain it."""

    items: Sequence[tuple[str | Badge, Sequence[str]]]


@dataclass(frozen=True)
class Code:
    """Text in a fixed-width font, with its line breaks."""

    text: str


@dataclass(frozen=True)
class Links:
    """Links to other pages: the text of each, and the file beside this page."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figures:
    """Figures side by side where there is room."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Folded:
    """Blocks that a page hides behind the line ``summary``. In print they are visible unless ``aside`` is True."""

    summary: str
    blocks: Sequence[Paragraph | Bullets | Terms | Table | Code | Figures]
    aside: bool = False


@dataclass(frozen=True)
class Beside:
    """Two blocks side by side where there is room, else one below the other."""

    blocks: Sequence[Table | Figures]


Block = Paragraph | Bullets | Terms | Table | Code | Links | Figures | Folded | Beside


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it."""

    title: str
    blocks: Sequence[Block]


def flat(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks, with the content of each ``Folded`` and ``Beside`` in its place."""
    for block in blocks:
        if isinstance(block, Folded | Beside):
            yield from flat(block.blocks)
        else:
            yield block


def figures_in(blocks: Sequence[Block]) -> list[Figure]:
    """Return all figures of the blocks, including those inside of ``Folded`` and ``Beside``."""
    return [figure for block in flat(blocks) if isinstance(block, Figures) for figure in block.figures]


def html_page(title: str, under: str, sections: Sequence[Section], command: str = "report") -> str:
    """Return a page as HTML.

    Args:
        title: The title of the page.
        under: The line under the title.
        sections: The sections.
        command: The command of synthlang that writes the page.
    """
    template = _templates().get_template("page.html.j2")
    return template.render(title=title, under=under, sections=sections, command=command)


def markdown_page(
    title: str,
    under: str,
    sections: Sequence[Section],
    figures: str = "figures",
) -> str:
    """Return a page as Markdown.

    Args:
        title: The title of the page.
        under: The line under the title.
        sections: The sections.
        figures: The folder of the figures, relative to the page, for links to them.
    """
    template = _templates().get_template("page.md.j2")
    return template.render(title=title, under=under, sections=sections, figures=figures)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("probes.report"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"kind": lambda block: type(block).__name__, "inline_svg": inline_svg}
    found.filters |= {"unbroken": _unbroken, "line": markdown_text}
    return found


def _unbroken(text: str) -> Markup:
    """Escape the text and keep numbers and their signs on one line."""
    return Markup(escape(text).replace(" %", "&nbsp;%").replace(" = ", "&nbsp;=&nbsp;"))  # noqa: S704 - escaped here


def markdown_text(text: str) -> str:
    """Return a text on one line, with the characters escaped that Markdown or HTML would interpret."""
    text = escape(" ".join(text.split()), quote=False)
    for sign in "\\`*|[]":
        text = text.replace(sign, "\\" + sign)
    return text
