"""A downstream task in one file, as CONTRIBUTING.md describes: classify a sentence as short or long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.models.pretrained import Reader
from probes.transfer.tasks.base import Examples, Head, Labels, most_frequent
from probes.transfer.tasks.heads import ClassifyHead
from probes.transfer.tasks.metrics import Metric, item_metric, named
from probes.transfer.tasks.word_tasks import WordExamples, WordTask
from synthlang.corpus import Corpus
from synthlang.tasks import TaskSet, open_task
from synthlang.tasks.batch import TaskBatch

SHORT = 6  # words at most


class Length(WordTask):
    """Sentences of any source. Gold and predictions: ``"short"`` or ``"long"``."""

    name = "length"

    def open(self, spec: str) -> TaskSet:
        return open_task(f"pos:{spec}")

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        return np.ones(len(corpus.form.codes), bool)

    def labels(self, train: TaskBatch) -> Labels:
        return {"label": ("long", "short")}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        words = self.words(batch, readers)
        short = np.diff(words.offsets) <= SHORT
        gold = [labels["label"][int(one)] for one in short]
        target = {"label": short.astype(np.int64)}
        return LengthExamples(batch.ids, gold, words.counts, words=words, targets={}, item_targets=target)

    def head(self, hidden: int, labels: Labels) -> Head:
        return ClassifyHead(hidden=hidden, classes=2, dropout=self.config.head.dropout)

    def metrics(self) -> dict[str, Metric]:
        return named(item_metric("length_accuracy", lambda gold, said: np.array(gold) == np.array(said)))

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        return [most_frequent(train)] * len(test)


@dataclass(frozen=True, kw_only=True)
class LengthExamples(WordExamples):
    """Encoded sentences, one row each."""

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        return ["short" if output else "long" for output in outputs]
