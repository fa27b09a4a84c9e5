"""Classification of pairs of texts, as in XNLI, MNLI, SICK and RTE.

Gold values and predictions are names of classes such as ``"entailment"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from probes.models.pretrained import Reader
from probes.transfer.tasks.base import Batch, Head, Labels, classes_of, most_frequent
from probes.transfer.tasks.heads import ClassifyHead
from probes.transfer.tasks.metrics import (
    NOTHING,
    UNCOUNTED,
    Floats,
    Metric,
    WordLabels,
    class_counts,
    item_metric,
    mean_f1,
    named,
)
from probes.transfer.tasks.pairs import FieldTokens, PairExamples, PairRows, PairTask, longest_first, separators
from synthlang.errors import InputError
from synthlang.tasks.base import Kind
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.pairs import FIELDS, order_labels

UNSEEN = "items with a label that training does not have"


class Nli(PairTask):
    """Classification of text pairs. A pair that is too long is cut at the end of its longer text."""

    name: ClassVar[str] = "nli"
    predicts_labels = True
    kind: ClassVar[Kind] = "classes"
    fields: ClassVar[tuple[str, str]] = FIELDS

    def labels(self, train: TaskBatch) -> Labels:
        """Return ``label``, the classes in training, in the order of the data sets on the hub.

        Raises:
            InputError: Training has fewer than two classes.
        """
        assert train.label is not None and train.label.names is not None, "a task of classes has labels"
        seen = {train.label.names[code] for code in np.unique(train.label.codes).tolist()}
        if len(seen) == 1:
            reason = f"all training items have the label {min(seen)!r}, but the task nli needs at least two labels"
            raise InputError(reason, hint="use more or other training items", code="range")
        return {"label": order_labels(seen)}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> ClassExamples:
        """Encode each pair of texts as a row, with a reader for each text. Long pairs are cut and counted.

        Raises:
            InputError: The transforms of a language work on tokens of another tokenizer than that of the model.
        """
        assert batch.label is not None, "a task of classes has labels"
        first, second = readers
        tokens = FieldTokens.of(batch, 0, first), FieldTokens.of(batch, 1, second)
        (start_a, size_a), (start_b, size_b) = (tokens[i].spans(batch.texts[:, i]) for i in (0, 1))
        kept_a, kept_b = longest_first(size_a, size_b, self.length - separators(first.bert))
        start, size = np.stack([start_a, start_b], axis=1), np.stack([kept_a, kept_b], axis=1)
        label, unseen = classes_of(batch.label, labels["label"])
        counts = {
            f"pairs cut to {self.length} tokens": int((kept_a + kept_b < size_a + size_b).sum()),
            UNSEEN: unseen,
        }
        return ClassExamples(
            ids=batch.ids,
            gold=batch.label.values(),
            counts=counts,
            rows=PairRows((tokens[0].ids, tokens[1].ids), start, size, (first, second), self.length),
            label=label,
            names=labels["label"],
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """Return a classifier of rows for states of width ``hidden``."""
        settings = self.config.head
        classes = len(labels["label"])
        return ClassifyHead(hidden=hidden, classes=classes, dropout=settings.dropout, pooler=settings.pooler)

    def metrics(self) -> dict[str, Metric]:
        """Return accuracy, and mean F1 over the gold classes. Items with the gold value "" do not count."""

        def right(gold: Sequence[Any], predictions: Sequence[Any]) -> list[float]:
            return [UNCOUNTED if g == NOTHING else float(g == p) for g, p in zip(gold, predictions, strict=True)]

        def counts(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
            assert len(gold) == len(predictions), (len(gold), len(predictions))
            return class_counts(WordLabels(len(gold), np.arange(len(gold)), list(gold), list(predictions)))

        return named(item_metric("accuracy", right), Metric("macro_f1", counts, mean_f1))

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict the most frequent class of training for every item."""
        return [most_frequent(train)] * len(test)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassExamples(PairExamples):
    """Encoded pairs of texts, one row each.

    Attributes:
        label: [items] the class of each pair as an index into ``names``, or NO_LABEL.
        names: The names of the classes.
    """

    label: NDArray[np.int64]
    names: tuple[str, ...]

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Return the rows at the indices ``rows`` [n] with the target ``label`` [n], and without words."""
        words, mask = torch.zeros(len(rows), 0, 2, dtype=torch.int64), torch.zeros(len(rows), 0, dtype=torch.bool)
        targets = {"label": torch.from_numpy(self.label[rows])}
        return Batch(self.rows.text(rows), words, mask, targets, self.rows.role, rows)

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the name of the class of each pair. ``outputs`` has the predicted class of each row."""
        return [self.names[int(output)] for output in outputs]
