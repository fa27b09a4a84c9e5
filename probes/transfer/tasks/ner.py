"""Named entities: a BIO tag for each word. Gold and predictions: ``["B-PER", "O"]``; O for a word that was not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.metrics import (
    NOTHING,
    OUTSIDE,
    Floats,
    Metric,
    f1,
    mentions_of,
    micro_f1,
    named,
    percent,
    span_counts,
    word_accuracy,
)
from probes.transfer.tasks.word_tasks import TagTask, not_inserted, span_tags
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch


class Ner(TagTask):
    """Words with the column ``ner``; all but inserted ones have a gold tag."""

    name = "ner"
    requires = ("ner",)
    unread = OUTSIDE

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        return not_inserted(corpus)

    def labels(self, train: TaskBatch) -> Labels:
        """``tags``: O, and B and I of every kind of entity in training."""
        tags = span_tags(train.corpus.columns["ner"], self.has_gold(train.corpus))
        if len(tags) == 1:
            reason = "no word of the training set is part of an entity, so there is nothing to learn"
            raise InputError(reason, code="empty")
        return {"tags": tags}

    def metrics(self) -> dict[str, Metric]:
        """F1, precision and recall of entities (strict BIO); of words, F1 of tags other than O, and accuracy.

        ``token_f1`` takes each tag as a class (B-PER is not I-PER): the NER score of "The Impact of Cross-Lingual
        Adjustment" (2022), section 4.
        """

        def spans(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
            return span_counts(gold, predictions, self.config.score.repair)

        return named(
            Metric("span_f1", spans, f1, about="F1 of entities, right if their type and both ends are"),
            Metric("span_precision", spans, lambda sums: percent(sums[..., 0], sums[..., 2])),
            Metric("span_recall", spans, lambda sums: percent(sums[..., 0], sums[..., 1])),
            micro_f1("token_f1", outside=(OUTSIDE, NOTHING)),
            word_accuracy("token_accuracy"),
        )

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict the same for every item: each word an entity of one kind, or all of them one entity.

        The kind and the form are those with the highest F1 on ``train``. All O, the most frequent tag, would find
        nothing.
        """
        kind, whole = best_guess(train)
        return [[f"{'I' if whole and i else 'B'}-{kind}" for i in range(len(tags))] for tags in test]


def best_guess(train: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """Return the kind of entity to guess everywhere, and whether as one entity of all words, by strict F1."""
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
