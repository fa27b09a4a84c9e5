"""Columns of scores that are one number everywhere: a sentence says more than a column."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from probes.report.numbers import Entry, number
from probes.report.page import Table
from probes.statistics import Interval


def without_constant(table: Table, kept: Collection[str] = ()) -> Table:
    """The table without the columns that show one number in all rows, of which there are two at least.

    The caption says which, and the number; the CSV file has them. A column of ``kept`` stays, and so does one whose
    intervals say that its numbers may be others.
    """
    if len(table.rows) < 2:
        return table
    found = {}
    for column in range(table.texts, len(table.header)):
        held = {_one_number(row[column], table.digits) for row in table.rows}
        value = held.pop() if len(held) == 1 else None
        if value is not None and table.header[column] not in kept:
            found[column] = f"{_title(table.header[column])} {value}"
    if not found:
        return table
    told = f"The same in every row and left out here, not of the CSV file: {', '.join(found.values())}."
    return replace(table, caption=f"{table.caption} {told}", hidden=frozenset(found))


def _one_number(entry: Entry, digits: int) -> str | None:
    """What a reader sees, None for what is no number or not sure."""
    if not isinstance(entry, Interval):
        return number(entry, digits) if isinstance(entry, float) else None
    shown = entry.shown
    texts = {number(value, digits) for value in (shown.mean, shown.low, shown.high) if value is not None}
    return texts.pop() if len(texts) == 1 else None


def _title(header: str) -> str:
    """On one line.

    >>> _title("Alignment\\nin dictionary")
    'Alignment (in dictionary)'
    """
    first, _, rest = header.partition("\n")
    return f"{first} ({rest})" if rest else first
