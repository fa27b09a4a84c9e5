"""Construction of cells: the settings of a combination of the grid become checked configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic import Field

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.folder import named_steps
from probes.measures.table import ProbeConfig
from probes.models.names import CellModel, natural_target, run_config
from probes.study.axes import Setting
from probes.study.cell import Cell, in_cell
from probes.study.config import LARGEST, StudyConfig
from probes.study.draft import SECTIONS, Draft, Keys, Place, Section, inside, of_axis, setting_keys
from probes.study.grid import GridPoint
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.table import TASKS
from synthlang.catalogue import load_bases, merged
from synthlang.config import StrictModel, override, parse
from synthlang.config_errors import show_value
from synthlang.errors import Code, InputError, did_you_mean
from synthlang.files import user_path


def setting_of(error: InputError, place: Place, point: GridPoint) -> Setting | None:
    """Return the change that set the wrong value of an error, or None if no axis set it.

    If several changes set the value, the last one is returned, because it takes precedence.

    Args:
        error: An error whose keys begin with ``place``.
        place: The keys of the section with the wrong value.
        point: The combination whose changes are searched.
    """
    wrong = error.keys[len(place) :]
    for setting in reversed(point.settings):
        keys = setting_keys(setting)
        # tasks, and the fine-tuning for probes, inherit the settings of ``transfer``
        root = ("transfer",) if keys[0] == "transfer" and place[0] in ("tasks", "finetuned") else place
        own = keys[len(root) :]
        if keys[: len(root)] == root and (wrong or not own) and all(a == b for a, b in zip(own, wrong, strict=False)):
            return setting
    return None


def _leaves(value: Any, keys: Keys = ()) -> dict[Keys, Any]:
    """Flatten nested mappings: path of keys → value. An empty mapping is a value."""
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
    """Builder of the cells of a study.

    Cells with equal settings share one config. Each base file and each run is read once.

    Args:
        study: The study.
        path: The file of the study, or None. The names of base files are relative to its folder.
        assignments: Texts ``KEY=VALUE`` that changed the study. A task must not override an assignment to
            ``transfer``.

    Raises:
        InputError: An assignment to ``transfer`` is malformed.
    """

    def __init__(self, study: StudyConfig, path: Path | None, assignments: Sequence[str] = ()) -> None:
        self.study, self.path = study, path
        self._folder = Path() if path is None else path.parent
        self._bases: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, PretrainConfig | None] = {}
        self._parsed: dict[tuple[type[pydantic.BaseModel], str], Any] = {}
        common = (assignment for assignment in assignments if assignment.startswith("transfer."))
        self._assigned = {keys for one in common for keys in _leaves(override({}, [one])["transfer"])}

    def cell(self, point: GridPoint) -> Cell:
        """Return the cell of a combination of the grid.

        Raises:
            InputError: A setting is wrong, or a base file or another file that the cell needs cannot be read. The error
                names the study, the cell and the keys.
        """
        name = point.name or self.study.name
        try:
            return self._cell(point, name)
        except InputError as error:
            raise in_cell(error, f"{self.path or self.study.name} cell {name}") from error

    def _cell(self, point: GridPoint, name: str) -> Cell:
        draft = Draft(self.study)
        for setting in point.settings:
            draft.apply(setting)
        _check_parts(draft)
        init_from = self._pretraining("init_from", draft, point)
        finetuned, seed = self._finetuning(draft, point)
        pretrain = self._pretraining("pretrain", draft, point, init_from)
        run = self._run_of(str(draft.values["model"])) if pretrain is None else pretrain
        return Cell(
            name=name,
            labels=point.labels,
            overrides=point.overrides,
            init_from=init_from,
            pretrain=pretrain,
            target_model=self._pretraining("target_model", draft, point),
            model=draft.values["model"],
            source=draft.values["source"],
            adjust=self._adjustment(draft, point),
            finetuned=finetuned,
            finetuned_seed=seed,
            tasks={name: self._task(name, draft, point, run) for name in self._task_names(draft)},
            probes={name: self._probe(name, draft, point, run) for name in draft.names("probes")},
        )

    def _pretraining(
        self, root: str, draft: Draft, point: GridPoint, init_from: PretrainConfig | None = None
    ) -> PretrainConfig | None:
        section = draft.sections[root,]
        if section is None:
            return None
        data, source = self._data(draft, (root,)), draft.values["source"]
        if source is not None and section.sets("source"):
            reason = "conflicts with the key source of the study, which all pretrainings use"
            raise InputError(reason, keys=(root, "source"), hint="remove one of the two", code="conflict")
        languages = data.get("languages")
        all_named = isinstance(languages, list) and all(isinstance(m, dict) and m.get("source") for m in languages)
        if source is not None and not all_named:
            data = {**data, "source": source}
        if init_from is not None:
            data = {**data, "start": _start_settings(root, section, data)}
        return self._parse(PretrainConfig, data, (root,), point)

    def _run_of(self, model: str) -> PretrainConfig | None:
        """Return the settings of the run in a folder, or None if ``model`` is not a run or does not exist."""
        if model not in self._runs:  # the check of the stages refuses a folder that does not exist
            self._runs[model] = run_config(model) if user_path(model).exists() else None
        return self._runs[model]

    def _adjustment(self, draft: Draft, point: GridPoint) -> AdjustConfig | None:
        section, place = draft.sections["adjust",], ("adjust",)
        if section is None:
            return None
        if section.sets("model"):
            reason = "cannot be set, because a study adjusts the model of the cell"
            raise InputError(reason, keys=(*place, "model"), hint="remove this key", code="conflict")
        data = {**self._data(draft, place), "model": CellModel.ORIGINAL.value}
        return self._parse(AdjustConfig, data, place, point)

    def _finetuning(self, draft: Draft, point: GridPoint) -> tuple[TransferConfig | None, int]:
        """Return the settings and the seed of the fine-tuning before the probes, or None and 0 if there is none.

        Settings that the section ``finetuned`` lacks come from ``transfer``. The default seed is the first seed of the
        study.
        """
        place = ("finetuned",)
        if draft.sections[place] is None:
            return None, 0
        own = self._data(draft, place)
        seed = self._parse(_Seed, {"seed": own.pop("seed", self.study.seeds[0])}, place, point).seed
        data = merged(self._data(draft, ("transfer",)), own)
        return self._parse(TransferConfig, data, place, point).of_source, seed

    def _task_names(self, draft: Draft) -> list[str]:
        if not draft.default_task:
            return draft.names("tasks")
        return [str(self._data(draft, ("transfer",)).get("task", TransferConfig().task))]

    def _task(self, name: str, draft: Draft, point: GridPoint, run: PretrainConfig | None) -> TransferConfig:
        place: Place = ("transfer",)
        data = self._data(draft, place)
        if not draft.default_task:
            own = self._data(draft, ("tasks", name))
            own = {"task": name, **own} if name in TASKS else own
            if "task" not in own and "task" not in data:
                hint = f"{did_you_mean(name, list(TASKS))}set this key to one of {', '.join(TASKS)}"
                reason = f"is missing, and {name!r} is not the name of a task"
                raise InputError(reason, keys=("tasks", name, "task"), hint=hint, code="missing")
            self._check_common(name, own, draft)
            data, place = merged(data, own), ("tasks", name)
        if draft.sections["target_model",] is not None and data.get("target_model") is None:
            data = {**data, "target_model": CellModel.TARGET.value}
        found = None if data.get("target_model") else _natural_target(run, data, place)
        if found is not None:
            if data.get("target") is None:
                reason = f"is missing: {found} is a natural language, so the task needs labelled sentences in {found}"
                hint = "set target.test, for SUP also target.train, and set train if the pretraining text has no labels"
                raise InputError(reason, keys=(*place, "target"), hint=hint, code="missing")
            data = {**data, "language": found}
        return self._parse(TransferConfig, data, place, point)

    def _check_common(self, name: str, own: Mapping[str, Any], draft: Draft) -> None:
        """Raise InputError if a task overrides a key of ``transfer`` that the study sets for all tasks.

        The study itself may set the key for the task, unless an assignment sets it for all tasks. A base file may not.
        The key ``task`` is checked for an assignment only, because the name of a task may be its task.
        """
        common, section = draft.sections["transfer",], draft.sections["tasks", name]
        assert common is not None and section is not None, "only sections that the cell has are read"
        leaves = _leaves(own)
        for keys, value in _leaves(common.data(lambda _: {})).items():
            if not keys or (keys not in self._assigned and (keys == ("task",) or section.sets(*keys))):
                continue
            if any(place[: len(keys)] == keys and (place, leaf) != (keys, value) for place, leaf in leaves.items()):
                hint = f"set tasks.{name}.{'.'.join(keys)} instead"
                reason = f"tasks.{name} overrides this key"
                raise InputError(reason, keys=("transfer", *keys), hint=hint, code="no_effect")

    def _probe(self, name: str, draft: Draft, point: GridPoint, run: PretrainConfig | None) -> ProbeConfig:
        data = self._data(draft, ("probes", name))
        has_two = draft.sections["target_model",] is not None
        if has_two and "model2" not in data and not _has_value(data, CellModel.TARGET):
            data = {**data, "model2": CellModel.TARGET.value}
        found = None if data.get("model2") else _natural_target(run, data, ("probes", name))
        data = data if found is None else {**data, "language": found, "natural": True}
        config = self._parse(ProbeConfig, data, ("probes", name), point)
        if config.checkpoints == "all":
            self._check_checkpoints(name, draft, run)
        return config

    def _check_checkpoints(self, name: str, draft: Draft, run: PretrainConfig | None) -> None:
        """Raise InputError if a probe of all checkpoints lacks a pretraining of this study with several checkpoints.

        The cell may not have an adjustment, a fine-tuning before the probes, or a second model.
        """
        keys = ("probes", name, "checkpoints")
        others = [key for key in ("adjust", "finetuned", "target_model") if draft.sections[key,] is not None]
        if draft.sections["pretrain",] is None or run is None or others:
            reason = "'all' needs a pretraining of this study" + (f", without {others[0]}" if others else "")
            raise InputError(reason, keys=keys, hint="set this key to selected", code="conflict")
        if len(named_steps(run.checkpoints, run.steps)) < 2:
            reason = (
                "'all' needs several checkpoints, but pretrain.checkpoints.at and pretrain.checkpoints.archive name no "
                "step before the last one (checkpoints that only keep retains are not probed)"
            )
            hint = "set pretrain.checkpoints.at, such as {log: 10}"
            raise InputError(reason, keys=keys, hint=hint, code="missing")

    def _data(self, draft: Draft, place: Place) -> dict[str, Any]:
        section = draft.sections[place]
        assert section is not None, "only sections that the cell has are read"
        with inside(*place):
            return section.data(self._base)

    def _base(self, names: Any) -> dict[str, Any]:
        key = repr(names)
        if key not in self._bases:
            self._bases[key] = load_bases(names, self._folder)
        return self._bases[key]

    def _parse(self, model: type[M], data: dict[str, Any], place: Place, point: GridPoint) -> M:
        key = (model, repr(data))
        if key not in self._parsed:
            try:
                self._parsed[key] = parse(model, data)
            except InputError as error:
                placed = error.inside(*place)
                setting = setting_of(placed, place, point)
                raise placed if setting is None else of_axis(placed, setting) from error
        config: M = self._parsed[key]
        return config


def _natural_target(run: PretrainConfig | None, data: Mapping[str, Any], place: Place) -> str | None:
    """Return the natural target language of a task or a probe, or None if it is derived or the model is not a run."""
    wanted = data.get("language")
    if run is None or not isinstance(wanted, str | None):
        return None
    with inside(*place):
        return natural_target(run, wanted)


def _start_settings(root: str, section: Section, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section ``start`` of a pretraining that starts from the run ``init_from``."""
    settings = data.get("start") or {}
    if section.sets("start", "model"):
        reason = "cannot be set beside init_from, whose run is the model to start from"
        raise InputError(reason, keys=(root, "start", "model"), hint="remove one of the two", code="conflict")
    if not isinstance(settings, dict):
        hint = "write keys with values, as in start: {extend: …}"
        raise InputError(f"must be a mapping, not {show_value(settings)}", keys=(root, "start"), hint=hint, code="type")
    return {**settings, "model": CellModel.INIT.value}


def _has_value(data: Any, value: str) -> bool:
    """Return whether nested mappings and lists contain a value."""
    if isinstance(data, Mapping):
        return any(_has_value(inner, value) for inner in data.values())
    return any(_has_value(inner, value) for inner in data) if isinstance(data, list) else data == value


def _check_parts(draft: Draft) -> None:
    """Raise InputError for parts of a cell that exclude each other, or that have no effect."""
    has = {root: draft.sections[root,] is not None for root in SECTIONS}
    has |= {name: value is not None for name, value in draft.values.items()}
    one = "a cell needs exactly one of the keys pretrain and model", "give one of the two"
    two = "cannot be combined with target_model", "remove one of the two"
    given = "has no effect on a model that the study does not pretrain", "remove this key, or replace model by pretrain"
    probes = "has no effect without probes", "remove this key, or add a probe"
    rules: tuple[tuple[bool, str, Code, tuple[str, str]], ...] = (
        (has["pretrain"] == has["model"], "pretrain", "conflict", one),
        (has["init_from"] and not has["pretrain"], "init_from", "no_effect", given),
        (has["adjust"] and has["target_model"], "adjust", "conflict", two),
        (has["source"] and not (has["pretrain"] or has["target_model"]), "source", "no_effect", given),
        (has["finetuned"] and has["target_model"], "finetuned", "conflict", two),
        (has["finetuned"] and not draft.names("probes"), "finetuned", "no_effect", probes),
    )
    for is_broken, key, code, (reason, hint) in rules:
        if is_broken:
            raise InputError(reason, keys=key, hint=hint, code=code)
