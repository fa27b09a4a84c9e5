"""From the settings of a combination of the grid to the checked configs of its cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic import Field

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures import ProbeConfig
from probes.study.cell import MODEL, SECOND, START, Cell, reach_of
from probes.study.config import LARGEST, StudyConfig, check_part_name
from probes.study.grid import Point, Setting
from probes.transfer.config import TransferConfig
from probes.transfer.tasks import TASKS
from synthlang.catalogue import BASE, load_bases, merged
from synthlang.config import StrictModel, assigned, override, parse
from synthlang.errors import InputError, did_you_mean

NAMED = ("tasks", "probes")  # mappings of a name to a section
Place = tuple[str, ...]  # ("pretrain",) or ("tasks", NAME)


class Bases:
    """What ``base:`` names, each read once: files, with paths from the study's folder, and entries of the catalogue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, dict[str, Any]] = {}

    def data(self, names: Any) -> dict[str, Any]:
        """What the base, or the bases one over another, say; InputError if one is not there."""
        key = repr(names)
        if key not in self._read:
            self._read[key] = load_bases(names, self.folder)
        return self._read[key]


@dataclass
class Section:
    """A mapping: ``own`` keys over those of ``base``, then ``changes`` at keys, in order, each of which replaces."""

    base: Any
    own: dict[str, Any]
    changes: list[tuple[list[str], Any]] = field(default_factory=list)

    @classmethod
    def of(cls, value: Any) -> Section | None:
        """The section of a mapping as the YAML has it; None for null."""
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"must be a mapping or null, not {value!r}")
        return cls(value.get(BASE, []), {key: held for key, held in value.items() if key != BASE})

    def change(self, keys: list[str], value: Any) -> None:
        """Another value at ``keys``; of ``base``, or of one of its files by number, it changes what is read first."""
        if keys[0] == BASE:
            self.base = assigned(self.base, keys[1:], value)
        else:
            self.changes.append((keys, value))

    def data(self, bases: Bases) -> dict[str, Any]:
        """The whole mapping."""
        result = merged(bases.data(self.base), self.own)
        for keys, value in self.changes:
            result = assigned(result, keys, value)
        return result

    def says(self, *key: str) -> bool:
        """Whether the study or the grid, and not just a base, has the key; of several, one within the other."""
        return _has(self.own, key) or any(
            tuple(keys[: len(key)]) == key or (key[: len(keys)] == tuple(keys) and _has(value, key[len(keys) :]))
            for keys, value in self.changes
        )


class Draft:
    """What a cell is made of while the changes of its axes are applied, one after another."""

    def __init__(self, study: StudyConfig) -> None:
        self.values: dict[str, str | None] = {"source": study.source or None, "model": study.model}
        self.sections: dict[Place, Section | None] = {}
        self.default_task = study.tasks is None
        for root in ("start", "pretrain", "second", "adjust", "transfer", "tuned"):
            self.sections[(root,)] = _section(root, getattr(study, root))
        for root in NAMED:
            for name, value in (getattr(study, root) or {}).items():
                self.sections[root, name] = _section(f"{root}.{name}", value)

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
            self._replace(root, value)
        else:
            self._change(tuple(keys[: 1 + (root in NAMED)]), keys[1 + (root in NAMED) :], value)

    def _replace(self, root: str, value: Any) -> None:
        """All tasks or probes at once."""
        if not isinstance(value, dict):
            raise InputError(f"must be a mapping of names, not {value!r}")
        self.sections = {place: held for place, held in self.sections.items() if place[0] != root}
        for name, held in value.items():
            check_part_name(root, str(name))
            self.sections[root, str(name)] = Section.of(held)
        self.default_task = self.default_task and root != "tasks"

    def _change(self, place: Place, keys: list[str], value: Any) -> None:
        if not keys:
            if value is None and place == ("transfer",):
                raise InputError("must be a mapping, not null; tasks: {} takes all tasks away")
            if place[0] in NAMED:
                check_part_name(*place)
            self.sections[place] = Section.of(value)
            self.default_task = self.default_task and place[0] != "tasks"
            return
        section = self.sections.get(place)
        if section is None:
            known = ", ".join(name for root, *rest in self.sections for name in rest if root == place[0])
            hint = f"; there is {known}" if known else f": the study has no {'.'.join(place)}"
            raise InputError(f"there is nothing to change{hint}")
        # a cell changes sections of its own
        self.sections[place] = section = Section(section.base, section.own, [*section.changes])
        section.change(keys, value)

    def names(self, root: str) -> list[str]:
        """The tasks or probes that are not null, in order."""
        return [place[1] for place, held in self.sections.items() if place[0] == root and held is not None]


def _has(value: Any, keys: Sequence[str]) -> bool:
    """Whether a mapping of mappings has a key within a key … ."""
    if not keys:
        return True
    return isinstance(value, dict) and keys[0] in value and _has(value[keys[0]], keys[1:])


def _section(where: str, value: Any) -> Section | None:
    try:
        return Section.of(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


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


def blame(problem: str, place: Place, point: Point) -> str:
    """The axis whose change a problem is about, as far as the key at its start tells."""
    key = problem.split(":", maxsplit=1)[0].split(".")
    for setting in reversed(point.settings):
        if (keys := _inside(setting, place)) is not None and all(a == b for a, b in zip(keys, key, strict=False)):
            return f" (axis {setting.axis!r}" + (")" if setting.axis == setting.key else f" sets {setting.key})")
    return ""


def _inside(setting: Setting, place: Place) -> list[str] | None:
    """The key of a change inside a section, of a task also in what all tasks have in common."""
    keys = setting.key.split(".")
    if place[0] in ("tasks", "tuned") and keys[0] == "transfer":
        return keys[1:]
    return keys[len(place) :] if tuple(keys[: len(place)]) == place else None


ROOT = "transfer."
Keys = tuple[str, ...]


def common_settings(assignments: Sequence[str]) -> dict[Keys, Any]:
    """What ``--set transfer.KEY=VALUE`` sets of all tasks: keys below ``transfer`` → value."""
    found: dict[Keys, Any] = {}
    for assignment in assignments:
        if assignment.startswith(ROOT):
            found |= dict(_leaves(override({}, [assignment], f"{ROOT}train_items=300")["transfer"]))
    return found


def _leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*keys, str(key)))
    else:
        yield keys, value


def check_task(name: str, own: Mapping[str, Any], common: Mapping[str, Any]) -> None:
    """Raise InputError for a task that is called like none and does not say which it is."""
    if "task" in own or "task" in common:
        return
    hint = did_you_mean(name, list(TASKS))
    raise InputError(f"tasks.{name}: {hint}{name} is none of {', '.join(TASKS)}; name one with tasks.{name}.task")


def check_hidden(name: str, own: Mapping[str, Any], common: Mapping[Keys, Any]) -> None:
    """Raise InputError where a task has a value of its own in the place of one that was set for all tasks."""
    for keys, value in common.items():
        held: Any = own
        for key in keys:
            held = held.get(key, _NOTHING) if isinstance(held, Mapping) else _NOTHING
        if held is not _NOTHING and held != value:
            key = ".".join(keys)
            raise InputError(f"transfer.{key} does not reach tasks.{name}, which has its own: set tasks.{name}.{key}")


_NOTHING = object()


M = TypeVar("M", bound=pydantic.BaseModel)


class _Seed(StrictModel):
    seed: int = Field(ge=0, le=LARGEST)


class CellBuilder:
    """Makes cells; equal settings are parsed once and shared."""

    def __init__(self, study: StudyConfig, path: Path | None, assignments: Sequence[str] = ()) -> None:
        self.study, self.path = study, path
        self._common = common_settings(assignments)
        self.bases = Bases(Path() if path is None else path.parent)
        self._parsed: dict[tuple[type[pydantic.BaseModel], str], Any] = {}

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
        pretrain = self._pretraining("pretrain", draft, point, start)
        second = self._pretraining("second", draft, point)
        adjust = self._adjustment(draft, point)
        tuned, seed = self._tuning(draft, point)
        tasks = {n: self._task(n, draft, point, second is not None) for n in self._task_names(draft)}
        probes = {n: self._probe(n, draft, point, second is not None) for n in draft.names("probes")}
        parts = (pretrain, second, draft.values["model"], adjust, tasks, probes, tuned, seed, start)
        cell = Cell(name, point.labels, point.overrides, *parts)
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
        if source is not None and not _names_its_own(data):
            data = {**data, "source": source}
        if start is not None:
            if section.says("start", "model"):
                raise InputError(f"{root}.start.model: {root} starts from the run that start describes; leave it out")
            own = data.get("start") or {}
            if not isinstance(own, dict):
                raise InputError(f"{root}.start: must be a mapping, not {own!r}")
            data = {**data, "start": {**own, "model": START}}
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
            if name in TASKS:
                own = {"task": name, **own}
            check_task(name, own, data)
            check_hidden(name, own, self._common)
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


def _check_parts(draft: Draft) -> None:
    """Raise InputError for parts that no cell has together."""
    start, pretrain, second, adjust, tuned = (
        draft.sections[root,] is not None for root in ("start", "pretrain", "second", "adjust", "tuned")
    )
    if pretrain == (draft.values["model"] is not None):
        raise InputError("a cell has either pretrain, a config, or model, the name of a model or its folder")
    if start and not pretrain:
        raise InputError("start has no effect on a model that is not pretrained here")
    if adjust and second:
        raise InputError("a cell has either adjust or second: of two models there is none to adjust")
    if draft.values["source"] is not None and not pretrain and not second:
        raise InputError("source has no effect on a model that is not pretrained here; name it in transfer.train")
    if tuned and second:
        raise InputError("a cell has either tuned or second: of two models there is none to fine-tune for probes")
    if tuned and not draft.names("probes"):
        raise InputError("tuned has no effect on a cell without probes, which alone read the fine-tuned model")


def _check_lengths(cell: Cell, default_task: bool) -> None:
    """Raise InputError for rows that a model of the cell cannot read, as far as it is known how much it reads."""
    runs = (cell.pretrain, cell.start), (cell.second, None)
    known = [reach_of(run, start) for run, start in runs if run is not None]
    limit = min((reach.positions for reach in known if reach is not None), default=None)
    named = {"transfer" if default_task else f"tasks.{name}": task for name, task in cell.tasks.items()}
    for where, task in (named if cell.tuned is None else {**named, "tuned": cell.tuned}).items():
        if limit is not None and task.length > limit:
            raise InputError(f"{where}.length {task.length} exceeds the {limit} tokens that the model reads")
