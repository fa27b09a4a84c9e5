"""The loop of an adjustment: exact to resume, the same for any number of processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator, DistributedDataParallelKwargs
from transformers import PreTrainedModel

from pretrain.adjust.batches import PairBatches
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.measure import distances
from pretrain.adjust.step import AdjustStep
from pretrain.parts import micro_batches
from pretrain.processes import process_state
from pretrain.running import Loop
from pretrain.stopping import Flag
from synthlang.parallel.prepare import PairData
from synthlang.progress import Report, Say, silent, unheard
from synthlang.vocabularies.space import Specials


class Adjuster(Loop[PreTrainedModel]):
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
        self.config, self.pairs, self.special, self.report = config, tuple(pairs), special, report
        self.batches = PairBatches(pairs, special, config.rows, config.epochs, config.seed)
        accelerator = _accelerator()
        self.parts = micro_batches(config.rows, config.accumulation, accelerator.num_processes)
        steps = self.batches.steps
        self.step_ = AdjustStep(config, model, steps, accelerator)
        optimizer = self.step_.optimizer
        super().__init__(run, name, steps, accelerator, model, optimizer, config.checkpoints, say, stop)

    def train(self) -> None:
        """Adjust to the last step, from the newest sound checkpoint if there is one."""
        self.resume()
        if self.step == 0:
            self.log.write({"step": 0, **self._distances()})
        self.step_.module.train(self.config.dropout)  # dropout; the frozen copy is no part of the module
        started, first = time.monotonic(), self.step
        rank, micros = self.accelerator.process_index, self.config.accumulation
        while self.step < self.steps:
            parts = range(rank * micros, (rank + 1) * micros)
            self.window.add(self.step_(self.step, [self.batches.batch(self.step, p, self.parts) for p in parts]))
            self.step += 1
            if self.is_due(self.config.log_every) or self.is_due(self.config.measure):
                self._write_log((self.step - first) / (time.monotonic() - started))
            if self.is_due(self.config.checkpoints.every):
                self.save()
            self.stop_if_asked()

    def _distances(self) -> dict[str, float]:
        return distances(self.model, self.pairs, self.special, self.config.loss)

    def _write_log(self, steps_per_second: float) -> None:
        self.read_losses()
        rate = round(steps_per_second * self.config.rows * len(self.pairs), 1)
        row: dict[str, Any] = {"step": self.step, **self.window.means(), "lr": self.step_.learning_rate(self.step - 1)}
        row["sentence_pairs_per_second"] = rate
        if self.is_due(self.config.measure):
            row |= self._distances()
        self.log.write(row)
        if self.accelerator.is_main_process:
            losses = ", ".join(f"{name} {row[name]:.3f}" for name in ("pull", "hold") if name in row)
            note = f"{losses}, {rate} sentence pairs/s"
            self.report(f"adjust {' '.join(pair.name for pair in self.pairs)}", self.step, self.steps, note)


def _accelerator() -> Accelerator:
    state = process_state()  # before Accelerator, which would not join processes on CPUs
    # layers above the ones that are adjusted have no gradient
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(cpu=state.device.type == "cpu", kwargs_handlers=[unused])
