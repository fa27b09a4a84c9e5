"""Classification of pairs of texts: XNLI, MNLI, SICK, RTE and any other pairs with a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from probes.transfer.batch import NO_LABEL, Batch, Examples, Reader
from probes.transfer.heads.head import Head
from probes.transfer.metrics.metric import Metric
from probes.transfer.pair_rows import FieldTokens, PairRows, longest_first, separators
from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.pairs import PairTask
from synthlang.errors import InputError
from synthlang.tasks.base import Kind
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.pairs import FIELDS, order_labels

UNSEEN = "items with a label that training does not have"


@dataclass(frozen=True, kw_only=True, eq=False)
class PairExamples(Examples):
    """A row for each pair; ``label`` [items] is an index into ``names``, NO_LABEL for another one."""

    rows: PairRows
    label: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[rows] tokens."""
        return self.rows.lengths

    @property
    def around(self) -> int:
        """``<s>`` and the separators."""
        return self.rows.around

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The pairs with these numbers."""
        words, mask = torch.zeros(len(rows), 0, 2, dtype=torch.int64), torch.zeros(len(rows), 0, dtype=torch.bool)
        targets = {"label": torch.from_numpy(self.label[rows])}
        return Batch(self.rows.text(rows), words, mask, targets, self.rows.role, rows)

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """The names of the classes."""
        assert len(outputs) == len(self), "one class for each pair"
        return [self.names[int(output)] for output in outputs]


class Nli(PairTask):
    """A class for each pair. A pair that is too long loses tokens of its longer text, from the end."""

    name: ClassVar[str] = "nli"
    kind: ClassVar[Kind] = "classes"
    fields: ClassVar[tuple[str, str]] = FIELDS

    def labels(self, train: TaskBatch) -> Labels:
        """``label``: those of training, in the order of the hub's data sets. InputError for fewer than two."""
        assert train.label is not None and train.label.names is not None, "a task of classes has labels"
        seen = {train.label.names[code] for code in np.unique(train.label.codes).tolist()}
        if not seen:
            raise InputError("the training set has no labelled item for the task nli")
        if len(seen) == 1:
            raise InputError(f"every training item is {min(seen)!r}: the task nli needs at least two labels to learn")
        return {"label": order_labels(seen)}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> PairExamples:
        """A row for each pair."""
        assert batch.label is not None and batch.label.names is not None, "a task of classes has labels"
        first, second = self.readers_of(readers)
        tokens = FieldTokens.of(batch, 0, first), FieldTokens.of(batch, 1, second)
        (start_a, size_a), (start_b, size_b) = (tokens[i].spans(batch.texts[:, i]) for i in (0, 1))
        kept_a, kept_b = longest_first(size_a, size_b, self.config.length - separators(first.bert))
        start, size = np.stack([start_a, start_b], axis=1), np.stack([kept_a, kept_b], axis=1)
        index = {name: number for number, name in enumerate(labels["label"])}
        table = np.asarray([index.get(name, NO_LABEL) for name in batch.label.names] or [NO_LABEL], np.int64)
        label = table[batch.label.codes]
        counts = {
            f"pairs cut to {self.config.length} tokens": int((kept_a + kept_b < size_a + size_b).sum()),
            UNSEEN: int((label == NO_LABEL).sum()),
        }
        return PairExamples(
            ids=batch.ids,
            gold=batch.label.values(),
            counts={reason: n for reason, n in counts.items() if n},
            rows=PairRows((tokens[0].ids, tokens[1].ids), start, size, (first, second), self.config.length),
            label=label,
            names=labels["label"],
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """A classifier of ``<s>``."""
        from probes.transfer.heads.classify import ClassifyHead

        return ClassifyHead(hidden=hidden, classes=len(labels["label"]), dropout=self.config.head.dropout)

    def metrics(self) -> dict[str, Metric]:
        """Accuracy, and the mean over classes of F1."""
        from probes.transfer.metrics.classes import class_metrics

        return class_metrics()

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """The most frequent class of training; of equally frequent ones the first by name."""
        counts = Counter(train)
        best = min(counts, key=lambda name: (-counts[name], name))
        return [best] * len(test)
