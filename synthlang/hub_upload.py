"""Upload of repositories to the hub: one commit each, with the files that are new or have changed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from synthlang.errors import InputError
from synthlang.fingerprint import git_blob_id, sha256_file

REPOSITORY = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
LONGEST = 96
"""Largest number of characters in the name of a repository, with its owner."""
NAME_RULE = f"in all at most {LONGEST} characters: letters, digits, _ . and -"
"""The rule of the name of a repository, for messages."""
Content = Path | bytes
"""A file, or the content of a file."""
T = TypeVar("T")


def check_repository(repo_id: str) -> None:
    """Check that a text can be the name of a repository.

    Raises:
        InputError: The text cannot be the name of a repository.
    """
    if not REPOSITORY.fullmatch(repo_id) or len(repo_id) > LONGEST:
        hint = f"write NAME or OWNER/NAME, {NAME_RULE}; NAME and OWNER begin with a letter or a digit"
        raise InputError(f"{repo_id!r} cannot be the name of a repository", hint=hint, code="format")


@dataclass(frozen=True)
class Repository:
    """A repository and the files that it should have.

    Attributes:
        repo_id: NAME or OWNER/NAME.
        kind: Kind of the repository: a data set or a model.
        note: Commit message.
        files: Path in the repository → content.
        complete: Patterns of paths. The upload deletes files on the hub that match a pattern and are not among
            ``files``, such as shards of a larger earlier version.
    """

    repo_id: str
    kind: Literal["dataset", "model"]
    note: str
    files: Mapping[str, Content]
    complete: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size of all files in bytes.

        Raises:
            OSError: A file does not exist.
        """
        return sum(size_of(content) for content in self.files.values())

    def stale(self, there: Iterable[str]) -> list[str]:
        """Return the paths that the upload deletes, sorted. ``there`` holds the paths of the files on the hub."""
        others = (path for path in there if path not in self.files)
        return sorted(path for path in others if any(fnmatchcase(path, pattern) for pattern in self.complete))


@dataclass(frozen=True)
class Uploaded:
    """The result of an upload.

    Attributes:
        address: Address of the repository.
        added: Paths that were uploaded.
        deleted: Paths that were deleted.
    """

    address: str
    added: tuple[str, ...]
    deleted: tuple[str, ...]


def size_of(content: Content) -> int:
    """Return the number of bytes in a file, which is given as a path or by its content.

    Raises:
        OSError: The file does not exist.
    """
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def endpoint() -> str | None:
    """Return the address of the hub in the variable HF_ENDPOINT, or None for the default hub."""
    return os.environ.get("HF_ENDPOINT") or None


def hub() -> Any:
    """Return an ``HfApi`` with the token of ``hf auth login`` or of HF_TOKEN."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint())


def upload(repository: Repository, private: bool = True, api: Any | None = None) -> Uploaded:
    """Upload the new and the changed files of a repository in one commit.

    The same commit deletes the files on the hub that match a pattern of ``Repository.complete`` and are not among
    ``Repository.files``. All further files on the hub stay. An interrupted upload changes no file.

    Args:
        repository: The repository, which is made if it does not exist.
        private: True to make a new repository private. An existing repository keeps its visibility.
        api: Object used in place of ``huggingface_hub.HfApi``.

    Raises:
        InputError: The name is not valid, or the upload fails.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    check_repository(repository.repo_id)
    hf: Any = hub() if api is None else api
    where: dict[str, Any] = {"repo_id": repository.repo_id, "repo_type": repository.kind}

    def uploaded() -> Uploaded:
        address = str(hf.create_repo(**where, private=private, exist_ok=True))
        tree = hf.list_repo_tree(**where, recursive=True)
        there = {file.path: file for file in tree if getattr(file, "size", None) is not None}
        new = [path for path, content in repository.files.items() if not _is_same(content, there.get(path))]
        stale = repository.stale(there)
        if new or stale:
            added = [CommitOperationAdd(path, repository.files[path]) for path in new]
            deleted = [CommitOperationDelete(path, is_folder=False) for path in stale]
            hf.create_commit(**where, operations=[*added, *deleted], commit_message=repository.note)
        return Uploaded(address, tuple(new), tuple(stale))

    return tried(uploaded, f"hub repository {repository.repo_id}")


def tried(call: Callable[[], T], place: str) -> T:
    """Return the result of a call to the hub.

    Raises:
        InputError: The call fails. The path of the error is ``place``. An InputError of the call is raised unchanged.
    """
    try:
        return call()
    except InputError:
        raise
    except Exception as error:  # anything that the library or the network may raise
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        hint = "check the name, the connection and the login (hf auth login), and try again"
        raise InputError(f"the upload failed: {reason.strip()}", place, hint=hint, code="failed") from error


def folder_files(folder: Path) -> dict[str, Content]:
    """Return the files of a folder and its subfolders, by their paths relative to the folder."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _is_same(content: Content, there: Any) -> bool:
    """Return whether a file on the hub has the same content. ``there`` is None if the hub has no such file.

    The hub gives the SHA-256 of large files only, and a Git id of other files.
    """
    if getattr(there, "size", None) != size_of(content):
        return False
    if there.lfs is None:
        return bool(git_blob_id(content) == there.blob_id)
    mine = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else sha256_file(content)
    return bool(mine == there.lfs.sha256)
