"""Slot filling: a BIO tag for each word of an utterance, and its intent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.batch import Examples, Reader
from probes.transfer.heads.head import Head
from probes.transfer.metrics.metric import Metric
from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.ner import OUTSIDE, span_tags
from probes.transfer.tasks.tags import TagExamples
from probes.transfer.tasks.words import WordTask, classes_of, names_in, not_inserted, with_unseen
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch

UNSEEN_INTENT = "items with an intent that training does not have"


@dataclass(frozen=True, kw_only=True)
class SlotsExamples(TagExamples):
    """Utterances; their intents are targets of items."""

    intents: tuple[str, ...]

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """[items] slots and intent; ``outputs`` are (intent, classes of the words that are read)."""
        tags = self.tags_of(classes for _, classes in outputs)
        return [
            {"slots": slots, "intent": self.intents[intent]} for slots, (intent, _) in zip(tags, outputs, strict=True)
        ]


class Slots(WordTask):
    """Utterances with the column ``slot``, each with an intent."""

    name = "slots"
    requires = ("slot",)

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """[words] all but inserted ones."""
        return not_inserted(corpus)

    def labels(self, train: TaskBatch) -> Labels:
        """``tags``: O, and B and I of every slot in training; ``intents``: those of training."""
        if not len(train):
            raise InputError("the training set has no utterance, so there is nothing to learn")
        tags = span_tags(train.corpus.columns["slot"], self.has_gold(train.corpus))
        return {"tags": tags, "intents": tuple(names_in(_intents(train), np.ones(len(train), bool)))}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """A tag for each word and an intent for each item."""
        words, intents = self.words(batch, readers), _intents(batch)
        column = words.column("slot")
        tags, unseen = classes_of(column, labels["tags"])
        classes, strange = classes_of(intents, labels["intents"])
        slots = words.lists(column.values())
        return SlotsExamples(
            batch.ids,
            [{"slots": s, "intent": i} for s, i in zip(slots, intents.values(), strict=True)],
            with_unseen(with_unseen(words.counts, unseen), strange, UNSEEN_INTENT),
            words=words,
            targets={"tags": tags},
            item_targets={"intent": classes},
            tags=labels["tags"],
            intents=labels["intents"],
            unread=OUTSIDE,
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """A tagger and a classifier of the whole utterance."""
        from probes.transfer.heads.slots import SlotsHead

        sizes = {name: len(labels[name]) for name in ("tags", "intents")}
        return SlotsHead(hidden=hidden, **sizes, config=self.config.head)

    def metrics(self) -> dict[str, Metric]:
        """F1 over slots, accuracy of intents, and of whole frames (intent and every slot)."""
        from probes.transfer.metrics import frame_metrics

        return frame_metrics(self.config.score.repair)

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """The most frequent intent and no slot."""
        counts = Counter(frame["intent"] for frame in train)
        intent = min(counts, key=lambda name: (-counts[name], name))
        return [{"slots": [OUTSIDE] * len(frame["slots"]), "intent": intent} for frame in test]


def _intents(batch: TaskBatch) -> Column:
    if batch.label is None:
        raise InputError("the task slots needs an intent for each utterance, and these have none")
    return batch.label
