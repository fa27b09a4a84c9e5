"""One optimizer step of an adjustment, over all micro-batches and ranks."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from accelerate import Accelerator
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.adjust.batch import WordPairs
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.loss import AlignmentLoss
from pretrain.adjust.vectors import encoder_of
from pretrain.config import OptimizerConfig
from pretrain.step import GradientStep
from synthlang.rng import key_of


class AdjustStep(GradientStep[WordPairs]):
    """A step of the model (changed in place) beside its frozen copy. The head gets no gradient."""

    def __init__(self, config: AdjustConfig, model: PreTrainedModel, steps: int, accelerator: Accelerator) -> None:
        self.config = config
        frozen = copy.deepcopy(encoder_of(model)).to(accelerator.device)
        model.to(accelerator.device)
        self.loss = AlignmentLoss(model, frozen, config.loss)
        settings = _optimizer(config, steps)
        super().__init__(self.loss, encoder_of(model), settings, steps, config.precision, accelerator)

    def seed(self, step: int, micro: int) -> None:
        """One key for all micro-batches of the step."""
        if micro == 0:
            torch.manual_seed(key_of("adjust-dropout", self.config.seed, step, self.accelerator.process_index) >> 1)

    def counts(self, batch: WordPairs) -> dict[str, int]:
        """Linked pairs and held items."""
        return self.loss.counts(batch)

    def scales(self, counts: Mapping[str, Tensor]) -> Mapping[str, Tensor | float]:
        """1 and λ, or each divided by its count."""
        return self.loss.scales({name: count.item() for name, count in counts.items()})

    def on_device(self, batch: WordPairs) -> WordPairs:
        """The pairs on the device."""
        return batch.to(self.accelerator.device)


def _optimizer(config: AdjustConfig, steps: int) -> OptimizerConfig:
    """The settings of the optimizer with the warm-up in steps."""
    given = config.optimizer.model_dump()
    share = given.pop("warmup_share")
    return OptimizerConfig(warmup_steps=int(share * steps), **given)
