"""The weighted sum of terms that a run minimises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor

from pretrain.data.batch import TERMS, Batch
from pretrain.model.encoder import MaskedLM
from pretrain.model.tensors import TensorBatch
from pretrain.objectives.alignment import Alignment
from pretrain.objectives.slot_terms import slot_sums

ALIGN = "align"
Losses = dict[str, tuple[Tensor, int]]
Number = TypeVar("Number", float, Tensor)


class Objective:
    """L = Σ w_t · (sum of term t) / (labelled slots of the step) + w_align · (sum of align) / (pairs of a dictionary).

    Each loss is given as a sum and a count. Counts are known before the forward pass, so that each micro-batch
    is divided by the counts of the whole step, over all micro-batches and processes.

    weights   those of the terms that are on
    """

    def __init__(self, weights: Mapping[str, float], align: Alignment | None = None) -> None:
        assert (ALIGN in weights) == (align is not None), "the term align has a dictionary"
        assert weights.keys() <= {*TERMS, ALIGN}, "known terms"
        self.align = align
        # rows with dictionary slots have ordinary ones too: they are counted even if they have no weight
        on = {*weights, "mlm"} if "dict" in weights else {*weights}
        self.slot_names = tuple(name for name in TERMS if name in on)
        self.weights = {name: weights.get(name, 0.0) for name in self.names}

    @property
    def names(self) -> tuple[str, ...]:
        """The losses, in the order of the log."""
        return (*self.slot_names, ALIGN) if self.align is not None else self.slot_names

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many terms each loss of the batch sums: slots with a label, or pairs."""
        counts = batch.counts
        return {name: self._count(name, counts) for name in self.names}

    def losses(self, model: MaskedLM, batch: TensorBatch) -> Losses:
        """Each loss as (sum over its terms, number of terms): cross entropies in nats, and minus the cosines."""
        sums = slot_sums(model(batch), batch.terms, self.slot_names) if self.slot_names else {}
        if self.align is not None:
            sums[ALIGN] = self.align.loss(model)
        return {name: (sums[name], self._count(name, batch.slot_counts)) for name in self.names}

    def total_scale(self, counts: Mapping[str, Number]) -> dict[str, Number]:
        """What each sum is multiplied with; ``counts`` are those of the whole step, numbers or tensors."""
        slots = [counts[name] for name in self.slot_names]
        pools = {name: _at_least_one(sum(slots[1:], slots[0])) for name in self.slot_names}
        if self.align is not None:
            pools[ALIGN] = _at_least_one(counts[ALIGN])
        return {name: self.weights[name] / pools[name] for name in self.names}

    def _count(self, name: str, slots: Mapping[str, int]) -> int:
        return self.align.pairs if name == ALIGN and self.align is not None else slots[name]


def _at_least_one(count: Number) -> Number:
    """A step without a labelled slot has the loss 0, not 0 / 0."""
    return count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
