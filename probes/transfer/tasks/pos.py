"""Part-of-speech tagging: a UPOS tag for each word.

Gold and predictions have the form ``["DET", "NOUN"]``, with "" for a word that was not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.tasks.base import Labels, most_frequent
from probes.transfer.tasks.metrics import (
    NOTHING,
    Floats,
    Metric,
    WordLabels,
    f1,
    micro_f1,
    named,
    word_accuracy,
    word_macro_f1,
)
from probes.transfer.tasks.word_tasks import TagTask, is_named, names_in
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch


class Pos(TagTask):
    """Words with the column ``upos``; a word without a tag (``_``) is neither trained on nor counted."""

    name = "pos"
    requires = ("upos",)
    unread = ""

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        return is_named(corpus.columns["upos"])

    def labels(self, train: TaskBatch) -> Labels:
        """``tags``: those of training."""
        tags = names_in(train.corpus.columns["upos"], self.has_gold(train.corpus))
        if not tags:
            reason = "no word of the training set has a UPOS tag, so there is nothing to learn"
            raise InputError(reason, code="empty")
        return {"tags": tuple(tags)}

    def metrics(self) -> dict[str, Metric]:
        """Accuracy over words, the mean over tags of F1, F1 of all words together, and F1 of runs of one tag."""
        return named(word_accuracy(), word_macro_f1(), micro_f1("micro_f1"), Metric("run_f1", run_counts, f1))

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict the most frequent tag for every word."""
        best = most_frequent(chain.from_iterable(train))
        return [[best] * len(tags) for tags in test]


def run_counts(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
    """[items, 3]: runs that are right (the same words and tag), runs of gold, of the predictions.

    A run is as many neighbouring words as have one tag. That is what the released code of ALIGN-MLM calls F1 of POS: it
    gives tags without B and I to seqeval, which takes each change of the tag for the border of a mention. (The
    first letter is B or I to it, so that CCONJ and SCONJ are one type there and each SCONJ and SYM is a run; not here.)
    """
    words = WordLabels.of(gold, predictions).with_gold()
    number = {tag: code for code, tag in enumerate(sorted({*words.gold, *words.predicted} - {NOTHING}))}
    ends = []
    for tags in (words.gold, words.predicted):
        codes = np.fromiter((number.get(tag, -1) for tag in tags), np.int64)
        starts = np.ones(len(codes), bool)
        starts[1:] = (codes[1:] != codes[:-1]) | (words.item[1:] != words.item[:-1])
        first = np.flatnonzero(starts)
        # at its first word a run is told by its end and its tag
        told = np.full(len(codes), -1, np.int64)
        told[first] = np.append(first[1:], len(codes)) * len(number) + codes[first]
        ends.append(np.where(codes < 0, -1, told))
    right, said = ends
    return words.sums((right == said) & (right >= 0), right >= 0, said >= 0)
