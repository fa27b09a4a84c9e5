"""Attachment scores of dependency trees with gold words, where precision and recall of CoNLL 2018 are one share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from probes.transfer.metrics.items import Words, share, words_of
from probes.transfer.metrics.metric import Floats, Metric

PUNCT = "PUNCT"
NO_PUNCT = "_without_punct"


def tree_metrics(punctuation: bool = True) -> dict[str, Metric]:
    """LAS, UAS and LAS with subtypes, each with and without words whose gold upos is PUNCT.

    las            share of words with the right head and the right relation up to ":" (CoNLL 2018)
    uas            share of words with the right head
    las_subtypes   as las, of whole relations
    …_without_punct

    ``punctuation`` says whether the first metric, the main one, counts punctuation. A word with the predicted head −1
    is an error; one whose gold head is −1 has no head to be found and does not count.
    """
    rights: dict[str, Callable[[Words], Any]] = {"las": _universal, "uas": _attached, "las_subtypes": _whole}
    endings = ("", NO_PUNCT) if punctuation else (NO_PUNCT, "")
    return {
        name + ending: Metric(name + ending, _stats(right, not ending), share)
        for ending in endings
        for name, right in rights.items()
    }


def _stats(right: Callable[[Words], Any], punctuation: bool) -> Callable[[Sequence[Any], Sequence[Any]], Floats]:
    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = words_of(gold, predictions)
        counted = np.fromiter((g[0] >= 0 and (punctuation or g[2] != PUNCT) for g in words.gold), bool)
        return words.sums(counted & right(words), counted)

    return stats


def _attached(words: Words) -> Any:
    return np.fromiter((g[0] == p[0] for g, p in zip(words.gold, words.predicted, strict=True)), bool)


def _whole(words: Words) -> Any:
    same = (g[1] == p[1] for g, p in zip(words.gold, words.predicted, strict=True))
    return _attached(words) & np.fromiter(same, bool)


def _universal(words: Words) -> Any:
    part = {name: name.partition(":")[0] for name in {w[1] for w in (*words.gold, *words.predicted)}}
    same = (part[g[1]] == part[p[1]] for g, p in zip(words.gold, words.predicted, strict=True))
    return _attached(words) & np.fromiter(same, bool)
