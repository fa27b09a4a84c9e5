"""ALIGN-MLM: masked language modelling that pulls dictionary pairs together.

L = L_MLM − α · mean over the whole dictionary of cos(E[i], E[i′]), every step, on the raw
rows of the word embedding (ALIGN-MLM, section 3 and appendix G.5).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import RobertaForMaskedLM

from pretrain.data import Batch
from pretrain.model import word_embedding
from pretrain.objectives.base import Losses, Objective, TensorBatch, masked_cross_entropy


class AlignMLM(Objective):
    """MLM plus the alignment term; ``pairs`` [n, 2] are ids of translations."""

    def __init__(self, pairs: Tensor, alpha: float) -> None:
        assert len(pairs), "an empty dictionary aligns nothing"
        self.pairs = pairs
        self.weights = {"mlm": 1.0, "align": alpha}

    def counts(self, batch: Batch) -> dict[str, int]:
        """One term for each slot with a label, and one for each pair of the dictionary."""
        return {"mlm": batch.targets, "align": len(self.pairs)}

    def losses(self, model: RobertaForMaskedLM, batch: TensorBatch) -> Losses:
        """``mlm`` as in MLM; ``align``: minus the cosine of each pair, in [−1, 1]."""
        left, right = word_embedding(model)[self.pairs].float().unbind(1)
        align = -torch.sum(F.cosine_similarity(left, right, dim=-1))
        return {"mlm": masked_cross_entropy(model, batch), "align": (align, len(self.pairs))}
