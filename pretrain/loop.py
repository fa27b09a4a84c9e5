"""The loop of a training run: its steps, log and checkpoints.

An interrupted run that is resumed has the same losses as an uninterrupted one. The batches of a step do not depend on
the number of processes.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from pretrain.checkpoints import LOWER, check_finite, last_good, latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.config import CheckpointConfig
from pretrain.devices import finish
from pretrain.folder import MetricsLog
from pretrain.sharded import is_sharded
from pretrain.step import GradientStep, sum_over_ranks
from pretrain.stopping import Flag, Stopped, watched
from synthlang.errors import InputError
from synthlang.progress import Say

M = TypeVar("M", bound=nn.Module)
B = TypeVar("B")  # a micro-batch
T = TypeVar("T")
STOP_EVERY = 10  # number of steps after which several processes check whether one of them must stop


class Prefetch(Generic[T]):
    """Thread that computes ``make(step)`` one step ahead, for the steps 0 … ``steps`` − 1."""

    def __init__(self, make: Callable[[int], T], steps: int) -> None:
        self.make, self.steps = make, steps
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next: tuple[int, Future[T]] | None = None

    def __enter__(self) -> Prefetch[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def get(self, step: int) -> T:
        """Return the result for a step. An error of ``make`` is raised here."""
        ahead = self._next
        future = ahead[1] if ahead is not None and ahead[0] == step else self._pool.submit(self.make, step)
        self._next = (step + 1, self._pool.submit(self.make, step + 1)) if step + 1 < self.steps else None
        return future.result()


class LossWindow:
    """Sums and counts of the losses of each step since the last line of the log.

    ``reduce`` is the function that sums a tensor over all processes.
    """

    def __init__(self, reduce: Callable[[Tensor], Tensor]) -> None:
        self.reduce = reduce
        self.names: list[str] = []
        self.rows: list[list[list[float]]] = []  # [steps, losses, (sum, count)] of the steps that were read already
        self._pending: list[Tensor] = []

    def add(self, losses: dict[str, tuple[Tensor, Tensor]]) -> None:
        """Add the (sum, count) of each loss of a step, with sums of this rank and counts over all ranks."""
        self.names = list(losses)
        self._pending.append(torch.stack([torch.stack([s.float(), c.float()]) for s, c in losses.values()]))

    def read(self, step: int) -> tuple[int, dict[str, float]] | None:
        """Copy the pending losses from the device after ``step`` steps.

        Returns:
            The first step whose losses are not finite, counted from 0, with the mean of each loss in it, or None.
        """
        if not self._pending:
            return None
        values = torch.stack(self._pending)
        self._pending = []
        read = torch.stack([self.reduce(values[..., 0].contiguous()), values[..., 1]], dim=-1).tolist()
        for number, row in enumerate(read, step - len(read)):
            if not all(math.isfinite(total) for total, _ in row):
                found = {n: total / max(count, 1.0) for n, (total, count) in zip(self.names, row, strict=True)}
                return number, found
        self.rows.extend(read)
        return None

    def means(self) -> dict[str, float]:
        """Return the mean of each loss since the last line, and start a new window.

        A loss without a summand in these steps has no key. ``read`` must be called before.
        """
        means = {}
        for i, name in enumerate(self.names):
            total, count = (sum(row[i][side] for row in self.rows) for side in (0, 1))
            if count:  # a term may have no labelled position in a small batch
                means[name] = total / count
        self.rows = []
        return means

    def state(self) -> dict[str, Any]:
        """Return the losses that were read since the last line, as JSON values for a checkpoint."""
        return {"names": self.names, "rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the losses from a result of ``LossWindow.state``, and drop the losses that are not yet read."""
        self.names, self.rows, self._pending = state["names"], state["rows"], []


class Loop(ABC, Generic[M, B]):
    """A training run in the folder ``run``. A subclass defines the logged measurements.

    Args:
        run: The run folder.
        name: Fingerprint of the run, which its checkpoints store.
        model: The model to train.
        trains: The optimizer step.
        batch: Function of (step, which, count) that returns micro-batch ``which`` of ``count`` of a step.
        accumulation: Number of micro-batches of each process in a step.
        policy: Settings of saving and deleting checkpoints.
        log_every: Number of steps between lines of the log.
        say: Function that shows messages to the user.
        stop: Flag that ends the run early (None: the flag of ``watching``, if any).
    """

    def __init__(
        self,
        run: Path,
        name: str,
        model: M,
        trains: GradientStep[B],
        batch: Callable[[int, int, int], B],
        accumulation: int,
        policy: CheckpointConfig,
        log_every: int,
        say: Say,
        stop: Flag | None,
    ) -> None:
        self.run, self.name, self.model, self.trains, self.batch = run, name, model, trains, batch
        self.accelerator, self.steps = trains.accelerator, trains.steps
        self.accumulation, self.policy, self.log_every = accumulation, policy, log_every
        self.saved_at = frozenset(policy.steps_at(self.steps))
        self.say, self.stop = say, stop or watched()
        self.log = MetricsLog(run / "metrics.jsonl", self.accelerator.is_main_process)
        self.window = LossWindow(lambda values: sum_over_ranks(self.accelerator, values))
        self.step = 0
        self.extra: dict[str, Any] = {}  # further values in the state of checkpoints

    def train(self, dropout: bool = True) -> None:
        """Train to the last step, from the newest undamaged checkpoint if there is one.

        Args:
            dropout: True to train with the model's dropout.

        Raises:
            InputError: All checkpoints are damaged or of another version. The newest undamaged checkpoint belongs to
                another run or does not fit the model. A loss or weight is not finite.
            DiskError: A checkpoint or the log cannot be written.
            Stopped: The flag was set, and a checkpoint was saved.
        """
        self.resume()
        self.begin()
        self.trains.module.train(dropout)
        started, first = time.monotonic(), self.step
        with Prefetch(self._micro_batches, self.steps) as ahead:
            while self.step < self.steps:
                self.window.add(self.trains(self.step, ahead.get(self.step)))
                finish(self.accelerator.device)
                self.step += 1
                if self.is_due(self.log_every) or self.measures_now():
                    self.read_losses()
                    row = {"step": self.step, **self.window.means(), "lr": self.trains.learning_rate(self.step - 1)}
                    self.write_line(row, (self.step - first) / (time.monotonic() - started))
                if self.is_due(self.policy.every) or self.step in self.saved_at:
                    self.save()
                self._stop_if_asked()

    def _micro_batches(self, step: int) -> list[B]:
        micros, ranks = self.accumulation, self.accelerator.num_processes
        first = self.accelerator.process_index * micros
        return [self.batch(step, first + i, ranks * micros) for i in range(micros)]

    @abstractmethod
    def begin(self) -> None:
        """Prepare this process after resuming and before its first step, for example by starting trackers."""

    @abstractmethod
    def measures_now(self) -> bool:
        """Return True if this step has measurements besides the losses, such as perplexity."""

    @abstractmethod
    def write_line(self, row: dict[str, Any], steps_per_second: float) -> None:
        """Add measurements to ``row``, which has the step, the losses and the learning rate, and log the row."""

    def is_due(self, every: int) -> bool:
        """Return True if the step is the last one or a multiple of ``every`` (0: only the last step)."""
        return self.step == self.steps or (every > 0 and self.step % every == 0)

    def resume(self) -> None:
        """Continue from the newest undamaged checkpoint, if there is one, and cut the log at its step.

        Raises:
            InputError: All checkpoints are damaged or of another version, or the newest undamaged checkpoint belongs to
                another run or does not fit the model.
            DiskError: The log cannot be written.
        """
        path = latest_checkpoint(self.run / "checkpoints", self.say)
        if path is not None:
            state = load_checkpoint(path, self.model, self.trains.optimizer, self.name)
            self.step = state.pop("step")
            self.window.restore(state.pop("window"))
            self.trains.restore(state)
            self.extra = {key: value for key, value in state.items() if key != "run"}
            self.say(f"continuing from step {self.step}")
        self.log.cut(self.step or -1)

    def save(self) -> None:
        """Write a checkpoint of the present step, and delete checkpoints that the policy no longer keeps.

        All processes call this method.

        Raises:
            InputError: A loss or weight is not finite. No checkpoint is written then.
            DiskError: The checkpoint cannot be written.
        """
        self.check()
        is_main = self.accelerator.is_main_process
        if is_main or is_sharded(self.trains.losses):
            state = {"run": self.name, "step": self.step, "window": self.window.state(), **self.trains.state()}
            state |= self.extra
            folder, optimizer = self.run / "checkpoints", self.trains.optimizer
            save_checkpoint(folder, self.model, optimizer, state, self.policy, writes=is_main, steps=self.steps)
        self.accelerator.wait_for_everyone()

    def _stop_if_asked(self) -> None:
        """Save and raise Stopped if a stop was requested. All processes stop at the same step."""
        must_stop = self.stop.is_set or (self.stop.until is not None and self.step >= self.stop.until)
        if self.accelerator.num_processes > 1 and self.step != self.stop.until:
            if self.step % STOP_EVERY:
                return
            must_stop = bool(sum_over_ranks(self.accelerator, torch.tensor([float(must_stop)])).item())
        if must_stop and self.step < self.steps:
            self.save()
            raise Stopped(self.step)

    def check(self) -> None:
        """Check that losses and weights are finite.

        Raises:
            InputError: A loss or weight is not finite. The error names the step and the last good checkpoint.
        """
        self.read_losses()
        check_finite(self.model, self.step, self.run / "checkpoints")

    def read_losses(self) -> None:
        """Read the losses of the steps since the last call.

        Raises:
            InputError: A loss is not finite. The error names the first such step.
        """
        if (found := self.window.read(self.step)) is not None:
            step, means = found
            losses = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
            known = filter(None, (losses, self.batch_of(step), last_good(self.run / "checkpoints")))
            reason = f"the loss is not finite at step {step + 1:,} ({'; '.join(known)})"
            raise InputError(reason, self.run, hint=LOWER, code="failed")

    def batch_of(self, step: int) -> str:  # noqa: ARG002  for subclasses
        """Return a description of the batch of a step, for errors, or "" by default."""
        return ""
