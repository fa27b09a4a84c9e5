"""Part-of-speech tagging: a UPOS tag for each word. Gold and predictions: ``["DET", "NOUN"]``; "" for a word that was
not read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.tasks.base import Labels, most_frequent
from probes.transfer.tasks.metrics import Metric, micro_f1, named, word_accuracy, word_macro_f1
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
            raise InputError("no word of the training set has a UPOS tag, so there is nothing to learn")
        return {"tags": tuple(tags)}

    def metrics(self) -> dict[str, Metric]:
        """Accuracy over words, the mean over tags of F1, and F1 of all words together."""
        return named(word_accuracy(), word_macro_f1(), micro_f1("micro_f1"))

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """The most frequent tag for every word."""
        best = most_frequent(chain.from_iterable(train))
        return [[best] * len(tags) for tags in test]
