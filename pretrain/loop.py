"""The training loop: exact to resume, the same losses for any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from accelerate import Accelerator, DistributedDataParallelKwargs

from pretrain.artifacts import Artifacts
from pretrain.build import build_objective, new_model, train_batches
from pretrain.config import PretrainConfig
from pretrain.data.batch import Batch
from pretrain.folder import BEST
from pretrain.model.encoder import MaskedLM
from pretrain.parts import parts_of
from pretrain.processes import process_state
from pretrain.running import Loop
from pretrain.step import Step
from pretrain.stopping import Flag
from pretrain.trackers import end_trackers, start_trackers
from pretrain.validation import Validation
from pretrain.xla import finish
from synthlang.progress import Report, Say, silent, unheard

T = TypeVar("T")


class Prefetch(Generic[T]):
    """``get(step)`` is ``make(step)``; that of the next step is begun at once."""

    def __init__(self, make: Callable[[int], T], steps: int) -> None:
        self.make, self.steps = make, steps
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next: tuple[int, Future[T]] | None = None

    def __enter__(self) -> Prefetch[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def get(self, step: int) -> T:
        """What belongs to a step; an error in making it is raised here."""
        ahead = self._next
        future = ahead[1] if ahead is not None and ahead[0] == step else self._pool.submit(self.make, step)
        self._next = (step + 1, self._pool.submit(self.make, step + 1)) if step + 1 < self.steps else None
        return future.result()


class Trainer(Loop[MaskedLM]):
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
        self.config, self.report = config, report
        accelerator = _accelerator(config, run)
        self.parts = parts_of(config, accelerator.num_processes)
        model = new_model(config, artifacts).to(accelerator.device)
        self.step_ = Step(config, model, build_objective(config, artifacts, accelerator.device), accelerator)
        optimizer = self.step_.optimizer
        super().__init__(run, name, config.steps, accelerator, model, optimizer, config.checkpoints, say, stop)
        self.batches = train_batches(config, artifacts, report)
        self.validation = Validation(config, artifacts)

    def train(self) -> None:
        """Train to the last step, from the newest sound checkpoint if there is one."""
        for source in self.batches.sources:
            if source.padded:  # whole sentences, of which some do not fit
                counted = ", ".join(f"{reason} {count:,}" for reason, count in source.counts.items())
                self.say(f"{source.name}: {source.rows:,} rows, {counted}")
        self.resume()
        start_trackers(self.accelerator, self.config, self.run)
        started, first = time.monotonic(), self.step
        self.step_.module.train()
        with Prefetch(self._batches, self.config.steps) as batches:
            while self.step < self.config.steps:
                self.window.add(self.step_(self.step, batches.get(self.step)))
                finish(self.accelerator.device)
                self.step += 1
                if self.is_due(self.config.log_every) or self.validation.due(self.step):
                    self._write_log((self.step - first) / (time.monotonic() - started))
                if self.is_due(self.config.checkpoints.every):
                    self.save()
                self.stop_if_asked()
        end_trackers(self.accelerator)

    def _batches(self, step: int) -> list[Batch]:
        """The micro-batches of this rank."""
        micros = self.config.batch.accumulation
        first = self.accelerator.process_index * micros
        return [self.batches.batch(step, first + i, self.parts) for i in range(micros)]

    def batch_of(self, step: int) -> str:
        """The samples of a step."""
        rows = self.config.batch.rows
        return f"its batch: samples {step * rows} to {(step + 1) * rows - 1}"

    def _write_log(self, steps_per_second: float) -> None:
        self.read_losses()
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
            self.check()
            row |= self.validation.measure(self.model)
            self._note_best(row)
        self.log.write(row)
        self.accelerator.log({k: v for k, v in row.items() if k != "step"}, step=self.step)
        if self.accelerator.is_main_process:
            note = f"loss {row['loss']:.3f}, {row['tokens_per_second'] / 1000:.1f}k tokens/s"
            self.report(f"pretrain {config.label}", self.step, config.steps, note)

    def _note_best(self, row: dict[str, Any]) -> None:
        """Remember the step whose checkpoint is the best so far."""
        perplexity = row.get(self.validation.deciding)  # a dev split without a word has none
        if self.config.checkpoints.select != "best" or not self.is_due(self.config.checkpoints.every):
            return
        if perplexity is not None and (BEST not in self.extra or perplexity < self.extra["best_perplexity"]):
            self.extra = {BEST: self.step, "best_perplexity": perplexity}


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


def effective_batch(config: PretrainConfig, processes: int) -> str:
    """What one step trains on, in words."""
    rows, length, micros = config.batch.rows, config.batch.length, config.batch.accumulation
    each = rows // parts_of(config, processes)
    split = f"{processes} process{'es' if processes > 1 else ''} × {micros} × {each} rows"
    return f"a step is {rows} rows × {length} = {rows * length:,} tokens: {split}"
