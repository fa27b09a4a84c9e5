"""Scores that papers print for the conditions of a study, and the measure of each task to compare with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probes.claims.papers import read_tables
from probes.report.scores import Condition, grouped
from probes.results.scores import ALIGNMENT, FORWARD
from synthlang.errors import InputError

SHOWN = {"delta": "Δ", "zs": "ZS"}
"""Scores by which conditions are compared → their titles. A study without SUP has only ZS."""


class Printed:
    """Scores that tables of papers print for single conditions.

    Printed means over conditions are left out. If two tables print a number for the same condition, the first table
    counts. A file that cannot be read is skipped here, and the report has a note about it.

    Args:
        papers: Names of tables, in the form of the key ``paper`` of a study.
    """

    def __init__(self, papers: Iterable[str]) -> None:
        self._numbers: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for name in papers:
            try:
                tables = read_tables(name)
            except InputError:
                continue
            for cell in (cell for table in tables for cell in table.numbers):
                if cell.against is None and not cell.quantity.average:
                    key = cell.quantity.measure, frozenset(cell.quantity.where.items())
                    self._numbers.setdefault(key, cell.value)

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def of(self, condition: Condition, measure: str) -> float | None:
        """Return the printed number of a measure for a condition, or None if no paper prints it.

        The condition must have all labels of the number. If several numbers match, the number with most labels counts.
        """
        known = {*condition.labels.items(), ("task", condition.task)}
        found = [(len(where), x) for (name, where), x in self._numbers.items() if name == measure and where <= known]
        return max(found)[1] if found else None

    def measures(self, conditions: Sequence[Condition]) -> dict[str, str]:
        """Return task → the measure by which all of its conditions are compared.

        The measure is Δ. It is ZS if a condition has no Δ, or if papers print ZS but not Δ.
        """
        found = {}
        for task, of in grouped(conditions, lambda c: c.task).items():
            in_print = {name for name in SHOWN if any(self.of(c, name) is not None for c in of)}
            found[task] = "zs" if in_print == {"zs"} or any(c.delta is None for c in of) else "delta"
        return found

    def alignment(self, conditions: Sequence[Condition]) -> str:
        """Return the measure of alignment by which all conditions are compared.

        This is the alignment in one direction if a paper prints it for a condition, else the mean of both directions.
        """
        return FORWARD if any(self.of(c, FORWARD) is not None for c in conditions) else ALIGNMENT
