"""Metrics as sums over items and a score of the sums, so that intervals and tests can draw items anew.

Here is what several tasks count: ratios, labels of words, classes, spans. What a task alone scores is in its file.
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
NOTHING = ""  # as gold: not labelled, so not counted; as prediction: nothing was said
INSIDE = ("B-", "I-")
OUTSIDE = "O"


@dataclass(frozen=True)
class Metric:
    """``score`` of the sums of ``stats``, in percent.

    stats    (gold, predictions), one of each for each item → [items, k] float64: what an item adds to each sum
    score    sums [..., k] → [...]: vectorised over leading dimensions; 0 where nothing was to be found
    of_items whether it is the mean of what single items score, so that tests over items apply; ``stats`` [items, 2] are
             then the item's score from 0 to 1, and 1 where the item counts (both 0 where it does not)
    about    what it counts, where the name leaves that open; stands under the tables it is in
    """

    name: str
    stats: Stats
    score: Callable[[Floats], Floats]
    of_items: bool = False
    about: str = ""

    def __call__(self, gold: Sequence[Any], predictions: Sequence[Any]) -> float:
        """Return the score of all items together."""
        return float(self.score(self.stats(gold, predictions).sum(axis=0)))


def named(*metrics: Metric) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics}


def defined(metrics: Iterable[Metric]) -> str | None:
    """Return the explanation of the metrics for the caption of a table, None if every name explains itself."""
    return "; ".join(f"{metric.name}: {metric.about}" for metric in metrics if metric.about) or None


def item_metric(name: str, values: Callable[[Sequence[Any], Sequence[Any]], ArrayLike], about: str = "") -> Metric:
    """Of a function (gold, predictions) → [items] scores from 0 to 1, UNCOUNTED where the item does not count."""

    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        assert len(gold) == len(predictions), (len(gold), len(predictions))
        found = np.asarray(values(gold, predictions), np.float64).reshape(len(gold))
        return np.stack([np.nan_to_num(found), np.isfinite(found)], axis=1).astype(np.float64)

    return Metric(name, stats, share, of_items=True, about=about)


def percent(part: Floats, whole: Floats) -> Floats:
    """100 · part / whole, 0 where the whole is 0."""
    result: Floats = 100 * np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)
    return result


def share(sums: Floats) -> Floats:
    """Map sums (hits, all) [..., 2] to hits in percent of all."""
    return percent(sums[..., 0], sums[..., 1])


def f1(sums: Floats) -> Floats:
    """Map sums (right, gold, predicted) [..., 3] to F1 = 2 · right / (gold + predicted) in percent."""
    return percent(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


@dataclass(frozen=True)
class WordLabels:
    """What is said of the words of all items: ``item`` [words] is the number of the item, of ``items``, of each."""

    items: int
    item: Codes
    gold: list[Any]
    predicted: list[Any]

    @staticmethod
    def of(gold: Sequence[Sequence[Any]], predictions: Sequence[Sequence[Any]]) -> WordLabels:
        """Every item has as many predictions as words."""
        lengths = [len(values) for values in gold]
        assert lengths == [len(values) for values in predictions], "there must be a prediction for every word"
        item = np.repeat(np.arange(len(lengths), dtype=np.int64), np.asarray(lengths, np.int64))
        return WordLabels(len(lengths), item, list(chain.from_iterable(gold)), list(chain.from_iterable(predictions)))

    def with_gold(self) -> WordLabels:
        """Without the words whose gold label is ""."""
        if NOTHING not in self.gold:
            return self
        kept = [i for i, label in enumerate(self.gold) if label != NOTHING]
        gold, predicted = ([values[i] for i in kept] for values in (self.gold, self.predicted))
        return WordLabels(self.items, self.item[kept], gold, predicted)

    def same(self, part: Callable[[Any], Any] = lambda label: label) -> NDArray[np.bool_]:
        """[words] whether the (``part`` of the) predicted label is that of gold."""
        return np.fromiter((part(g) == part(p) for g, p in zip(self.gold, self.predicted, strict=True)), bool)

    def sums(self, *columns: ArrayLike) -> Floats:
        """[items, columns]: of each column [words] the sum in every item."""
        sums = [np.bincount(self.item, np.asarray(c, np.float64), minlength=self.items) for c in columns]
        return np.stack(sums, axis=1).astype(np.float64)


def word_accuracy(name: str = "accuracy") -> Metric:
    """Return the metric of the share of labelled words with the right label."""

    def hits(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = WordLabels.of(gold, predictions).with_gold()
        return words.sums(words.same(), np.ones(len(words.gold)))

    return Metric(name, hits, share)


def micro_f1(name: str, outside: Sequence[str] = (NOTHING,)) -> Metric:
    """F1 of the labels of all words together, but for those ``outside``, which say nothing."""

    def pooled(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = WordLabels.of(gold, predictions).with_gold()
        right, said = (
            np.fromiter((label not in outside for label in labels), bool) for labels in (words.gold, words.predicted)
        )
        return words.sums(words.same() & right, right, said)

    return Metric(name, pooled, f1)


def word_macro_f1() -> Metric:
    """Mean F1 of the labels that occur in gold; that of a label that is never predicted is 0."""

    def counts(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        return class_counts(WordLabels.of(gold, predictions).with_gold())

    return Metric("macro_f1", counts, mean_f1)


def class_counts(labels: WordLabels) -> Floats:
    """[items, 3 · classes]: how often each class of gold is right, is gold, is predicted in each item.

    A class that is never gold has no column: what is taken for it is missing from the right ones, which is all that
    macro F1 needs.
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
    """Map sums of ``class_counts`` [..., 3 · classes] to the mean F1 of the classes with a gold label, in percent."""
    right, gold, predicted = np.moveaxis(sums.reshape(*sums.shape[:-1], 3, sums.shape[-1] // 3), -2, 0)
    occurs = gold > 0
    each = 2 * right / np.where(occurs, gold + predicted, 1)
    result: Floats = 100 * np.where(occurs, each, 0).sum(axis=-1) / np.maximum(occurs.sum(axis=-1), 1)
    return result


def mentions_of(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the mentions of one sentence: (first word, word after the last, type).

    A mention is B-X and the I-X right after it. An I that continues no mention of its type is none (seqeval with
    mode="strict" and scheme=IOB2).

    >>> mentions_of(["B-PER", "I-PER", "I-LOC", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    ends = _ends(tags, np.zeros(len(tags), np.int64), _kind_codes(tags, _kinds(tags)))
    return [(i, int(ends[i]), tags[i][2:]) for i in np.flatnonzero(ends >= 0).tolist()]


def span_counts(gold: Sequence[Any], predictions: Sequence[Any], repair: Repair = "none") -> Floats:
    """[items, 3]: mentions that are right (the same words and type), gold mentions, predicted mentions.

    Predictions are repaired first if ``repair`` says so, gold tags never.
    """
    words = WordLabels.of(gold, [repaired(tags, repair) for tags in predictions])
    kinds = _kinds([*words.gold, *words.predicted])
    codes = []
    for tags in (words.gold, words.predicted):
        kind = _kind_codes(tags, kinds)
        ends = _ends(tags, words.item, kind)
        # at its first word a mention is told by its end and its type
        codes.append(np.where(ends < 0, -1, ends * (len(kinds) + 1) + kind))
    right, said = codes
    return words.sums((right == said) & (right >= 0), right >= 0, said >= 0)


def _kinds(tags: Sequence[str]) -> list[str]:
    return sorted({tag[2:] for tag in set(tags) if tag[:2] in INSIDE})


def _kind_codes(tags: Sequence[str], kinds: Sequence[str]) -> Codes:
    """[words] the type of each tag; −1 outside."""
    number = {f"{prefix}{kind}": i for i, kind in enumerate(kinds) for prefix in INSIDE}
    return np.fromiter((number.get(tag, -1) for tag in tags), np.int64)


def _ends(tags: Sequence[str], item: Codes, kind: Codes) -> Codes:
    """[words] at the first word of a mention the row after its last one; −1 elsewhere."""
    begins = np.fromiter((tag[:2] == "B-" for tag in tags), bool)
    # a run of words of one type, none of them a B but the first, is a mention if it starts with B
    goes_on = np.zeros(len(kind), bool)
    goes_on[1:] = (kind[1:] == kind[:-1]) & (item[1:] == item[:-1]) & ~begins[1:]
    starts = np.flatnonzero(~goes_on)
    after = np.append(starts[1:], len(kind))
    mention = begins[starts]
    ends = np.full(len(kind), -1, np.int64)
    ends[starts[mention]] = after[mention]
    return ends


def repaired(tags: Sequence[str], repair: Repair = "final-type") -> list[str]:
    """Return the tags of a sentence, with each run of them made one legal mention of the type of its last tag.

    A run starts at B, or at an I after O or at the start, and goes on through every I whatever its type. So a
    standalone
    I-X becomes B-X, and B-X I-Y I-Z becomes B-Z I-Z I-Z (Conneau et al. 2020, "Emerging Cross-lingual Structure",
    section
    3.2). Legal tags stay.

    >>> repaired(["I-LOC", "O", "B-PER", "I-ORG", "I-LOC", "B-PER"])
    ['B-LOC', 'O', 'B-LOC', 'I-LOC', 'I-LOC', 'B-PER']
    """
    result = list(tags)
    final: str | None = None  # type of the run that ends at a later word
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
