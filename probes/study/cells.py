"""The cells of a study: every combination of its grid as checked configs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import pydantic
from pydantic import Field

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measure.config import ProbeConfig
from probes.study.assignments import with_assignments
from probes.study.blame import blame, in_study
from probes.study.config import LARGEST, StudyConfig
from probes.study.digest import digest_of
from probes.study.grid import Point
from probes.study.sameness import Sameness
from probes.study.sections import Bases, Draft, Place
from probes.transfer.config import TaskName, TransferConfig
from synthlang.config import StrictModel, load_yaml, merged, parse
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint

M = TypeVar("M", bound=pydantic.BaseModel)
MODEL = "cell:model"  # what stands for the cell's own model, before it is adjusted, where a config names one
SECOND = "cell:second"  # and for its second one


@dataclass(frozen=True)
class Cell:
    """One combination of the grid.

    name       unique in the study
    labels     axis → label
    overrides  dotted key → value, the changes to the base
    model      instead of ``pretrain``
    adjust     its model is ``cell:model``, filled in when it runs
    tuned      what the probes' model is fine-tuned on before they read it, and with which seed
    tasks      by name; ``target_model`` is ``cell:second`` where there is a second model
    probes     by name; ``model2`` likewise
    """

    name: str
    labels: Mapping[str, str]
    overrides: Mapping[str, Any]
    pretrain: PretrainConfig | None
    second: PretrainConfig | None
    model: str | None
    adjust: AdjustConfig | None
    tasks: Mapping[str, TransferConfig]
    probes: Mapping[str, ProbeConfig]
    tuned: TransferConfig | None = None
    tuned_seed: int = 0

    @property
    def content(self) -> str:
        """Of all settings; not of name and labels."""
        parts = {part: None if held is None else digest_of(held) for part, held in self._single()}
        named = {part: {n: digest_of(c) for n, c in held.items()} for part, held in self._named()}
        tuned = {} if self.tuned is None else {"tuned": [digest_of(self.tuned), self.tuned_seed]}
        return fingerprint("cell", model=self.model, **parts, **named, **tuned)

    def _single(self) -> Iterable[tuple[str, pydantic.BaseModel | None]]:
        return ("pretrain", self.pretrain), ("second", self.second), ("adjust", self.adjust)

    def _named(self) -> Iterable[tuple[str, Mapping[str, pydantic.BaseModel]]]:
        return ("tasks", self.tasks), ("probes", self.probes)


def load_study(path: Path, assignments: list[str]) -> tuple[StudyConfig, list[Cell]]:
    """Read a study and check every cell of it before anything starts."""
    study = parse(StudyConfig, with_assignments(load_yaml(path), assignments), path).beside(path.parent)
    return study, expand(study, path)


def expand(study: StudyConfig, path: Path | None = None) -> list[Cell]:
    """The cells of a study; ``base`` files are looked for beside ``path``, the study's own file.

    A key's value is that of the last axis that sets it, else of the study, else of the base files; an axis that changes
    ``base`` changes the files below the study's keys. Raises InputError in one line that names cell, key and axis.
    """
    try:
        points = study.grid.points()
    except InputError as error:
        raise InputError(str(error), path) from error
    if not points:
        raise InputError("the grid has no cell", path)
    build = _Builder(study, path)
    cells = [build.cell(point) for point in points]
    problem = _two_the_same(cells, len(points) - len(study.grid.include))
    if problem:
        raise InputError(problem, path)
    cells = _distinctly_named(cells, points, study)
    study.contains(fingerprint("cells", cells=[[cell.name, cell.content] for cell in cells]))
    return cells


def _two_the_same(cells: list[Cell], included: int) -> str | None:
    """What is wrong if two cells would be one; from the number ``included`` on they are those of grid.include."""
    equal: dict[str, int] = {}
    alike: dict[str, int] = {}
    sameness = Sameness()
    for number, cell in enumerate(cells):
        first = equal.setdefault(cell.content, number)
        other = cells[first]
        if first < number and number >= included:
            what = "a cell of the product" if first < included else f"grid.include.{first - included}"
            return f"grid.include.{number - included} is already {what}: {other.name}"
        if first < number:
            return f"two cells of the grid are the same: {other.name!r} and {cell.name!r} have equal settings"
        other = cells[alike.setdefault(sameness.of(cell), number)]
        if other is not cell:
            told = ", ".join(key for key in {**other.overrides, **cell.overrides} if _differ(key, other, cell))
            return (
                f"two cells of the grid are the same: {other.name!r} and {cell.name!r} differ in nothing that their "
                f"results depend on (only in {told}); leave one out"
            )
    return None


def _differ(key: str, one: Cell, other: Cell) -> bool:
    missing = object()
    return bool(one.overrides.get(key, missing) != other.overrides.get(key, missing))


def _distinctly_named(cells: list[Cell], points: list[Point], study: StudyConfig) -> list[Cell]:
    """The cells with the names of their axes where the values alone would name two of them."""
    count = Counter(cell.name for cell in cells)
    named = [
        replace(cell, name=point.full_name or study.name) if count[cell.name] > 1 else cell
        for cell, point in zip(cells, points, strict=True)
    ]
    twice = Counter(cell.name for cell in named)
    number: Counter[str] = Counter()
    for i, cell in enumerate(named):
        if twice[cell.name] > 1:  # what tells them apart has no part in a name, as the folders of base files
            number[cell.name] += 1
            named[i] = replace(cell, name=f"{cell.name} ({number[cell.name]})")
    return named


class _Seed(StrictModel):
    seed: int = Field(ge=0, le=LARGEST)


class _Builder:
    """Makes cells; equal settings are parsed once and shared."""

    def __init__(self, study: StudyConfig, path: Path | None) -> None:
        self.study, self.path = study, path
        self.bases = Bases(Path() if path is None else path.parent)
        self._parsed: dict[tuple[type[pydantic.BaseModel], str], Any] = {}

    def cell(self, point: Point) -> Cell:
        name = point.name or self.study.name
        try:
            return self._cell(point, name)
        except InputError as error:
            raise InputError(str(error), f"{self.path or self.study.name} cell {name}") from error

    def _cell(self, point: Point, name: str) -> Cell:
        draft = Draft(self.study)
        for setting in point.settings:
            draft.apply(setting)
        pretrain = self._pretraining("pretrain", draft, point)
        second = self._pretraining("second", draft, point)
        model = draft.values["model"]
        if (pretrain is None) == (model is None):
            raise InputError("a cell has either pretrain, a config, or model, the name of a model or its folder")
        adjust = self._adjustment(draft, point)
        if adjust is not None and second is not None:
            raise InputError("a cell has either adjust or second: of two models there is none to adjust")
        if pretrain is None and draft.values["source"] is not None and second is None:
            raise InputError("source has no effect on a model that is not pretrained here; name it in transfer.train")
        tuned, seed = self._tuning(draft, point)
        if tuned is not None and second is not None:
            raise InputError("a cell has either tuned or second: of two models there is none to fine-tune for probes")
        tasks = {n: self._task(n, draft, point, second is not None) for n in self._task_names(draft)}
        probes = {n: self._probe(n, draft, point, second is not None) for n in draft.names("probes")}
        if tuned is not None and not probes:
            raise InputError("tuned has no effect on a cell without probes, which alone read the fine-tuned model")
        named = {"transfer" if draft.default_task else f"tasks.{task}": config for task, config in tasks.items()}
        for where, config in (named if tuned is None else {**named, "tuned": tuned}).items():
            _check_length(where, config, pretrain, second)
        parts = (pretrain, second, model, adjust, tasks, probes, tuned, seed)
        return Cell(name, point.labels, point.overrides, *parts)

    def _pretraining(self, root: str, draft: Draft, point: Point) -> PretrainConfig | None:
        section = draft.sections[root,]
        if section is None:
            return None
        data, source = self._data(draft, (root,)), draft.values["source"]
        if source is not None and section.says("source"):
            raise InputError(f"the source of a study stands at its top, not under {root} as well")
        if source is not None and not _names_its_own(data):
            data = {**data, "source": source}
        return self._parse(PretrainConfig, data, (root,), point, root)

    def _adjustment(self, draft: Draft, point: Point) -> AdjustConfig | None:
        section = draft.sections["adjust",]
        if section is None:
            return None
        if section.says("model"):
            raise InputError("adjust.model: the model of the cell is adjusted; leave it out")
        data = {**self._data(draft, ("adjust",)), "model": MODEL}
        return self._parse(AdjustConfig, data, ("adjust",), point, "adjust")

    def _tuning(self, draft: Draft, point: Point) -> tuple[TransferConfig | None, int]:
        """The fine-tuning of the model that probes read, on top of what all tasks have in common; and its seed."""
        if draft.sections["tuned",] is None:
            return None, 0
        own = self._data(draft, ("tuned",))
        seed = self._parse(_Seed, {"seed": own.get("seed", self.study.seeds[0])}, ("tuned",), point, "tuned").seed
        data = merged(self._data(draft, ("transfer",)), {key: value for key, value in own.items() if key != "seed"})
        return self._parse(TransferConfig, data, ("tuned",), point, "tuned").of_source, seed

    def _task_names(self, draft: Draft) -> list[str]:
        if not draft.default_task:
            return draft.names("tasks")
        return [str(self._data(draft, ("transfer",)).get("task", TransferConfig().task))]

    def _task(self, name: str, draft: Draft, point: Point, second: bool) -> TransferConfig:
        data, where = self._data(draft, ("transfer",)), "transfer"
        place: Place = ("transfer",)
        if not draft.default_task:
            own = self._data(draft, ("tasks", name))
            if name in get_args(TaskName):
                own = {"task": name, **own}
            data, where, place = merged(data, own), f"tasks.{name}", ("tasks", name)
        if second and data.get("target_model") is None:
            data = {**data, "target_model": SECOND}
        return self._parse(TransferConfig, data, place, point, where)

    def _probe(self, name: str, draft: Draft, point: Point, second: bool) -> ProbeConfig:
        data = self._data(draft, ("probes", name))
        if second and "model2" not in data and SECOND not in repr(data):
            data = {**data, "model2": SECOND}
        return self._parse(ProbeConfig, data, ("probes", name), point, f"probes.{name}")

    def _data(self, draft: Draft, place: Place) -> dict[str, Any]:
        section = draft.sections[place]
        assert section is not None, "asked for what the cell has"
        try:
            return section.data(self.bases)
        except InputError as error:
            raise InputError(f"{'.'.join(place)}: {error}") from error

    def _parse(self, model: type[M], data: dict[str, Any], place: Place, point: Point, where: str) -> M:
        key = (model, repr(data))
        if key not in self._parsed:
            try:
                self._parsed[key] = parse(model, data)
            except InputError as error:
                whose = blame(str(error), place, point)
                raise InputError(f"{in_study(str(error), where, model)}{whose}") from error
        config: M = self._parsed[key]
        return config


def _names_its_own(data: Mapping[str, Any]) -> bool:
    """Whether every language of a pretraining config names its source."""
    languages = data.get("languages")
    return isinstance(languages, list) and all(isinstance(m, dict) and m.get("source") for m in languages)


def positions_of(pretrain: PretrainConfig) -> int | None:
    """How many tokens the model of a run reads at once; None where a checkpoint decides."""
    return None if pretrain.start else pretrain.model.positions or pretrain.batch.length


def _check_length(
    where: str, task: TransferConfig, pretrain: PretrainConfig | None, second: PretrainConfig | None
) -> None:
    """Raise InputError for rows that a model of the cell cannot read."""
    known = [positions_of(run) for run in (pretrain, second) if run is not None]
    limit = min((length for length in known if length is not None), default=None)
    if limit is not None and task.length > limit:
        raise InputError(f"{where}.length {task.length} exceeds the {limit} tokens that the model reads")
