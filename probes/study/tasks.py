"""The tasks of a study's cells: which there are, who shares them, and how they travel as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures import ProbeConfig
from probes.study.cell import Cell
from probes.study.finished import finished
from probes.study.index import finish
from probes.study.kinds import (
    PREDICTIONS,
    PROBES,
    RESULT,
    AdjustTask,
    AlignmentTask,
    Model,
    PretrainTask,
    ProbeTask,
    TransferTask,
    TuneTask,
    Untuned,
)
from probes.study.task import Task
from probes.transfer.config import TransferConfig
from synthlang.config import parse
from synthlang.errors import InputError

__all__ = [
    "KINDS", "PREDICTIONS", "PROBES", "RESULT", "RUNS", "AdjustTask", "AlignmentTask", "CellTasks", "Graph", "Model",
    "PretrainTask", "ProbeTask", "Task", "TransferTask", "TuneTask", "finish", "finished", "graph", "task_from_json",
]  # fmt: skip
KINDS: tuple[type[Task], ...] = (PretrainTask, AdjustTask, TuneTask, AlignmentTask, ProbeTask, TransferTask)
RUNS = {"start": "pretrain", "pretrain": "pretrain", "second": "pretrain", "adjust": "adjust", "tuned": "tune"}
"""Stages of a cell that hold weights, parents first, and the kind of their folders; a fine-tuned model, too, is a run
here."""
T = TypeVar("T", bound=Task)


@dataclass(frozen=True)
class CellTasks:
    """The keys of the tasks of a cell; None for what it does not have. ``transfers``: (task name, seed) → key."""

    pretrain: str | None
    second: str | None
    adjust: str | None
    alignment: str | None
    probes: Mapping[str, str]
    transfers: Mapping[tuple[str, int], str]
    tuned: str | None = None
    start: str | None = None

    @property
    def single(self) -> dict[str, str]:
        """Stage → key of those that a cell has but one of, parents first."""
        found: dict[str, str | None] = {stage: getattr(self, stage) for stage in (*RUNS, AlignmentTask.kind)}
        return {stage: key for stage, key in found.items() if key is not None}

    @property
    def keys(self) -> tuple[str, ...]:
        """All of them, each once, parents first."""
        return tuple(dict.fromkeys([*self.single.values(), *self.probes.values(), *self.transfers.values()]))


@dataclass(frozen=True)
class Graph:
    """tasks: key → task, each once, parents before those that need them; of_cell: name of a cell → its tasks."""

    tasks: dict[str, Task] = field(default_factory=dict)
    of_cell: dict[str, CellTasks] = field(default_factory=dict)

    def add(self, task: T) -> T:
        """The task with this key, which is ``task`` if it is new."""
        held = self.tasks.setdefault(task.key, task)
        assert isinstance(held, type(task)), "the kind is part of the key"
        return held

    def dependents(self) -> dict[str, list[str]]:
        """Key → the keys of the tasks that need it."""
        found: dict[str, list[str]] = {key: [] for key in self.tasks}
        for key, task in self.tasks.items():
            for parent in task.parents:
                found[parent].append(key)
        return found


def graph(cells: Sequence[Cell], seeds: Sequence[int]) -> Graph:
    """The tasks of all cells; equal work is one task, whoever needs it."""
    whole = Graph()
    for cell in cells:
        whole.of_cell[cell.name] = _tasks_of(cell, seeds, whole)
    return whole


def _tasks_of(cell: Cell, seeds: Sequence[int], whole: Graph) -> CellTasks:
    start = None if cell.start is None else whole.add(PretrainTask(cell.start))
    pretrained = None if cell.pretrain is None else whole.add(PretrainTask(cell.pretrain, start))
    second = None if cell.second is None else whole.add(PretrainTask(cell.second))
    model: Untuned = pretrained if pretrained is not None else cell.model or ""
    adjusted = None
    if cell.adjust is not None:
        assert not isinstance(model, AdjustTask), "no model is adjusted twice"
        model = adjusted = whole.add(AdjustTask(cell.adjust, model))
    alignment = None if pretrained is None else whole.add(AlignmentTask(pretrained))
    tuned = None if cell.tuned is None else whole.add(TuneTask(cell.tuned, cell.tuned_seed, model))
    probed: Model = model if tuned is None else tuned
    probes = {name: whole.add(ProbeTask(config, name, probed, second)).key for name, config in cell.probes.items()}
    transfers = {
        (name, seed): whole.add(TransferTask(config, name, seed, model, second)).key
        for name, config in cell.tasks.items()
        for seed in seeds
    }
    runs = _key(pretrained), _key(second), _key(adjusted)
    return CellTasks(*runs, _key(alignment), probes, transfers, _key(tuned), _key(start))


def _key(task: Task | None) -> str | None:
    return None if task is None else task.key


def task_from_json(data: Mapping[str, Any]) -> Task:
    """The task that ``to_json`` wrote; InputError for anything else."""
    kind = data.get("kind")
    if kind == PretrainTask.kind:
        return _pretraining(data)
    if kind == AlignmentTask.kind:
        return AlignmentTask(_pretraining(data))
    if kind == AdjustTask.kind:
        model = _untuned(data["model"])
        assert not isinstance(model, AdjustTask), "no model is adjusted twice"
        return AdjustTask(parse(AdjustConfig, data["config"]), model)
    if kind == TuneTask.kind:
        return TuneTask(parse(TransferConfig, data["config"]), data["seed"], _untuned(data["model"]))
    second = None if data.get("second") is None else task_from_json(data["second"])
    assert second is None or isinstance(second, PretrainTask), "a second model is pretrained"
    if kind == ProbeTask.kind:
        return ProbeTask(parse(ProbeConfig, data["config"]), data["name"], _model(data["model"]), second)
    if kind == TransferTask.kind:
        config = parse(TransferConfig, data["config"])
        return TransferTask(config, data["name"], data["seed"], _untuned(data["model"]), second)
    raise InputError(f"{kind!r} is no kind of task; there is {', '.join(task.kind for task in KINDS)}")


def _pretraining(data: Mapping[str, Any]) -> PretrainTask:
    start = None if data.get("start") is None else _pretraining(data["start"])
    return PretrainTask(parse(PretrainConfig, data["config"]), start)


def _model(data: Any) -> Model:
    if isinstance(data, str):
        return data
    task = task_from_json(data)
    assert isinstance(task, PretrainTask | AdjustTask | TuneTask), "a model is a name, a run, or made of one of them"
    return task


def _untuned(data: Any) -> Untuned:
    model = _model(data)
    assert not isinstance(model, TuneTask), "a fine-tuned model is for probes alone"
    return model
