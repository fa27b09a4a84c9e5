"""Checkpoints in safetensors and JSON, which are written atomically and verified by checksum.

    checkpoints/step-N/   model.safetensors  optimizer.safetensors  state.json  manifest.json

Batches, masks and dropout are functions of (seed, step, rank), so weights, optimizer, step and the losses since the
last line of the log are the whole state.
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

from pretrain.config import CheckpointConfig
from pretrain.folder import BEST, kept_steps, steps_in
from pretrain.sharded import part_of, whole
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, remove_leftovers, write_json
from synthlang.fingerprint import sha256_file
from synthlang.progress import Say, unheard
from synthlang.wording import first_few

FORMAT = 2
FILES = {"model.safetensors", "optimizer.safetensors", "state.json"}
LOWER = "lower optimizer.learning_rate, and train in another folder"
RESTORE = "restore the config that the weights were trained with"


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    policy: CheckpointConfig,
    writes: bool = True,
    steps: int | None = None,
) -> None:
    """Write the checkpoint of ``state["step"]``, and delete checkpoints that the policy no longer keeps.

    Checkpoints of later steps are deleted, too. All processes that share a model call this function.

    Args:
        folder: Folder of the checkpoints.
        model: The model, all of whose parameters are saved.
        optimizer: The optimizer, whose state is saved.
        state: Content of state.json. ``state["best"]``, if present, is the step of the best checkpoint, which is kept.
        policy: Settings of saving and deleting checkpoints.
        writes: True in the one process that writes the files.
        steps: Number of steps of the run (default: the present step).

    Raises:
        DiskError: The checkpoint cannot be written, for example because the disk is full.
    """
    weights = {name: _on_cpu(tensor) for name, tensor in model.named_parameters()}
    moments = _flatten(optimizer)
    if not writes:
        return
    path = folder / f"step-{state['step']}"
    with atomic_folder(path, replace=True) as temporary:
        with disk_errors():
            save_file(weights, temporary / "model.safetensors")
            save_file(moments, temporary / "optimizer.safetensors")
        write_json(temporary / "state.json", state)
        sums = {p.name: sha256_file(p) for p in sorted(temporary.iterdir())}
        write_json(temporary / "manifest.json", {"format": FORMAT, "sha256": sums})
    kept = {*kept_steps(policy, state["step"], steps), state.get(BEST)}
    for step in steps_in(folder):
        if step not in kept:  # also later steps, which are damaged because training continued from an earlier one
            shutil.rmtree(folder / f"step-{step}")


@contextmanager
def disk_errors() -> Iterator[None]:
    """Convert errors of safetensors that come from the operating system, such as a full disk, to OSError."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def latest_checkpoint(folder: Path, say: Say = unheard) -> Path | None:
    """Return the newest undamaged checkpoint, or None if the folder has no checkpoint.

    Temporary files of interrupted writers are deleted. ``say`` shows a warning for each damaged checkpoint.

    Raises:
        InputError: All checkpoints are damaged or of another version.
    """
    if folder.exists():
        remove_leftovers(folder)
    steps = steps_in(folder)
    for step in reversed(steps):
        path = folder / f"step-{step}"
        if is_sound(path):
            return path
        say(f"warning: the checkpoint {path} is damaged or of another version, and is left out")
    if steps:
        reason = "all checkpoints are damaged or of another version"
        hint = "delete the folder, and run the same command to start again"
        raise InputError(reason, folder, hint=hint, code="damaged")
    return None


def selected_checkpoint(folder: Path, last: int) -> Path:
    """Return the checkpoint of a finished run of ``last`` steps: the best one if the run selects it, or the last.

    Raises:
        InputError: The last or the best checkpoint is damaged, gone or of another version. An older checkpoint is not
            used instead.
    """
    path = folder / f"step-{last}"
    if not is_sound(path):
        reason = "the last checkpoint of the finished run is damaged, missing or of another version"
        hint = "restore the checkpoint from a copy, or delete done.json and this checkpoint, and start the run again"
        raise InputError(reason, path, hint=hint, code="damaged")
    best = read_json(path / "state.json").get(BEST)
    if best is None:
        return path
    return checkpoint_at(
        folder, best, "the best checkpoint of the finished run is damaged, missing or of another version"
    )


def checkpoint_at(
    folder: Path, step: int, reason: str = "the checkpoint is damaged, missing or of another version"
) -> Path:
    """Return the path of the checkpoint of a step in ``folder``, the folder ``checkpoints`` of a run.

    Raises:
        InputError: The checkpoint is damaged, missing or of another version. The error has the ``reason``.
    """
    path = folder / f"step-{step}"
    if not is_sound(path):
        hint = "restore the checkpoint from a copy, or delete the folder of the run and train it again"
        raise InputError(reason, path, hint=hint, code="damaged")
    return path


def last_good(folder: Path) -> str:
    """Return a note on the newest undamaged checkpoint in ``folder``, for the error of a training that diverges.

    Raises:
        InputError: The folder has checkpoints, and all are damaged or of another version.
    """
    last = latest_checkpoint(folder)
    return "no checkpoint was saved" if last is None else f"the last good checkpoint is {last.name}"


def check_finite(model: nn.Module, step: int, folder: Path) -> None:
    """Check that all weights are finite after ``step`` steps, since the loss shows such a fault only one step later.

    ``folder`` has the checkpoints, of which the error names the newest undamaged one. All processes call this function.

    Raises:
        InputError: A weight is NaN or infinite.
    """
    finite = torch.stack([whole(parameter.detach().isfinite().all()) for parameter in model.parameters()]).all()
    if not bool(finite):
        reason = f"the weights are not finite after step {step:,} ({last_good(folder)})"
        raise InputError(reason, folder.parent, hint=LOWER, code="failed")


def is_sound(path: Path) -> bool:
    """Return True if a checkpoint has the present format and every file has its recorded checksum."""
    try:
        manifest = read_json(path / "manifest.json")
    except (InputError, OSError):
        return False  # a full disk or a copy may have truncated it
    sums = manifest.get("sha256") if isinstance(manifest, dict) else None
    if not isinstance(sums, dict) or sums.keys() != FILES or manifest.get("format") != FORMAT:
        return False
    return all((path / name).is_file() and sha256_file(path / name) == value for name, value in sums.items())


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None, run: str | None = None
) -> dict[str, Any]:
    """Load the weights and the optimizer state of a checkpoint, and return its state.

    The state is the content of state.json: the fingerprint of the run, the step, the losses since the last line of the
    log, and values of the trainer. The caller checks the files first (see ``is_sound``).

    Args:
        path: The folder of the checkpoint.
        model: The model, whose weights are replaced.
        optimizer: The optimizer, whose state is replaced (None: no optimizer).
        run: The fingerprint of the run (None: a checkpoint of any run is accepted).

    Raises:
        InputError: The checkpoint belongs to another run, or does not fit the model.
    """
    state: dict[str, Any] = read_json(path / "state.json")
    if run is not None and state.get("run") != run:
        reason = f"is a checkpoint of another run ({state.get('run')}, not {run})"
        raise InputError(reason, path, hint="delete this checkpoint, or name another run folder", code="changed")
    load_weights(path / "model.safetensors", model)
    if optimizer is not None:
        _unflatten(load_file(path / "optimizer.safetensors"), optimizer)
    return state


def load_weights(path: Path, model: nn.Module) -> None:
    """Copy weights from a safetensors file into a model of the same names and shapes.

    Raises:
        InputError: The names or shapes of the weights are not those of the model.
    """
    weights = load_file(path)
    parameters = dict(model.named_parameters())
    if weights.keys() != parameters.keys():
        names = sorted(weights.keys() ^ parameters.keys())
        reason = f"does not fit the model, because only one of the two has: {first_few(names, 3)}"
        raise InputError(reason, path, hint=RESTORE, code="conflict")
    for name, parameter in parameters.items():
        if weights[name].shape != parameter.shape:
            shapes = f"{list(weights[name].shape)}, not {list(parameter.shape)}"
            reason = f"does not fit the model, because {name} has the shape {shapes}"
            raise InputError(reason, path, hint=RESTORE, code="conflict")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(part_of(weights[name], parameter))


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {f"{i}.{k}": _on_cpu(v) for i, state in states.items() for k, v in state.items()}


def _on_cpu(tensor: Tensor) -> Tensor:
    return whole(tensor.detach()).cpu().contiguous()


def _unflatten(tensors: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
    state = optimizer.state_dict()
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state["state"] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        state["state"].setdefault(int(index), {})[key] = part_of(tensor, moved[int(index)])
    optimizer.load_state_dict(state)
