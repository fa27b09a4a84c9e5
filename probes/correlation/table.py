"""Correlations of groups of rows, and the table that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from probes.statistics import Correlation


@dataclass(frozen=True)
class Found:
    """A correlation of the rows of ``group`` (``all``: of all), compared only ``within`` these columns."""

    group: str
    within: tuple[str, ...]
    result: Correlation

    def to_json(self) -> dict[str, Any]:
        """As one object."""
        return {"group": self.group, "within": list(self.within), **self.result.to_json()}


def correlation_table(found: Sequence[Found], title: str, level: float) -> tuple[Table, list[str]]:
    """A row for each correlation, and the notes below it: why there is no number, by the number in brackets."""
    table = Table(title=title)
    table.add_column("rows of")
    for name in ("kind", "rows", "clusters", "r", f"{100 * level:g} % interval", "p"):
        table.add_column(name, justify="left" if name == "kind" else "right", no_wrap=True)
    notes: dict[str, int] = {}
    for one in found:
        r = one.result
        bounds = "–" if r.low is None or r.high is None else f"{r.low:+.2f} … {r.high:+.2f}"
        p = "–" if r.p is None else f"{r.p:.4f}"
        numbers = ["–" if r.r is None else f"{r.r:+.3f}", bounds, p]
        for place, why in enumerate((r.reason, r.no_interval, r.no_p)):
            if why is not None:
                numbers[place] += f" [{notes.setdefault(why, len(notes) + 1)}]"
        within = f" within {' × '.join(one.within)}" if one.within else ""
        table.add_row(Text(one.group + within), r.kind, str(r.n), str(r.clusters), *numbers)
    return table, [f"[{number}] {why}" for why, number in notes.items()]
