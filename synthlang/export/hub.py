"""Put an exported data set on the Hugging Face hub: only ever when asked to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.export.manifest import verify_manifest

REPOSITORY = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")


def push_to_hub(
    folder: Path, repo_id: str, private: bool = True, token: str | None = None, api: Any | None = None
) -> str:
    """Upload a data set folder to the data set repository ``repo_id``; returns its address.

    The manifest is verified before anything is sent. ``token`` is by default the one that
    ``hf auth login`` stored; ``api`` stands in for ``huggingface_hub.HfApi``. Whatever the hub
    refuses is an InputError of one line.
    """
    if not REPOSITORY.fullmatch(repo_id) or len(repo_id) > 96:
        raise InputError(f"repository {repo_id!r} must be NAME or OWNER/NAME of letters, digits and _.-")
    manifest = verify_manifest(folder)
    if api is None:
        from huggingface_hub import HfApi

        api = HfApi(token=token)
    note = f"synthlang data set {manifest['fingerprint']}" if "fingerprint" in manifest else "synthlang data set"
    try:
        address = api.create_repo(repo_id, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(repo_id=repo_id, repo_type="dataset", folder_path=str(folder), commit_message=note)
    except Exception as error:  # anything that the library or the network may raise
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"hub repository {repo_id}: cannot upload: {reason.strip()}") from error
    return str(address)
