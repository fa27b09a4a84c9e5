"""A folder to a repository of the hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from synthlang.errors import InputError

REPOSITORY = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")


def check_repository(repo_id: str) -> None:
    """InputError for what is no name of a repository."""
    if not REPOSITORY.fullmatch(repo_id) or len(repo_id) > 96:
        raise InputError(f"repository {repo_id!r} must be NAME or OWNER/NAME of letters, digits and _.-")


def upload(
    folder: Path,
    repo_id: str,
    kind: Literal["dataset", "model"],
    note: str,
    private: bool = True,
    token: str | None = None,
    api: Any | None = None,
    card: str | None = None,
) -> str:
    """Upload a folder, and a ``card`` that is not in it, with the commit message ``note``; returns the address.

    ``token`` is by default the one that ``hf auth login`` stored; ``api`` stands in for ``huggingface_hub.HfApi``.
    Whatever the hub refuses is an InputError of one line.
    """
    check_repository(repo_id)
    if api is None:
        from huggingface_hub import HfApi

        api = HfApi(token=token)
    try:
        address = api.create_repo(repo_id, repo_type=kind, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo_id, repo_type=kind, folder_path=str(folder), commit_message=note)
        if card is not None:
            readme: Any = {"path_or_fileobj": card.encode(), "path_in_repo": "README.md", "commit_message": "Card"}
            api.upload_file(repo_id=repo_id, repo_type=kind, **readme)
    except Exception as error:  # anything that the library or the network may raise
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"hub repository {repo_id}: cannot upload: {reason.strip()}") from error
    return str(address)
