"""Validation: masked perplexity of each language on its dev split, on the same slots each time."""

from __future__ import annotations

import math

import numpy as np
import torch
from transformers import RobertaForMaskedLM

from pretrain.config import PretrainConfig
from pretrain.data import Batches, dev_batches
from pretrain.objectives.base import TensorBatch, masked_cross_entropy
from pretrain.prepare import Artifacts


class Validation:
    """Perplexity = exp(mean cross entropy in nats) over fixed rows; nothing without a dev split."""

    def __init__(self, config: PretrainConfig, artifacts: Artifacts) -> None:
        self.config = config
        self.every = config.validation.every if artifacts.dev else 0
        self.batches: Batches | None = dev_batches(config, artifacts) if self.every else None

    def due(self, step: int) -> bool:
        """Whether ``step`` steps are a moment to validate."""
        return bool(self.every) and (step % self.every == 0 or step == self.config.steps)

    @torch.no_grad()
    def perplexities(self, model: RobertaForMaskedLM) -> dict[str, float]:
        """``validation/parent`` and ``validation/derived``."""
        assert self.batches is not None, "ask due() first"
        model.eval()
        device = next(model.parameters()).device
        result = {}
        for which, name in enumerate(("parent", "derived")):
            rows = min(self.config.validation.rows, self.batches.streams[which].rows)
            total, count = 0.0, 0
            # samples of one language are every second one
            for first in range(0, rows, self.config.batch.rows):
                numbers = np.arange(first, min(first + self.config.batch.rows, rows)) * 2 + which
                batch = TensorBatch.of(self.batches.samples(numbers), device)
                loss, targets = masked_cross_entropy(model, batch)
                total, count = total + float(loss), count + targets
            result[f"validation/{name}"] = math.exp(min(total / max(count, 1), 700.0))
        model.train()
        return result
