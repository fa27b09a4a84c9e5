"""What a probe found: numbers as JSON has them, tables for a terminal, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from probes.figures.drawing import Drawing


@dataclass(frozen=True)
class ProbeResult:
    """The result of one probe.

    values    JSON values; what was left out is under "counts", reason → how many
    tables    for a terminal and the report, each with a title
    figures   for the report
    summary   the result in a sentence, for the beginning of the page; "" of a probe that has none
    notes     sentences that a reader of the numbers has to know: limits, what could not be measured and why
    """

    values: dict[str, Any]
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Drawing] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    summary: str = ""


def table_of(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0, **style: Any) -> Table:
    """A table whose first ``left`` columns are texts, aligned left; the others are numbers."""
    table = Table(title=title, **style)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < left else "right", no_wrap=bool(style) and number >= left)
    for row in rows:
        table.add_row(*row)
    return table


def with_bounds(value: float, low: float | None, high: float | None, form: str = ".1f") -> str:
    """A number with its interval for a cell of a table."""
    return f"{value:{form}}" if low is None or high is None else f"{value:{form}} ({low:{form}} – {high:{form}})"


def few_directions(rank: int, width: int) -> list[str]:
    """A note where the pairs that a map was fitted on do not tell everything of vectors of a ``width``."""
    if rank + 1 >= width:  # LayerNorm takes one direction
        return []
    return [
        f"a map was fitted on pairs that span {rank} directions only; in the others it rotates as little as possible"
    ]
