"""Upload of a pretrained or adjusted model to the hub: all exports of a run, or one of them."""

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

DONE, WEIGHTS = "done.json", "model.safetensors"


def push_model_to_hub(
    folder: Path, repo_id: str, private: bool = True, token: str | None = None, api: Any | None = None
) -> str:
    """Upload a finished run, or ``RUN/export/LANGUAGE``, to the model repository ``repo_id`` and return its address.

    Each language of a run has a folder there, beside one card. A single language is the repository itself.
    ``token`` and ``api`` are as for data sets (``synthlang.export.push_to_hub``).

    Raises:
        InputError: The folder is no finished run, or its export was changed.
    """
    export = folder if folder.parent.name == EXPORT else folder / EXPORT
    run = export.parent if export.name == EXPORT else export.parent.parent
    if not (run / DONE).is_file():
        reason = "is neither a data set folder of derive nor a finished run, nor one of its exports"
        raise InputError(reason, folder, code="missing")
    done = read_json(run / DONE)
    if not export.is_dir() or not is_as_exported(run, done):
        hint = "run the same command again, which repairs it"
        raise InputError("files of the export are gone or were changed", run, hint=hint, code="damaged")
    card = None
    if not (export / CARD).is_file():  # several languages
        if "data" not in read_json(run / "run.json"):
            hint = "push its languages one by one, as RUN/export/LANGUAGE"
            raise InputError("is no pretraining", run, hint=hint, code="unsupported")
        card = run_card(repo_id, load(PretrainConfig, run / "config.yaml"), run, done["fingerprint"], done["parents"])
    return upload(export, repo_id, "model", f"synthlang model {done['fingerprint']}", private, token, api, card)
