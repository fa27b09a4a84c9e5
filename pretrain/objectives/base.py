"""What an objective is: the losses of a batch, as sums and counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import RobertaForMaskedLM

from pretrain.data import Batch
from pretrain.masking import IGNORE
from pretrain.model import slot_logits

Losses = dict[str, tuple[Tensor, int]]


@dataclass(frozen=True)
class TensorBatch:
    """A Batch on a device: ``input_ids`` [rows, length]; ``slots``, ``labels`` [rows, k]."""

    input_ids: Tensor
    slots: Tensor
    labels: Tensor
    targets: int

    @staticmethod
    def of(batch: Batch, device: torch.device) -> TensorBatch:
        """Copy a batch to a device."""
        ids, slots, labels = (torch.from_numpy(a).to(device) for a in (batch.input_ids, batch.slots, batch.labels))
        return TensorBatch(ids, slots, labels, batch.targets)


class Objective(ABC):
    """Named losses and their weights: total = Σ weight · sum / count over all ranks and micro-batches.

    Counts are known before the forward pass, so that each micro-batch can be divided by
    the count of the whole step.
    """

    weights: Mapping[str, float]

    @abstractmethod
    def counts(self, batch: Batch) -> dict[str, int]:
        """How many terms each loss of the batch sums."""

    @abstractmethod
    def losses(self, model: RobertaForMaskedLM, batch: TensorBatch) -> Losses:
        """Each loss as (sum over its terms, number of terms)."""


def masked_cross_entropy(model: RobertaForMaskedLM, batch: TensorBatch) -> tuple[Tensor, int]:
    """Σ −log p(label) over the masked slots (nats), and their number."""
    logits = slot_logits(model, batch.input_ids, batch.slots)
    total = F.cross_entropy(logits.flatten(0, 1).float(), batch.labels.flatten(), ignore_index=IGNORE, reduction="sum")
    return total, batch.targets
