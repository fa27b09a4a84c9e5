"""The result of a probe: values for JSON, and tables, figures and notes for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from probes.figures.drawing import Drawing
from probes.report.page import Table
from probes.statistics import Interval


@dataclass(frozen=True)
class ProbeResult:
    """The result of one probe.

    Attributes:
        values: Values for JSON. The key "counts" has the number of omitted items by reason.
        tables: Tables for the terminal and the page.
        figures: Figures for the page.
        notes: Limits of the numbers, and reasons for missing numbers.
        summary: The result in one sentence for the top of the page, or "".
        files: Tables with a row for each item, by the name of the Parquet file to write beside probes.json.
    """

    values: dict[str, Any]
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Drawing] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    summary: str = ""
    files: Mapping[str, pa.Table] = field(default_factory=dict)


def with_bounds(value: float, low: float | None, high: float | None, form: str = ".1f") -> str:
    """Return a number as the text of a table cell, followed by its interval in parentheses if it has both bounds.

    ``form`` is the format of each number.
    """
    return f"{value:{form}}" if low is None or high is None else f"{value:{form}} ({low:{form}} – {high:{form}})"


def few_directions(rank: int, width: int) -> list[str]:
    """Return a note if word pairs of a low rank do not determine a map.

    ``rank`` is the rank of the pairs that the map was fitted on, and ``width`` is the number of dimensions of a vector.
    The list has one note if ``rank`` + 1 is less than ``width``, and is empty otherwise.
    """
    if rank + 1 >= width:  # LayerNorm removes one direction
        return []
    return [
        f"a map was fitted on pairs that span only {rank} directions, and it rotates the others as little as possible"
    ]


def to_json(value: Any) -> Any:
    """Return ``value`` with each `Interval` in it replaced by a mapping with ``mean``, ``low``, ``high`` and ``n``."""
    if isinstance(value, Interval):
        return {"mean": value.mean, "low": value.low, "high": value.high, "n": value.n}
    if isinstance(value, Mapping):
        return {key: to_json(inner) for key, inner in value.items()}
    return [to_json(inner) for inner in value] if isinstance(value, list) else value
