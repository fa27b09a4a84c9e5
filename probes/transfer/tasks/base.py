"""The interface of a downstream task: items, rows of tokens, targets, heads and metrics."""

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
from probes.transfer.tasks.metrics import NOTHING, OUTSIDE, Metric
from probes.transfer.tasks.table import TASKS
from synthlang.corpus import Column
from synthlang.errors import InputError
from synthlang.tasks import TaskSet
from synthlang.tasks.batch import TaskBatch

NO_LABEL = -100  # a target that losses ignore


@dataclass(frozen=True)
class Batch:
    """The rows of a step.

    Attributes:
        text: The token ids of the rows, as input of the model.
        words: [rows, k, 2] int64, the first and the last column of the subwords of each word to predict. It is None if
            the head predicts columns instead of words.
        mask: [rows, k] bool, False for padding. Without ``words``, it is [rows, width] and True for columns to predict.
        targets: The targets by name, [rows] or [rows, k]. NO_LABEL marks a missing target.
        role: The language of the rows, which selects the model.
        rows: [rows] the indices of the rows in the Examples.
        word_of: [rows, width] the index of the word that a column belongs to, or None if each column is a word.
        packed: The positions of words in ``mask``, or None. With them, a head skips padding.
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
        """Return the batch with its tensors on a device, except ``word_of``, which stays on the CPU."""
        words = None if self.words is None else self.words.to(device, non_blocking=True)
        targets = {name: tensor.to(device, non_blocking=True) for name, tensor in self.targets.items()}
        mask = self.mask.to(device, non_blocking=True)
        packed = None if self.packed is None else self.packed.to(device)
        return replace(self, text=self.text.to(device), words=words, mask=mask, targets=targets, packed=packed)


@dataclass(frozen=True)
class Examples(ABC):
    """The encoded items of one set.

    Attributes:
        ids: The id of each item.
        gold: The gold value of each item, in the JSON form of the task.
        counts: Number of items or words that were left out or cut, by reason.
    """

    ids: tuple[str, ...]
    gold: Sequence[Any]
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", {reason: n for reason, n in self.counts.items() if n})

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int64]:
        """The length [rows] of each row in tokens. An item may have several rows (windows)."""

    @property
    def around(self) -> int:
        """The number of special tokens in a row."""
        return 2

    @abstractmethod
    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Return the rows at the indices ``rows`` [n], padded to the longest of these rows."""

    @abstractmethod
    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the prediction for each item, in the form of ``gold``, from the decoded ``outputs`` of all rows."""

    def __len__(self) -> int:
        return len(self.lengths)


Labels = Mapping[str, tuple[str, ...]]  # the labels to predict, such as "tags" → names of tags


class Head(nn.Module, ABC):
    """The base class of prediction heads.

    A head reads states [rows, 1 + k, d] in float32: the state of the row, then one state for each word. The state of
    the row is the state of ``<s>``, or of the last token in a decoder. For a batch without words, a head reads the
    states of all columns, [rows, width, d]. Heads run outside autocast, because log-sums and arc scores need float32.
    """

    @abstractmethod
    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss over the targets of the batch in nats, a scalar.

        Without targets, the loss is 0 with a gradient.
        """

    @abstractmethod
    def decode(self, states: Tensor, batch: Batch) -> list[Any]:
        """Return the best prediction for each row, in the form that ``Examples.predictions`` reads."""


READS = 512
"""Default maximum length of a row in tokens: the length that BERT and RoBERTa read."""


class Task(ABC):
    """The base class of downstream tasks.

    Gold values and predictions are JSON values, one for each item, in a form that the task defines.

    Args:
        config: The settings of the transfer.
        reads: Maximum length of a row that the model reads, in tokens.
    """

    name: ClassVar[str]
    predicts_labels: ClassVar[bool] = False
    """True if gold values are labels, lists of labels, or mappings of a field to either."""

    def __init__(self, config: TransferConfig, reads: int = READS) -> None:
        self.config, self.length = config, config.length or reads

    @abstractmethod
    def open(self, spec: str) -> TaskSet:
        """Open the labelled items of ``spec`` without reading them. The scheme of the task (``ner:``) is optional.

        Raises:
            InputError: The items cannot be opened, belong to another task, or lack a column that the task needs.
        """

    @abstractmethod
    def labels(self, train: TaskBatch) -> Labels:
        """Return the labels to predict, by name, such as ``tags`` → names of tags.

        Only labels of the training set can be predicted. Their order depends only on the set of labels.

        Raises:
            InputError: The training set has too few labels.
        """

    @abstractmethod
    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """Encode the items as rows, with one reader for each text of an item.

        A label outside ``labels`` is not a target. It stays in ``gold`` and always counts as an error.

        Raises:
            InputError: The model cannot read the language of a text, or the task cannot use rows of this length.
        """

    @abstractmethod
    def head(self, hidden: int, labels: Labels) -> Head:
        """Return a new head for states of width ``hidden``, initialised by PyTorch's random generator."""

    @abstractmethod
    def metrics(self) -> dict[str, Metric]:
        """Return the metrics by name. The first metric is the main metric, unless the config names another one.

        Raises:
            InputError: The config names unknown rules of scoring.
        """

    @abstractmethod
    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Return the predictions of a baseline for the items of ``test``, such as the most frequent label.

        The baseline is fitted on the gold values ``train`` only. From the gold values ``test`` it uses their lengths,
        and in question answering the beginning of the context, but no answers and no labels.
        """

    def unknown_labels(self, gold: Sequence[Any], labels: Labels) -> dict[str, list[str]]:
        """Return the fields of the gold values that have labels of which none is among ``labels``, with these labels.

        Gold values without fields count as one field "". The result is empty for a task whose gold values are not
        labels (``predicts_labels``).
        """
        known = {name for names in labels.values() for name in names}
        fields: dict[str, set[str]] = {}
        for value in gold if self.predicts_labels else ():
            for field_name, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
                names = [inner] if isinstance(inner, str) else inner
                fields.setdefault(field_name, set()).update(names)
        found = {name: names - {NOTHING, OUTSIDE} for name, names in fields.items()}
        return {name: sorted(names) for name, names in found.items() if names and known.isdisjoint(names)}

    def check_length(self, bert: bool) -> None:  # noqa: B027  most tasks read rows of any length
        """Raise InputError if rows of the configured length cannot hold any input of the task.

        Args:
            bert: True if a row has the special tokens of BERT, False if it has the special tokens of RoBERTa.
        """

    def main_metric(self) -> Metric:
        """Return the metric that selects settings and gives Δ.

        Raises:
            InputError: The task does not have the metric in the config, or the config names unknown rules of scoring.
        """
        metrics, name = self.metrics(), self.config.score.metric
        if name is None:
            return next(iter(metrics.values()))
        if name not in metrics:
            hint = f"choose from {', '.join(metrics)}"
            reason = f"the task {self.name} has no metric {name!r}"
            raise InputError(reason, keys="score.metric", hint=hint, code="unknown")
        return metrics[name]


def task_of(config: TransferConfig, reads: int | None = None) -> Task:
    """Return the task that a config names, for a model that reads rows of at most ``reads`` tokens.

    Without ``reads``, the length of the config is not checked.

    Raises:
        InputError: ``length`` in the config exceeds ``reads``.
    """
    reads = reads or max(READS, config.length or 0)
    if (config.length or 0) > reads:
        reason = f"{config.length} is more than the {reads} tokens that the model reads"
        raise InputError(reason, keys="length", hint=f"set this key to at most {reads}", code="range")
    task: Task = pkgutil.resolve_name(TASKS[config.task].place)(config, reads)
    return task


def other_task(spec: str, task: str) -> InputError:
    """Return the error for items ``spec`` of another task than ``task``."""
    scheme = spec.partition(":")[0]
    hint = f"use items of the task {task}" + (f", or set the task to {scheme}" if scheme in TASKS else "")
    return InputError(f"has items of the task {scheme}, not of the task {task}", spec, hint=hint, code="conflict")


def most_frequent(names: Iterable[str]) -> str:
    """Return the most frequent name, or "" if there are no names. Ties are broken alphabetically."""
    counts = names if isinstance(names, Counter) else Counter(names)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def classes_of(column: Column, names: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """Return the class [n] of each of the n labels of a column, and the number of labels that are not in ``names``.

    The class is the index of the label in ``names``, or NO_LABEL for a label that is not in ``names``.
    """
    index = {name: i for i, name in enumerate(names)}
    table = np.asarray([index.get(name, NO_LABEL) for name in column.names or ()], np.int64)
    classes = table[column.codes]
    return classes, int((classes == NO_LABEL).sum())
