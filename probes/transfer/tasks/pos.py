"""Part-of-speech tagging: a UPOS tag for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.metrics.metric import Metric
from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.tags import TagTask
from probes.transfer.tasks.words import is_named, names_in
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch


class Pos(TagTask):
    """Words with the column ``upos``; a word without a tag (``_``) is neither trained on nor counted."""

    name = "pos"
    requires = ("upos",)
    unread = ""

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """[words] which have a tag."""
        return is_named(corpus.columns["upos"])

    def labels(self, train: TaskBatch) -> Labels:
        """``tags``: those of training."""
        tags = names_in(train.corpus.columns["upos"], self.has_gold(train.corpus))
        if not tags:
            raise InputError("no word of the training set has a UPOS tag, so there is nothing to learn")
        return {"tags": tuple(tags)}

    def metrics(self) -> dict[str, Metric]:
        """Accuracy over words, F1 over tags."""
        from probes.transfer.metrics import token_metrics

        return token_metrics()

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """The most frequent tag for every word."""
        counts = Counter(chain.from_iterable(train))
        best = min(counts, key=lambda tag: (-counts[tag], tag))
        return [[best] * len(tags) for tags in test]
