"""Masked language modelling on all languages (Devlin et al. 2019)."""

from __future__ import annotations

from transformers import RobertaForMaskedLM

from pretrain.data import Batch
from pretrain.objectives.base import Losses, Objective, TensorBatch, masked_cross_entropy


class MLM(Objective):
    """L = mean −log p(word | context) over the masked slots."""

    def __init__(self) -> None:
        self.weights = {"mlm": 1.0}

    def counts(self, batch: Batch) -> dict[str, int]:
        """One term for each slot with a label."""
        return {"mlm": batch.targets}

    def losses(self, model: RobertaForMaskedLM, batch: TensorBatch) -> Losses:
        """``mlm``: the cross entropy of the slots."""
        return {"mlm": masked_cross_entropy(model, batch)}
