"""Check of all cells of a study before anything runs. Each stage checks its own settings and inputs."""

from __future__ import annotations

from collections.abc import Sequence

from probes.report.numbers import plural
from probes.stages.inputs import Inputs
from probes.study.cell import Cell, in_cell
from probes.study.graph import stages_of
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.references import local_path, references


def check_cells(cells: Sequence[Cell]) -> None:
    """Check every stage of every cell.

    Raises:
        InputError: A cell cannot run. The error of the first such cell is raised, with the number of cells that have
            the same error. If data is missing, the hint lists all missing files and folders of the study.
    """
    inputs = Inputs()
    errors = (_problem(cell, inputs) for cell in cells)
    for number, error in enumerate(errors):
        if error is not None:
            alike = sum(str(other) == str(error) for other in errors)
            others = f" and {plural(alike, 'other cell')}" if alike else ""
            placed = in_cell(error, f"{cells[number].name}{others}")
            raise with_missing(placed, missing_inputs(cells)) from error


def with_missing(error: InputError, absent: Sequence[str]) -> InputError:
    """Replace the hint of an error about missing data by a list of all missing inputs, if there are several.

    Args:
        error: The error, which is changed and returned.
        absent: Paths of all missing files and folders.
    """
    if error.code == "missing" and len(absent) > 1:
        error.hint = f"add the {len(absent)} missing inputs: {', '.join(absent)}"
    return error


def missing_inputs(cells: Sequence[Cell]) -> list[str]:
    """Return the files and folders that the cells read and that do not exist, in the order of the cells."""
    found = dict[str, None]()
    for cell in cells:
        for config in cell.configs.values():
            for named in references(config):
                path = user_path(str(named.name)) if named.kind == "file" else None
                if named.kind in ("source", "items"):
                    path = local_path(str(named.name))
                if path is not None and not path.exists():
                    found[path.as_posix()] = None
    return list(found)


def _problem(cell: Cell, inputs: Inputs) -> InputError | None:
    """Return the first error in the stages of a cell, with its place in the study, or None."""
    for _, section, stage in stages_of(cell, [0], inputs.keys):
        try:
            inputs.once((section, inputs.identity(stage)), lambda stage=stage: stage.check(inputs))  # type: ignore[misc]
        except InputError as error:
            return cell.placed(error, section)
    return None
