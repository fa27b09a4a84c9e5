"""Which cells of a study are run: ``--only``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probes.report.numbers import first_few
from probes.study.cell import Cell
from probes.study.labels import axis_titles, numbers_of, short_key
from synthlang.errors import InputError

SHOWN = 20


def selected(cells: Sequence[Cell], only: Sequence[str]) -> set[str]:
    """The names of the cells that agree with one of the texts at least; of all cells without any.

    ``AXIS=LABEL`` stands for the cells with that label, a number however it is written; the axis by its key, the last
    part of it, or what reports or the names of cells call it (``pretrain seed``). The name of a cell stands for that
    cell, any other text for the cells that have it in their name.
    Raises InputError for a text that chooses no cell.
    """
    if not only:
        return {cell.name for cell in cells}
    return {name for text in only for name in _matching(cells, text)}


def _matching(cells: Sequence[Cell], text: str) -> set[str]:
    if whole := {cell.name for cell in cells if cell.name == text}:
        return whole
    name, equals, label = text.partition("=")
    axes = _called(dict.fromkeys(axis for cell in cells for axis in cell.labels), name) if equals else []
    if axes:
        found = {cell.name for cell in cells if any(_same(cell.labels.get(axis), label) for axis in axes)}
    else:
        found = {cell.name for cell in cells if text and text in cell.name}
    if not found:
        labels = list(dict.fromkeys(cell.labels[axis] for axis in axes for cell in cells if axis in cell.labels))
        known = labels or [cell.name for cell in cells]
        what = f"the labels of {name} are" if labels else "the cells are"
        raise InputError(f"--only {text}: no cell has it; {what}: {first_few(known, SHOWN, '; ')}")
    return found


def _called(axes: Iterable[str], name: str) -> list[str]:
    """The axes of a name; several may have the same last part."""
    titles = axis_titles(axes)
    return [a for a in titles if name in (a, a.rsplit(".", 1)[-1], short_key(a), titles[a].replace(" ", "_"))]


def _same(held: str | None, label: str) -> bool:
    if held is None or held == label:
        return held == label
    numbers = numbers_of([held, label])
    return numbers is not None and "%" not in held + label and numbers[held] == numbers[label]
