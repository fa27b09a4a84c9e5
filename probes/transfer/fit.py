"""Fine-tuning a body and a head on a task, and predicting with them.

A fit in progress is kept in a folder, so that a killed one goes on: FOLDER/step-N/ after epoch N has the trained
weights, the best of them and the optimizer; at the end the best weights only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pretrain.checkpoints import latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.config import CheckpointConfig
from pretrain.optim import learning_rate
from probes.models.pretrained import ROWS, TOKENS, bounded_batches
from probes.transfer.config import FineTuneConfig
from probes.transfer.features import FrozenStates, TaskModel, frozen_states
from probes.transfer.tasks.base import Examples
from probes.transfer.tasks.metrics import Metric
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.fingerprint import canonical_json, fingerprint
from synthlang.progress import Report, Say, silent, unheard
from synthlang.references import resolved
from synthlang.rng import key_of, permutation

FORMAT = 2  # raise when the same settings give other weights, or a state has other content
KEPT = CheckpointConfig(keep=1)
EVERY = 20  # steps between looks at the loss, for each of which a device has to be waited for
FUSED = ("cpu", "cuda", "mps", "xpu")  # devices that have a fused AdamW

Rows = NDArray[np.int64]
Extra = Callable[[int], Tensor]
History = list[dict[str, float]]


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

    @property
    def dev(self) -> float:
        """The dev score of that epoch."""
        return self.history[self.best - 1]["dev"]


def fine_tune(
    model: TaskModel,
    train: Examples,
    dev: Examples,
    metric: Metric,
    config: FineTuneConfig,
    seed: int,
    *,
    also: Sequence[Examples] = (),
    folder: Path | None = None,
    extra: Extra | None = None,
    report: Report = silent,
) -> Fitted:
    """Fine-tune on ``train``; the model is left with the weights of the epoch that is best on ``dev``.

    Order of rows and dropout are functions of (seed, step), and PyTorch's generators are left as they were.

    also     further dev sets: an epoch's score is the mean of those on all of them
    folder   where a state is kept after each epoch, from which a killed fit goes on to the same weights
    extra    step → a further loss that is added to that of the task
    report   is told of the steps, under the name ""

    Raises InputError if the loss is not finite, and if the folder's state is damaged or of another fit.
    """
    fit = _Fit(model, train, (dev, *also), metric, config, seed, extra, report)
    sets = (train, dev, *also)
    run = "" if folder is None else fit_fingerprint(model, sets, metric.name, config, seed, extra is not None)
    progress = Progress(fit.trained, fit.optimizer, config, folder, run)
    progress.resume(lambda text: report("", 0, fit.steps, text))
    device = model.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        while not progress.finished:
            loss = fit.epoch(len(progress.history), progress.history)
            progress.record(loss, fit.score())
    model.eval()
    history, best = progress.history, progress.best
    report("", fit.steps, fit.steps, f"best epoch {best}, dev {history[best - 1]['dev']:.1f}")
    return Fitted(history, best, len(history) * fit.per_epoch)


def predict(
    model: TaskModel, examples: Examples, rows: int = ROWS, tokens: int = TOKENS, frozen: FrozenStates | None = None
) -> list[Any]:
    """Predict each item in batches of at most ``rows`` rows and, padded, ``tokens`` tokens."""
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


@dataclass
class _Fit:
    """The epochs of a fit."""

    model: TaskModel
    train: Examples
    dev: tuple[Examples, ...]
    metric: Metric
    config: FineTuneConfig
    seed: int
    further: Extra | None
    report: Report

    def __post_init__(self) -> None:
        self.model.to(self.model.device).precision = self.config.precision
        self.items = self.config.epoch_items or len(self.train)
        self.per_epoch = -(-self.items // self.config.rows)
        self.steps = self.per_epoch * self.config.epochs
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = _optimizer(self.trained, self.config, self.model.device)

    @cached_property
    def frozen(self) -> tuple[FrozenStates | None, ...]:
        """The states of the training set and of each dev set where they do not change."""
        return tuple(frozen_states(self.model, examples) for examples in (self.train, *self.dev))

    def epoch(self, epoch: int, history: History) -> float:
        """Train on the rows of an epoch; the mean loss of the steps. ``epoch`` counts from 0."""
        frozen = self.frozen[0]
        self.model.train()
        batches = training_batches(len(self.train), self.config.rows, self.items, self.seed, epoch)
        before = f", dev {history[-1]['dev']:.1f}" if history else ""
        losses: list[Tensor] = []
        total = 0.0
        for i, rows in enumerate(batches):
            losses.append(self._step(epoch * self.per_epoch + i, rows, frozen))
            if len(losses) == EVERY or i == self.per_epoch - 1:
                done = epoch * self.per_epoch + i + 1
                total += self._sum(losses, epoch, done - len(losses))
                losses.clear()
                if done < self.steps:  # the last one is reported when the epoch is scored
                    note = f"epoch {epoch + 1}/{self.config.epochs}, loss {total / (i + 1):.3f}{before}"
                    self.report("", done, self.steps, note)
        return total / self.per_epoch

    def score(self) -> float:
        """Return the metric on the dev set in percent, of several sets its mean."""
        sets = zip(self.dev, self.frozen[1:], strict=True)
        scores = [self.metric(dev.gold, predict(self.model, dev, frozen=frozen)) for dev, frozen in sets]
        return sum(scores) / len(scores)

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
        if self.further is not None:
            loss = loss + self.further(step)
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
        """Return the sum of the losses of the steps from ``first`` on.

        Raises:
            InputError: A loss or a weight is not finite.
        """
        values = torch.stack(losses).double().cpu()
        finite = values.isfinite()
        bad = None if bool(finite.all()) else int((~finite).nonzero()[0])
        if bad is None and not bool(torch.stack([p.detach().isfinite().all() for p in self.trained.values()]).all()):
            bad = len(losses) - 1
        if bad is not None:
            rate = self._rate(self.config.learning_rate, first + bad)
            reason = (
                f"fine-tuning diverged: the loss or a weight is not finite in epoch {epoch + 1}, step "
                f"{first + bad + 1} of {self.steps}, at the learning rate {rate:.3g}"
            )
            raise InputError(reason, hint="lower fine_tune.learning_rate", code="failed")
        return float(values.sum())


def _optimizer(trained: dict[str, nn.Parameter], config: FineTuneConfig, device: torch.device) -> torch.optim.AdamW:
    """AdamW with a group for each rate and decay; its decay acts on matrices only, not on biases and norms."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in trained.items():
        in_body = name.startswith("features.bodies.")
        peak = config.learning_rate if in_body else config.head_learning_rate or config.learning_rate
        decay = config.weight_decay if parameter.ndim >= 2 else 0.0
        groups.setdefault((peak, decay), []).append(parameter)
    settings = [{"params": ps, "peak": peak, "weight_decay": decay} for (peak, decay), ps in groups.items()]
    betas = (config.beta1, config.beta2)
    fused = device.type in FUSED
    return torch.optim.AdamW(settings, lr=config.learning_rate, betas=betas, eps=config.epsilon, fused=fused)


def training_batches(count: int, rows: int, items: int, seed: int, epoch: int) -> list[Rows]:
    """Batches of ``rows`` of the ``items`` that an epoch (from 0) takes, of pass after pass over ``count`` rows.

    A pass has each row once, in a random order that is a function of (seed, pass). The last batch may have fewer.
    Length plays no part: it often goes with a class, and batches of one class train badly. What is padding costs
    little, since the model leaves it out (pretrain.model.text).
    """
    first = epoch * items
    passes = range(first // count, -(-(first + items) // count))
    orders = np.concatenate([permutation(key_of("fit batches", seed, number), count) for number in passes])
    taken = orders[first - passes[0] * count :][:items]
    return [taken[start : start + rows] for start in range(0, items, rows)]


@dataclass
class Progress:
    """The history of a fit and the weights of its best epoch.

    trained   name → what the optimizer moves
    folder    where the state is kept; None: nowhere
    run       fingerprint of the fit: a state of another one is refused
    """

    trained: Mapping[str, nn.Parameter]
    optimizer: torch.optim.Optimizer
    config: FineTuneConfig
    folder: Path | None = None
    run: str = ""
    history: History = field(default_factory=list)
    _best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The number of the epoch with the best dev score, the first of equals; 0 before the first one."""
        scores = [entry["dev"] for entry in self.history]
        return 1 + scores.index(max(scores)) if scores else 0

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or patience is at an end."""
        done, patience = len(self.history), self.config.patience
        return done >= self.config.epochs or (patience is not None and done > 0 and done - self.best >= patience)

    def resume(self, say: Say = unheard) -> None:
        """Go on from what the folder holds; InputError if that is damaged or of another fit."""
        path = None if self.folder is None else latest_checkpoint(self.folder, say)
        if path is None:
            return
        self.history = read_json(path / "state.json")["history"]
        if not self.finished:
            self._best = {name: torch.empty_like(parameter) for name, parameter in self.trained.items()}
        load_checkpoint(path, self._weights(), None if self.finished else self.optimizer, self.run)

    def record(self, loss: float, dev: float) -> None:
        """Record the end of an epoch: its mean loss and its score.

        At the end of the fit the best weights are in place.
        """
        self.history.append({"epoch": len(self.history) + 1, "loss": loss, "dev": dev})
        last_is_best = self.best == len(self.history)
        if self.finished and not last_is_best:
            with torch.no_grad():
                for name, parameter in self.trained.items():
                    parameter.copy_(self._best[name])
        elif last_is_best and not self.finished:
            self._best.clear()  # or the old ones and the new ones were in memory together
            self._best = {name: parameter.detach().clone() for name, parameter in self.trained.items()}
        self._save()

    def _save(self) -> None:
        if self.folder is None:
            return
        weights = self._weights()
        optimizer = torch.optim.SGD(weights.parameters()) if self.finished else self.optimizer  # SGD has no state
        state = {"step": len(self.history), "run": self.run, "history": self.history}
        save_checkpoint(self.folder, weights, optimizer, state, KEPT)

    def _weights(self) -> nn.Module:
        """Return the content of a checkpoint: the best weights, and before the end the present ones too."""
        if self.finished:
            return _Weights({"best": self.trained})
        return _Weights({"now": self.trained, "best": self._best})


class _Weights(nn.Module):
    """Tensors as the parameters of a module, in the same memory, so that checkpoints can hold them."""

    def __init__(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        super().__init__()
        for kind, named in tensors.items():
            for name, tensor in named.items():
                parameter = nn.Parameter(tensor.detach(), requires_grad=False)
                self.register_parameter(f"{kind}/{name.replace('.', '/')}", parameter)


def fit_fingerprint(
    model: nn.Module, sets: Sequence[Examples], metric: str, config: FineTuneConfig, seed: int, further: bool
) -> str:
    """Of a fit from the weights that ``model`` has now on ``sets`` (training, dev and further ones)."""
    weights = hashlib.sha256()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        weights.update(name.encode())
        weights.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    data = [hashlib.sha256(examples.lengths.astype(np.int64).tobytes()) for examples in sets]
    for digest, examples in zip(data, sets, strict=True):
        digest.update(canonical_json([list(examples.ids), list(examples.gold)]).encode())
    parts = {"settings": resolved(config, lambda named: named.name), "data": [digest.hexdigest() for digest in data]}
    weight = weights.hexdigest()
    return fingerprint("fit", format=FORMAT, weights=weight, further=further, seed=seed, metric=metric, **parts)
