"""Fine-tuning of a pretrained model and a head on a task, and prediction.

An interrupted fit continues from its folder. FOLDER/step-N/ has the current weights, the best weights and the state of
the optimizer after epoch N. At the end only the best weights remain.
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

from pretrain import devices
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
from synthlang.references import as_written, resolved
from synthlang.rng import key_of, permutation

FORMAT = 2  # increase if equal settings give other weights, or a state has other content
KEPT = CheckpointConfig(keep=1)
EVERY = 20  # steps between reads of the loss, because each read waits for the device
FUSED = ("cpu", "cuda", "mps", "xpu")  # devices that have a fused AdamW

Rows = NDArray[np.int64]
Extra = Callable[[int], Tensor]
History = list[dict[str, float]]


@dataclass(frozen=True)
class Fitted:
    """The result of a fit.

    Attributes:
        history: An entry {"epoch", "loss", "dev"} for each epoch, from 1. "loss" is the mean over the steps of the
            epoch, and "dev" is the score on the dev sets in percent.
        best: The first epoch with the best dev score. The model has the weights of this epoch.
        steps: Number of steps of all epochs.
    """

    history: History
    best: int
    steps: int

    @property
    def dev(self) -> float:
        """The dev score of the best epoch in percent."""
        return self.history[self.best - 1]["dev"]


def fine_tune(
    model: TaskModel,
    train: Examples,
    dev: Sequence[Examples],
    metric: Metric,
    config: FineTuneConfig,
    seed: int,
    *,
    folder: Path | None = None,
    extra: Extra | None = None,
    report: Report = silent,
) -> Fitted:
    """Fine-tune on ``train``, and leave the model with the weights of the best epoch on ``dev``.

    The order of rows and the dropout depend only on (seed, step). PyTorch's random generators do not change.

    Args:
        model: The model with its head. Its weights change.
        train: The training items.
        dev: The sets that select the best epoch. The score of an epoch is the mean over these sets.
        metric: The metric on the dev sets.
        config: The settings.
        seed: The seed of the order of rows and of the dropout.
        folder: The folder for the state after each epoch, from which an interrupted fit continues (default: the state
            is not saved).
        extra: A function from a step to a loss that is added to the loss of the task (default: none).
        report: Receives the progress.

    Raises:
        InputError: The loss, a weight or an arc score of a parser is not finite, or the state in the folder is damaged
            or belongs to another fit.
        DiskError: The state cannot be written.
    """
    fit = _Fit(model, train, dev, metric, config, seed, extra, report)
    is_extra = extra is not None
    run = "" if folder is None else fit_fingerprint(model, (train, *dev), metric.name, config, seed, is_extra)
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
    """Return the prediction for each item, from batches of at most ``rows`` rows and ``tokens`` tokens with padding.

    Predictions are in the order of the items, and in the JSON form of the task. ``frozen`` are cached states of the
    items, if they are known. The model is left in evaluation mode.

    Raises:
        InputError: An arc score of a parser is NaN or infinite.
    """
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
    """The training loop of a fit. Its attributes are the arguments of `fine_tune`, with ``further`` for ``extra``."""

    model: TaskModel
    train: Examples
    dev: Sequence[Examples]
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
        """The states of the training set and of each dev set, if they do not change during the fit."""
        return tuple(frozen_states(self.model, examples) for examples in (self.train, *self.dev))

    def epoch(self, epoch: int, history: History) -> float:
        """Train for one epoch (numbered from 0) and return the mean loss over its steps."""
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
                if done < self.steps:  # the last step is reported with the score of the epoch
                    note = f"epoch {epoch + 1}/{self.config.epochs}, loss {total / (i + 1):.3f}{before}"
                    self.report("", done, self.steps, note)
        return total / self.per_epoch

    def score(self) -> float:
        """Return the metric in percent, averaged over the dev sets."""
        sets = zip(self.dev, self.frozen[1:], strict=True)
        scores = [self.metric(dev.gold, predict(self.model, dev, frozen=frozen)) for dev, frozen in sets]
        return sum(scores) / len(scores)

    def _step(self, step: int, rows: Rows, frozen: FrozenStates | None) -> Tensor:
        """Do one optimizer step and return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(group["peak"], step)
        key = key_of("fit dropout", self.seed, step)
        devices.seed(key >> 1, self.model.device)  # torch takes signed 64-bit seeds
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
        """Return the sum of the losses of consecutive steps from ``first`` on."""
        values = torch.stack(losses).double().cpu()
        finite = values.isfinite()
        bad = None if bool(finite.all()) else int((~finite).nonzero()[0])
        if bad is None and not bool(torch.stack([p.detach().isfinite().all() for p in self.trained.values()]).all()):
            bad = len(losses) - 1
        if bad is not None:
            peaks = {f"fine_tune.{key}": getattr(self.config, key) for key in ("learning_rate", "head_learning_rate")}
            rates = {key: f"{self._rate(peak, first + bad):.3g}" for key, peak in peaks.items() if peak is not None}
            shown = f"learning rate{'s' * (len(rates) > 1)} {' and '.join(rates.values())}"
            reason = (
                f"fine-tuning diverged: the loss or a weight is not finite in epoch {epoch + 1}, step "
                f"{first + bad + 1} of {self.steps}, at the {shown}"
            )
            raise InputError(reason, hint=f"reduce {' or '.join(rates)}", code="failed")
        return float(values.sum())


def _optimizer(trained: dict[str, nn.Parameter], config: FineTuneConfig, device: torch.device) -> torch.optim.AdamW:
    """Return AdamW with a group for each learning rate and weight decay. Only matrices have weight decay."""
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
    """Return the indices of the rows in each batch of an epoch (numbered from 0), with ``rows`` rows in a batch.

    Epochs take ``items`` items each from consecutive passes over all ``count`` rows. A pass has each row once, in a
    random order that depends only on (seed, pass). The last batch may be smaller. Rows are not sorted by length,
    because length often correlates with the class. Padding costs little, because the model skips it
    (``pretrain.model.text``).
    """
    first = epoch * items
    passes = range(first // count, -(-(first + items) // count))
    orders = np.concatenate([permutation(key_of("fit batches", seed, number), count) for number in passes])
    taken = orders[first - passes[0] * count :][:items]
    return [taken[start : start + rows] for start in range(0, items, rows)]


@dataclass
class Progress:
    """The history of a fit and the weights of its best epoch, in memory and in a folder.

    Attributes:
        trained: The trained parameters by name.
        optimizer: The optimizer of the parameters.
        config: The settings, of which the number of epochs and the patience end the fit.
        folder: The folder for the state, or None to keep it in memory only.
        run: The fingerprint of the fit. The state of another fit is refused.
        history: The entries of the finished epochs, as in `Fitted`.
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
        """The number of the first epoch with the best dev score, or 0 before the end of the first epoch."""
        scores = [entry["dev"] for entry in self.history]
        return 1 + scores.index(max(scores)) if scores else 0

    @property
    def finished(self) -> bool:
        """True if all epochs are done, or ``patience`` epochs passed without a better score."""
        done, patience = len(self.history), self.config.patience
        return done >= self.config.epochs or (patience is not None and done > 0 and done - self.best >= patience)

    def resume(self, say: Say = unheard) -> None:
        """Load the history, the weights and the state of the optimizer from the folder, if they were saved there.

        ``say`` shows a warning for each damaged state that is skipped.

        Raises:
            InputError: Every saved state is damaged or of another version, or the state belongs to another fit.
        """
        path = None if self.folder is None else latest_checkpoint(self.folder, say)
        if path is None:
            return
        self.history = read_json(path / "state.json")["history"]
        if not self.finished:
            self._best = {name: torch.empty_like(parameter) for name, parameter in self.trained.items()}
        load_checkpoint(path, self._weights(), None if self.finished else self.optimizer, self.run)

    def record(self, loss: float, dev: float) -> None:
        """Record the mean loss and the dev score in percent of an epoch, and save the state to the folder.

        At the end of the fit, the best weights are restored first.

        Raises:
            DiskError: The state cannot be written.
        """
        self.history.append({"epoch": len(self.history) + 1, "loss": loss, "dev": dev})
        last_is_best = self.best == len(self.history)
        if self.finished and not last_is_best:
            with torch.no_grad():
                for name, parameter in self.trained.items():
                    parameter.copy_(self._best[name])
        elif last_is_best and not self.finished:
            self._best.clear()  # free the old weights before copying the new ones
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
        """Return the weights for a checkpoint: the best weights, and during the fit also the current weights."""
        if self.finished:
            return _Weights({"best": self.trained})
        return _Weights({"now": self.trained, "best": self._best})


class _Weights(nn.Module):
    """A module whose parameters share memory with given tensors, so that checkpoints can store them."""

    def __init__(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        super().__init__()
        for kind, named in tensors.items():
            for name, tensor in named.items():
                parameter = nn.Parameter(tensor.detach(), requires_grad=False)
                self.register_parameter(f"{kind}/{name.replace('.', '/')}", parameter)


def fit_fingerprint(
    model: nn.Module, sets: Sequence[Examples], metric: str, config: FineTuneConfig, seed: int, further: bool
) -> str:
    """Return the fingerprint of a fit that starts from the current weights of ``model``.

    ``sets`` are the training set and the dev sets. ``metric`` is the name of the metric that
    selects the epoch. ``further`` is True if another loss is added to the loss of the task.
    """
    weights = hashlib.sha256()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        weights.update(name.encode())
        weights.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    data = [hashlib.sha256(examples.lengths.astype(np.int64).tobytes()) for examples in sets]
    for digest, examples in zip(data, sets, strict=True):
        digest.update(canonical_json([list(examples.ids), list(examples.gold)]).encode())
    parts = {"settings": resolved(config, as_written), "data": [digest.hexdigest() for digest in data]}
    weight = weights.hexdigest()
    return fingerprint("fit", format=FORMAT, weights=weight, further=further, seed=seed, metric=metric, **parts)
