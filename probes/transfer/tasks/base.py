"""What every downstream task offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from probes.transfer.batch import Examples, Reader
from probes.transfer.config import TransferConfig
from probes.transfer.heads.head import Head
from probes.transfer.metrics.metric import Metric
from synthlang.tasks import TaskSet
from synthlang.tasks.batch import TaskBatch

Labels = Mapping[str, tuple[str, ...]]  # what can be predicted: "tags" → names of tags


class Task(ABC):
    """A downstream task. Predictions and gold values are JSON values, one for each item, of the same form:

    nli      "entailment"
    pos      ["DET", "NOUN"]                        "" for a word that was not read
    ner      ["B-PER", "O"]                         O for a word that was not read
    parsing  [[2, "det"], [0, "root"]]              head 1-based, 0 the root; [-1, ""] for a word that was not read
    slots    {"slots": ["O", "B-city"], "intent": "flight"}
    qa       gold {"answers": ["the cat", …]}, empty where there is none; prediction {"answer": "the cat"}, "" for none

    gold of parsing has a third value for each word, its upos; that of qa also "opening", the first words of the
    context, for the majority baseline.
    """

    name: ClassVar[str]
    pairs: ClassVar[bool] = False  # whether an item has two texts

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
