"""What every downstream task and every head offers."""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from probes.transfer.batch import NO_LABEL, Batch, Examples, Reader
from probes.transfer.config import TransferConfig
from probes.transfer.tasks import TASKS
from probes.transfer.tasks.metrics import Metric
from synthlang.corpus import Column
from synthlang.errors import InputError
from synthlang.tasks import TaskSet
from synthlang.tasks.batch import TaskBatch

Labels = Mapping[str, tuple[str, ...]]  # what can be predicted: "tags" → names of tags


class Head(nn.Module, ABC):
    """Reads states [rows, 1 + k, d] float32: that of ``<s>``, then one for each word; of a batch without words all
    columns, [rows, width, d]. ``TaskModel`` calls it outside autocast: log-sums and arc scores need the digits."""

    @abstractmethod
    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """The mean over what is labelled in the batch, in nats; 0 (with a gradient) where nothing is."""

    @abstractmethod
    def decode(self, states: Tensor, batch: Batch) -> list[Any]:
        """The best prediction for each row, as numbers in the form that the task's ``Examples.predictions`` reads."""


class Task(ABC):
    """A downstream task. Predictions and gold values are JSON values, one for each item; each task says which."""

    name: ClassVar[str]

    def __init__(self, config: TransferConfig) -> None:
        self.config = config

    @abstractmethod
    def open(self, spec: str) -> TaskSet:
        """The labelled items that ``spec`` names, with or without the task's scheme (``ner:PATH`` or ``PATH``).

        InputError for one without what the task needs; costs no reading.
        """

    @abstractmethod
    def labels(self, train: TaskBatch) -> Labels:
        """What can be predicted: the labels that occur in training, sorted. InputError if there is nothing to learn."""

    @abstractmethod
    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """The items as rows; one reader for each text of an item. A label that is not among ``labels`` is no target,
        and stays in ``gold``: it is always an error."""

    @abstractmethod
    def head(self, hidden: int, labels: Labels) -> Head:
        """A new head for states of width ``hidden``; its weights are drawn from PyTorch's generator."""

    @abstractmethod
    def metrics(self) -> dict[str, Metric]:
        """By name; the first one is the main one unless the config chooses another."""

    @abstractmethod
    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """A prediction for each item of ``test`` (gold values) that knows only how often what occurs in ``train``."""

    def check_length(self, bert: bool) -> None:  # noqa: B027  most tasks read rows of any length
        """InputError for rows in which a model, of BERT's kind or not, cannot read the items."""

    def main_metric(self) -> Metric:
        """What settings are chosen by and Δ is of; InputError if the task has none of the name in the config."""
        metrics, name = self.metrics(), self.config.score.metric
        if name is None:
            return next(iter(metrics.values()))
        if name not in metrics:
            raise InputError(f"score.metric: the task {self.name} has no {name!r}; it has {', '.join(metrics)}")
        return metrics[name]


def task_of(config: TransferConfig) -> Task:
    """The task that a config names."""
    task: Task = pkgutil.resolve_name(TASKS[config.task].place)(config)
    return task


def most_frequent(names: Iterable[str]) -> str:
    """The first by name of equally frequent ones; "" of none."""
    counts = names if isinstance(names, Counter) else Counter(names)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def classes_of(column: Column, names: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """[labels] the place of each one among ``names``, NO_LABEL if it is none of them, and how many are not."""
    index = {name: i for i, name in enumerate(names)}
    table = np.asarray([index.get(name, NO_LABEL) for name in column.names or ()], np.int64)
    classes = table[column.codes]
    return classes, int((classes == NO_LABEL).sum())
