"""Check of all cells of a study before anything runs. Each stage checks its own settings and inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from probes.stages.inputs import Inputs
from probes.study.cell import Cell, in_cell
from probes.study.graph import stages_of
from synthlang.data.entries import ROOT, name_of, names_of
from synthlang.data.state import items
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import Language
from synthlang.references import local_path, references
from synthlang.wording import plural


def check_cells(cells: Sequence[Cell]) -> None:
    """Check every stage of every cell.

    Raises:
        InputError: A cell cannot run, or the record of the data is damaged. Missing data sets of the catalogue come
            first (``MissingDataError``). Otherwise the error of the first such cell is raised, with the number of other
            cells that have the same error. If the error is about missing data and several files and folders are
            missing, the hint lists all of them.
    """
    if (missing := missing_data(missing_inputs(cells))) is not None:
        raise missing
    inputs = Inputs()
    errors = (_problem(cell, inputs) for cell in cells)
    for number, error in enumerate(errors):
        if error is not None:
            alike = sum(str(other) == str(error) for other in errors)
            others = f" and {plural(alike, 'other cell')}" if alike else ""
            placed = in_cell(error, f"cell {cells[number].name}{others}")
            raise with_missing(placed, missing_inputs(cells)) from error


def with_missing(error: InputError, absent: Sequence[str]) -> InputError:
    """Replace the hint of an error about missing data by a list of all missing inputs, if there are several.

    Args:
        error: The error, which is changed and returned.
        absent: Paths of all missing files and folders.
    """
    if error.absent and len(absent) > 1:
        error.hint = f"add the {len(absent)} missing inputs: {', '.join(absent)}"
    return error


class MissingDataError(InputError):
    """Raised if data sets of the catalogue that a study reads are missing.

    Attributes:
        names: Names of the missing data sets.
    """

    names: tuple[str, ...] = ()


def missing_data(absent: Sequence[str]) -> MissingDataError | None:
    """Return the error for missing files and folders, or None if the catalogue of data sets has none of them.

    Raises:
        InputError: The record of the data is damaged.
    """
    names = names_of(absent)
    if not names:
        return None
    found = {item.name: item for item in items(names, Path(ROOT))}
    others = [path for path in absent if name_of(path) is None]
    more = f", and the input{'s' * (len(others) > 1)} {', '.join(others)}" if others else ""
    state = "missing or incomplete" if any(found[name].lacks for name in names) else "missing"
    reason = f"{plural(len(names), 'data set')} of the study {'is' if len(names) == 1 else 'are'} {state}: "
    hint = f"run: synthlang data fetch {' '.join(names)}"
    labels = ", ".join(found[name].label for name in names)
    error = MissingDataError(f"{reason}{labels}{more}", ROOT, hint=hint, code="missing")
    error.names = tuple(names)
    return error


def missing_inputs(cells: Iterable[Cell]) -> list[str]:
    """Return the files and folders that the cells read and that are missing, in the order of the cells.

    The files of an incomplete data set of the catalogue are missing, too.

    Raises:
        InputError: A path begins with ``~USER`` and the user does not exist, or the record of the data is damaged.
    """
    paths = inputs_of(cells)
    incomplete = {item.name for item in items(names_of(paths), Path(ROOT)) if item.state == "incomplete"}
    return [path for path in paths if name_of(path) in incomplete or not user_path(path).exists()]


def inputs_of(cells: Iterable[Cell]) -> list[str]:
    """Return the files and folders that the cells read, whether they exist or not, in the order of the cells.

    Raises:
        InputError: A path begins with ``~USER``, and the user does not exist.
    """
    found = dict[str, None]()
    for config in {
        id(config): config for cell in cells for config in cell.configs.values()
    }.values():  # cells share them
        for named in references(config):
            path = user_path(str(named.name)) if named.kind == "file" else None
            if named.kind in ("source", "items"):
                path = local_path(str(named.name))
            if path is not None:
                found[path.as_posix()] = None
            if isinstance(named.name, Language):
                found |= dict.fromkeys(_data_of_language(named.name))
    return list(found)


def _data_of_language(language: Language) -> Iterator[str]:
    """Yield the files of data sets that a language reads."""
    for transform in language.transforms:
        for field in transform.file_fields:
            value = str(getattr(transform, field))
            if name_of(value) is not None:
                yield value


def _problem(cell: Cell, inputs: Inputs) -> InputError | None:
    """Return the first error in the stages of a cell, with its place in the study, or None."""
    for _, section, stage in stages_of(cell, [0], inputs.keys):
        try:
            inputs.once((section, inputs.identity(stage)), lambda stage=stage: stage.check(inputs))  # type: ignore[misc]
        except InputError as error:
            return cell.placed(error, section)
    return None
