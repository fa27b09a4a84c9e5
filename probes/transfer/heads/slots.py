"""Slot filling with intent detection: a tag for each word and a class for the sentence."""

from __future__ import annotations

from torch import Tensor

from probes.transfer.batch import Batch
from probes.transfer.config import HeadConfig
from probes.transfer.heads.classify import ClassifyHead
from probes.transfer.heads.head import Head
from probes.transfer.heads.tags import TagHead


class SlotsHead(Head):
    """A TagHead for the slots and a ClassifyHead for the intent over the same states."""

    def __init__(self, *, hidden: int, tags: int, intents: int, config: HeadConfig) -> None:
        super().__init__()
        self.slots = TagHead(hidden=hidden, classes=tags, config=config)
        self.intent = ClassifyHead(hidden=hidden, classes=intents, dropout=config.dropout, target="intent")

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """The sum of the two losses, each a mean over its labels."""
        return self.slots.loss(states, batch) + self.intent.loss(states, batch)

    def decode(self, states: Tensor, batch: Batch) -> list[tuple[int, list[int]]]:
        """(intent, a tag for each word that is there) of each row."""
        return list(zip(self.intent.decode(states, batch), self.slots.decode(states, batch), strict=True))
