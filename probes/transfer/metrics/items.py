"""Parts of metrics: ratios in percent, scores of single items, words of all items side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probes.transfer.metrics.metric import Floats, Metric

Codes = NDArray[np.int64]
UNCOUNTED = float("nan")  # the score of an item that a metric does not count
NOTHING = ""  # as gold: not labelled, so not counted; as prediction: nothing was said


@dataclass(frozen=True)
class ItemMetric(Metric):
    """The mean of what single items score, so that tests over items apply.

    ``stats`` [items, 2]: the item's score from 0 to 1, and 1 where the item counts, 0 where it does not (both then)
    """


def item_metric(name: str, values: Callable[[Sequence[Any], Sequence[Any]], ArrayLike]) -> ItemMetric:
    """Of a function (gold, predictions) → [items] scores from 0 to 1, UNCOUNTED where the item does not count."""

    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        assert len(gold) == len(predictions), (len(gold), len(predictions))
        found = np.asarray(values(gold, predictions), np.float64).reshape(len(gold))
        return np.stack([np.nan_to_num(found), np.isfinite(found)], axis=1).astype(np.float64)

    return ItemMetric(name, stats, share)


def percent(part: Floats, whole: Floats) -> Floats:
    """100 · part / whole, 0 where the whole is 0."""
    result: Floats = 100 * np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)
    return result


def share(sums: Floats) -> Floats:
    """Sums (hits, all) [..., 2] → hits in percent of all."""
    return percent(sums[..., 0], sums[..., 1])


def f1(sums: Floats) -> Floats:
    """Sums (right, gold, predicted) [..., 3] → F1 = 2 · right / (gold + predicted)."""
    return percent(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


@dataclass(frozen=True)
class Words:
    """The words of all items: ``item`` [words] is the number of the item, of ``items``, that each one belongs to."""

    items: int
    item: Codes
    gold: list[Any]
    predicted: list[Any]

    def sums(self, *columns: ArrayLike) -> Floats:
        """[items, columns]: of each column [words] the sum in every item."""
        sums = [np.bincount(self.item, np.asarray(c, np.float64), minlength=self.items) for c in columns]
        return np.stack(sums, axis=1).astype(np.float64)


def words_of(gold: Sequence[Sequence[Any]], predictions: Sequence[Sequence[Any]]) -> Words:
    """What is said of each word; every item has as many predictions as words."""
    lengths = [len(values) for values in gold]
    assert lengths == [len(values) for values in predictions], "there must be a prediction for every word"
    item = np.repeat(np.arange(len(lengths), dtype=np.int64), np.asarray(lengths, np.int64))
    return Words(len(lengths), item, list(chain.from_iterable(gold)), list(chain.from_iterable(predictions)))


def codes_of(values: Iterable[str], names: Sequence[str]) -> Codes:
    """The number of each value among ``names``; −1 for any other."""
    number = {name: i for i, name in enumerate(names)}
    return np.fromiter((number.get(value, -1) for value in values), np.int64)
