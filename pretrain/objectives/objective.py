"""The weighted sum of terms that a run minimises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor

from pretrain.data.batch import IGNORE, Batch
from pretrain.model.encoder import MaskedLM
from pretrain.model.tensors import TensorBatch
from pretrain.objectives import NAMES, TERMS
from pretrain.objectives.term import OwnLoss

Number = TypeVar("Number", float, Tensor)


class Objective:
    """L = Σ w_t · (sum of term t) / (labelled positions of the step) + Σ w_t · (own loss of t) / (its own count).

    Sums over masked positions are Σ −log p(label); all of them divide by one number, so that a position weighs the same
    whatever its term. Counts are known before the forward pass, so that each micro-batch is divided by the counts of
    the whole step, over all micro-batches and processes.

    weights   those of the terms that are on
    own       the losses of those that are no sums over masked positions
    """

    def __init__(self, weights: Mapping[str, float], own: Mapping[str, OwnLoss]) -> None:
        assert weights.keys() <= {*NAMES}, "known terms"
        assert own.keys() == {t.name for t in TERMS if t.name in weights and not t.masked}, "their own losses"
        # rows with positions of one term may have those of another: they are counted even if they have no weight
        on = {*weights}.union(*(term.beside for term in TERMS if term.name in weights))
        self.names = tuple(name for name in NAMES if name in on)
        self.weights = {name: weights.get(name, 0.0) for name in self.names}
        self.own = own

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many summands each loss of the batch has."""
        labelled = batch.labels != IGNORE
        return {
            name: self.own[name].count(batch)
            if name in self.own
            else int((labelled & (batch.terms == NAMES.index(name))).sum())
            for name in self.names
        }

    def sums(self, model: MaskedLM, batch: TensorBatch) -> dict[str, Tensor]:
        """The sum of each loss, over masked positions in nats."""
        losses = model(batch) if self.names != (*self.own,) else None
        sums = {}
        for name in self.names:
            if name in self.own:
                sums[name] = self.own[name].sum(model, batch)
            elif losses is not None:
                sums[name] = torch.where(batch.terms == NAMES.index(name), losses, 0.0).sum()
        return sums

    def scales(self, counts: Mapping[str, Number]) -> dict[str, Number]:
        """What each sum is multiplied with; ``counts`` are those of the whole step, numbers or tensors."""
        masked = [counts[name] for name in self.names if name not in self.own]
        pools = {
            name: _at_least_one(counts[name] if name in self.own else sum(masked[1:], masked[0])) for name in self.names
        }
        return {name: self.weights[name] / pools[name] for name in self.names}


def _at_least_one(count: Number) -> Number:
    """A step without a labelled position has the loss 0, not 0 / 0."""
    return count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
