"""Upload of a folder to a repository of the hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from synthlang.errors import InputError

REPOSITORY = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")


def check_repository(repo_id: str) -> None:
    """Check that a text can be the name of a repository.

    Raises:
        InputError: The text cannot be the name of a repository.
    """
    if not REPOSITORY.fullmatch(repo_id) or len(repo_id) > 96:
        hint = "write NAME or OWNER/NAME with letters, digits and _.-"
        raise InputError(f"{repo_id!r} cannot be the name of a repository", hint=hint, code="format")


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
    """Upload a folder to the hub and return its address.

    Args:
        folder: Folder to upload.
        repo_id: NAME or OWNER/NAME.
        kind: Kind of the repository.
        note: Commit message.
        private: True to make a new repository private.
        token: Access token (default: the token that ``hf auth login`` stored).
        api: Object used in place of ``huggingface_hub.HfApi``.
        card: Content of README.md, if the folder has none.

    Raises:
        InputError: The name is not valid, or the upload fails.
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
        raise InputError(
            f"cannot upload: {reason.strip()}",
            f"hub repository {repo_id}",
            hint="check the name, the connection and the login (hf auth login), and run the command again",
            code="failed",
        ) from error
    return str(address)
