"""What every downstream task makes of its items (rows of tokens, and what is to be predicted on them), and offers."""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pretrain.model.text import Packed, Text
from probes.models.pretrained import Reader, Role
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.metrics import Metric
from probes.transfer.tasks.table import TASKS
from synthlang.corpus import Column
from synthlang.errors import InputError
from synthlang.tasks import TaskSet
from synthlang.tasks.batch import TaskBatch

NO_LABEL = -100  # of a target that no loss counts


@dataclass(frozen=True)
class Batch:
    """Rows of a step.

    words    [rows, k, 2] int64: first and last column of the subwords of each word that is predicted; None: every
             column is
    mask     [rows, k] bool: which words are there, [rows, width] which columns may be predicted
    targets  name → what is to be learned, [rows] or [rows, k], as the task's head has it; NO_LABEL for nothing
    rows     [rows] their numbers in the Examples
    word_of  [rows, width] the number of the word that a column is part of, where ``mask`` is set; None: one each
    packed   where the words are in ``mask``, for what is costly at padding; None: it is computed there, too
    """

    text: Text
    words: Tensor | None
    mask: Tensor
    targets: Mapping[str, Tensor]
    role: Role
    rows: NDArray[np.int64]
    word_of: Tensor | None = None
    packed: Packed | None = None

    def to(self, device: torch.device) -> Batch:
        words = None if self.words is None else self.words.to(device, non_blocking=True)
        targets = {name: tensor.to(device, non_blocking=True) for name, tensor in self.targets.items()}
        mask = self.mask.to(device, non_blocking=True)
        packed = None if self.packed is None else self.packed.to(device)
        # word_of is read on the CPU
        return replace(self, text=self.text.to(device), words=words, mask=mask, targets=targets, packed=packed)


@dataclass(frozen=True)
class Examples(ABC):
    """The items of one set in one language, encoded.

    ids     of the items
    gold    what is right for each item, as JSON has it; what that is depends on the task
    counts  reason → how many items or words were left out or cut
    """

    ids: tuple[str, ...]
    gold: Sequence[Any]
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", {reason: n for reason, n in self.counts.items() if n})

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int64]:
        """[rows] how many tokens each row has; an item may have several rows (windows)."""

    @property
    def around(self) -> int:
        """How many tokens of a row are of no text."""
        return 2

    @abstractmethod
    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Return the rows with these numbers, padded to the longest of them."""

    @abstractmethod
    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """For each item the prediction, in the form of ``gold``; ``outputs`` are what the head decoded for each row."""

    def __len__(self) -> int:
        return len(self.lengths)


Labels = Mapping[str, tuple[str, ...]]  # what can be predicted: "tags" → names of tags


class Head(nn.Module, ABC):
    """Base of a head, which reads states [rows, 1 + k, d] float32: that of ``<s>``, then one for each word.

    The states of a batch without words are those of all columns, [rows, width, d]. ``TaskModel`` calls a head outside
    autocast, since log-sums and arc scores need the digits.
    """

    @abstractmethod
    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss over the labelled parts of the batch in nats, 0 (with a gradient) without any."""

    @abstractmethod
    def decode(self, states: Tensor, batch: Batch) -> list[Any]:
        """Return the best prediction for each row, as the task's ``Examples.predictions`` reads it."""


READS = 512
"""Tokens: what a model reads of which nothing is known, as BERT and RoBERTa do."""


class Task(ABC):
    """A downstream task. Predictions and gold values are JSON values, one for each item; each task says which."""

    name: ClassVar[str]

    def __init__(self, config: TransferConfig, reads: int = READS) -> None:
        self.config, self.length = config, config.length or reads

    @abstractmethod
    def open(self, spec: str) -> TaskSet:
        """Open the labelled items that ``spec`` names, with or without the task's scheme (``ner:``).

        Opening costs no reading.

        Raises:
            InputError: The items lack something that the task needs.
        """

    @abstractmethod
    def labels(self, train: TaskBatch) -> Labels:
        """Return the labels that can be predicted: those that occur in training, sorted.

        Raises:
            InputError: There is nothing to learn.
        """

    @abstractmethod
    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """Encode the items as rows, with one reader for each text of an item.

        A label that is not among ``labels`` is no target. It stays in ``gold`` and is always an error.
        """

    @abstractmethod
    def head(self, hidden: int, labels: Labels) -> Head:
        """Return a new head for states of width ``hidden``, with weights drawn from PyTorch's generator."""

    @abstractmethod
    def metrics(self) -> dict[str, Metric]:
        """By name; the first one is the main one unless the config chooses another."""

    @abstractmethod
    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict each item of ``test`` (gold values) from the frequencies of the gold values of ``train`` alone."""

    def check_length(self, bert: bool) -> None:  # noqa: B027  most tasks read rows of any length
        """InputError for rows in which a model, of BERT's kind or not, cannot read the items."""

    def main_metric(self) -> Metric:
        """Return the metric that chooses settings and that Δ is computed from.

        Raises:
            InputError: The task has no metric of the name in the config.
        """
        metrics, name = self.metrics(), self.config.score.metric
        if name is None:
            return next(iter(metrics.values()))
        if name not in metrics:
            hint = f"name one of {', '.join(metrics)}"
            raise InputError(f"the task {self.name} has no {name!r}", keys="score.metric", hint=hint, code="unknown")
        return metrics[name]


def task_of(config: TransferConfig, reads: int = READS) -> Task:
    """Return the task that a config names, for a model that reads rows of ``reads`` tokens.

    Raises:
        InputError: The rows of the config are longer.
    """
    if (config.length or 0) > reads:
        reason = f"{config.length} exceeds the {reads} tokens that the model reads"
        raise InputError(reason, keys="length", code="range")
    task: Task = pkgutil.resolve_name(TASKS[config.task].place)(config, reads)
    return task


def most_frequent(names: Iterable[str]) -> str:
    """Return the most frequent name, the first by name of equally frequent ones, "" of none."""
    counts = names if isinstance(names, Counter) else Counter(names)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def classes_of(column: Column, names: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """[labels] the place of each one among ``names``, NO_LABEL if it is none of them, and how many are not."""
    index = {name: i for i, name in enumerate(names)}
    table = np.asarray([index.get(name, NO_LABEL) for name in column.names or ()], np.int64)
    classes = table[column.codes]
    return classes, int((classes == NO_LABEL).sum())
