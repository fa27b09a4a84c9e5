"""Upload of a pretrained or adjusted model to the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrain.card import run_card
from pretrain.config import PretrainConfig
from pretrain.folder import CARD, EXPORT, is_as_exported
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.hub_upload import upload

DONE = "done.json"


def push_model_to_hub(
    folder: Path, repo_id: str, private: bool = True, token: str | None = None, api: Any | None = None
) -> str:
    """Upload a finished run, or ``RUN/export/LANGUAGE``, to a model repository and return its address.

    A run becomes a repository with one card and a folder for each language. See ``synthlang.hub_upload`` for the other
    arguments.

    Raises:
        InputError: The folder is not a finished run, or its export was changed.
    """
    export = folder if folder.parent.name == EXPORT else folder / EXPORT
    run = export.parent if export.name == EXPORT else export.parent.parent
    if not (run / DONE).is_file():
        reason = "is neither a data set folder of derive, nor a finished run, nor an export of one"
        hint = "name such a folder, or finish the run first"
        raise InputError(reason, folder, hint=hint, code="missing")
    done = read_json(run / DONE)
    if not export.is_dir() or not is_as_exported(run, done):
        hint = "run the command of the run again, which writes the export again"
        raise InputError("files of the export are missing or changed", run, hint=hint, code="damaged")
    card = None
    if not (export / CARD).is_file():  # several languages
        if "data" not in read_json(run / "run.json"):
            hint = "push the languages one by one, as RUN/export/LANGUAGE"
            raise InputError("is not a pretraining run", run, hint=hint, code="unsupported")
        card = run_card(repo_id, load(PretrainConfig, run / "config.yaml"), run, done["fingerprint"], done["parents"])
    return upload(export, repo_id, "model", f"synthlang model {done['fingerprint']}", private, token, api, card)
