"""The check of all cells of a study before anything runs: each stage checks itself."""

from __future__ import annotations

from collections.abc import Sequence

from probes.report.numbers import plural
from probes.stages.inputs import Inputs
from probes.study.cell import Cell, in_cell
from probes.study.graph import stages_of
from synthlang.errors import InputError


def check_cells(cells: Sequence[Cell]) -> None:
    """Raise InputError for the first cell that cannot run; it names the cell and how many others have the problem."""
    inputs = Inputs()
    errors = (_problem(cell, inputs) for cell in cells)
    for number, error in enumerate(errors):
        if error is not None:
            alike = sum(str(other) == str(error) for other in errors)
            others = f" and {plural(alike, 'other cell')}" if alike else ""
            raise in_cell(error, f"{cells[number].name}{others}") from error


def _problem(cell: Cell, inputs: Inputs) -> InputError | None:
    """Return the first error of the stages of a cell, placed at the section of the study that a stage stands in."""
    for _, section, stage in stages_of(cell, [0], inputs.keys):
        try:
            inputs.once((section, inputs.identity(stage)), lambda stage=stage: stage.check(inputs))  # type: ignore[misc]
        except InputError as error:
            return cell.placed(error, section)
    return None
