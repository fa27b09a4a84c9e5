"""What a training loop does beside its steps: resume, save, end when asked, stop when it has diverged."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from pretrain.checkpoints import check_finite, latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.config import CheckpointConfig
from pretrain.folder import MetricsLog
from pretrain.stopping import Flag, Stopped, watched
from synthlang.errors import InputError
from synthlang.progress import Say

M = TypeVar("M", bound=nn.Module)
STOP_EVERY = 10  # steps between two looks of several processes at whether one was asked to end


class NotFinite(Exception):  # noqa: N818  the loop says what to do
    """A step (counted from 0) whose losses are not finite, with their values."""

    def __init__(self, step: int, losses: dict[str, float]) -> None:
        self.step, self.losses = step, losses


class LossWindow:
    """Sums and counts of each loss of each step since the last line."""

    def __init__(self, reduce: Callable[[Tensor], Tensor]) -> None:
        self.reduce = reduce  # the sum over ranks
        self.names: list[str] = []
        self.rows: list[list[list[float]]] = []  # [steps, losses, (sum, count)] of steps that were read already
        self._pending: list[Tensor] = []

    def add(self, losses: dict[str, tuple[Tensor, Tensor]]) -> None:
        """Note a step: (sum, count) of each loss; this rank's sums, counts over all ranks."""
        self.names = list(losses)
        self._pending.append(torch.stack([torch.stack([s.float(), c.float()]) for s, c in losses.values()]))

    def read(self, step: int) -> None:
        """Bring what is pending to this side; ``step`` steps are done. Raises NotFinite."""
        if not self._pending:
            return
        values = torch.stack(self._pending)
        self._pending = []
        read = torch.stack([self.reduce(values[..., 0].contiguous()), values[..., 1]], dim=-1).tolist()
        for number, row in enumerate(read, step - len(read)):
            if not all(math.isfinite(total) for total, _ in row):
                found = {n: total / max(count, 1.0) for n, (total, count) in zip(self.names, row, strict=True)}
                raise NotFinite(number, found)
        self.rows.extend(read)

    def means(self) -> dict[str, float]:
        """Each loss over all its terms of the steps since the last line; starts anew."""
        means = {}
        for i, name in enumerate(self.names):
            total, count = (sum(row[i][side] for row in self.rows) for side in (0, 1))
            if count:  # a term may have no position in a small batch
                means[name] = total / count
        self.rows = []
        return means

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"names": self.names, "rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self.names, self.rows, self._pending = state["names"], state["rows"], []


class Loop(Generic[M]):
    """The state of a run at ``step`` of ``steps``, in the folder ``run``; a subclass makes the steps.

    name   fingerprint of the run, which its checkpoints carry
    """

    def __init__(
        self,
        run: Path,
        name: str,
        steps: int,
        accelerator: Accelerator,
        model: M,
        optimizer: torch.optim.Optimizer,
        policy: CheckpointConfig,
        say: Say,
        stop: Flag | None,
    ) -> None:
        self.run, self.name, self.steps, self.accelerator = run, name, steps, accelerator
        self.model, self.optimizer, self.policy = model, optimizer, policy
        self.say, self.stop = say, stop or watched()
        self.log = MetricsLog(run / "metrics.jsonl", accelerator.is_main_process)
        self.window = LossWindow(self.sum_over_ranks)
        self.step = 0
        self.extra: dict[str, Any] = {}  # what else checkpoints keep

    def sum_over_ranks(self, values: Tensor) -> Tensor:
        """The sum over ranks."""
        return sum_over_ranks(self.accelerator, values)

    def is_due(self, every: int) -> bool:
        """Whether the step is a multiple of ``every`` (0: never), or the last one."""
        return self.step == self.steps or (every > 0 and self.step % every == 0)

    def resume(self) -> None:
        """Go on from the newest sound checkpoint, if there is one; the log ends there too."""
        path = latest_checkpoint(self.run / "checkpoints", self.say)
        if path is not None:
            state = load_checkpoint(path, self.model, self.optimizer, self.name)
            self.step = state.pop("step")
            self.window.restore(state.pop("window"))
            self.extra = {key: value for key, value in state.items() if key != "run"}
            self.say(f"going on from step {self.step}")
        self.log.cut(self.step or -1)

    def save(self) -> None:
        """Write a checkpoint; InputError if the run has diverged."""
        self.check()
        if self.accelerator.is_main_process:
            state = {"run": self.name, "step": self.step, "window": self.window.state(), **self.extra}
            save_checkpoint(self.run / "checkpoints", self.model, self.optimizer, state, self.policy)
        self.accelerator.wait_for_everyone()

    def stop_if_asked(self) -> None:
        """Save and raise Stopped if a process was asked to end; all processes decide the same."""
        asked = self.stop.is_set
        if self.accelerator.num_processes > 1:
            if self.step % STOP_EVERY:
                return
            asked = bool(self.sum_over_ranks(torch.tensor([float(asked)])).item())
        if asked and self.step < self.steps:
            self.save()
            raise Stopped(self.step)

    def check(self) -> None:
        """InputError with step and last good checkpoint if a loss or a weight is not finite."""
        self.read_losses()
        check_finite(self.model, self.step, self.run / "checkpoints")

    def read_losses(self) -> None:
        """Read the losses of the steps since the last time; InputError names the first that is not finite."""
        try:
            self.window.read(self.step)
        except NotFinite as problem:
            last = latest_checkpoint(self.run / "checkpoints")
            losses = ", ".join(f"{name} {value}" for name, value in problem.losses.items())
            raise InputError(
                f"the loss is not finite at step {problem.step + 1} ({losses}; {self.batch_of(problem.step)}); lower "
                f"optimizer.learning_rate; last good checkpoint: {last.name if last else 'none'}",
                self.run,
            ) from problem

    def batch_of(self, step: int) -> str:
        """What the batch of a step is, in words."""
        return f"batch {step}"


def sum_over_ranks(accelerator: Accelerator, values: Tensor) -> Tensor:
    """The sum of a tensor over all processes."""
    if accelerator.num_processes == 1:
        return values
    moved: Tensor = accelerator.reduce(values.to(accelerator.device), "sum")
    return moved
