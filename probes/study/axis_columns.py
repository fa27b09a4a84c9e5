"""A column for each axis in the tables of a study, so that what was varied can be plotted and correlated by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import pyarrow as pa

from probes.study import measures, results
from probes.study.cell import Cell
from probes.study.labels import axis_titles, numbers_of

FIXED = frozenset({*results.COLUMNS, *measures.COLUMNS})
"""Columns that no axis hides."""
THERE = "pretrain.seed"
"""An axis that has a column already, ``pretrain_seed``."""


class AxisColumns:
    """The columns of the axes of cells.

    An axis is called by the last part of its key, by all of it where another axis or column has that name, and
    ``axis_NAME`` where a named one is called like a fixed column, with a number where that is taken too. ``types`` are
    column → type: whole numbers, numbers or texts; a percentage is a number as it is written.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        axes = dict.fromkeys(axis for cell in cells for axis in cell.labels if axis != THERE)
        self.types: dict[str, pa.DataType] = {}
        self._of_cell: dict[str, dict[str, Any]] = {cell.name: {} for cell in cells}
        for axis, title in axis_titles(axes).items():
            labels = dict.fromkeys(cell.labels[axis] for cell in cells if axis in cell.labels)
            column = self._name(axis, title)
            self.types[column], values = _typed(labels)
            for cell in cells:
                self._of_cell[cell.name][column] = values.get(cell.labels.get(axis, ""))

    def of(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The rows with the values of their cells; null for a cell without the axis."""
        for row in rows:
            yield {**row, **self._of_cell[row["cell"]]}

    def _name(self, axis: str, title: str) -> str:
        taken = FIXED | self.types.keys()
        names = title.replace(" ", "_"), axis, f"axis_{axis}"
        numbered = (f"axis_{axis}_{number}" for number in count(2))
        return next(name for name in chain(names, numbered) if name not in taken)


def _typed(labels: Iterable[str]) -> tuple[pa.DataType, dict[str, Any]]:
    """The type of a column with these labels, and label → value."""
    numbers = numbers_of(labels)
    if numbers is None:
        return pa.string(), {label: label for label in labels}
    whole = {label: int(number) for label, number in numbers.items() if label.strip("+-").isdecimal()}
    if len(whole) == len(numbers) and all(abs(number) < 2**63 for number in whole.values()):
        return pa.int64(), {label: int(label) for label in whole}
    return pa.float64(), dict(numbers)
