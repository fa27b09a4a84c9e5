"""From the settings of a combination of the grid to the checked configs of its cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic import Field

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures import ProbeConfig
from probes.study.blame import blame, in_study
from probes.study.cell import MODEL, SECOND, START, Cell, reach_of
from probes.study.config import LARGEST, StudyConfig
from probes.study.grid import Point
from probes.study.sections import Bases, Draft, Place
from probes.study.task_names import check_hidden, check_task, common_settings
from probes.transfer.config import TransferConfig
from probes.transfer.tasks import TASKS
from synthlang.config import StrictModel, merged, parse
from synthlang.errors import InputError

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
