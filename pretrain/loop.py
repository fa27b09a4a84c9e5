"""The training loop: exact to resume, the same losses for any number of processes."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import RobertaForMaskedLM

from pretrain.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.config import PretrainConfig
from pretrain.data import Batch, train_batches
from pretrain.metrics import MetricsLog
from pretrain.model import build_model
from pretrain.objectives import Objective, TensorBatch, build_objective
from pretrain.optim import build_optimizer, learning_rate
from pretrain.prepare import Artifacts
from pretrain.processes import process_state
from pretrain.validation import Validation
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of


class LossModule(nn.Module):
    """The model and its objective as one module, so that DDP sees every forward pass."""

    def __init__(self, model: RobertaForMaskedLM, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, batch: TensorBatch) -> dict[str, Tensor]:
        """The sum of each loss."""
        return {name: total for name, (total, _) in self.objective.losses(self.model, batch).items()}


class Trainer:
    """One run: its state, its steps, its checkpoints."""

    def __init__(self, config: PretrainConfig, artifacts: Artifacts, run: Path, report: Report = silent) -> None:
        self.config, self.run, self.report = config, run, report
        state = process_state()  # before Accelerator, which would not join processes on CPUs
        self.accelerator = Accelerator(cpu=state.device.type == "cpu")
        self.parts = self.accelerator.num_processes * config.batch.accumulation
        if config.batch.rows % self.parts:
            wanted = f"a multiple of processes × batch.accumulation = {self.parts}"
            raise InputError(f"batch.rows {config.batch.rows} must be {wanted}")
        device = self.accelerator.device
        self.model = build_model(config.model, artifacts.ids, config.batch.length, config.seed).to(device)
        self.objective = build_objective(config.objective, artifacts, device)
        self.optimizer = build_optimizer(config.optimizer, self.model)
        self.module = self.accelerator.prepare_model(LossModule(self.model, self.objective))
        self.batches = train_batches(config, artifacts)
        self.validation = Validation(config, artifacts)
        self.log = MetricsLog(run / "metrics.jsonl", self.accelerator.is_main_process)
        self.step = 0
        self.window: dict[str, float] = {}  # sums of the losses since the last line of the log

    def train(self) -> None:
        """Train to the last step, from the newest sound checkpoint if there is one."""
        self._resume()
        config, started, first = self.config, time.monotonic(), self.step
        self.module.train()
        while self.step < config.steps:
            losses = self._train_step()
            self.step += 1
            for name, value in {**losses, "steps": 1.0}.items():
                self.window[name] = self.window.get(name, 0.0) + value
            is_last = self.step == config.steps
            if self.step % config.log_every == 0 or self.validation.due(self.step) or is_last:
                speed = (self.step - first) / (time.monotonic() - started)
                self._write_log(speed * config.batch.rows * config.batch.length)
            if self.step % config.checkpoint_every == 0 or is_last:
                self._save()

    def _resume(self) -> None:
        path = latest_checkpoint(self.run / "checkpoints")
        if path is not None:
            state = load_checkpoint(path, self.model, self.optimizer)
            self.step, self.window = state["step"], state["window"]
        self.log.cut(self.step)

    def _save(self) -> None:
        if self.accelerator.is_main_process:
            state = {"step": self.step, "window": self.window}
            save_checkpoint(self.run / "checkpoints", self.model, self.optimizer, state, self.config.keep_checkpoints)
        self.accelerator.wait_for_everyone()

    def _train_step(self) -> dict[str, float]:
        """One optimizer step; the mean of each loss over the whole batch."""
        config, accelerator, micros = self.config, self.accelerator, self.config.batch.accumulation
        rank = accelerator.process_index
        torch.manual_seed(key_of("dropout", config.seed, self.step, rank) >> 1)
        rate = (config.optimizer.learning_rate, config.optimizer.warmup_steps, config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(*rate, self.step)
        batches = [self.batches.batch(self.step, rank * micros + i, self.parts) for i in range(micros)]
        counts = self._global_counts(batches)
        sums: dict[str, Tensor] = {}
        for i, batch in enumerate(batches):
            for name, loss in self._backward(batch, counts, is_last=i == micros - 1).items():
                sums[name] = sums[name] + loss if name in sums else loss
        if config.optimizer.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), config.optimizer.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return self._means(sums, counts)

    def _backward(self, batch: Batch, counts: dict[str, float], is_last: bool) -> dict[str, Tensor]:
        """Gradients of one micro-batch; ranks exchange them at the last one only."""
        accelerator, bf16 = self.accelerator, self.config.precision == "bfloat16"
        with nullcontext() if is_last else accelerator.no_sync(self.module):
            with torch.autocast(accelerator.device.type, torch.bfloat16, enabled=bf16):
                losses: dict[str, Tensor] = self.module(TensorBatch.of(batch, accelerator.device))
            # DDP averages gradients over ranks, and the counts are those of all ranks
            weights = {n: self.objective.weights[n] * accelerator.num_processes / counts[n] for n in losses}
            accelerator.backward(torch.stack([weights[n] * loss for n, loss in losses.items()]).sum())
        return {name: loss.detach() for name, loss in losses.items()}

    def _global_counts(self, batches: list[Batch]) -> dict[str, float]:
        """The number of terms of each loss over all micro-batches and ranks."""
        mine = [self.objective.counts(batch) for batch in batches]
        totals = torch.tensor([float(sum(c[n] for c in mine)) for n in mine[0]], dtype=torch.float64)
        totals = self._reduce(totals)
        return dict(zip(mine[0], totals.clamp(min=1).tolist(), strict=True))

    def _means(self, sums: dict[str, Tensor], counts: dict[str, float]) -> dict[str, float]:
        totals = self._reduce(torch.stack([s.float() for s in sums.values()]))
        means = {n: t / counts[n] for n, t in zip(sums, totals.tolist(), strict=True)}
        if not all(map(math.isfinite, means.values())):
            last = latest_checkpoint(self.run / "checkpoints")
            raise InputError(
                f"the loss is not finite at step {self.step + 1} ({means}); lower optimizer.learning_rate; "
                f"last good checkpoint: {last.name if last else 'none'}",
                self.run,
            )
        return means

    def _reduce(self, values: Tensor) -> Tensor:
        """The sum over ranks."""
        if self.accelerator.num_processes == 1:
            return values
        moved: Tensor = self.accelerator.reduce(values.to(self.accelerator.device, torch.float32), "sum")
        return moved.cpu()

    def _write_log(self, tokens_per_second: float) -> None:
        steps = self.window.pop("steps")
        losses = {name: total / steps for name, total in self.window.items()}
        self.window = {}
        row: dict[str, Any] = {
            "step": self.step,
            "loss": sum(self.objective.weights[n] * v for n, v in losses.items()),
            **losses,
            "lr": self.optimizer.param_groups[0]["lr"],
            "tokens_per_second": round(tokens_per_second, 1),
            "tokens_seen": self.step * self.config.batch.rows * self.config.batch.length,
        }
        if self.validation.due(self.step):
            row |= self.validation.perplexities(self.model)
        self.log.write(row)
        note = f"loss {row['loss']:.3f}, {tokens_per_second / 1000:.1f}k tokens/s"
        if self.accelerator.is_main_process:
            name = f"pretrain {self.config.objective.kind} {self.config.language.name}"
            self.report(name, self.step, self.config.steps, note)
