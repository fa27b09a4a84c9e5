"""Part-of-speech tagging: a UPOS tag for each word.

Gold values and predictions have the form ``["DET", "NOUN"]``. A word beyond the maximum length is predicted as "".
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
    """Part-of-speech tagging: a tag (column ``upos``) for each word. Words without a tag (``_``) are ignored."""

    name = "pos"
    requires = ("upos",)
    unread = ""

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """Return the mask [words] of words with a tag other than ``_``."""
        return is_named(corpus.columns["upos"])

    def labels(self, train: TaskBatch) -> Labels:
        """Return ``tags``, the tags in training.

        Raises:
            InputError: The training set has no tags.
        """
        tags = names_in(train.corpus.columns["upos"], self.has_gold(train.corpus))
        if not tags:
            hint = "use training items with UPOS tags, as in a treebank"
            raise InputError("the training set has no UPOS tags", hint=hint, code="empty")
        return {"tags": tuple(tags)}

    def metrics(self) -> dict[str, Metric]:
        """Return accuracy, macro F1 over tags, micro F1 over words, and F1 of runs of one tag."""
        return named(word_accuracy(), word_macro_f1(), micro_f1("micro_f1"), Metric("run_f1", run_counts, f1))

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict the most frequent tag for every word."""
        best = most_frequent(chain.from_iterable(train))
        return [[best] * len(tags) for tags in test]


def run_counts(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
    """Return the number of correct, gold and predicted runs of each item, [items, 3].

    ``gold`` and ``predictions`` have the tags of the words of each item. A run is a maximal sequence of words with the
    same tag. It is correct if its words and its tag agree with gold.

    The released code of ALIGN-MLM computes this score as F1 of POS, because it passes tags without B and I to seqeval,
    which starts a mention at each change of tag. seqeval also reads the first letter of a tag as B or I, so that CCONJ
    and SCONJ have one type. This is not reproduced.
    """
    words = WordLabels.of(gold, predictions).with_gold()
    number = {tag: code for code, tag in enumerate(sorted({*words.gold, *words.predicted} - {NOTHING}))}
    ends = []
    for tags in (words.gold, words.predicted):
        codes = np.fromiter((number.get(tag, -1) for tag in tags), np.int64)
        starts = np.ones(len(codes), bool)
        starts[1:] = (codes[1:] != codes[:-1]) | (words.item[1:] != words.item[:-1])
        first = np.flatnonzero(starts)
        # a run is encoded at its first word by its end and its tag
        told = np.full(len(codes), -1, np.int64)
        told[first] = np.append(first[1:], len(codes)) * len(number) + codes[first]
        ends.append(np.where(codes < 0, -1, told))
    right, said = ends
    return words.sums((right == said) & (right >= 0), right >= 0, said >= 0)
