"""The parts of a report and their two renderings, HTML and Markdown. Everything is escaped here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from probes.report.figure import Figure, inline_svg
from probes.report.numbers import Badge, Entry, entry_text

T = TypeVar("T")
LONG, LONGER = 30, 150
"""Characters from which on a text of a table needs a wide column, or a wider one."""


@dataclass(frozen=True)
class Paragraph:
    """A line of text; ``kind`` "note" is what a reader must not miss."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Bullets:
    """Lines of text of equal rank."""

    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers.

    texts    how many of the first columns are texts, aligned left; the others are numbers
    name     of the file that holds the table in full; "" for none
    limit    at most so many rows are shown; the caption says how many there are
    digits   after the point
    hidden   columns that the page leaves out; the CSV file has them
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    texts: int = 1
    name: str = ""
    limit: int | None = None
    digits: int = 1
    hidden: frozenset[int] = frozenset()

    def shown(self) -> tuple[str, Sequence[str], Sequence[Sequence[Entry]]]:
        """The caption, the header and the rows that a page has."""
        caption, rows = self.caption, self.rows
        if self.limit is not None and len(rows) > self.limit:
            where = f"; all are in tables/{self.name}.csv" if self.name else ""
            caption += f" The first {self.limit:,} of {len(rows):,} rows{where}."
            rows = rows[: self.limit]
        return caption, self._on_page(self.header), [self._on_page(row) for row in rows] if self.hidden else rows

    def _on_page(self, row: Sequence[T]) -> Sequence[T]:
        return [entry for column, entry in enumerate(row) if column not in self.hidden] if self.hidden else row


@dataclass(frozen=True)
class Code:
    """Text to be read as it is."""

    text: str


@dataclass(frozen=True)
class Figures:
    """Figures side by side where there is room."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Folded:
    """Blocks behind a line that opens them; on paper they are open, but for what stands ``aside``."""

    summary: str
    blocks: Sequence[Paragraph | Bullets | Table | Code | Figures]
    aside: bool = False


Block = Paragraph | Bullets | Table | Code | Figures | Folded


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: Sequence[Block]


def flat(blocks: Sequence[Block]) -> Iterator[Block]:
    """Every block, the folded ones in their place."""
    for block in blocks:
        if isinstance(block, Folded):
            yield from flat(block.blocks)
        else:
            yield block


def html_blocks(blocks: Sequence[Block]) -> str:
    """HTML of the blocks, one after the other."""
    return "\n".join(_html(block) for block in blocks)


def _html(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f'<p class="{escape(block.kind)}">{_unbroken(block.text)}</p>'
    if isinstance(block, Bullets):
        return "<ul>" + "".join(f"<li>{_unbroken(item)}</li>" for item in block.items) + "</ul>"
    if isinstance(block, Code):
        return f"<pre>{escape(block.text)}</pre>"
    if isinstance(block, Folded):
        kind = ' class="aside"' if block.aside else ""
        return f"<details{kind}><summary>{escape(block.summary)}</summary>\n{html_blocks(block.blocks)}\n</details>"
    if isinstance(block, Figures):
        kind = "figures" if len(block.figures) > 1 else "figures single"
        return f'<div class="{kind}">\n' + "\n".join(_html_figure(figure) for figure in block.figures) + "\n</div>"
    return _html_table(block)


def _unbroken(text: str) -> str:
    """Escaped, with no line break between a number and its sign."""
    return escape(text).replace(" %", "&nbsp;%").replace(" = ", "&nbsp;=&nbsp;")


def _html_figure(figure: Figure) -> str:
    return f"<figure>{inline_svg(figure)}<figcaption>{_unbroken(figure.caption)}</figcaption></figure>"


def _html_table(table: Table) -> str:
    def cell(tag: str, entry: Entry, column: int, scope: str = "") -> str:
        first, _, second = entry_text(entry, table.digits).partition("\n")
        small = f"<small>{escape(second)}</small>" if second else ""
        kind = "" if column < table.texts else ' class="number"'
        if column < table.texts and len(first) > LONG:
            kind = ' class="long"' if len(first) <= LONGER else ' class="longer"'
        content = escape(first) if not isinstance(entry, Badge) else f'<b class="{entry.kind}">{escape(first)}</b>'
        return f"<{tag}{scope}{kind}>{content}{small}</{tag}>"

    caption, header, rows = table.shown()
    head = "".join(cell("th", text, i, ' scope="col"') for i, text in enumerate(header))
    body = "\n".join(
        "<tr>"
        + "".join(cell("td" if i else "th", t, i, "" if i else ' scope="row"') for i, t in enumerate(row))
        + "</tr>"
        for row in rows
    )
    label = escape(table.caption.partition(". ")[0], quote=True)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
        f"<caption>{_unbroken(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def markdown_blocks(blocks: Sequence[Block], figures: str = "figures") -> str:
    """Markdown of the blocks; figures are links into the folder ``figures``."""
    return "\n\n".join(_markdown(block, figures) for block in blocks)


def _markdown(block: Block, figures: str) -> str:
    if isinstance(block, Paragraph):
        return ("> " if block.kind == "note" else "") + markdown_text(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {markdown_text(item)}" for item in block.items)
    if isinstance(block, Code):
        return "\n".join("    " + line for line in block.text.splitlines())
    if isinstance(block, Folded):
        return f"**{markdown_text(block.summary)}**\n\n{markdown_blocks(block.blocks, figures)}"
    if isinstance(block, Figures):
        return "\n\n".join(
            f"![{markdown_text(figure.alt)}]({figures}/{figure.name}.svg)\n\n*{markdown_text(figure.caption)}*"
            for figure in block.figures
        )
    caption, header, rows = block.shown()
    lines = [
        _markdown_row(header),
        "|" + "|".join(" --- " if i < block.texts else " ---: " for i in range(len(header))) + "|",
    ]
    return "\n".join([markdown_text(caption), "", *lines, *(_markdown_row(row, block.digits) for row in rows)])


def _markdown_row(cells: Sequence[Entry], digits: int = 1) -> str:
    shown = []
    for entry in cells:
        first, _, second = entry_text(entry, digits).partition("\n")
        shown.append(markdown_text(f"{first} ({second})" if second else first))
    return "| " + " | ".join(shown) + " |"


def markdown_text(text: str) -> str:
    """One line of text with nothing in it that Markdown or HTML would act on."""
    text = escape(" ".join(text.split()), quote=False)
    for sign in "\\`*|[]":
        text = text.replace(sign, "\\" + sign)
    return text
