"""Slot filling: a BIO tag for each word of an utterance, and the intent of the utterance.

Gold values and predictions have the form ``{"slots": ["O", "B-city"], "intent": "flight"}``. A word beyond the maximum
length is predicted as O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from probes.models.pretrained import Reader
from probes.transfer.config import HeadConfig
from probes.transfer.tasks.base import Batch, Examples, Head, Labels, classes_of, most_frequent
from probes.transfer.tasks.heads import ClassifyHead, TagHead
from probes.transfer.tasks.metrics import OUTSIDE, Floats, Metric, f1, item_metric, named, span_counts
from probes.transfer.tasks.word_tasks import UNSEEN, TagExamples, WordTask, names_in, not_inserted, span_tags
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch

UNSEEN_INTENT = "items with an intent that training does not have"
FRAME = (
    "share of utterances with the correct intent and exactly the gold slots, which are compared by type and both ends "
    "(an I tag without a B tag is not a slot, unless score.repair makes it one)"
)


class Slots(WordTask):
    """Slot filling: an utterance has an intent, and a slot tag (column ``slot``) for each word."""

    name = "slots"
    predicts_labels = True
    requires = ("slot",)

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """Return the mask [words] of words that no transform inserted."""
        return not_inserted(corpus)

    def labels(self, train: TaskBatch) -> Labels:
        """Return ``tags`` (O, and B and I of every slot in training) and ``intents``.

        Raises:
            InputError: The utterances of the training set have no intents.
        """
        tags = span_tags(train.corpus.columns["slot"], self.has_gold(train.corpus))
        return {"tags": tags, "intents": tuple(names_in(_intents(train), np.ones(len(train), bool)))}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """Encode a slot tag for each word and the intent of each utterance.

        Raises:
            InputError: The utterances have no intents, or the model cannot read the language (see `words_of`).
        """
        words, intents = self.words(batch, readers), _intents(batch)
        column = words.column("slot")
        tags, unseen = classes_of(column, labels["tags"])
        classes, strange = classes_of(intents, labels["intents"])
        slots = words.lists(column.values())
        return SlotsExamples(
            batch.ids,
            [{"slots": s, "intent": i} for s, i in zip(slots, intents.values(), strict=True)],
            {**words.counts, UNSEEN: unseen, UNSEEN_INTENT: strange},
            words=words,
            targets={"tags": tags},
            item_targets={"intent": classes},
            tags=labels["tags"],
            intents=labels["intents"],
            unread=OUTSIDE,
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """Return a head for slots and intents, for states of width ``hidden``."""
        sizes = {name: len(labels[name]) for name in ("tags", "intents")}
        return SlotsHead(hidden=hidden, **sizes, config=self.config.head)

    def metrics(self) -> dict[str, Metric]:
        """Return slot F1 (strict spans), intent accuracy, and frame accuracy (all slots and the intent correct)."""

        def slots(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
            right, said = ([frame["slots"] for frame in frames] for frames in (gold, predictions))
            return span_counts(right, said, self.config.score.repair)

        def intents(gold: Sequence[Any], predictions: Sequence[Any]) -> list[bool]:
            return [g["intent"] == p["intent"] for g, p in zip(gold, predictions, strict=True)]

        def frames(gold: Sequence[Any], predictions: Sequence[Any]) -> Any:
            counts = slots(gold, predictions)
            return (counts == counts[:, :1]).all(axis=1) & np.asarray(intents(gold, predictions), bool)

        spans = Metric("slot_f1", slots, f1, about="F1 of slots, which are correct if their type and both ends are")
        return named(spans, item_metric("intent_accuracy", intents), item_metric("frame_accuracy", frames, FRAME))

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict the most frequent intent and no slots."""
        intent = most_frequent(frame["intent"] for frame in train)
        return [{"slots": [OUTSIDE] * len(frame["slots"]), "intent": intent} for frame in test]


@dataclass(frozen=True, kw_only=True)
class SlotsExamples(TagExamples):
    """Encoded utterances with slot tags and an intent each.

    Attributes:
        intents: The names of the intents that can be predicted.
    """

    intents: tuple[str, ...]

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the slots and the intent of each utterance.

        ``outputs`` has (class of the intent, classes of the words that were read) for each utterance.
        """
        tags = self.tags_of(classes for _, classes in outputs)
        return [
            {"slots": slots, "intent": self.intents[intent]} for slots, (intent, _) in zip(tags, outputs, strict=True)
        ]


class SlotsHead(Head):
    """A TagHead for slots and a ClassifyHead for the intent, on the same states. Their losses are added.

    Args:
        hidden: The width of the states.
        tags: Number of slot tags.
        intents: Number of intents.
        config: The settings of the heads.
    """

    def __init__(self, *, hidden: int, tags: int, intents: int, config: HeadConfig) -> None:
        super().__init__()
        self.slots = TagHead(hidden=hidden, classes=tags, config=config)
        self.intent = ClassifyHead(hidden=hidden, classes=intents, dropout=config.dropout, target="intent")

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the loss of the slots plus the loss of the intent in nats, for states [r, 1 + k, d]."""
        return self.slots.loss(states, batch) + self.intent.loss(states, batch)

    def decode(self, states: Tensor, batch: Batch) -> list[tuple[int, list[int]]]:
        """Return (class of the intent, classes of the words) for each row, for states [r, 1 + k, d]."""
        return list(zip(self.intent.decode(states, batch), self.slots.decode(states, batch), strict=True))


def _intents(batch: TaskBatch) -> Column:
    if batch.label is None:
        hint = "use slots:PATH, or a data set of the hub with a column intent"
        raise InputError("the items have no intents, which the task slots needs", hint=hint, code="missing")
    return batch.label
