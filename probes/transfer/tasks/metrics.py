"""Metrics in the form of a score of sums over items, so that intervals and tests can resample items.

This file has the metrics that several tasks share. A metric of one task is in the file of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Stats = Callable[[Sequence[Any], Sequence[Any]], Floats]
Repair = Literal["none", "final-type"]

UNCOUNTED = float("nan")  # the score of an item that a metric does not count
NOTHING = ""  # an unlabelled word, which does not count, or an empty prediction
INSIDE = ("B-", "I-")
OUTSIDE = "O"


@dataclass(frozen=True)
class Metric:
    """A metric in percent: ``score`` applied to the sums of ``stats`` over items.

    Attributes:
        name: Name of the metric in settings and results.
        stats: A function of gold values and predictions of all items. It returns [items, k] float64, the contribution
            of each item to each sum.
        score: A function from sums [..., k] to scores [...]. The score is 0 if there is nothing to find.
        of_items: True if the metric is a mean of scores of single items, so that tests over items apply. ``stats``
            [items, 2] then has the score of each item from 0 to 1, and the number 1. Both are 0 for an item that does
            not count.
        about: An explanation for captions, or "" if the name suffices.
    """

    name: str
    stats: Stats
    score: Callable[[Floats], Floats]
    of_items: bool = False
    about: str = ""

    def __call__(self, gold: Sequence[Any], predictions: Sequence[Any]) -> float:
        """Return the score of all items together, in percent."""
        return float(self.score(self.stats(gold, predictions).sum(axis=0)))


def named(*metrics: Metric) -> dict[str, Metric]:
    """Return the metrics by name, in the given order."""
    return {metric.name: metric for metric in metrics}


def defined(metrics: Iterable[Metric]) -> str | None:
    """Return the explanations of the metrics for the caption of a table, or None if no metric has one."""
    return "; ".join(f"{metric.name}: {metric.about}" for metric in metrics if metric.about) or None


def item_metric(name: str, values: Callable[[Sequence[Any], Sequence[Any]], ArrayLike], about: str = "") -> Metric:
    """Return the mean of item scores as a metric.

    Args:
        name: The name of the metric.
        values: A function from (gold, predictions) to scores [items] from 0 to 1, with UNCOUNTED for items that do not
            count.
        about: An explanation for captions, or "".
    """

    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        assert len(gold) == len(predictions), (len(gold), len(predictions))
        found = np.asarray(values(gold, predictions), np.float64).reshape(len(gold))
        return np.stack([np.nan_to_num(found), np.isfinite(found)], axis=1).astype(np.float64)

    return Metric(name, stats, share, of_items=True, about=about)


def percent(part: Floats, whole: Floats) -> Floats:
    """Return 100 · part / whole for arrays of equal shape, with 0 where the whole is 0."""
    result: Floats = 100 * np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)
    return result


def share(sums: Floats) -> Floats:
    """Map sums (hits, all) [..., 2] to the percentage of hits [...], or to 0 if the sum of all is 0."""
    return percent(sums[..., 0], sums[..., 1])


def f1(sums: Floats) -> Floats:
    """Map sums (right, gold, predicted) [..., 3] to F1 = 2 · right / (gold + predicted) in percent [...]."""
    return percent(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


@dataclass(frozen=True)
class WordLabels:
    """Gold and predicted labels of the words of all items.

    Attributes:
        items: Number of items.
        item: [words] the index of the item of each word.
        gold: [words] the gold labels.
        predicted: [words] the predicted labels.
    """

    items: int
    item: Codes
    gold: list[Any]
    predicted: list[Any]

    @staticmethod
    def of(gold: Sequence[Sequence[Any]], predictions: Sequence[Sequence[Any]]) -> WordLabels:
        """Flatten the labels of all items. Every item must have a prediction for each word."""
        lengths = [len(values) for values in gold]
        assert lengths == [len(values) for values in predictions], "there must be a prediction for every word"
        item = np.repeat(np.arange(len(lengths), dtype=np.int64), np.asarray(lengths, np.int64))
        return WordLabels(len(lengths), item, list(chain.from_iterable(gold)), list(chain.from_iterable(predictions)))

    def with_gold(self) -> WordLabels:
        """Return the words that have a gold label."""
        if NOTHING not in self.gold:
            return self
        kept = [i for i, label in enumerate(self.gold) if label != NOTHING]
        gold, predicted = ([values[i] for i in kept] for values in (self.gold, self.predicted))
        return WordLabels(self.items, self.item[kept], gold, predicted)

    def same(self, part: Callable[[Any], Any] = lambda label: label) -> NDArray[np.bool_]:
        """Return the mask [words] of correct labels. ``part`` maps a label to the part of it that is compared."""
        return np.fromiter((part(g) == part(p) for g, p in zip(self.gold, self.predicted, strict=True)), bool)

    def sums(self, *columns: ArrayLike) -> Floats:
        """Return the sum of each column [words] over the words of each item, [items, columns]."""
        sums = [np.bincount(self.item, np.asarray(c, np.float64), minlength=self.items) for c in columns]
        return np.stack(sums, axis=1).astype(np.float64)


def word_accuracy(name: str = "accuracy") -> Metric:
    """Return the accuracy of word labels as a metric: the percentage of labelled words with the correct label.

    ``name`` is the name of the metric.
    """

    def hits(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = WordLabels.of(gold, predictions).with_gold()
        return words.sums(words.same(), np.ones(len(words.gold)))

    return Metric(name, hits, share)


def micro_f1(name: str, outside: Sequence[str] = (NOTHING,)) -> Metric:
    """Return micro F1 of word labels as a metric, which is `f1` of the counts of all words and classes.

    ``name`` is the name of the metric. The labels ``outside`` are not counted as classes.
    """

    def pooled(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = WordLabels.of(gold, predictions).with_gold()
        right, said = (
            np.fromiter((label not in outside for label in labels), bool) for labels in (words.gold, words.predicted)
        )
        return words.sums(words.same() & right, right, said)

    return Metric(name, pooled, f1)


def word_macro_f1() -> Metric:
    """Return macro F1 of word labels as a metric: the mean F1 over all labels that occur as gold labels (`mean_f1`)."""

    def counts(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        return class_counts(WordLabels.of(gold, predictions).with_gold())

    return Metric("macro_f1", counts, mean_f1)


def class_counts(labels: WordLabels) -> Floats:
    """Return the number of correct, gold and predicted words of each class in each item, [items, 3 · classes].

    Only classes that occur among the gold labels have columns, because macro F1 needs no others.
    """
    number = {name: i for i, name in enumerate(sorted(set(labels.gold) - {NOTHING}))}
    right, said = (
        np.fromiter((number.get(value, -1) for value in values), np.int64) for values in (labels.gold, labels.predicted)
    )
    cell = labels.item * len(number)

    def count(of: Codes, where: Any) -> Floats:
        found = np.bincount((cell + of)[where], minlength=labels.items * len(number))
        return found.reshape(labels.items, len(number)).astype(np.float64)

    parts = [count(right, (right == said) & (right >= 0)), count(right, right >= 0), count(said, said >= 0)]
    return np.concatenate(parts, axis=1)


def mean_f1(sums: Floats) -> Floats:
    """Map sums of ``class_counts`` [..., 3 · classes] to the mean F1 over classes with a gold label, in percent.

    The F1 of a class is 2 · right / (gold + predicted).
    """
    right, gold, predicted = np.moveaxis(sums.reshape(*sums.shape[:-1], 3, sums.shape[-1] // 3), -2, 0)
    occurs = gold > 0
    each = 2 * right / np.where(occurs, gold + predicted, 1)
    result: Floats = 100 * np.where(occurs, each, 0).sum(axis=-1) / np.maximum(occurs.sum(axis=-1), 1)
    return result


def mentions_of(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the mentions of one sentence as (first word, word after the last, type).

    A mention is B-X with the I-X that follow directly. Other I tags are ignored, as in seqeval with mode="strict" and
    scheme=IOB2.

    >>> mentions_of(["B-PER", "I-PER", "I-LOC", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    ends = _ends(tags, np.zeros(len(tags), np.int64), _kind_codes(tags, _kinds(tags)))
    return [(i, int(ends[i]), tags[i][2:]) for i in np.flatnonzero(ends >= 0).tolist()]


def span_counts(gold: Sequence[Any], predictions: Sequence[Any], repair: Repair = "none") -> Floats:
    """Return the number of correct, gold and predicted mentions of each item, [items, 3].

    ``gold`` and ``predictions`` have the BIO tags of the words of each item. A mention is correct if its words and type
    agree with gold. ``repair`` applies to predictions only.
    """
    words = WordLabels.of(gold, [repaired(tags, repair) for tags in predictions])
    kinds = _kinds([*words.gold, *words.predicted])
    codes = []
    for tags in (words.gold, words.predicted):
        kind = _kind_codes(tags, kinds)
        ends = _ends(tags, words.item, kind)
        # a mention is encoded at its first word by its end and its type
        codes.append(np.where(ends < 0, -1, ends * (len(kinds) + 1) + kind))
    right, said = codes
    return words.sums((right == said) & (right >= 0), right >= 0, said >= 0)


def _kinds(tags: Sequence[str]) -> list[str]:
    return sorted({tag[2:] for tag in set(tags) if tag[:2] in INSIDE})


def _kind_codes(tags: Sequence[str], kinds: Sequence[str]) -> Codes:
    """Return the index [words] of the type of each tag, or −1 for O."""
    number = {f"{prefix}{kind}": i for i, kind in enumerate(kinds) for prefix in INSIDE}
    return np.fromiter((number.get(tag, -1) for tag in tags), np.int64)


def _ends(tags: Sequence[str], item: Codes, kind: Codes) -> Codes:
    """Return the index after the mention that starts at each word, or −1 if none starts, [words]."""
    begins = np.fromiter((tag[:2] == "B-" for tag in tags), bool)
    # a mention starts with B and continues over words of the same type until the next B
    goes_on = np.zeros(len(kind), bool)
    goes_on[1:] = (kind[1:] == kind[:-1]) & (item[1:] == item[:-1]) & ~begins[1:]
    starts = np.flatnonzero(~goes_on)
    after = np.append(starts[1:], len(kind))
    mention = begins[starts]
    ends = np.full(len(kind), -1, np.int64)
    ends[starts[mention]] = after[mention]
    return ends


def repaired(tags: Sequence[str], repair: Repair = "final-type") -> list[str]:
    """Return the tags of a sentence with every run of tags turned into one legal mention.

    With ``repair`` none, the tags are returned unchanged.

    A run starts at a B, or at an I that follows an O or begins the sentence. The run continues through every I of any
    type. The mention has the type of the last tag. A standalone I-X becomes B-X, and B-X I-Y I-Z becomes B-Z I-Z I-Z
    (Conneau et al. 2020, "Emerging Cross-lingual Structure", section 3.2).

    >>> repaired(["I-LOC", "O", "B-PER", "I-ORG", "I-LOC", "B-PER"])
    ['B-LOC', 'O', 'B-LOC', 'I-LOC', 'I-LOC', 'B-PER']
    """
    result = list(tags)
    final: str | None = None  # type of the current run, read from its end
    if repair == "none":
        return result
    for i in range(len(result) - 1, -1, -1):
        if result[i][:2] not in INSIDE:
            continue
        final = result[i][2:] if final is None else final
        starts = result[i][:2] == "B-" or i == 0 or result[i - 1][:2] not in INSIDE
        result[i] = f"{'B' if starts else 'I'}-{final}"
        final = None if starts else final
    return result
