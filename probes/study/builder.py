"""From the settings of a combination of the grid to the checked configs of its cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic import Field

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.table import ProbeConfig
from probes.study.cell import MODEL, SECOND, START, Cell, limits_of
from probes.study.config import LARGEST, StudyConfig, check_part_name
from probes.study.grid import Point, Setting
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.table import TASKS
from synthlang.catalogue import BASE, load_bases, merged
from synthlang.config import StrictModel, assigned, override, parse
from synthlang.errors import InputError, did_you_mean

PARTS = ("start", "pretrain", "second", "adjust", "tuned", "transfer")
NAMED = ("tasks", "probes")  # mappings of a name to a section
Place = tuple[str, ...]  # ("pretrain",) or ("tasks", NAME)
Keys = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A mapping: ``own`` keys over those of ``base``, then ``changes`` at keys, in order, each of which replaces."""

    base: Any
    own: Mapping[str, Any]
    changes: tuple[tuple[Sequence[str], Any], ...] = ()

    @classmethod
    def of(cls, value: Any) -> Section | None:
        """The section of a mapping as the YAML has it; None for null."""
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"must be a section of keys, or null, not {value!r}")
        return cls(value.get(BASE, []), {key: inner for key, inner in value.items() if key != BASE})

    def changed(self, keys: Sequence[str], value: Any) -> Section:
        """With another value at ``keys``; of ``base``, or of one of its files by number, it changes what is read
        first."""
        if keys[0] == BASE:
            return replace(self, base=assigned(self.base, keys[1:], value))
        return replace(self, changes=(*self.changes, (keys, value)))

    def data(self, read: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any]:
        """The whole mapping; ``read`` gives what a base says."""
        whole: dict[str, Any] = merged(read(self.base), self.own)
        return reduce(lambda data, change: assigned(data, *change), self.changes, whole)

    def says(self, *keys: str) -> bool:
        """Whether the study or the grid, and not just a base, has the key; of several, one within the other."""
        changes = (assigned({}, place, value) for place, value in self.changes)
        return any(_has(data, keys) for data in (self.own, *changes))


def _has(value: Any, keys: Sequence[str]) -> bool:
    return not keys or (isinstance(value, Mapping) and keys[0] in value and _has(value[keys[0]], keys[1:]))


class Draft:
    """What a cell is made of while the changes of its axes are applied, one after another."""

    def __init__(self, study: StudyConfig) -> None:
        self.values: dict[str, str | None] = {"source": study.source or None, "model": study.model}
        values: dict[Place, Any] = {(root,): getattr(study, root) for root in PARTS}
        values |= {(root, name): value for root in NAMED for name, value in (getattr(study, root) or {}).items()}
        self.sections = {place: Section.of(value) for place, value in values.items()}
        self.default_task = study.tasks is None

    def apply(self, setting: Setting) -> None:
        """Change one value; InputError for a key of something that the study does not have."""
        try:
            self._apply(setting.key.split("."), setting.value)
        except InputError as error:
            axis = "" if setting.axis == setting.key else f", axis {setting.axis!r}"
            raise InputError(f"{setting.key}: {error}{axis}") from error

    def _apply(self, keys: list[str], value: Any) -> None:
        root = keys[0]
        if root in self.values:
            if value is not None and not isinstance(value, str):
                raise InputError(f"must be a text, not {value!r}")
            self.values[root] = value
        elif root in NAMED and len(keys) == 1:
            if not isinstance(value, dict):
                raise InputError(f"must be a section of names and their settings, not {value!r}")
            self.sections = {place: section for place, section in self.sections.items() if place[0] != root}
            for name, part in value.items():
                self._replace((root, str(name)), part)
            self.default_task = self.default_task and root != "tasks"
        else:
            length = 2 if root in NAMED else 1
            self._change(tuple(keys[:length]), keys[length:], value)

    def _change(self, place: Place, keys: list[str], value: Any) -> None:
        if not keys:
            if value is None and place == ("transfer",):
                raise InputError("must be a section of keys, not null; tasks: {} takes all tasks away")
            self._replace(place, value)
            return
        section = self.sections.get(place)
        if section is None:
            known = ", ".join(name for root, *rest in self.sections for name in rest if root == place[0])
            hint = f"; there is {known}" if known else f": the study has no {'.'.join(place)}"
            raise InputError(f"there is nothing to change{hint}")
        self.sections[place] = section.changed(keys, value)

    def _replace(self, place: Place, value: Any) -> None:
        if place[0] in NAMED:
            check_part_name(*place)
        self.sections[place] = Section.of(value)
        self.default_task = self.default_task and place[0] != "tasks"

    def names(self, root: str) -> list[str]:
        return [place[1] for place, section in self.sections.items() if place[0] == root and section is not None]


def in_study(problem: str, where: str, model: type[pydantic.BaseModel]) -> str:
    """A problem of a config with its keys as they are written in a study; ``where`` is the section it stands in.

    Options of the command that reads such a config are keys of it, too.
    """
    if re.match(r"[\w.]+: unknown key", problem):
        return f"{where}.{problem}"
    name = rf"(?:{'|'.join(model.model_fields)})"
    key = rf"(?:(?:^|(?<=; )){name}(?=:)|(?<![\w./-]){name}(?=\.\w| \())"
    found = re.sub(key, lambda match: f"{where}.{match[0]}", problem)
    found = re.sub(rf"--({name})(?:-(\w+))?\b", lambda match: ".".join([where, *filter(None, match.groups())]), found)
    found = re.sub(rf"--set ({name})(?==)", rf"--set {where}.\1", found)
    return found if found.startswith(f"{where}.") else f"{where}: {found}"


def blamed_axis(problem: str, place: Place, point: Point) -> str:
    """The axis whose change a problem is about, as far as the key at its start tells."""
    wrong = problem.split(":", maxsplit=1)[0].split(".")
    for setting in reversed(point.settings):
        key = setting.key.split(".")
        # a task has also what all tasks have in common
        root = place if place[0] not in ("tasks", "tuned") or key[0] != "transfer" else ("transfer",)
        inside = key[len(root) :]
        if tuple(key[: len(root)]) == root and all(a == b for a, b in zip(inside, wrong, strict=False)):
            return f" (axis {setting.axis!r}" + (")" if setting.axis == setting.key else f" sets {setting.key})")
    return ""


def check_task(
    name: str, own: Mapping[str, Any], common: Mapping[str, Any], assigned_to_all: Mapping[Keys, Any]
) -> None:
    """Raise InputError for a task that is called like none and does not say which it is, and for one that has a value
    of its own in the place of one that was set for all tasks."""
    if "task" not in own and "task" not in common:
        hint = did_you_mean(name, list(TASKS))
        raise InputError(f"tasks.{name}: {hint}{name} is none of {', '.join(TASKS)}; name one with tasks.{name}.task")
    leaves = _leaves(own)
    for keys, value in assigned_to_all.items():
        if any(place[: len(keys)] == keys and (place, leaf) != (keys, value) for place, leaf in leaves.items()):
            key = ".".join(keys)
            raise InputError(f"transfer.{key} does not reach tasks.{name}, which has its own: set tasks.{name}.{key}")


def _leaves(value: Any, keys: Keys = ()) -> dict[Keys, Any]:
    """The values inside mappings of mappings, by their keys."""
    if not (isinstance(value, Mapping) and value):
        return {keys: value}
    found: dict[Keys, Any] = {}
    for key, inner in value.items():
        found |= _leaves(inner, (*keys, str(key)))
    return found


M = TypeVar("M", bound=pydantic.BaseModel)


class _Seed(StrictModel):
    seed: int = Field(ge=0, le=LARGEST)


class CellBuilder:
    """Makes cells; equal settings are parsed once and shared, and each base is read once."""

    def __init__(self, study: StudyConfig, path: Path | None, assignments: Sequence[str] = ()) -> None:
        self.study, self.path = study, path
        self._folder = Path() if path is None else path.parent
        self._bases: dict[str, dict[str, Any]] = {}
        self._parsed: dict[tuple[type[pydantic.BaseModel], str], Any] = {}
        self._common: dict[Keys, Any] = {}
        for assignment in assignments:
            if assignment.startswith("transfer."):
                self._common |= _leaves(override({}, [assignment])["transfer"])

    def cell(self, point: Point) -> Cell:
        """The cell of a combination; InputError in one line that names cell, key and axis."""
        name = point.name or self.study.name
        try:
            return self._cell(point, name)
        except InputError as error:
            raise InputError(str(error), f"{self.path or self.study.name} cell {name}") from error

    def _cell(self, point: Point, name: str) -> Cell:
        draft = Draft(self.study)
        for setting in point.settings:
            draft.apply(setting)
        _check_parts(draft)
        start = self._pretraining("start", draft, point)
        tuned, seed = self._tuning(draft, point)
        two = draft.sections["second",] is not None
        cell = Cell(
            name=name,
            labels=point.labels,
            overrides=point.overrides,
            start=start,
            pretrain=self._pretraining("pretrain", draft, point, start),
            second=self._pretraining("second", draft, point),
            model=draft.values["model"],
            adjust=self._adjustment(draft, point),
            tuned=tuned,
            tuned_seed=seed,
            tasks={name: self._task(name, draft, point, two) for name in self._task_names(draft)},
            probes={name: self._probe(name, draft, point, two) for name in draft.names("probes")},
        )
        _check_lengths(cell, draft.default_task)
        return cell

    def _pretraining(
        self, root: str, draft: Draft, point: Point, start: PretrainConfig | None = None
    ) -> PretrainConfig | None:
        section = draft.sections[root,]
        if section is None:
            return None
        data, source = self._data(draft, (root,)), draft.values["source"]
        if source is not None and section.says("source"):
            raise InputError(f"the source of a study stands at its top, not under {root} as well")
        languages = data.get("languages")
        all_named = isinstance(languages, list) and all(isinstance(m, dict) and m.get("source") for m in languages)
        if source is not None and not all_named:
            data = {**data, "source": source}
        if start is not None:
            if section.says("start", "model"):
                raise InputError(f"{root}.start.model: {root} starts from the run that start describes; leave it out")
            start_settings = data.get("start") or {}
            if not isinstance(start_settings, dict):
                raise InputError(
                    f"{root}.start: must be a section of keys, as in start: {{model: NAME}}, not {start_settings!r}"
                )
            data = {**data, "start": {**start_settings, "model": START}}
        return self._parse(PretrainConfig, data, (root,), point)

    def _adjustment(self, draft: Draft, point: Point) -> AdjustConfig | None:
        section = draft.sections["adjust",]
        if section is None:
            return None
        if section.says("model"):
            raise InputError("adjust.model: the model of the cell is adjusted; leave it out")
        return self._parse(AdjustConfig, {**self._data(draft, ("adjust",)), "model": MODEL}, ("adjust",), point)

    def _tuning(self, draft: Draft, point: Point) -> tuple[TransferConfig | None, int]:
        """The fine-tuning of the model that probes read, on top of what all tasks have in common; and its seed."""
        if draft.sections["tuned",] is None:
            return None, 0
        of_tuning = self._data(draft, ("tuned",))
        seed = self._parse(_Seed, {"seed": of_tuning.pop("seed", self.study.seeds[0])}, ("tuned",), point).seed
        data = merged(self._data(draft, ("transfer",)), of_tuning)
        return self._parse(TransferConfig, data, ("tuned",), point).of_source, seed

    def _task_names(self, draft: Draft) -> list[str]:
        if not draft.default_task:
            return draft.names("tasks")
        return [str(self._data(draft, ("transfer",)).get("task", TransferConfig().task))]

    def _task(self, name: str, draft: Draft, point: Point, two: bool) -> TransferConfig:
        place: Place = ("transfer",)
        data = self._data(draft, place)
        if not draft.default_task:
            of_task = self._data(draft, ("tasks", name))
            of_task = {"task": name, **of_task} if name in TASKS else of_task
            check_task(name, of_task, data, self._common)
            data, place = merged(data, of_task), ("tasks", name)
        if two and data.get("target_model") is None:
            data = {**data, "target_model": SECOND}
        return self._parse(TransferConfig, data, place, point)

    def _probe(self, name: str, draft: Draft, point: Point, two: bool) -> ProbeConfig:
        data = self._data(draft, ("probes", name))
        if two and "model2" not in data and SECOND not in repr(data):
            data = {**data, "model2": SECOND}
        return self._parse(ProbeConfig, data, ("probes", name), point)

    def _data(self, draft: Draft, place: Place) -> dict[str, Any]:
        section = draft.sections[place]
        assert section is not None, "asked for what the cell has"
        try:
            return section.data(self._base)
        except InputError as error:
            raise InputError(f"{'.'.join(place)}: {error}") from error

    def _base(self, names: Any) -> dict[str, Any]:
        key = repr(names)
        if key not in self._bases:
            self._bases[key] = load_bases(names, self._folder)
        return self._bases[key]

    def _parse(self, model: type[M], data: dict[str, Any], place: Place, point: Point) -> M:
        key = (model, repr(data))
        if key not in self._parsed:
            try:
                self._parsed[key] = parse(model, data)
            except InputError as error:
                whose = blamed_axis(str(error), place, point)
                raise InputError(f"{in_study(str(error), '.'.join(place), model)}{whose}") from error
        config: M = self._parsed[key]
        return config


def _check_parts(draft: Draft) -> None:
    start, pretrain, second, adjust, tuned = (draft.sections[root,] is not None for root in PARTS[:5])
    source, model = (draft.values[name] is not None for name in ("source", "model"))
    refused = {
        "a cell has either pretrain, a config, or model, the name of a model or its folder": pretrain == model,
        "start has no effect on a model that is not pretrained here": start and not pretrain,
        "a cell has either adjust or second: of two models there is none to adjust": adjust and second,
        "source has no effect on a model that is not pretrained here; name it in transfer.train": (
            source and not pretrain and not second
        ),
        "a cell has either tuned or second: of two models there is none to fine-tune for probes": tuned and second,
        "tuned has no effect on a cell without probes, which alone read the fine-tuned model": (
            tuned and not draft.names("probes")
        ),
    }
    if problem := next((problem for problem, is_so in refused.items() if is_so), None):
        raise InputError(problem)


def _check_lengths(cell: Cell, default_task: bool) -> None:
    """Raise InputError for rows that a model of the cell cannot read, as far as it is known how much it reads."""
    runs = (cell.pretrain, cell.start), (cell.second, None)
    known = [limits_of(run, start) for run, start in runs if run is not None]
    limit = min((limits.positions for limits in known if limits is not None), default=None)
    named = {"transfer" if default_task else f"tasks.{name}": task for name, task in cell.tasks.items()}
    for where, task in (named if cell.tuned is None else {**named, "tuned": cell.tuned}).items():
        if limit is not None and task.length is not None and task.length > limit:
            raise InputError(f"{where}.length {task.length} exceeds the {limit} tokens that the model reads")
