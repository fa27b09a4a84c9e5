"""The parts of a report and their two renderings, HTML and Markdown. Everything is escaped here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from probes.report.figure import Figure, inline_svg


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
    """Cells are text; a line break in a cell sets off the smaller second line (an interval)."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    """The first columns, aligned left; the others are numbers."""


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
    """Blocks behind a line that opens them."""

    summary: str
    blocks: Sequence[Paragraph | Table | Code | Figures]


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
        return f"<details><summary>{escape(block.summary)}</summary>\n{html_blocks(block.blocks)}\n</details>"
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
    def cell(tag: str, text: str, column: int, scope: str = "") -> str:
        first, _, second = text.partition("\n")
        small = f"<small>{escape(second)}</small>" if second else ""
        kind = "" if column < table.texts else ' class="number"'
        return f"<{tag}{scope}{kind}>{escape(first)}{small}</{tag}>"

    head = "".join(cell("th", text, i, ' scope="col"') for i, text in enumerate(table.header))
    body = "\n".join(
        "<tr>"
        + "".join(cell("td" if i else "th", t, i, "" if i else ' scope="row"') for i, t in enumerate(row))
        + "</tr>"
        for row in table.rows
    )
    label = escape(table.caption.partition(". ")[0], quote=True)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
        f"<caption>{_unbroken(table.caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
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
    lines = [
        _markdown_row(block.header),
        "|" + "|".join(" --- " if i < block.texts else " ---: " for i in range(len(block.header))) + "|",
    ]
    return "\n".join([markdown_text(block.caption), "", *lines, *(_markdown_row(row) for row in block.rows)])


def _markdown_row(cells: Sequence[str]) -> str:
    shown = []
    for text in cells:
        first, _, second = text.partition("\n")
        shown.append(markdown_text(f"{first} ({second})" if second else first))
    return "| " + " | ".join(shown) + " |"


def markdown_text(text: str) -> str:
    """One line of text with nothing in it that Markdown or HTML would act on."""
    text = escape(" ".join(text.split()), quote=False)
    for sign in "\\`*|[]":
        text = text.replace(sign, "\\" + sign)
    return text
