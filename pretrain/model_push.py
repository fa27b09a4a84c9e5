"""Pretrained and adjusted models as repositories of the hub, and their upload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pretrain.adjust.config import AdjustConfig
from pretrain.card import adjusted_card, loading, run_card, without_folders
from pretrain.config import PretrainConfig
from pretrain.folder import CARD, EXPORT, is_as_exported
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, no_such, read_json
from synthlang.hub_upload import Content, Repository, check_repository, folder_files, upload

DONE, RECORD, CONFIG, METRICS = "done.json", "run.json", "config.yaml", "metrics.jsonl"
SHARDS = ("*model-?????-of-?????.safetensors", "*model.safetensors.index.json")
"""Patterns of the paths of weights that are written in several files, and of the index of these files."""


def push_model_to_hub(folder: Path, repo_id: str, private: bool = True, api: Any | None = None) -> str:
    """Upload a finished run or adjustment, or ``RUN/export/LANGUAGE``, and return the address of the repository.

    Args:
        folder: A finished run or adjustment, or ``RUN/export/LANGUAGE``.
        repo_id: NAME or OWNER/NAME.
        private: True to make a new repository private. An existing repository keeps its visibility.
        api: Object used in place of ``huggingface_hub.HfApi``.

    Raises:
        InputError: The folder cannot be a repository (see ``model_repository``), or the upload fails.
    """
    return upload(model_repository(folder, repo_id), private, api).address


def model_repository(folder: Path, repo_id: str, sections: Sequence[tuple[str, str]] = ()) -> Repository:
    """Return the repository of a finished run or adjustment, or of ``RUN/export/LANGUAGE``.

    A run becomes a repository with one card, its settings, its log and a folder for each language. An adjustment of a
    single model has the files of the model in place of these folders. ``RUN/export/LANGUAGE`` becomes a repository with
    the files of this folder only.

    Args:
        folder: A finished run or adjustment, or ``RUN/export/LANGUAGE``.
        repo_id: NAME or OWNER/NAME.
        sections: Further sections of the card as (heading, Markdown text). The card of a single language has none.

    Raises:
        InputError: The name is not valid, the folder is not a finished run, or its records or its export were changed.
    """
    check_repository(repo_id)
    export = folder if folder.parent.name == EXPORT else folder / EXPORT
    run = export.parent if export.name == EXPORT else export.parent.parent
    if not folder.is_dir():
        raise no_such(folder, "folder")
    if not (run / DONE).is_file():
        reason, hint = "the run is not finished", "run the command of the run again to finish it"
        if not (run / RECORD).is_file():
            reason = "is neither a finished run or adjustment nor an export of one"
            hint = "name such a folder (the command synthlang push also takes a study and a data set folder)"
        raise InputError(reason, folder, hint=hint, code="missing")
    done = _record(run / DONE, "fingerprint", "parents")
    if not export.is_dir() or not is_as_exported(run, done):
        hint = "delete done.json in the run folder, and run the command of the run again, which writes the export again"
        raise InputError("files of the export are missing or changed", run, hint=hint, code="damaged")
    files = {name: content for name, content in folder_files(export).items() if TEMPORARY not in name}
    if export.name == EXPORT:
        files |= _of_run(run, repo_id, done, sections)
    note = f"synthlang model {done['fingerprint']}"
    return Repository(repo_id, "model", note, files, complete=SHARDS)


def _record(path: Path, *keys: str) -> dict[str, Any]:
    """Read a record of a finished run.

    Raises:
        InputError: The file cannot be read, or lacks one of the ``keys``.
    """
    record = read_json(path)
    if not isinstance(record, dict) or not record.keys() >= {*keys}:
        hint = "restore the file, or name the folder of a finished run or adjustment"
        raise InputError("is not the record of a finished run", path, hint=hint, code="format")
    return record


def _of_run(run: Path, repo_id: str, done: Any, sections: Sequence[tuple[str, str]]) -> dict[str, Content]:
    """Return the card, the settings without folders of this machine, and the log of a run."""
    parents, name = done["parents"], done["fingerprint"]
    if "data" in _record(run / RECORD, "fingerprint"):
        card = run_card(repo_id, load(PretrainConfig, run / CONFIG), run, name, parents, sections)
    else:
        languages = sorted(path.parent.name for path in (run / EXPORT).glob("*/config.json"))
        load_it = ("Loading", loading(repo_id, languages[-1] if languages else ""))
        config = load(AdjustConfig, run / CONFIG)
        card = adjusted_card(config, "", name, str(parents["model"]), [load_it, *sections])
    settings = without_folders((run / CONFIG).read_text(encoding="utf-8"))
    log = {METRICS: run / METRICS} if (run / METRICS).is_file() else {}
    return {CARD: card.encode(), CONFIG: settings.encode(), **log}
