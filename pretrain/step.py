"""One optimizer step with the gradients of all micro-batches and ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Generic, TypeVar

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from pretrain.config import OptimizerConfig, PretrainConfig
from pretrain.data.batch import Batch
from pretrain.devices import should_compile, sum_gradients
from pretrain.model.language_model import LanguageModel
from pretrain.model.tensors import TensorBatch
from pretrain.objectives.objective import Objective
from pretrain.optim import build_optimizer, learning_rate
from pretrain.sharded import is_sharded, shard
from synthlang.rng import key_of

B = TypeVar("B")  # a micro-batch
HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""Precisions of the arithmetic. Weights and optimizer are float32."""
SCALER = "scaler"


def sum_over_ranks(accelerator: Accelerator, values: Tensor) -> Tensor:
    """Return the elementwise sum of a tensor over all processes. Every process must call this function."""
    if accelerator.num_processes == 1:
        return values
    moved: Tensor = accelerator.reduce(values.to(accelerator.device), "sum")
    return moved


class LossModule(nn.Module):
    """The model and its objective as one module, so that DDP wraps every forward pass."""

    def __init__(self, model: LanguageModel, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, batch: TensorBatch, scales: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Return the sum of each loss, [] each (see ``Objective.sums``)."""
        return self.objective.sums(self.model, batch, scales)


class GradientStep(ABC, Generic[B]):
    """The optimizer step of a module that returns the sum of each loss of a batch.

    Args:
        losses: The module that computes the losses.
        moved: The part of ``losses`` whose parameters the optimizer updates.
        settings: Settings of the optimizer.
        steps: Number of steps of the whole run, for the schedule.
        precision: Precision of the arithmetic: float32, bfloat16 or float16. With float16, a step whose gradients
            overflow is skipped.
        accelerator: Accelerate's interface to the launch.
    """

    def __init__(
        self,
        losses: nn.Module,
        moved: nn.Module,
        settings: OptimizerConfig,
        steps: int,
        precision: str,
        accelerator: Accelerator,
    ) -> None:
        self.settings, self.steps, self.precision, self.accelerator = settings, steps, precision, accelerator
        self.optimizer = build_optimizer(settings, moved)
        # Gradients of float16 underflow, so the loss is scaled, and a step whose gradients overflow is skipped.
        self.scaler = torch.amp.GradScaler(accelerator.device.type, enabled=precision == "float16")
        self.losses = losses
        self.module = losses if is_sharded(losses) else accelerator.prepare_model(losses)

    @abstractmethod
    def seed(self, step: int, micro: int) -> None:
        """Make the dropout of a micro-batch of this rank a function of the step."""

    @abstractmethod
    def counts(self, batch: B) -> dict[str, int]:
        """Return the number of summands of each loss of a micro-batch."""

    @abstractmethod
    def scales(self, counts: Mapping[str, Tensor]) -> Mapping[str, Tensor | float]:
        """Return the factor of each sum for the counts of the whole step."""

    @abstractmethod
    def inputs(self, batch: B, scales: Mapping[str, Tensor | float]) -> tuple[Any, ...]:
        """Return the arguments of ``losses`` for a micro-batch whose sums are multiplied by ``scales``."""

    def state(self) -> dict[str, Any]:
        """Return further state for checkpoints, which is the scale of the loss in float16."""
        scale: dict[str, Any] = self.scaler.state_dict()
        return {SCALER: scale} if scale else {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the values of ``GradientStep.state`` from the state of a checkpoint, and remove them there."""
        if scale := state.pop(SCALER, None):
            self.scaler.load_state_dict(scale)

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, which counts from 0."""
        s = self.settings
        return learning_rate(s.learning_rate, s.warmup_steps, self.steps, step, schedule=s.schedule)

    def __call__(self, step: int, batches: Sequence[B]) -> dict[str, tuple[Tensor, Tensor]]:
        """Take the optimizer step with the number ``step`` (from 0), with the micro-batches of this rank.

        Returns:
            (sum, count) of each loss, [] each on the device, with sums of this rank and counts over all ranks. ``loss``
            is the part of this rank in the loss that is minimised, with the count 1.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(step)
        counts = self._global_counts(batches)
        scales = self.scales(counts)
        sums: dict[str, Tensor] = {}
        for i, batch in enumerate(batches):
            self.seed(step, i)
            for name, loss in self._backward(batch, scales, is_last=i == len(batches) - 1).items():
                sums[name] = sums[name] + loss if name in sums else loss
        sum_gradients(self.optimizer, self.accelerator.device)
        self.scaler.unscale_(self.optimizer)
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.losses.parameters(), self.settings.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        whole = torch.stack([scales[name] * loss for name, loss in sums.items()]).sum()
        return {"loss": (whole, torch.ones_like(whole))} | {name: (loss, counts[name]) for name, loss in sums.items()}

    def _backward(self, batch: B, scales: Mapping[str, Tensor | float], is_last: bool) -> dict[str, Tensor]:
        """Compute the gradients of one micro-batch. Ranks exchange gradients only at the last micro-batch."""
        accelerator, half = self.accelerator, HALF.get(self.precision)
        with nullcontext() if is_last else accelerator.no_sync(self.module):
            with torch.autocast(accelerator.device.type, half, enabled=half is not None):
                losses: dict[str, Tensor] = self.module(*self.inputs(batch, scales))
            # DDP averages gradients over ranks, but the counts are sums over ranks.
            whole = torch.stack([scales[name] * loss for name, loss in losses.items()]).sum()
            accelerator.backward(self.scaler.scale(whole * accelerator.num_processes))
        return {name: loss.detach() for name, loss in losses.items()}

    def _global_counts(self, batches: Sequence[B]) -> dict[str, Tensor]:
        """Count the summands of each loss over all micro-batches and ranks."""
        mine = [self.counts(batch) for batch in batches]
        totals = torch.tensor([float(sum(c[name] for c in mine)) for name in mine[0]], dtype=torch.float32)
        totals = sum_over_ranks(self.accelerator, totals.to(self.accelerator.device, non_blocking=True))
        return dict(zip(mine[0], totals.unbind(), strict=True))


class Step(GradientStep[Batch]):
    """A step of pretraining. The config decides if the model is split over processes or compiled.

    Args:
        config: The settings of the run.
        model: The model, on the device of this process.
        objective: The objective of the run.
        accelerator: Accelerate's interface to the launch.

    Raises:
        InputError: ``compile: on`` is not possible on the device.
    """

    def __init__(
        self, config: PretrainConfig, model: LanguageModel, objective: Objective, accelerator: Accelerator
    ) -> None:
        self.config, self.model, self.objective = config, model, objective
        losses = LossModule(model, objective)
        if config.shard and accelerator.num_processes > 1:
            shard(losses, model.layers, accelerator.device)
        elif should_compile(config.compile, accelerator.device, config.steps):
            model.compile_steps()
        super().__init__(losses, model, config.optimizer, config.steps, config.precision, accelerator)

    def seed(self, step: int, micro: int) -> None:
        self.model.seed_dropout(key_of("dropout", self.config.seed, step, self.accelerator.process_index, micro))

    def counts(self, batch: Batch) -> dict[str, int]:
        return self.objective.counts(batch)

    def scales(self, counts: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return self.objective.scales(counts)

    def inputs(self, batch: Batch, scales: Mapping[str, Tensor | float]) -> tuple[Any, ...]:
        return TensorBatch.of(batch, self.accelerator.device), scales
