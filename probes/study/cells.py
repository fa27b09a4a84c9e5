"""Cells of a study: one for each combination of its grid. No two cells have the same name, labels or settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes.results.labels import axis_titles, is_label, is_seed, short_key
from probes.stages.base import StageKeys
from probes.study.axes import Choice
from probes.study.builder import CellBuilder
from probes.study.cell import RECORDED_AS, Cell
from probes.study.checks import inputs_of, missing_data, missing_inputs, with_missing
from probes.study.compare import check_comparisons, comparisons
from probes.study.config import LearnedConfig, StudyConfig
from probes.study.graph import graph
from probes.study.grid import SHOWN, GridPoint
from probes.study.inherited import read_study
from synthlang.config import StrictModel
from synthlang.errors import InputError, did_you_mean
from synthlang.fingerprint import canonical_json, fingerprint
from synthlang.smoke import SUFFIX, smaller
from synthlang.wording import enumerated, first_few


def load_study(path: Path, assignments: list[str], smoke: bool = False) -> tuple[StudyConfig, list[Cell]]:
    """Read a study and build its cells.

    Args:
        path: File of the study, or its name in the catalogue.
        assignments: Texts ``KEY=VALUE`` that change the study.
        smoke: True to return ``smoke_study`` of the study.

    Returns:
        The study, with the hash of all cells and absolute paths of papers and claims, and its cells.

    Raises:
        InputError: A setting or an assignment is wrong, or a file that the study needs is missing or wrong. Nothing has
            been written.
    """
    study = read_study(path, assignments)
    try:
        study = study.beside(path.parent)
    except InputError as error:
        raise error.inside(path=path) from error
    cells = expand(study, path, assignments)
    return smoke_study(study, cells) if smoke else (study, cells)


def smoke_study(study: StudyConfig, cells: Sequence[Cell]) -> tuple[StudyConfig, list[Cell]]:
    """Return a small version of a study, whose stages run in seconds, and the cells of this version.

    The version has one seed of each kind, and neither claims nor tables of papers. It has only the cells that are
    needed to cover each value of an axis and each comparison of the study. Its convergence criterion is a minimum score
    of 0. The name and the scale of the version differ from those of the study, which keeps the results of both apart.

    Raises:
        InputError: The option ``limit`` of a source is not a whole number from 1, or is given twice.
    """
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels if is_seed(axis))
    first = {axis: next(cell.labels[axis] for cell in cells if axis in cell.labels) for axis in axes}
    kept = [cell for cell in cells if all(cell.labels.get(axis, label) == label for axis, label in first.items())]
    needed = {cell.name for one in comparisons(study.compare) for cell in next(one.matched(kept, _labels), ())}
    found = list(_smaller_cells(_each_value_once(kept, needed)))
    study = study.model_copy(
        update={
            "name": f"{study.name}{SUFFIX}",
            "title": f"Smoke run: {study.title or study.name}",
            "scale": "smoke",
            "seeds": study.seeds[:1],
            "paper": None,
            "claims": (),
            "planned": None,
            "learned": LearnedConfig(sup=0),  # no model converges in seconds, and no section should be missing
        }
    )
    _contain(study, found)
    return study, found


def _labels(cell: Cell) -> Mapping[str, str]:
    return cell.labels


def _each_value_once(cells: Iterable[Cell], needed: Collection[str]) -> Iterator[Cell]:
    """Yield each cell that has no labels, a ``needed`` name, or a label that no earlier yielded cell has."""
    seen = set[tuple[str, str]]()
    for cell in cells:
        if cell.name in needed or not cell.labels or not seen.issuperset(cell.labels.items()):
            seen |= cell.labels.items()
            yield cell


def _smaller_cells(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Yield the cells with smaller configs. A config that cells share stays shared."""
    known: dict[int, StrictModel] = {}

    def small(config: Any) -> Any:
        return known.setdefault(id(config), smaller(config))

    for cell in cells:
        changes: dict[str, Any] = {name: small(config) for name, config in cell.parts.items()}
        for root in ("tasks", "probes"):
            changes[root] = {name: small(part) for name, part in getattr(cell, root).items()}
        yield replace(cell, **changes)


def expand(study: StudyConfig, path: Path | None = None, assignments: Sequence[str] = ()) -> list[Cell]:
    """Return the cells of a study.

    The value of a key comes from the last axis that sets it, else from the study, else from the base files. An axis
    that changes ``base`` replaces the base files. The keys of the study still take precedence over them.

    Args:
        study: The study.
        path: The file of the study. The names of ``base`` files are relative to its folder.
        assignments: Texts ``KEY=VALUE`` that changed the study when it was read.

    Raises:
        InputError: A setting, a comparison or the convergence criterion is wrong, a file that a cell needs is missing,
            every cell is excluded, two cells are the same or have the same labels, or an axis or a task hides an
            assignment.
    """
    try:
        return _expanded(study, path, assignments)
    except InputError as error:
        raise error.inside(path=path) from error


def _expanded(study: StudyConfig, path: Path | None, assignments: Sequence[str]) -> list[Cell]:
    points = study.grid.points()
    if not points:
        hint = "change or remove an entry"
        raise InputError("every cell is excluded", keys="grid.exclude", hint=hint, code="empty")
    check_not_hidden(points, assignments)
    build = CellBuilder(study, path, assignments)
    cells = _built(build, points)
    _check_criterion(study, cells)
    check_comparisons(study.compare, [cell.labels for cell in cells])
    keys = StageKeys()
    _check_distinct(cells, keys, len(points) - len(study.grid.include))
    _check_labels(points)
    cells = _distinctly_named(cells, points)
    _contain(study, cells, keys)
    return cells


def study_inputs(path: Path, assignments: Sequence[str] = ()) -> list[str]:
    """Return the files and folders that a study reads, whether they exist or not.

    A cell may need a file to be built. If this file is missing, the result has it in place of the inputs of the cell.

    Args:
        path: File of the study, or its name in the catalogue.
        assignments: Texts ``KEY=VALUE`` that change the study.

    Raises:
        InputError: A setting is wrong, or the study or a file of claims or papers cannot be read.
    """
    study = read_study(path, list(assignments)).beside(path.parent)
    cells, _, absent = _buildable(CellBuilder(study, path, list(assignments)), study.grid.points())
    return list(dict.fromkeys([*absent, *inputs_of(cells)]))


def _built(build: CellBuilder, points: Sequence[GridPoint]) -> list[Cell]:
    """Return the cell of each point.

    Raises:
        InputError: A cell cannot be built. If files are missing, one error lists all of them.
    """
    cells, first, absent = _buildable(build, points)
    if first is not None:
        first.others = ()  # the list has their files
        missing = list(dict.fromkeys([*absent, *missing_inputs(cells)]))
        raise missing_data(missing) or with_missing(first, missing)
    return cells


def _buildable(build: CellBuilder, points: Sequence[GridPoint]) -> tuple[list[Cell], InputError | None, list[str]]:
    """Return the cells that can be built, the first error of a missing file, and all missing files.

    Raises:
        InputError: A cell cannot be built for another reason than a missing file.
    """
    cells, first, absent = list[Cell](), None, dict[str, None]()
    for point in points:
        try:
            cells.append(build.cell(point))
        except InputError as error:
            found = [fault.absent for fault in (error, *error.others) if fault.absent]
            if not found:
                raise
            first = first or error
            absent |= dict.fromkeys(found)
    return cells, first, list(absent)


def _contain(study: StudyConfig, cells: Sequence[Cell], keys: StageKeys | None = None) -> None:
    """Store the hash of all cells in the study, whose fingerprint depends on this hash."""
    keys = keys or StageKeys()
    study.contains(fingerprint("cells", cells=[[cell.name, _settings(cell, keys)] for cell in cells]))


def _check_criterion(study: StudyConfig, cells: Sequence[Cell]) -> None:
    """Raise InputError if the convergence criterion has a limit for a task that no cell has."""
    limits = study.learned.sup if study.learned is not None else None
    tasks = dict.fromkeys(name for cell in cells for name in cell.tasks)
    for name in limits if isinstance(limits, dict) else ():
        if name not in tasks:
            hint = f"{did_you_mean(name, tasks)}choose one of {', '.join(tasks)}" if tasks else "remove this limit"
            raise InputError("no cell has this task", keys=("learned", "sup", name), hint=hint, code="unknown")


def check_not_hidden(points: Sequence[GridPoint], assignments: Sequence[str]) -> None:
    """Raise InputError if an assignment has no effect, because an axis sets its key or section in each cell."""
    for key in (assignment.partition("=")[0] for assignment in assignments):
        found = [next((s for s in point.settings if f"{key}.".startswith(f"{s.key}.")), None) for point in points]
        axes = list(dict.fromkeys(setting.axis for setting in found if setting is not None))
        if None not in found:
            reason = f"has no effect, because the grid sets {key} in every cell"
            named = enumerated([repr(axis) for axis in axes])
            hint = f"change the {'axis' if len(axes) == 1 else 'axes'} {named} instead"
            raise InputError(reason, f"--set {key}", hint=hint, code="no_effect")


def _settings(cell: Cell, keys: StageKeys) -> str:
    """Return the fingerprint of all settings of a cell, without its name and labels."""
    configs = {RECORDED_AS.get(name, name): keys.hash_of(config) for name, config in cell.configs.items()}
    return fingerprint("cell", model=cell.model, tuned_seed=cell.finetuned_seed, configs=configs)


def _check_distinct(cells: list[Cell], keys: StageKeys, included: int) -> None:
    """Raise InputError if two cells have equal settings, or settings that give the same results.

    Args:
        cells: The cells, those of ``grid.include`` last.
        keys: Cache of the keys of stages.
        included: Index of the first cell of ``grid.include``.
    """
    equal: dict[str, int] = {}
    alike: dict[str, int] = {}
    for number, cell in enumerate(cells):
        first = equal.setdefault(_settings(cell, keys), number)
        other = cells[first]
        is_entry = number >= included
        place = ("grid", "include", str(number - included)) if is_entry else ("grid",)
        hint = "remove this entry" if is_entry else "remove or exclude one of them"
        if first < number:
            entry = f" of grid.include.{first - included}" if first >= included else ""
            reason = f"two cells are the same: {other.name!r}{entry} and {cell.name!r} have equal settings"
            raise InputError(reason, keys=place, hint=hint, code="duplicate")
        other = cells[alike.setdefault(canonical_json(graph([cell], [0], keys).of_cell[cell.name]), number)]
        if other is not cell:
            one, two = other.overrides, cell.overrides
            differing = [key for key in {**one, **two} if one.get(key, ...) != two.get(key, ...)]
            differ = f"{first_few(differing, SHOWN)}, which {'does' if len(differing) == 1 else 'do'}"
            reason = (
                f"two cells are the same: {other.name!r} and {cell.name!r} differ only in {differ} not affect results"
            )
            raise InputError(reason, keys=place, hint=hint, code="duplicate")


def _check_labels(points: list[GridPoint]) -> None:
    """Raise InputError for labels that would make two different cells look like replicates in the results.

    Two cells may not have equal labels. If their labels differ only in seeds, their other settings must be equal.
    Entries of ``grid.include`` can break these rules, because they may repeat a label with other settings.
    """
    count = Counter(tuple(sorted(point.labels.items())) for point in points)
    first: dict[tuple[tuple[str, str], ...], tuple[GridPoint, list[Choice]]] = {}
    hint = "give one of the two cells another label"
    for point in points:
        if count[tuple(sorted(point.labels.items()))] > 1:
            reason = f"two cells have the same labels, {point.full_name}, so their results cannot be distinguished"
            raise InputError(reason, keys="grid", hint=hint, code="duplicate")
        choices = [choice for choice in point.choices if not is_seed(choice.axis)]
        other, other_choices = first.setdefault(tuple(sorted((c.axis, c.label) for c in choices)), (point, choices))
        axis = next(
            (c.axis for c in choices for o in other_choices if c.axis == o.axis and c.settings != o.settings), None
        )
        if axis is not None:
            reason = (
                f"the label {point.labels[axis]!r} of {axis} has different settings in two cells, {other.full_name} "
                f"and {point.full_name}, so they cannot be replicates"
            )
            raise InputError(reason, keys="grid", hint=hint, code="duplicate")


def _distinctly_named(cells: list[Cell], points: list[GridPoint]) -> list[Cell]:
    """Return the cells with distinct names.

    A shared name is replaced by the full name, which includes the axes. Cells that still share a name are numbered.
    """
    count = Counter(cell.name for cell in cells)
    names = [p.full_name if count[cell.name] > 1 else cell.name for cell, p in zip(cells, points, strict=True)]
    twice, number = Counter(names), Counter[str]()
    for i, name in enumerate(names):
        if twice[name] > 1:
            number[name] += 1
            names[i] = f"{name} ({number[name]})"
    return [replace(cell, name=name) for cell, name in zip(cells, names, strict=True)]


def selected(cells: Sequence[Cell], only: Sequence[str]) -> set[str]:
    """Return the names of the cells that match at least one of the texts, or all names if there is no text.

    The name of a cell matches that cell only. ``AXIS=LABEL`` matches the cells with that label, where numbers are
    compared by value. The axis is given by its key, by the last part of the key, by its name in names of cells
    (``pretrain seed``), or by its name in reports with ``_`` in place of spaces. Any other text matches the cells whose
    names contain it. If there are none, the text lists labels, separated by commas in any order, and matches the cells
    that have all of these labels: ``MLM, trans`` is the same as ``trans, MLM``.

    Raises:
        InputError: A text matches no cell.
    """
    if not only:
        return {cell.name for cell in cells}
    return {name for text in only for name in _matching(cells, text)}


def _matching(cells: Sequence[Cell], text: str) -> set[str]:
    if whole := {cell.name for cell in cells if cell.name == text}:
        return whole
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    name, equals, label = text.partition("=")
    if equals and "," not in text and (meant := _called(axes, name)):
        if found := {cell.name for cell in cells if any(is_label(cell.labels.get(axis), label) for axis in meant)}:
            return found
        axes = dict.fromkeys(meant)
    elif (found := {cell.name for cell in cells if text and text in cell.name}) or (
        found := {cell.name for cell in cells if all(_has_label(cell, part.strip()) for part in text.split(","))}
    ):
        return found
    labels = {axis: list(dict.fromkeys(c.labels[axis] for c in cells if axis in c.labels)) for axis in axes}
    titles = {axis: title.replace(" ", "_") for axis, title in axis_titles(axes).items()}
    known = "; ".join(f"{titles[axis]}: {first_few(of, SHOWN)}" for axis, of in labels.items())
    hint = (
        f"choose AXIS=LABEL from {known}"
        if known
        else f"leave the option out, because {cells[0].name} is the only cell"
    )
    raise InputError("matches no cell", f"--only {text}", hint=hint, code="unknown")


def _has_label(cell: Cell, text: str) -> bool:
    """Return whether a cell has a label, given as ``LABEL`` or ``AXIS=LABEL``."""
    name, _, label = text.partition("=")
    return text in cell.labels.values() or any(
        is_label(cell.labels[axis], label) for axis in _called(cell.labels, name)
    )


def _called(axes: Iterable[str], name: str) -> list[str]:
    """Return the axes that a name refers to. Several axes may have the same last part."""
    titles = axis_titles(axes)
    return [a for a in titles if name in (a, a.rsplit(".", 1)[-1], short_key(a), titles[a].replace(" ", "_"))]
