"""How far a fit has come: its history and best weights, kept in a folder so that a killed fit goes on.

FOLDER/step-N/   after epoch N: trained weights, the best of them, optimizer; at the end the best weights only
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pretrain.checkpoints import latest_checkpoint, load_checkpoint, save_checkpoint
from pretrain.config import CheckpointConfig
from probes.transfer.batch import Examples
from probes.transfer.config import FineTuneConfig
from synthlang.files import read_json
from synthlang.fingerprint import canonical_json, fingerprint
from synthlang.progress import Say, unheard

FORMAT = 2  # raise when the same settings give other weights, or a state has other content
KEPT = CheckpointConfig(keep=1)

History = list[dict[str, float]]


class Progress:
    """The history of a fit and the weights of its best epoch.

    trained   name → what the optimizer moves
    folder    where the state is kept; None: nowhere
    run       fingerprint of the fit: a state of another one is refused
    """

    def __init__(
        self,
        trained: Mapping[str, nn.Parameter],
        optimizer: torch.optim.Optimizer,
        config: FineTuneConfig,
        folder: Path | None = None,
        run: str = "",
    ) -> None:
        self.trained, self.optimizer, self.config, self.folder, self.run = trained, optimizer, config, folder, run
        self.history: History = []
        self._best: dict[str, Tensor] = {}

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
        if self.finished:
            load_checkpoint(path, self._final(), run=self.run)
            return
        self._best = {name: torch.empty_like(parameter) for name, parameter in self.trained.items()}
        load_checkpoint(path, self._whole(), self.optimizer, self.run)

    def record(self, loss: float, dev: float) -> None:
        """An epoch is over: its mean loss and its score. At the end of the fit the best weights are in place."""
        self.history.append({"epoch": len(self.history) + 1, "loss": loss, "dev": dev})
        last_is_best = self.best == len(self.history)
        if self.finished and not last_is_best:
            _copy(self._best, self.trained)
        elif last_is_best and not self.finished:
            self._best = self._best or {name: torch.empty_like(parameter) for name, parameter in self.trained.items()}
            _copy(self.trained, self._best)
        self._save()

    def _save(self) -> None:
        if self.folder is None:
            return
        weights, optimizer = self._whole(), self.optimizer
        if self.finished:
            weights = self._final()
            optimizer = torch.optim.SGD(weights.parameters())  # has no state
        state = {"step": len(self.history), "run": self.run, "history": self.history}
        save_checkpoint(self.folder, weights, optimizer, state, KEPT)

    def _whole(self) -> nn.Module:
        return _Weights({"now": self.trained, "best": self._best})

    def _final(self) -> nn.Module:
        return _Weights({"best": self.trained})


class _Weights(nn.Module):
    """Tensors as the parameters of a module, in the same memory, so that checkpoints can hold them."""

    def __init__(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        super().__init__()
        for kind, named in tensors.items():
            for name, tensor in named.items():
                held = nn.Parameter(tensor.detach(), requires_grad=False)
                self.register_parameter(f"{kind}/{name.replace('.', '/')}", held)


@torch.no_grad()
def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    for name, tensor in source.items():
        target[name].copy_(tensor)


def fit_fingerprint(
    model: nn.Module, sets: Sequence[Examples], metric: str, config: FineTuneConfig, seed: int, further: bool
) -> str:
    """Of a fit from the weights that ``model`` has now on ``sets`` (training and dev)."""
    weights = hashlib.sha256()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        weights.update(name.encode())
        weights.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    data = [_digest(examples) for examples in sets]
    parts: dict[str, Any] = {"settings": config.model_dump(mode="json"), "seed": seed, "metric": metric, "data": data}
    return fingerprint("fit", format=FORMAT, weights=weights.hexdigest(), further=further, **parts)


def _digest(examples: Examples) -> str:
    held = hashlib.sha256(examples.lengths.astype(np.int64).tobytes())
    held.update(canonical_json([list(examples.ids), list(examples.gold)]).encode())
    return held.hexdigest()
