"""One optimizer step: the gradients of all micro-batches and ranks, divided by what the whole step counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from pretrain.compiling import should_compile
from pretrain.config import PretrainConfig
from pretrain.data import Batch
from pretrain.encoder import MaskedLM
from pretrain.objectives import Objective, TensorBatch
from pretrain.optim import build_optimizer, learning_rate
from pretrain.running import sum_over_ranks
from pretrain.xla import sum_gradients
from synthlang.rng import key_of


class LossModule(nn.Module):
    """The model and its objective as one module, so that DDP sees every forward pass."""

    def __init__(self, model: MaskedLM, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, batch: TensorBatch) -> dict[str, Tensor]:
        """The sum of each loss."""
        return {name: total for name, (total, _) in self.objective.losses(self.model, batch).items()}


class Step:
    """The model, its optimizer and how they move."""

    def __init__(self, config: PretrainConfig, model: MaskedLM, objective: Objective, accelerator: Accelerator) -> None:
        self.config, self.model, self.objective, self.accelerator = config, model, objective, accelerator
        if should_compile(config.compile, accelerator.device, config.steps):
            model.compile_steps()
        self.optimizer = build_optimizer(config.optimizer, model)
        module = LossModule(model, objective)
        self.module = accelerator.prepare_model(module)

    def learning_rate(self, step: int) -> float:
        """The rate of a step, counted from 0."""
        settings = self.config.optimizer
        return learning_rate(
            settings.learning_rate, settings.warmup_steps, self.config.steps, step, schedule=settings.schedule
        )

    def __call__(self, step: int, batches: Sequence[Batch]) -> dict[str, tuple[Tensor, Tensor]]:
        """Train on the micro-batches of this rank; (sum, count) of each loss, counts over all ranks.

        ``loss`` is the weighted sum that was minimised.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(step)
        counts = self._global_counts(batches)
        scales = self.objective.total_scale(counts)
        sums: dict[str, Tensor] = {}
        for i, batch in enumerate(batches):
            self.model.seed_dropout(key_of("dropout", self.config.seed, step, self.accelerator.process_index, i))
            for name, loss in self._backward(batch, scales, is_last=i == len(batches) - 1).items():
                sums[name] = sums[name] + loss if name in sums else loss
        sum_gradients(self.optimizer, self.accelerator.device)
        if self.config.optimizer.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        whole = torch.stack([scales[name] * loss for name, loss in sums.items()]).sum()
        return {"loss": (whole, torch.ones_like(whole))} | {name: (loss, counts[name]) for name, loss in sums.items()}

    def _backward(self, batch: Batch, scales: dict[str, Tensor], is_last: bool) -> dict[str, Tensor]:
        """Gradients of one micro-batch; ranks exchange them at the last one only."""
        accelerator, bf16 = self.accelerator, self.config.precision == "bfloat16"
        with nullcontext() if is_last else accelerator.no_sync(self.module):
            with torch.autocast(accelerator.device.type, torch.bfloat16, enabled=bf16):
                losses: dict[str, Tensor] = self.module(TensorBatch.of(batch, accelerator.device))
            # DDP averages gradients over ranks, and the counts are those of all ranks
            whole = torch.stack([scales[name] * loss for name, loss in losses.items()]).sum()
            accelerator.backward(whole * accelerator.num_processes)
        return {name: loss.detach() for name, loss in losses.items()}

    def _global_counts(self, batches: Sequence[Batch]) -> dict[str, Tensor]:
        """The number of terms of each loss over all micro-batches and ranks; on the device, so that nothing waits."""
        mine = [self.objective.counts(batch) for batch in batches]
        totals = torch.tensor([float(sum(c[name] for c in mine)) for name in mine[0]], dtype=torch.float32)
        totals = sum_over_ranks(self.accelerator, totals.to(self.accelerator.device, non_blocking=True))
        return dict(zip(mine[0], totals.unbind(), strict=True))
