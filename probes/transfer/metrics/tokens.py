"""Scores of one label a word. The prediction "" says nothing; a word whose gold label is "" does not count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from probes.transfer.metrics.classes import ACCURACY, MACRO_F1, class_counts, mean_f1
from probes.transfer.metrics.items import NOTHING, Words, f1, share, words_of
from probes.transfer.metrics.metric import Floats, Metric

MICRO_F1 = "micro_f1"
TOKEN_F1 = "token_f1"  # noqa: S105  no password
OUTSIDE = ("O", NOTHING)


def token_metrics(classes: Sequence[str] = ()) -> dict[str, Metric]:
    """Accuracy, macro F1 over the classes in gold, and micro F1, which pools all words.

    ``classes`` as in ``classes.macro_f1``.
    """

    def counts(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = _labelled(gold, predictions)
        return class_counts(words.item, words.items, words.gold, words.predicted, classes)

    return {
        ACCURACY: Metric(ACCURACY, _hits, share),
        MACRO_F1: Metric(MACRO_F1, counts, mean_f1),
        MICRO_F1: Metric(MICRO_F1, _pooled, f1),
    }


def token_f1() -> Metric:
    """Micro F1 of the words' tags other than O, each tag a class (B-PER is not I-PER).

    The NER score of "The Impact of Cross-Lingual Adjustment" (2022), section 4: token-level micro-averaged F1.
    """
    return Metric(TOKEN_F1, _inside, f1)


def _labelled(gold: Sequence[Any], predictions: Sequence[Any]) -> Words:
    """The words that have a gold label."""
    words = words_of(gold, predictions)
    if NOTHING not in words.gold:
        return words
    kept = [i for i, label in enumerate(words.gold) if label != NOTHING]
    return Words(words.items, words.item[kept], [words.gold[i] for i in kept], [words.predicted[i] for i in kept])


def _equal(words: Words) -> Any:
    return np.fromiter((g == p for g, p in zip(words.gold, words.predicted, strict=True)), bool)


def _not_among(labels: Sequence[str], names: tuple[str, ...]) -> Any:
    return np.fromiter((label not in names for label in labels), bool)


def _hits(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
    words = _labelled(gold, predictions)
    return words.sums(_equal(words), np.ones(len(words.gold)))


def _pooled(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
    words = _labelled(gold, predictions)
    said = _not_among(words.predicted, (NOTHING,))
    return words.sums(_equal(words), np.ones(len(words.gold)), said)


def _inside(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
    words = _labelled(gold, predictions)
    right, said = _not_among(words.gold, OUTSIDE), _not_among(words.predicted, OUTSIDE)
    return words.sums(_equal(words) & right, right, said)
