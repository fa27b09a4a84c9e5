"""Named entity recognition: a BIO tag for each word.

Gold values and predictions have the form ``["B-PER", "O"]``. A word beyond the maximum length is predicted as O.
"""

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
    """Named entity recognition: a tag (column ``ner``) for each word, except for inserted words."""

    name = "ner"
    requires = ("ner",)
    unread = OUTSIDE

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """Return the mask [words] of words that no transform inserted."""
        return not_inserted(corpus)

    def labels(self, train: TaskBatch) -> Labels:
        """Return ``tags``: O, and B and I of every type of entity in training.

        Raises:
            InputError: The training set has no entities.
        """
        tags = span_tags(train.corpus.columns["ner"], self.has_gold(train.corpus))
        if len(tags) == 1:
            hint = "use training items with tags such as B-PER in the column ner"
            hint += "" if self.config.train_items is None else ", or increase train_items"
            raise InputError("the training set has no entities", hint=hint, code="empty")
        return {"tags": tags}

    def metrics(self) -> dict[str, Metric]:
        """Return F1, precision and recall of entities (strict BIO), and F1 and accuracy of words.

        ``token_f1`` treats each tag except O as a class, so B-PER and I-PER differ. It is the NER score of "The Impact
        of Cross-Lingual Adjustment" (2022), section 4.
        """

        def spans(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
            return span_counts(gold, predictions, self.config.score.repair)

        return named(
            Metric("span_f1", spans, f1, about="F1 of entities, which are correct if their type and both ends are"),
            Metric("span_precision", spans, lambda sums: percent(sums[..., 0], sums[..., 2])),
            Metric("span_recall", spans, lambda sums: percent(sums[..., 0], sums[..., 1])),
            micro_f1("token_f1", outside=(OUTSIDE, NOTHING)),
            word_accuracy("token_accuracy"),
        )

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict entities of one type everywhere: either each word, or each whole sentence.

        The choice has the highest F1 on ``train``. The most frequent tag, O, would have an F1 of 0. If ``train`` has no
        entities, no entity is predicted.
        """
        if not any(map(mentions_of, train)):
            return [[OUTSIDE] * len(tags) for tags in test]
        kind, whole = best_guess(train)
        return [[f"{'I' if whole and i else 'B'}-{kind}" for i in range(len(tags))] for tags in test]


def best_guess(train: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """Return the constant prediction with the best strict F1 on ``train``.

    ``train`` has the BIO tags of each sentence, and must have at least one entity.

    Returns:
        The type of entity to predict everywhere, and True if each predicted entity is a whole sentence, or False if it
        is a single word.
    """
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
