"""Pretrain masked language models on a source language and languages derived from it, and adjust finished models.

The functions here do what the commands do (``docs/python.md``). They import what they need when they are called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synthlang.config import Overrides


def pretrain(
    config: str | Path,
    out: str | Path | None = None,
    overrides: Overrides = (),
    *,
    smoke: bool = False,
    threads: int | None = None,
) -> Path:
    """Pretrain by a config. A finished run is left as it is, and any other continues.

    Args:
        config: A YAML file, or the name of a run of the catalogue, ``align_mlm/trans+inv/tiny``.
        out: The run folder (default: ``runs/NAME``).
        overrides: Dotted keys and their values, ``{"objective.alpha": 5.0}``, or texts as for ``--set``.
        smoke: Whether to try it in seconds: everything small, in ``OUT-smoke``, with numbers that mean nothing.
        threads: Threads of this process (default: ``OMP_NUM_THREADS``, else the fastest number).

    Returns:
        The run folder: ``export/LANGUAGE`` is a Hugging Face model of each language, ``metrics.jsonl`` holds the
            losses.

    Raises:
        SystemExit: With code 143 after SIGTERM, when a checkpoint is saved.
    """
    from pretrain.train import run
    from synthlang.catalogue import run_folder
    from synthlang.config import assignments
    from synthlang.smoke import smoke_path

    folder = run_folder(Path(config)) if out is None else Path(out)
    if code := run(Path(config), folder, assignments(overrides), smoke, threads):
        raise SystemExit(code)
    return smoke_path(folder) if smoke else folder


def run_adjustment(
    model: str | None,
    config: str | Path,
    out: str | Path,
    overrides: Overrides = (),
    *,
    smoke: bool = False,
    threads: int | None = None,
) -> Path:
    """Pull the words of sentence pairs together in a finished model, and hold the rest in place.

    Args:
        model: A finished run, a folder or a name of Hugging Face (None: the one that the config names).
        config: A YAML file, or a name of the catalogue, ``tiny``.
        out: The output folder, whose ``export/`` is the adjusted model. An unfinished adjustment in it continues.
        overrides: As for ``pretrain``.
        smoke: As for ``pretrain``.
        threads: As for ``pretrain``.

    Returns:
        The output folder.
    """
    from pretrain.adjust.adjust_command import adjust_command
    from synthlang.config import assignments
    from synthlang.smoke import smoke_path

    if code := adjust_command(model, Path(config), Path(out), assignments(overrides), smoke, threads):
        raise SystemExit(code)
    return smoke_path(Path(out)) if smoke else Path(out)


def push(folder: str | Path, repo: str, *, public: bool = False) -> str:
    """Upload a finished run, or one language of it, to the hub and return its address.

    Args:
        folder: A run, whose languages become folders beside one card, or ``RUN/export/LANGUAGE``, which becomes the
            repository.
        repo: USER/NAME.
        public: Whether the repository is public. It is private by default.
    """
    from pretrain.model_push import push_model_to_hub

    return push_model_to_hub(Path(folder), repo, private=not public)
