"""Trackers: send the lines of metrics.jsonl also to tensorboard, wandb or trackio, through accelerate."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from pretrain.config import PretrainConfig
from synthlang.distribution import install_command
from synthlang.errors import InputError


def check_trackers(names: tuple[str, ...]) -> None:
    """Check that the library of each tracker is installed, since Accelerate silently skips missing libraries.

    Raises:
        InputError: A library is missing.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            hint = f"leave {name} out, or run: {install_command('track')}"
            raise InputError(f"{name} is not installed", keys="trackers", hint=hint, code="extra")


def start_trackers(accelerator: Accelerator, config: PretrainConfig, run: Path) -> None:
    """Start the trackers of a run, if there are any, with the name of its folder and its settings.

    The project of the trackers is ``synthlang``. ``run`` is the run folder.
    """
    if config.trackers:
        settings = _flat(config.model_dump(mode="json"))
        options = {"wandb": {"name": run.name, "dir": str(run)}, "trackio": {"name": run.name}}
        chosen = {name: options[name] for name in config.trackers if name in options}
        accelerator.init_trackers("synthlang", settings, init_kwargs=chosen)


def end_trackers(accelerator: Accelerator) -> None:
    """Close the trackers. Accelerate's end_training would also end the process group, which the export needs."""
    for tracker in accelerator.trackers:
        tracker.finish()


def _flat(settings: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(settings, dict):
        return {prefix: settings if isinstance(settings, bool | int | float | str) else str(settings)}
    return {k: v for name, value in settings.items() for k, v in _flat(value, f"{prefix}.{name}".strip(".")).items()}
