"""Scores of one label an item, and the macro F1 that labels of words share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from probes.transfer.metrics.items import NOTHING, UNCOUNTED, Codes, ItemMetric, codes_of, item_metric
from probes.transfer.metrics.metric import Floats, Metric

ACCURACY = "accuracy"
MACRO_F1 = "macro_f1"


def class_metrics(classes: Sequence[str] = ()) -> dict[str, Metric]:
    """Accuracy and macro F1 of items with one label. The prediction "" names no class; gold "" does not count."""
    return {metric.name: metric for metric in (accuracy(), macro_f1(classes))}


def accuracy() -> ItemMetric:
    """The share of items with the right label."""
    return item_metric(ACCURACY, _right)


def macro_f1(classes: Sequence[str] = ()) -> Metric:
    """Mean F1 of the classes that occur in gold; that of a class that is never predicted is 0.

    classes   have columns of their own in the statistics whether they occur or not, so that statistics of several sets
              of items can be added up; a gold class outside them comes after them
    """

    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        assert len(gold) == len(predictions), (len(gold), len(predictions))
        return class_counts(np.arange(len(gold)), len(gold), gold, predictions, classes)

    return Metric(MACRO_F1, stats, mean_f1)


def _right(gold: Sequence[Any], predictions: Sequence[Any]) -> list[float]:
    return [UNCOUNTED if g == NOTHING else float(g == p) for g, p in zip(gold, predictions, strict=True)]


def class_counts(
    item: Codes, items: int, gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str] = ()
) -> Floats:
    """[items, 3 · classes]: how often each class is right, is gold, is predicted in each item.

    item   [words] the item of each label. A class that is never gold and not among ``classes`` has no column: what is
           taken for it is missing from the right ones, which is all that macro F1 needs.
    """
    names = [*classes, *sorted(set(gold) - {*classes, NOTHING})]
    right, said = codes_of(gold, names), codes_of(predicted, names)
    cell = item * len(names)

    def count(of: Codes, where: Any) -> Floats:
        found = np.bincount((cell + of)[where], minlength=items * len(names))
        return found.reshape(items, len(names)).astype(np.float64)

    parts = [count(right, (right == said) & (right >= 0)), count(right, right >= 0), count(said, said >= 0)]
    return np.concatenate(parts, axis=1)


def mean_f1(sums: Floats) -> Floats:
    """Sums of ``class_counts`` [..., 3 · classes] → mean F1 of the classes with a gold label, in percent."""
    right, gold, predicted = np.moveaxis(sums.reshape(*sums.shape[:-1], 3, sums.shape[-1] // 3), -2, 0)
    occurs = gold > 0
    each = 2 * right / np.where(occurs, gold + predicted, 1)
    result: Floats = 100 * np.where(occurs, each, 0).sum(axis=-1) / np.maximum(occurs.sum(axis=-1), 1)
    return result
