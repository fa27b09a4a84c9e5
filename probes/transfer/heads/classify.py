"""One class for a sentence or a pair of sentences."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from probes.transfer.batch import Batch
from probes.transfer.heads.head import Head
from probes.transfer.heads.precision import full_precision, mean_loss


class ClassifyHead(Head):
    """Dropout and a linear map of the state of ``<s>``. ``target`` is the name of what is learned in a batch."""

    def __init__(self, *, hidden: int, classes: int, dropout: float, target: str = "label") -> None:
        super().__init__()
        self.target = target
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, classes)

    def scores(self, states: Tensor) -> Tensor:
        """States [r, 1 + k, d] → [r, classes] float32."""
        with full_precision(states):
            y: Tensor = self.linear(self.dropout(states[:, 0].float()))
            return y

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Cross entropy, mean over the rows that have a label."""
        return mean_loss(self.scores(states), batch.targets[self.target])

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[int]:  # noqa: ARG002
        """The best class of each row, the first of equals."""
        best: list[int] = self.scores(states).argmax(dim=1).tolist()
        return best
