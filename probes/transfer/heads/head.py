"""What every head offers: a loss and a prediction from the states of a body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from probes.transfer.batch import Batch


class Head(nn.Module, ABC):
    """Reads states [rows, 1 + k, d]: that of ``<s>``, then one for each word; for qa [rows, width, d], all columns."""

    @abstractmethod
    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """The mean over what is labelled in the batch, in nats; 0 (with a gradient) where nothing is."""

    @abstractmethod
    def decode(self, states: Tensor, batch: Batch) -> list[Any]:
        """The best prediction for each row, as numbers.

        nli      the class
        words    a class for each word that is there
        parsing  (head, relation) for each word that is there; head 0 is the root
        slots    (intent, a class for each word)
        qa       (score of no answer, [(score, first column, last column), …] best first)
        """
