"""What a probe found: numbers as JSON has them, tables for a terminal, and figures."""

from __future__ import annotations

from collections.abc import Sequence
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
    notes     sentences that a reader of the numbers has to know: limits, what could not be measured and why
    """

    values: dict[str, Any]
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Drawing] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
