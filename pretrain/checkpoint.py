"""Checkpoints: safetensors and JSON, written atomically, verified by checksum when read.

    checkpoints/step-N/   model.safetensors  optimizer.safetensors  state.json  manifest.json

Batches, masks and dropout are functions of (seed, step, rank), so weights, optimizer, step
and the running means of the log are the whole state.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, remove_leftovers, write_json
from synthlang.fingerprint import sha256_file

FORMAT = 1


def save_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any], keep: int
) -> None:
    """Write the checkpoint of ``state["step"]`` into ``folder`` and drop all but the last ``keep``."""
    path = folder / f"step-{state['step']}"
    with atomic_folder(path, replace=True) as temporary:
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.named_parameters()}
        with disk_errors():
            save_file(weights, temporary / "model.safetensors")
            save_file(_flatten(optimizer), temporary / "optimizer.safetensors")
        write_json(temporary / "state.json", state)
        sums = {p.name: sha256_file(p) for p in sorted(temporary.iterdir())}
        write_json(temporary / "manifest.json", {"format": FORMAT, "sha256": sums})
    for old in steps_in(folder)[:-keep]:
        shutil.rmtree(folder / f"step-{old}")


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn what safetensors says of a full disk into the OSError it is."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def steps_in(folder: Path) -> list[int]:
    """The steps of the checkpoints in ``folder``, ascending."""
    names = (p.name.removeprefix("step-") for p in folder.glob("step-*"))
    return sorted(int(name) for name in names if name.isdigit())


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint whose checksums hold; None if there is none.

    Raises InputError if there are checkpoints and all are damaged.
    """
    if folder.exists():
        remove_leftovers(folder)
    steps = steps_in(folder)
    for step in reversed(steps):
        path = folder / f"step-{step}"
        if is_sound(path):
            return path
    if steps:
        raise InputError("every checkpoint is damaged; delete the folder to start again", folder)
    return None


def is_sound(path: Path) -> bool:
    """Whether every file of a checkpoint is there and has its checksum."""
    try:
        sums = read_json(path / "manifest.json")["sha256"]
    except (InputError, KeyError, TypeError):
        return False  # truncated by a full disk or a copy: the caller tries an older one
    return all((path / name).is_file() and sha256_file(path / name) == value for name, value in sums.items())


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """Put a checkpoint's weights (and optimizer state) in place; returns its state."""
    load_weights(path / "model.safetensors", model)
    if optimizer is not None:
        _unflatten(load_file(path / "optimizer.safetensors"), optimizer)
    state: dict[str, Any] = read_json(path / "state.json")
    return state


def load_weights(path: Path, model: nn.Module) -> None:
    """Copy weights into a model; the names must be the same on both sides."""
    weights = load_file(path)
    parameters = dict(model.named_parameters())
    if weights.keys() != parameters.keys():
        names = sorted(weights.keys() ^ parameters.keys())
        raise InputError(f"does not fit the model: {', '.join(names[:3])}", path)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {f"{i}.{k}": v.detach().cpu().contiguous() for i, state in states.items() for k, v in state.items()}


def _unflatten(tensors: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
    whole = optimizer.state_dict()
    whole["state"] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        whole["state"].setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict(whole)
