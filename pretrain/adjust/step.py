"""One optimizer step of an adjustment, over all micro-batches and ranks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import PreTrainedModel

from pretrain.adjust.batch import WordPairs
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.loss import AlignmentLoss
from pretrain.adjust.vectors import encoder_of
from pretrain.config import OptimizerConfig
from pretrain.optim import build_optimizer, learning_rate
from pretrain.running import sum_over_ranks
from synthlang.rng import key_of


class AdjustStep:
    """The model (changed in place), its frozen copy, the optimizer and how they move. The head gets no gradient."""

    def __init__(self, config: AdjustConfig, model: PreTrainedModel, steps: int, accelerator: Accelerator) -> None:
        self.config, self.steps, self.accelerator = config, steps, accelerator
        frozen = copy.deepcopy(encoder_of(model)).to(accelerator.device)
        model.to(accelerator.device)
        self.loss = AlignmentLoss(model, frozen, config.loss)
        self.settings = _optimizer(config, steps)
        self.optimizer = build_optimizer(self.settings, encoder_of(model))
        self.module = accelerator.prepare_model(self.loss)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        s = self.settings
        return learning_rate(s.learning_rate, s.warmup_steps, self.steps, step, schedule=s.schedule)

    def __call__(self, step: int, batches: Sequence[WordPairs]) -> dict[str, tuple[Tensor, Tensor]]:
        """Train on the micro-batches of this rank; (sum, count) of each term, counts over all ranks.

        ``loss`` is what was minimised.
        """
        torch.manual_seed(key_of("adjust-dropout", self.config.seed, step, self.accelerator.process_index) >> 1)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        counts = self._global_counts(batches)
        scales = self.loss.scales(counts)
        sums: dict[str, Tensor] = {}
        for i, batch in enumerate(batches):
            for name, loss in self._backward(batch, scales, is_last=i == len(batches) - 1).items():
                sums[name] = sums[name] + loss if name in sums else loss
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.loss.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        whole = torch.stack([scales[name] * loss for name, loss in sums.items()]).sum()
        one = torch.ones_like(whole)
        return {"loss": (whole, one)} | {name: (loss, one * counts[name]) for name, loss in sums.items()}

    def _backward(self, batch: WordPairs, scales: dict[str, float], is_last: bool) -> dict[str, Tensor]:
        """Gradients of one micro-batch; ranks exchange them at the last one only."""
        accelerator, bf16 = self.accelerator, self.config.precision == "bfloat16"
        with nullcontext() if is_last else accelerator.no_sync(self.module):
            with torch.autocast(accelerator.device.type, torch.bfloat16, enabled=bf16):
                losses: dict[str, Tensor] = self.module(batch.to(accelerator.device))
            whole = torch.stack([scales[name] * loss for name, loss in losses.items()]).sum()
            accelerator.backward(whole * accelerator.num_processes)  # DDP averages over ranks
        return {name: loss.detach() for name, loss in losses.items()}

    def _global_counts(self, batches: Sequence[WordPairs]) -> dict[str, float]:
        """The number of terms of each sum over all micro-batches and ranks."""
        mine = [self.loss.counts(batch) for batch in batches]
        totals = sum_over_ranks(self.accelerator, torch.tensor([float(sum(c[name] for c in mine)) for name in mine[0]]))
        return dict(zip(mine[0], totals.tolist(), strict=True))


def _optimizer(config: AdjustConfig, steps: int) -> OptimizerConfig:
    """The settings of the optimizer with the warm-up in steps."""
    given = config.optimizer.model_dump()
    share = given.pop("warmup_share")
    return OptimizerConfig(warmup_steps=int(share * steps), **given)
