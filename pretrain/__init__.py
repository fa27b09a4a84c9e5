"""Pretrain language models on a source language and languages derived from it, and adjust finished models.

Each function corresponds to a command (``docs/python.md``). A function imports its dependencies when it is called.
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
    """Pretrain a model. An unfinished run in the folder continues, and a finished one is not trained again.

    Args:
        config: A YAML file, or the name of a run of the catalogue, such as ``align_mlm/trans+inv/tiny``.
        out: The run folder (default: ``runs/NAME``).
        overrides: Dotted keys and their values, ``{"objective.alpha": 5.0}``, or ``"KEY=VALUE"`` strings.
        smoke: True to try the run in seconds with small settings, in ``OUT-smoke``. The resulting numbers mean nothing.
        threads: Threads of this process (default: ``OMP_NUM_THREADS``, else chosen by model width and cores).

    Returns:
        The run folder, which is ``OUT-smoke`` with ``smoke``. ``export/LANGUAGE`` is a Hugging Face model of each
        language, and ``metrics.jsonl`` holds the losses.

    Raises:
        InputError: The config or its data is wrong. The folder holds something else, or another process writes it. The
            memory or the disk is too small. A loss or weight is not finite.
        SystemExit: SIGTERM ended the run after a checkpoint was saved (code 143).
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
    """Fine-tune a finished model so that aligned words of sentence pairs move together and other words stay in place.

    Args:
        model: A finished run, a model folder or a name on the hub (default: the model of the config).
        config: A YAML file, or a name of the catalogue, such as ``tiny``.
        out: The output folder. An unfinished adjustment in it continues.
        overrides: Dotted keys and their values, as for ``pretrain``.
        smoke: True to try the adjustment in seconds with small settings, in ``OUT-smoke``.
        threads: Threads of this process, as for ``pretrain``.

    Returns:
        The output folder, which is ``OUT-smoke`` with ``smoke``. ``export/`` is the adjusted model, or has a folder for
        each language if ``model`` is a pretraining run.

    Raises:
        InputError: The config, the model or the word-aligned text is wrong. The folder holds something else, or another
            process writes it. The disk is full. A loss or weight is not finite.
        SystemExit: SIGTERM ended the adjustment after a checkpoint was saved (code 143).
    """
    from pretrain.adjust.adjust_command import adjust_command
    from synthlang.config import assignments
    from synthlang.smoke import smoke_path

    if code := adjust_command(model, Path(config), Path(out), assignments(overrides), smoke, threads):
        raise SystemExit(code)
    return smoke_path(Path(out)) if smoke else Path(out)


def push(folder: str | Path, repo: str, *, public: bool = False) -> str:
    """Upload a finished run or adjustment, or one language of it, and return the address of the repository.

    Args:
        folder: A run, which becomes a repository with a folder for each language, or ``RUN/export/LANGUAGE``, which
            becomes a repository itself. An adjustment of a single model has its files at the top of the repository.
        repo: NAME or USER/NAME.
        public: True to make a new repository public (default: private). An existing repository keeps its visibility.

    Raises:
        InputError: The folder is not a finished run or its export was changed, the name is not valid, or the upload
            fails.
    """
    from pretrain.model_push import push_model_to_hub

    return push_model_to_hub(Path(folder), repo, private=not public)
