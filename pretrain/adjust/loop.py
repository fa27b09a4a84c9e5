"""The loop of an adjustment. A resumed adjustment has the same losses as an uninterrupted one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import Tensor
from transformers import PreTrainedModel

from pretrain import devices
from pretrain.adjust.batches import PairBatches, WordPairs
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.loss import AlignmentLoss
from pretrain.adjust.vectors import distances, encoder_of
from pretrain.config import OptimizerConfig
from pretrain.config.training import micro_batches
from pretrain.devices import accelerator_of
from pretrain.loop import Loop
from pretrain.step import GradientStep
from pretrain.stopping import Flag
from synthlang.parallel.prepare import PairData
from synthlang.progress import Report, Say, silent, unheard
from synthlang.rng import key_of
from synthlang.vocabularies.space import Specials


class AdjustStep(GradientStep[WordPairs]):
    """A step of an adjustment, which changes the model's encoder in place.

    The states of the original model come from a frozen copy of the encoder.

    Args:
        config: The settings.
        model: The model to adjust, which is moved to the device of the launch.
        steps: Number of steps of the adjustment, for the schedule.
        accelerator: Accelerate's interface to the launch.

    Raises:
        InputError: The model lacks a layer of the loss, or the settings name a layer twice.
    """

    def __init__(self, config: AdjustConfig, model: PreTrainedModel, steps: int, accelerator: Accelerator) -> None:
        self.config = config
        frozen = copy.deepcopy(encoder_of(model)).to(accelerator.device)
        model.to(accelerator.device)
        self.loss = AlignmentLoss(model, frozen, config.loss)
        given = config.optimizer.model_dump()
        settings = OptimizerConfig(warmup_steps=int(given.pop("warmup_share") * steps), **given)
        super().__init__(self.loss, encoder_of(model), settings, steps, config.precision, accelerator)

    def seed(self, step: int, micro: int) -> None:
        if micro == 0:  # one key for all micro-batches of the step
            key = key_of("adjust-dropout", self.config.seed, step, self.accelerator.process_index)
            devices.seed(key >> 1, self.accelerator.device)

    def counts(self, batch: WordPairs) -> dict[str, int]:
        return self.loss.counts(batch)

    def scales(self, counts: Mapping[str, Tensor]) -> Mapping[str, Tensor | float]:
        return self.loss.scales({name: count.item() for name, count in counts.items()})

    def inputs(self, batch: WordPairs, scales: Mapping[str, Tensor | float]) -> tuple[Any, ...]:  # noqa: ARG002
        return (batch.to(self.accelerator.device),)


class Adjuster(Loop[PreTrainedModel, WordPairs]):
    """The loop of one adjustment, which changes ``model`` in place.

    Args:
        config: The settings.
        model: The model to adjust.
        pairs: The word-aligned sentence pairs.
        special: The special ids of the model.
        run: The output folder.
        name: Fingerprint of the adjustment, which its checkpoints store.
        report: Function that shows progress.
        say: Function that shows messages to the user.
        stop: Flag that ends the adjustment early.

    Raises:
        InputError: The rows of a step cannot be split equally over processes and micro-batches. The launch uses
            Accelerate's FSDP. The model lacks a layer of the loss, or the settings name a layer twice.
    """

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
        batches = PairBatches(pairs, special, config.rows, config.epochs, config.seed)
        accelerator = accelerator_of(unused=True)  # layers above the adjusted ones have no gradient
        micro_batches(config.rows, config.accumulation, accelerator.num_processes)
        step = AdjustStep(config, model, batches.steps, accelerator)
        policy = config.checkpoints, config.log_every
        super().__init__(run, name, model, step, batches.batch, config.accumulation, *policy, say, stop)

    def begin(self) -> None:
        if self.step == 0:
            self.log.write({"step": 0, **self._distances()})

    def measures_now(self) -> bool:
        return self.is_due(self.config.measure)

    def write_line(self, row: dict[str, Any], steps_per_second: float) -> None:
        row["sentence_pairs_per_second"] = rate = round(steps_per_second * self.config.rows * len(self.pairs), 1)
        if self.is_due(self.config.measure):
            row |= self._distances()
        self.log.write(row)
        if self.accelerator.is_main_process:
            losses = ", ".join(f"{name} {row[name]:.3f}" for name in ("pull", "hold") if name in row)
            note = f"{losses}, {rate} sentence pairs/s"
            self.report(f"adjust {' '.join(pair.name for pair in self.pairs)}", self.step, self.steps, note)

    def _distances(self) -> dict[str, float]:
        return distances(self.model, self.pairs, self.special, self.config.loss)
