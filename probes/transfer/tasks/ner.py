"""Named entities: a BIO tag for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.metrics.metric import Metric
from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.tags import TagTask
from probes.transfer.tasks.words import names_in, not_inserted
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch

OUTSIDE = "O"


class Ner(TagTask):
    """Words with the column ``ner``."""

    name = "ner"
    requires = ("ner",)
    unread = OUTSIDE

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """[words] all but inserted ones."""
        return not_inserted(corpus)

    def labels(self, train: TaskBatch) -> Labels:
        """``tags``: O, and B and I of every kind of entity in training."""
        tags = span_tags(train.corpus.columns["ner"], self.has_gold(train.corpus))
        if len(tags) == 1:
            raise InputError("no word of the training set is part of an entity, so there is nothing to learn")
        return {"tags": tags}

    def metrics(self) -> dict[str, Metric]:
        """F1, precision and recall of entities; of words, the F1 of tags other than O, and accuracy."""
        from probes.transfer.metrics import span_metrics, token_f1, token_metrics

        found = [*span_metrics(self.config.score.repair).values(), token_f1()]
        found.append(replace(token_metrics()["accuracy"], name="token_accuracy"))
        return {metric.name: metric for metric in found}

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """The same for every item: each word an entity of one kind, or all of them one entity.

        The kind and the form are those with the highest F1 on ``train``: all O, the most frequent tag, would find
        nothing.
        """
        kind, whole = best_guess(train)
        return [[f"{'I' if whole and i else 'B'}-{kind}" for i in range(len(tags))] for tags in test]


def span_tags(column: Column, among: NDArray[np.bool_]) -> tuple[str, ...]:
    """O and both tags of each kind of span that occurs ``among`` [words], sorted."""
    kinds = {name[2:] for name in names_in(column, among) if name != OUTSIDE}
    return tuple(sorted({OUTSIDE, *(f"{letter}-{kind}" for kind in kinds for letter in "BI")}))


def best_guess(train: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """The kind of entity to guess everywhere, and whether as one entity of all words; by strict F1."""
    from probes.transfer.metrics import mentions_of

    right: Counter[tuple[str, bool]] = Counter()
    mentions = 0
    for tags in train:
        for start, stop, kind in mentions_of(tags):
            mentions += 1
            right[kind, False] += stop - start == 1
            right[kind, True] += stop - start == len(tags)
    guesses = {False: sum(map(len, train)), True: sum(1 for tags in train if tags)}
    scores = {guess: 2 * hits / (guesses[guess[1]] + mentions) for guess, hits in right.items()}
    return min(scores, key=lambda guess: (-scores[guess], guess))
