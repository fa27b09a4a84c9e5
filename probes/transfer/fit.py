"""Fine-tuning a body and a head on a task, and predicting with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pretrain.optim import learning_rate
from probes.transfer.batch import Examples
from probes.transfer.batching import ROWS, TOKENS, Rows, bounded_batches, training_batches
from probes.transfer.config import FineTuneConfig
from probes.transfer.features import TaskModel
from probes.transfer.frozen import FrozenStates, frozen_states
from probes.transfer.metrics.metric import Metric
from probes.transfer.progress import History, Progress, fit_fingerprint
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of

EVERY = 20  # steps between looks at the loss, for each of which a device has to be waited for
FUSED = ("cpu", "cuda", "mps", "xpu")  # devices that have a fused AdamW

Extra = Callable[[int], Tensor]


@dataclass(frozen=True)
class Fitted:
    """What came of a fit.

    history   for each epoch {"epoch" from 1 on, "loss" (the mean over its steps), "dev" (the score)}
    best      the epoch whose weights the model has: that with the best score, the first of equals
    steps     how many were taken in all
    """

    history: History
    best: int
    steps: int
    seconds: float = field(compare=False)


def fine_tune(
    model: TaskModel,
    train: Examples,
    dev: Examples,
    metric: Metric,
    config: FineTuneConfig,
    seed: int,
    *,
    folder: Path | None = None,
    extra: Extra | None = None,
    report: Report = silent,
) -> Fitted:
    """Fine-tune on ``train``; the model is left with the weights of the epoch that is best on ``dev``.

    Order of rows and dropout are functions of (seed, step), and PyTorch's generators are left as they were.

    folder   where a state is kept after each epoch, from which a killed fit goes on to the same weights
    extra    step → a further loss that is added to that of the task
    report   is told of the steps, under the name ""

    Raises InputError if there is nothing to train on or to choose an epoch by, if the loss is not finite, and if the
    folder's state is damaged or of another fit.
    """
    for name, examples in (("train", train), ("dev", dev)):
        if not len(examples):
            raise InputError(f"{name}: there are no rows, so nothing can be fine-tuned or chosen")
    started = time.monotonic()
    fit = _Fit(model, train, dev, metric, config, seed, extra, report)
    run = "" if folder is None else fit_fingerprint(model, (train, dev), metric.name, config, seed, extra is not None)
    progress = Progress(fit.trained, fit.optimizer, config, folder, run)
    progress.resume(lambda text: report("", 0, fit.steps, text))
    with _own_generators(model.device):
        while not progress.finished:
            loss = fit.epoch(len(progress.history), progress.history)
            progress.record(loss, fit.score())
    model.eval()
    last = progress.history[-1]
    report(
        "", fit.steps, fit.steps, f"best epoch {progress.best}, dev {progress.history[progress.best - 1]['dev']:.1f}"
    )
    return Fitted(progress.history, progress.best, int(last["epoch"]) * fit.per_epoch, time.monotonic() - started)


def predict(
    model: TaskModel, examples: Examples, rows: int = ROWS, tokens: int = TOKENS, frozen: FrozenStates | None = None
) -> list[Any]:
    """A prediction for each item; batches have at most ``rows`` rows and, padded, ``tokens`` tokens."""
    model.eval()
    outputs: list[Any] = [None] * len(examples)
    with torch.inference_mode():
        for numbers in bounded_batches(examples.lengths, rows, tokens):
            batch = examples.batch(numbers)
            read = None if frozen is None else frozen.of(batch).to(model.device, non_blocking=True)
            decoded = model.decode(batch.to(model.device), read)
            for number, output in zip(numbers.tolist(), decoded, strict=True):
                outputs[number] = output
    return examples.predictions(outputs)


class _Fit:
    """The epochs of a fit."""

    def __init__(
        self,
        model: TaskModel,
        train: Examples,
        dev: Examples,
        metric: Metric,
        config: FineTuneConfig,
        seed: int,
        extra: Extra | None,
        report: Report,
    ) -> None:
        self.model, self.train, self.dev, self.metric = model.to(model.device), train, dev, metric
        self.config, self.seed, self._further, self.report = config, seed, extra, report
        model.precision = config.precision
        self.per_epoch = -(-len(train) // config.rows)
        self.steps = self.per_epoch * config.epochs
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = _optimizer(self.trained, config, model.device)
        self._frozen: tuple[FrozenStates | None, FrozenStates | None] | None = None

    def epoch(self, epoch: int, history: History) -> float:
        """Train on every row once; the mean loss of the steps. ``epoch`` counts from 0."""
        train, _ = self._known()
        self.model.train()
        key = key_of("fit batches", self.seed, epoch)
        before = f", dev {history[-1]['dev']:.1f}" if history else ""
        losses: list[Tensor] = []
        total = 0.0
        for i, rows in enumerate(training_batches(len(self.train), self.config.rows, key)):
            losses.append(self._step(epoch * self.per_epoch + i, rows, train))
            if len(losses) == EVERY or i == self.per_epoch - 1:
                done = epoch * self.per_epoch + i + 1
                total += self._sum(losses, epoch, done - len(losses))
                losses.clear()
                if done < self.steps:  # the last one is reported when the epoch is scored
                    note = f"epoch {epoch + 1}/{self.config.epochs}, loss {total / (i + 1):.3f}{before}"
                    self.report("", done, self.steps, note)
        return total / self.per_epoch

    def score(self) -> float:
        """The metric on the dev set, in percent."""
        _, dev = self._known()
        return self.metric(self.dev.gold, predict(self.model, self.dev, frozen=dev))

    def _step(self, step: int, rows: Rows, frozen: FrozenStates | None) -> Tensor:
        """One optimizer step; its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(group["peak"], step)
        key = key_of("fit dropout", self.seed, step)
        torch.manual_seed(key >> 1)  # takes signed 64-bit seeds
        self.model.features.seed_dropout(key)
        batch = self.train.batch(rows)
        read = None if frozen is None else frozen.of(batch).to(self.model.device, non_blocking=True)
        loss = self.model.loss(batch.to(self.model.device), read)
        if self._further is not None:
            loss = loss + self._further(step)
        torch.autograd.backward(loss)
        if self.config.clip is not None:
            nn.utils.clip_grad_norm_(self.trained.values(), self.config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _rate(self, peak: float, step: int) -> float:
        warmup = int(self.config.warmup_share * self.steps)
        return learning_rate(peak, warmup, self.steps, step, self.config.schedule)

    def _sum(self, losses: list[Tensor], epoch: int, first: int) -> float:
        """The sum of the losses of the steps from ``first`` on; InputError if one, or a weight, is not finite."""
        values = torch.stack(losses).double().cpu()
        finite = values.isfinite()
        bad = None if bool(finite.all()) else int((~finite).nonzero()[0])
        if bad is None and not bool(torch.stack([p.detach().isfinite().all() for p in self.trained.values()]).all()):
            bad = len(losses) - 1
        if bad is not None:
            rate = self._rate(self.config.learning_rate, first + bad)
            raise InputError(
                f"fine-tuning: the loss or a weight is not finite in epoch {epoch + 1}, step {first + bad + 1} of "
                f"{self.steps}, at the learning rate {rate:.3g}; lower fine_tune.learning_rate"
            )
        return float(values.sum())

    def _known(self) -> tuple[FrozenStates | None, FrozenStates | None]:
        """The states of both sets where they do not change."""
        if self._frozen is None:
            self._frozen = frozen_states(self.model, self.train), frozen_states(self.model, self.dev)
        return self._frozen


def _optimizer(trained: dict[str, nn.Parameter], config: FineTuneConfig, device: torch.device) -> torch.optim.AdamW:
    """AdamW with a group for each rate and decay; its decay acts on matrices only, not on biases and norms."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in trained.items():
        in_body = name.startswith("features.bodies.")
        peak = config.learning_rate if in_body else config.head_learning_rate or config.learning_rate
        decay = config.weight_decay if parameter.ndim >= 2 else 0.0
        groups.setdefault((peak, decay), []).append(parameter)
    settings = [{"params": held, "peak": peak, "weight_decay": decay} for (peak, decay), held in groups.items()]
    betas = (config.beta1, config.beta2)
    fused = device.type in FUSED
    return torch.optim.AdamW(settings, lr=config.learning_rate, betas=betas, eps=config.epsilon, fused=fused)


@contextmanager
def _own_generators(device: torch.device) -> Iterator[None]:
    """Leave PyTorch's generators as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
