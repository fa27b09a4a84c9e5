"""The result of a probe: numbers as JSON has them, tables and figures for readers, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.figures.drawing import Drawing
from probes.report.page import Table


@dataclass(frozen=True)
class ProbeResult:
    """The result of one probe.

    Attributes:
        values: JSON values. What was left out is under "counts", reason → how many.
        tables: Tables, which the terminal and the page show.
        figures: Figures of the page.
        notes: Sentences that a reader of the numbers has to know: limits, and what could not be measured and why.
        summary: The result in a sentence, for the beginning of the page. It is empty for a probe that has none.
    """

    values: dict[str, Any]
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Drawing] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    summary: str = ""


def with_bounds(value: float, low: float | None, high: float | None, form: str = ".1f") -> str:
    """Return a number with its interval, for a cell of a table."""
    return f"{value:{form}}" if low is None or high is None else f"{value:{form}} ({low:{form}} – {high:{form}})"


def few_directions(rank: int, width: int) -> list[str]:
    """Return a note if the pairs that a map was fitted on do not determine it on vectors of a ``width``."""
    if rank + 1 >= width:  # LayerNorm takes one direction
        return []
    return [
        f"a map was fitted on pairs that span {rank} directions only; in the others it rotates as little as possible"
    ]
