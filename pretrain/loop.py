"""The training loop: exact to resume, the same losses for any number of processes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs

from pretrain.checkpoint import check_finite, latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.config import PretrainConfig
from pretrain.data import Batch, train_batches
from pretrain.losses import LossWindow, NotFinite
from pretrain.metrics import MetricsLog
from pretrain.model import new_model
from pretrain.objectives import build_objective
from pretrain.prefetch import Prefetch
from pretrain.prepare import Artifacts
from pretrain.processes import process_state
from pretrain.step import Step
from pretrain.stopping import Flag, Stopped
from pretrain.trackers import end_trackers, start_trackers
from pretrain.validation import Validation
from pretrain.xla import finish
from synthlang.errors import InputError
from synthlang.progress import Report, Say, silent, unheard

STOP_EVERY = 10  # steps between two looks of several processes at whether one was asked to end


class Trainer:
    """One run: its state, its steps, its checkpoints."""

    def __init__(
        self,
        config: PretrainConfig,
        artifacts: Artifacts,
        run: Path,
        name: str = "",
        report: Report = silent,
        say: Say = unheard,
        stop: Flag | None = None,
    ) -> None:
        self.config, self.run, self.name, self.report, self.say = config, run, name, report, say
        self.stop = stop or Flag()
        self.accelerator = _accelerator(config, run)
        self.parts = parts_of(config, self.accelerator.num_processes)
        device = self.accelerator.device
        self.model = new_model(config, artifacts).to(device)
        self.step_ = Step(config, self.model, build_objective(config, artifacts, device), self.accelerator)
        self.batches = train_batches(config, artifacts, report)
        self.validation = Validation(config, artifacts)
        self.log = MetricsLog(run / "metrics.jsonl", self.accelerator.is_main_process)
        self.window = LossWindow(self.step_.sum_over_ranks)
        self.step = 0
        self.best: tuple[int, float] | None = None  # step and perplexity, where the best checkpoint is chosen

    def train(self) -> None:
        """Train to the last step, from the newest sound checkpoint if there is one."""
        for source in self.batches.sources:
            if source.padded:  # whole sentences, of which some do not fit
                counted = ", ".join(f"{reason} {count:,}" for reason, count in source.counts.items())
                self.say(f"{source.name}: {source.rows:,} rows, {counted}")
        self._resume()
        start_trackers(self.accelerator, self.config, self.run)
        started, first = time.monotonic(), self.step
        self.step_.module.train()
        with Prefetch(self._batches, self.config.steps) as batches:
            while self.step < self.config.steps:
                self.window.add(self.step_(self.step, batches.get(self.step)))
                finish(self.accelerator.device)
                self.step += 1
                if self._is_due(self.config.log_every) or self.validation.due(self.step):
                    self._write_log((self.step - first) / (time.monotonic() - started))
                if self._is_due(self.config.checkpoints.every):
                    self._save()
                self._stop_if_asked()
        end_trackers(self.accelerator)

    def _is_due(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.config.steps

    def _batches(self, step: int) -> list[Batch]:
        """The micro-batches of this rank."""
        micros = self.config.batch.accumulation
        first = self.accelerator.process_index * micros
        return [self.batches.batch(step, first + i, self.parts) for i in range(micros)]

    def _resume(self) -> None:
        path = latest_checkpoint(self.run / "checkpoints", self.say)
        if path is not None:
            state = load_checkpoint(path, self.model, self.step_.optimizer, self.name)
            self.step = state["step"]
            self.window.restore(state["window"])
            if "best" in state:
                self.best = (state["best"], state["best_perplexity"])
            self.say(f"going on from step {self.step}")
        self.log.cut(self.step)

    def _save(self) -> None:
        self._read_window()
        check_finite(self.model, self.step, self.run / "checkpoints")
        if self.accelerator.is_main_process:
            state: dict[str, Any] = {"run": self.name, "step": self.step, "window": self.window.state()}
            if self.best is not None:
                state |= {"best": self.best[0], "best_perplexity": self.best[1]}
            folder = self.run / "checkpoints"
            save_checkpoint(folder, self.model, self.step_.optimizer, state, self.config.checkpoints)
        self.accelerator.wait_for_everyone()

    def _stop_if_asked(self) -> None:
        """Save and end the run if a process was asked to; all processes decide the same."""
        asked = self.stop.is_set
        if self.accelerator.num_processes > 1:
            if self.step % STOP_EVERY:
                return
            asked = bool(self.step_.sum_over_ranks(torch.tensor([float(asked)])).item())
        if asked and self.step < self.config.steps:
            self._save()
            raise Stopped(self.step)

    def _read_window(self) -> None:
        try:
            self.window.read(self.step)
        except NotFinite as problem:
            last = latest_checkpoint(self.run / "checkpoints")
            losses = ", ".join(f"{name} {value}" for name, value in problem.losses.items())
            rows = self.config.batch.rows
            raise InputError(
                f"the loss is not finite at step {problem.step + 1} ({losses}; its batch: samples "
                f"{problem.step * rows} to {(problem.step + 1) * rows - 1}); lower optimizer.learning_rate; "
                f"last good checkpoint: {last.name if last else 'none'}",
                self.run,
            ) from problem

    def _write_log(self, steps_per_second: float) -> None:
        self._read_window()
        config = self.config
        losses = self.window.means()
        tokens = config.batch.rows * config.batch.length
        row: dict[str, Any] = {
            "step": self.step,
            **losses,
            "lr": self.step_.learning_rate(self.step - 1),
            "tokens_per_second": round(steps_per_second * tokens, 1),
            "tokens_seen": self.step * tokens,
        }
        if self.validation.due(self.step):
            check_finite(self.model, self.step, self.run / "checkpoints")
            row |= self.validation.measure(self.model)
            self._note_best(row)
        self.log.write(row)
        self.accelerator.log({k: v for k, v in row.items() if k != "step"}, step=self.step)
        if self.accelerator.is_main_process:
            note = f"loss {row['loss']:.3f}, {row['tokens_per_second'] / 1000:.1f}k tokens/s"
            self.report(f"pretrain {config.label}", self.step, config.steps, note)

    def _note_best(self, row: dict[str, Any]) -> None:
        """Remember the step whose checkpoint is the best so far."""
        if self.config.checkpoints.select == "best" and self._is_due(self.config.checkpoints.every):
            perplexity = row[self.validation.deciding]
            if self.best is None or perplexity < self.best[1]:
                self.best = (self.step, perplexity)


def _accelerator(config: PretrainConfig, run: Path) -> Accelerator:
    state = process_state()  # before Accelerator, which would not join processes on CPUs
    # a micro-batch may hold no row of a language, and then its own parameters have no gradient
    unused = DistributedDataParallelKwargs(find_unused_parameters=config.sharing.separates)
    return Accelerator(
        cpu=state.device.type == "cpu",
        log_with=list(config.trackers) or None,
        project_dir=str(run),
        kwargs_handlers=[unused],
    )


def parts_of(config: PretrainConfig, processes: int) -> int:
    """Into how many micro-batches a step is cut; InputError if the launch does not fit the config."""
    if config.processes is not None and processes != config.processes:
        raise InputError(
            f"processes is {config.processes}, the launch has {processes}; start with accelerate launch "
            f"--num_processes {config.processes}, or set processes: {processes}"
        )
    parts = processes * config.batch.accumulation
    if config.batch.rows % parts:
        raise InputError(
            f"batch.rows {config.batch.rows} must be a multiple of processes × batch.accumulation = {parts}"
        )
    return parts


def effective_batch(config: PretrainConfig, processes: int) -> str:
    """What one step trains on, in words."""
    rows, length, micros = config.batch.rows, config.batch.length, config.batch.accumulation
    each = rows // parts_of(config, processes)
    split = f"{processes} process{'es' if processes > 1 else ''} × {micros} × {each} rows"
    return f"a step is {rows} rows × {length} = {rows * length:,} tokens: {split}"
