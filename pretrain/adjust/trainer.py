"""The loop of an adjustment: exact to resume, the same for any number of processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from transformers import PreTrainedModel

from pretrain.adjust.batches import PairBatches
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.measure import distances
from pretrain.adjust.step import AdjustStep
from pretrain.adjust.text import PairData
from pretrain.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.losses import LossWindow, NotFinite
from pretrain.metrics import MetricsLog
from pretrain.processes import process_state
from pretrain.stopping import Flag, Stopped
from synthlang.errors import InputError
from synthlang.progress import Report, Say, silent, unheard
from synthlang.vocabularies.space import Specials

STOP_EVERY = 10  # steps between two looks of several processes at whether one was asked to end


class Adjuster:
    """One adjustment: its state, its steps, its checkpoints. ``model`` is changed in place."""

    def __init__(
        self,
        config: AdjustConfig,
        model: PreTrainedModel,
        pairs: Sequence[PairData],
        special: Specials,
        run: Path,
        name: str = "",
        report: Report = silent,
        say: Say = unheard,
        stop: Flag | None = None,
    ) -> None:
        self.config, self.model, self.pairs, self.special = config, model, tuple(pairs), special
        self.run, self.name, self.report = run, name, report
        self.say, self.stop = say, stop or Flag()
        self.batches = PairBatches(pairs, special, config.rows, config.epochs, config.seed)
        self.steps = self.batches.steps
        self.accelerator = _accelerator()
        self.parts = self.accelerator.num_processes * config.accumulation
        if config.rows % self.parts:
            raise InputError(f"rows {config.rows} must be a multiple of processes × accumulation = {self.parts}")
        self.step_ = AdjustStep(config, model, self.steps, self.accelerator)
        self.log = MetricsLog(run / "metrics.jsonl", self.accelerator.is_main_process)
        self.window = LossWindow(self.step_.over_ranks)
        self.step = 0

    def train(self) -> None:
        """Adjust to the last step, from the newest sound checkpoint if there is one."""
        self._resume()
        if self.step == 0:
            self.log.write({"step": 0, **self._distances()})
        self.step_.module.train(self.config.dropout)  # dropout; the frozen copy is no part of the module
        started, first = time.monotonic(), self.step
        rank, micros = self.accelerator.process_index, self.config.accumulation
        while self.step < self.steps:
            parts = range(rank * micros, (rank + 1) * micros)
            self.window.add(self.step_(self.step, [self.batches.batch(self.step, p, self.parts) for p in parts]))
            self.step += 1
            if self._is_due(self.config.log_every) or self._is_due(self.config.measure):
                self._write_log((self.step - first) / (time.monotonic() - started))
            if self._is_due(self.config.checkpoints.every):
                self._save()
            self._stop_if_asked()

    def _is_due(self, every: int) -> bool:
        return self.step == self.steps or (every > 0 and self.step % every == 0)

    def _distances(self) -> dict[str, float]:
        return distances(self.model, self.pairs, self.special, self.config.loss)

    def _resume(self) -> None:
        path = latest_checkpoint(self.run / "checkpoints", self.say)
        if path is not None:
            state = load_checkpoint(path, self.model, self.step_.optimizer, self.name)
            self.step = state["step"]
            self.window.restore(state["window"])
            self.say(f"going on from step {self.step}")
        self.log.cut(self.step or -1)

    def _save(self) -> None:
        self._read_window()
        if self.accelerator.is_main_process:
            state = {"run": self.name, "step": self.step, "window": self.window.state()}
            folder = self.run / "checkpoints"
            save_checkpoint(folder, self.model, self.step_.optimizer, state, self.config.checkpoints)
        self.accelerator.wait_for_everyone()

    def _stop_if_asked(self) -> None:
        """Save and end if a process was asked to; all processes decide the same."""
        if self.accelerator.num_processes > 1 and self.step % STOP_EVERY:
            return
        asked = bool(self.step_.over_ranks(torch.tensor([float(self.stop.is_set)])).item())
        if asked and self.step < self.steps:
            self._save()
            raise Stopped(self.step)

    def _read_window(self) -> None:
        try:
            self.window.read(self.step)
        except NotFinite as problem:
            last = latest_checkpoint(self.run / "checkpoints")
            losses = ", ".join(f"{name} {value}" for name, value in problem.losses.items())
            raise InputError(
                f"the loss is not finite at step {problem.step + 1} ({losses}); lower optimizer.learning_rate; last "
                f"good checkpoint: {last.name if last else 'none'}",
                self.run,
            ) from problem

    def _write_log(self, steps_per_second: float) -> None:
        self._read_window()
        rate = round(steps_per_second * self.config.rows * len(self.pairs), 1)
        row: dict[str, Any] = {"step": self.step, **self.window.means(), "lr": self.step_.rate(self.step - 1)}
        row["sentence_pairs_per_second"] = rate
        if self._is_due(self.config.measure):
            row |= self._distances()
        self.log.write(row)
        if self.accelerator.is_main_process:
            note = f"pull {row['pull']:.3f}, hold {row['hold']:.3f}, {rate} sentence pairs/s"
            self.report(f"adjust {' '.join(pair.name for pair in self.pairs)}", self.step, self.steps, note)


def _accelerator() -> Accelerator:
    state = process_state()  # before Accelerator, which would not join processes on CPUs
    # layers above the ones that are adjusted have no gradient
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(cpu=state.device.type == "cpu", kwargs_handlers=[unused])
