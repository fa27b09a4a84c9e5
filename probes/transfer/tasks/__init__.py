"""The downstream tasks, one a file."""

from __future__ import annotations

from probes.transfer.config import TransferConfig
from probes.transfer.metrics.metric import Metric
from probes.transfer.tasks.base import Labels, Task
from probes.transfer.tasks.ner import Ner
from probes.transfer.tasks.nli import Nli
from probes.transfer.tasks.parsing import Parsing
from probes.transfer.tasks.pos import Pos
from probes.transfer.tasks.qa import Qa
from probes.transfer.tasks.slots import Slots
from synthlang.errors import InputError

TASKS: dict[str, type[Task]] = {task.name: task for task in (Nli, Ner, Pos, Parsing, Slots, Qa)}

__all__ = ["TASKS", "Labels", "Task", "main_metric", "task_of"]


def task_of(config: TransferConfig) -> Task:
    """The task that a config names."""
    return TASKS[config.task](config)


def main_metric(task: Task) -> Metric:
    """The metric that settings are chosen by and Δ is of; InputError if the task has none of the name in the config."""
    metrics = task.metrics()
    name = task.config.score.metric
    if name is None:
        return next(iter(metrics.values()))
    if name not in metrics:
        raise InputError(f"score.metric: the task {task.name} has no {name!r}; it has {', '.join(metrics)}")
    return metrics[name]
