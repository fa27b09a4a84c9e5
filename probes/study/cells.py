"""The cells of a study: every combination of its grid, no two of them the same work or of one name; which are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes.report.numbers import first_few
from probes.results.labels import axis_titles, is_seed, numbers_of, short_key
from probes.study.builder import CellBuilder
from probes.study.cell import Cell
from probes.study.config import LearnedConfig, StudyConfig
from probes.study.graph import graph
from probes.study.grid import Choice, Point, with_assignments
from probes.study.stage import StageKeys
from synthlang.catalogue import load_yaml
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError
from synthlang.fingerprint import canonical_json, fingerprint
from synthlang.smoke import SUFFIX, smaller


def load_study(path: Path, assignments: list[str], smoke: bool = False) -> tuple[StudyConfig, list[Cell]]:
    """Read a study and check every cell of it before anything starts; with ``smoke`` it becomes one of seconds."""
    study = parse(StudyConfig, with_assignments(load_yaml(path, "studies"), assignments), path).beside(path.parent)
    cells = expand(study, path, assignments)
    return smoke_study(study, cells) if smoke else (study, cells)


def smoke_study(study: StudyConfig, cells: Sequence[Cell]) -> tuple[StudyConfig, list[Cell]]:
    """The study with small models and little data, and neither claims nor printed numbers.

    It has one seed of each kind, and of the others so many cells that each value of an axis is in one at least. Its
    name and scale say what it is, so that its results stand beside no others.
    """
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels if is_seed(axis))
    first = {axis: next(cell.labels[axis] for cell in cells if axis in cell.labels) for axis in axes}
    kept = [cell for cell in cells if all(cell.labels.get(axis, label) == label for axis, label in first.items())]
    found = list(_smaller_cells(_each_value_once(kept)))
    study = study.model_copy(
        update={
            "name": f"{study.name}{SUFFIX}",
            "title": f"Smoke run: {study.title or study.name}",
            "scale": "smoke",
            "seeds": study.seeds[:1],
            "paper": None,
            "claims": (),
            "learned": LearnedConfig(sup=0),  # nobody learns in seconds, and the page is to have all its parts
        }
    )
    _contain(study, found)
    return study, found


def _each_value_once(cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells that have a label which none before them has; one without labels."""
    seen = set[tuple[str, str]]()
    for cell in cells:
        if not cell.labels or not seen.issuperset(cell.labels.items()):
            seen |= cell.labels.items()
            yield cell


def _smaller_cells(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Cells of smaller configs; what they share stays shared."""
    known: dict[int, StrictModel] = {}

    def small(config: Any) -> Any:
        return None if config is None else known.setdefault(id(config), smaller(config))

    for cell in cells:
        changes: dict[str, Any] = {
            name: small(getattr(cell, name)) for name in ("start", "pretrain", "second", "adjust", "tuned")
        }
        for root in ("tasks", "probes"):
            changes[root] = {name: small(part) for name, part in getattr(cell, root).items()}
        yield replace(cell, **changes)


def expand(study: StudyConfig, path: Path | None = None, assignments: Sequence[str] = ()) -> list[Cell]:
    """The cells of a study; ``base`` files are looked for beside ``path``, the study's own file.

    A key's value is that of the last axis that sets it, else of the study, else of the base files; an axis that changes
    ``base`` changes the files below the study's keys. Raises InputError in one line that names cell, key and axis, also
    for one of the ``assignments`` (that the study was read with) that an axis hides, or to ``transfer`` a task's value.
    """
    try:
        points = study.grid.points()
    except InputError as error:
        raise error.inside(path=path) from error
    if not points:
        raise InputError("the grid has no cell", path)
    if problem := hidden(points, assignments):
        raise InputError(problem, path)
    build = CellBuilder(study, path, assignments)
    cells = [build.cell(point) for point in points]
    if problem := _unknown_tasks(study, cells):
        raise InputError(problem, path)
    stage_keys = StageKeys()
    problem = _two_the_same(cells, stage_keys, len(points) - len(study.grid.include)) or _labelled_the_same(points)
    if problem:
        raise InputError(problem, path)
    cells = _distinctly_named(cells, points, study)
    _contain(study, cells, stage_keys)
    return cells


def _contain(study: StudyConfig, cells: Sequence[Cell], stage_keys: StageKeys | None = None) -> None:
    """Tell the study what its cells are made of."""
    keys = stage_keys or StageKeys()
    study.contains(fingerprint("cells", cells=[[cell.name, _settings(cell, keys)] for cell in cells]))


def _unknown_tasks(study: StudyConfig, cells: Sequence[Cell]) -> str | None:
    """What is wrong if a limit is of a task that no cell has."""
    limits = study.learned.sup if study.learned is not None else None
    tasks = dict.fromkeys(name for cell in cells for name in cell.tasks)
    unknown = [name for name in limits if name not in tasks] if isinstance(limits, dict) else []
    return f"learned.sup: no task {unknown[0]!r}; there is {', '.join(tasks) or 'none'}" if unknown else None


def hidden(points: Sequence[Point], assignments: Sequence[str]) -> str | None:
    """What is wrong if an assignment changes nothing, since each cell has the key from an axis."""
    for key in (assignment.partition("=")[0] for assignment in assignments):
        axes = [
            next((s.axis for c in point.choices for s in c.settings if f"{key}.".startswith(f"{s.key}.")), None)
            for point in points
        ]
        if all(axis is not None for axis in axes):
            return (
                f"--set {key} changes nothing: the axis {axes[0]!r} sets it in every cell; set the values of the axis"
            )
    return None


def _settings(cell: Cell, stage_keys: StageKeys) -> str:
    """Of all settings of a cell; not of its name and labels."""
    configs = {name: stage_keys.digest(config) for name, config in cell.configs.items()}
    return fingerprint("cell", model=cell.model, tuned_seed=cell.tuned_seed, configs=configs)


def _two_the_same(cells: list[Cell], stage_keys: StageKeys, included: int) -> str | None:
    """What is wrong if two cells would be one, or the same work: stages with the same keys, as far as these are known
    without a look at any data. From the number ``included`` on they are those of grid.include."""
    equal: dict[str, int] = {}
    alike: dict[str, int] = {}
    for number, cell in enumerate(cells):
        first = equal.setdefault(_settings(cell, stage_keys), number)
        other = cells[first]
        if first < number and number >= included:
            what = "a cell of the product" if first < included else f"grid.include.{first - included}"
            return f"grid.include.{number - included} is already {what}: {other.name}"
        if first < number:
            return f"two cells of the grid are the same: {other.name!r} and {cell.name!r} have equal settings"
        other = cells[alike.setdefault(canonical_json(graph([cell], [0], stage_keys).of_cell[cell.name]), number)]
        if other is not cell:
            one, two = other.overrides, cell.overrides
            told = ", ".join(key for key in {**one, **two} if one.get(key, ...) != two.get(key, ...))
            return (
                f"two cells of the grid are the same: {other.name!r} and {cell.name!r} differ in nothing that their "
                f"results depend on (only in {told}); leave one out"
            )
    return None


def _labelled_the_same(points: list[Point]) -> str | None:
    """What is wrong if two cells have the same labels, or the same but for seeds and for different settings: results
    would take them for replicates.

    Values of one axis never have one label, but two entries of include may give one to different settings.
    """
    count = Counter(tuple(sorted(point.labels.items())) for point in points)
    first: dict[tuple[tuple[str, str], ...], tuple[Point, list[Choice]]] = {}
    for point in points:
        if count[tuple(sorted(point.labels.items()))] > 1:
            return (
                f"two cells of the grid have the same labels, {point.full_name}, by which results are told apart; "
                "give one a label of its own"
            )
        choices = [choice for choice in point.choices if not is_seed(choice.axis)]
        other, other_choices = first.setdefault(tuple(sorted((c.axis, c.label) for c in choices)), (point, choices))
        axis = next(
            (c.axis for c in choices for o in other_choices if c.axis == o.axis and c.settings != o.settings), None
        )
        if axis is not None:
            return (
                f"two cells of the grid have the label {point.labels[axis]!r} of {axis} for different settings, "
                f"{other.full_name} and {point.full_name}: results take cells that differ in seeds only for "
                "replicates; give one a label of its own"
            )
    return None


def _distinctly_named(cells: list[Cell], points: list[Point], study: StudyConfig) -> list[Cell]:
    """The cells with the names of their axes where the values alone would name two of them, and with a number where a
    label reads as the full name of another cell."""
    count = Counter(cell.name for cell in cells)
    full = [point.full_name or study.name for point in points]
    names = [name if count[cell.name] > 1 else cell.name for cell, name in zip(cells, full, strict=True)]
    twice, number = Counter(names), Counter[str]()
    for i, name in enumerate(names):
        if twice[name] > 1:
            number[name] += 1
            names[i] = f"{name} ({number[name]})"
    return [replace(cell, name=name) for cell, name in zip(cells, names, strict=True)]


SHOWN = 20


def selected(cells: Sequence[Cell], only: Sequence[str]) -> set[str]:
    """The names of the cells that agree with one of the texts at least; of all cells without any.

    ``AXIS=LABEL`` stands for the cells with that label, a number however it is written; the axis by its key, the last
    part of it, or what reports or the names of cells call it (``pretrain seed``). The name of a cell stands for that
    cell, any other text for the cells that have it in their name. Several of these with commas between them, in any
    order, stand for the cells that agree with each: ``MLM, trans`` as well as ``trans, MLM``.
    Raises InputError for a text that chooses no cell.
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
        if found := {cell.name for cell in cells if any(_same(cell.labels.get(axis), label) for axis in meant)}:
            return found
        axes = dict.fromkeys(meant)
    elif (found := {cell.name for cell in cells if text and text in cell.name}) or (
        found := {cell.name for cell in cells if all(_has_label(cell, part.strip()) for part in text.split(","))}
    ):
        return found
    labels = {axis: list(dict.fromkeys(c.labels[axis] for c in cells if axis in c.labels)) for axis in axes}
    known = "; ".join(f"{axis_titles(axes)[axis]}: {first_few(of, SHOWN)}" for axis, of in labels.items())
    raise InputError(f"--only {text}: no cell has it; name labels, as in AXIS=LABEL. There is {known or cells[0].name}")


def _has_label(cell: Cell, text: str) -> bool:
    """Whether a cell has a label, which may have the name of its axis and = in front."""
    name, _, label = text.partition("=")
    return text in cell.labels.values() or any(_same(cell.labels[axis], label) for axis in _called(cell.labels, name))


def _called(axes: Iterable[str], name: str) -> list[str]:
    """The axes of a name; several may have the same last part."""
    titles = axis_titles(axes)
    return [a for a in titles if name in (a, a.rsplit(".", 1)[-1], short_key(a), titles[a].replace(" ", "_"))]


def _same(cell_label: str | None, label: str) -> bool:
    if cell_label is None or cell_label == label:
        return cell_label == label
    numbers = numbers_of([cell_label, label])
    return numbers is not None and "%" not in cell_label + label and numbers[cell_label] == numbers[label]
