"""Which cells of a study are run: ``--only``."""

from __future__ import annotations

from collections.abc import Sequence

from probes.study.cells import Cell
from synthlang.errors import InputError

SHOWN = 20


def selected(cells: Sequence[Cell], only: Sequence[str]) -> set[str]:
    """The names of the cells that agree with one of the texts at least; of all cells without any.

    ``AXIS=LABEL`` stands for the cells with that label, any other text for those that have it in their name.
    Raises InputError for a text that chooses no cell.
    """
    if not only:
        return {cell.name for cell in cells}
    return {name for text in only for name in _matching(cells, text)}


def _matching(cells: Sequence[Cell], text: str) -> set[str]:
    axis, equals, label = text.partition("=")
    found = {cell.name for cell in cells if text and text in cell.name}
    if equals:
        found |= {cell.name for cell in cells if cell.labels.get(axis) == label}
    if not found:
        labels = list(dict.fromkeys(cell.labels[axis] for cell in cells if axis in cell.labels)) if equals else []
        known = labels or [cell.name for cell in cells]
        more = f" … and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        what = f"the labels of {axis} are" if labels else "the cells are"
        raise InputError(f"--only {text}: no cell has it; {what}: {'; '.join(known[:SHOWN])}{more}")
    return found
