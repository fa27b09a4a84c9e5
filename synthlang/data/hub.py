"""Files of data sets on the hub: their list at a commit, with sizes and checksums, and their download.

``huggingface_hub`` does the work. It reads HF_TOKEN and HF_ENDPOINT, resumes downloads, and waits as long as the hub
prescribes. No code of a repository is downloaded or run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http import HTTPStatus
from pathlib import Path
from typing import Any

from synthlang.data.sources import CHANGED, REVISION, HubFiles
from synthlang.data.web import RESUME
from synthlang.errors import Code, InputError
from synthlang.files import unwritable, writing
from synthlang.fingerprint import git_blob_id, sha256_file
from synthlang.hub_upload import endpoint

TRIES, WAIT = 4, 2.0
"""Number of tries of a call while the hub fails, and seconds before the second try. The wait doubles with each try."""
NEWEST = "main"
LOGIN = "accept the terms on this page, and set HF_TOKEN or run: hf auth login"
PRIVATE = f"if the data set is private or gated, {LOGIN}; otherwise {CHANGED}"
FOLDER = "without a network, use --from FOLDER"


@dataclass(frozen=True)
class HubFile:
    """A file of a data set on the hub.

    Attributes:
        source: The data set.
        revision: The commit, or in a mirror folder the name of the folder with the file.
        name: The path in the repository.
        size: Size in bytes.
        sha256: SHA-256 of the file in hexadecimal if the hub states it, as for all large files.
        blob: Git blob id (a SHA-1) that the hub states. It is checked only if there is no SHA-256, since the id of a
            large file is that of a pointer.
    """

    source: HubFiles
    revision: str
    name: str
    size: int
    sha256: str | None = None
    blob: str | None = None

    @property
    def has_checksum(self) -> bool:
        """True if the hub states a checksum. A mirror states none."""
        return self.sha256 is not None or self.blob is not None

    @property
    def folder(self) -> str:
        """Folder of the commit, below the folder of downloads."""
        return f"hub/{self.source.repo}/{self.revision}"

    @property
    def place(self) -> str:
        """Path below the folder of downloads."""
        return f"{self.folder}/{self.name}"

    @property
    def url(self) -> str:
        """Address of the file at its commit on the hub."""
        return f"{self.source.address}/resolve/{self.revision}/{self.name}"


def list_files(source: HubFiles) -> list[HubFile]:
    """Return the files of a source at its commit, without a download.

    Raises:
        InputError: The hub cannot be reached, refuses, or has no such file.
    """
    from huggingface_hub import HfApi

    def listed() -> tuple[str, list[Any]]:
        api = HfApi(endpoint=endpoint())
        wanted = source.revision or NEWEST
        commit = wanted if REVISION.fullmatch(wanted) else str(api.dataset_info(source.repo, revision=wanted).sha)
        folders = {pattern.rpartition("/")[0] for pattern in source.files}
        found = list[Any]()
        for folder in sorted(folders):
            plain = None if not folder or any(mark in folder for mark in "*?[") else folder
            found += api.list_repo_tree(source.repo, plain, recursive=True, revision=commit, repo_type="dataset")
        return commit, found

    commit, found = _tried(source, listed)
    files = {one.path: one for one in found if getattr(one, "size", None) is not None}
    chosen = dict[str, HubFile]()
    for pattern in source.files:
        names = [name for name in sorted(files) if fnmatchcase(name, pattern)]
        if not names:
            reason = f"has no file {pattern} at {commit[:12]}"
            raise InputError(reason, source.address, hint=CHANGED, code="missing")
        for name in names:
            lfs = files[name].lfs
            sha256 = None if lfs is None else lfs.sha256
            chosen[name] = HubFile(source, commit, name, files[name].size, sha256, files[name].blob_id)
    return list(chosen.values())


def download(file: HubFile, downloads: Path, count: Callable[[int], None]) -> None:
    """Download a file to its place in the folder ``downloads``, and check its hash. A partial file is continued.

    ``count`` is called with the number of bytes of each received block, and of a part from an earlier call.

    Raises:
        InputError: The hub cannot be reached, refuses, or lacks the file, or the content differs from the checksum.
        DiskError: The file cannot be written.
    """
    from huggingface_hub import hf_hub_download

    folder, bar = downloads / file.folder, counting_bar(count)
    where: dict[str, Any] = {"endpoint": endpoint(), "repo_type": "dataset", "revision": file.revision}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    where |= {"local_dir": folder, "tqdm_class": bar}
    _tried(file.source, lambda: hf_hub_download(file.source.repo, file.name, **where), folder)
    path = downloads / file.place
    if not is_intact(file, path):
        path.unlink(missing_ok=True)
        reason = "the checksum of the download differs from that of the hub"
        raise InputError(reason, file.url, hint="run the same command again", code="damaged")


def is_intact(file: HubFile, path: Path) -> bool:
    """Return whether a file is there and has the size and the hash that the hub states.

    Raises:
        OSError: The file cannot be read.
    """
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    if file.sha256 is not None:
        return sha256_file(path) == file.sha256
    return file.blob is None or git_blob_id(path) == file.blob


def counting_bar(count: Callable[[int], None]) -> type[Any]:
    """Return a class of progress bars for ``huggingface_hub``. A bar calls ``count`` with numbers of received bytes."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "disable": True})
            count(int(kwargs.get("initial") or 0))

        def update(self, n: float | None = 1) -> bool | None:
            count(int(n or 0))
            return None

    return Bar


def _tried(source: HubFiles, call: Callable[[], Any], folder: Path | None = None) -> Any:
    """Call the hub, up to TRIES times if the answer is an error of the server (status 500 or higher).

    ``folder`` is the folder that the call writes, or None if it writes nothing.
    """
    from huggingface_hub.errors import HfHubHTTPError

    for number in range(1, TRIES + 1):
        try:
            return call()
        except Exception as error:  # the library's client has errors of its own, whose classes differ by version
            status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
            if status < HTTPStatus.INTERNAL_SERVER_ERROR or number == TRIES:
                raise _converted(source, error, folder) from error
        time.sleep(WAIT * 2 ** (number - 1))
    raise AssertionError


def _converted(source: HubFiles, error: Exception, folder: Path | None) -> InputError:
    """Return the error for the user: a DiskError if ``folder`` cannot be written, else a description of the fault."""
    from huggingface_hub import constants, errors

    of_library = isinstance(error, errors.HfHubHTTPError | errors.LocalEntryNotFoundError)
    if folder is not None and isinstance(error, OSError) and error.errno and not of_library:
        return unwritable(error, folder)
    is_offline = constants.HF_HUB_OFFLINE and not isinstance(error, errors.HfHubHTTPError)
    if is_offline or isinstance(error, errors.OfflineModeIsEnabled):
        name = "HF_HUB_OFFLINE" if os.environ.get("HF_HUB_OFFLINE") else "TRANSFORMERS_OFFLINE"
        reason, hint = f"cannot be downloaded while {name} is set", f"unset this variable; {FOLDER}"
        return InputError(reason, source.address, hint=hint, code="failed")
    answers: tuple[tuple[type[Exception], str, str, Code], ...] = (
        (errors.GatedRepoError, "needs a permission", LOGIN, "failed"),
        (errors.RepositoryNotFoundError, "is not on the hub, or needs a login", PRIVATE, "missing"),
        (errors.RevisionNotFoundError, f"has no revision {source.revision or NEWEST}", CHANGED, "missing"),
        (errors.RemoteEntryNotFoundError, "no longer has a file of the catalogue", CHANGED, "missing"),
    )
    for kind, reason, hint, code in answers:
        if isinstance(error, kind):
            return InputError(reason, source.address, hint=hint, code=code)
    if isinstance(error, errors.HfHubHTTPError):
        return _refused(source, error.response.status_code)
    why = next((line for line in str(error.__cause__ or error).splitlines() if line.strip()), type(error).__name__)
    hint = f"check the connection, the proxy and HF_ENDPOINT, and run the same command again; {FOLDER}"
    return InputError(f"cannot be downloaded: {why.rstrip('.')}", source.address, hint=hint, code="failed")


def _refused(source: HubFiles, status: int) -> InputError:
    """Return the error for an HTTP status of the hub that ``_converted`` does not name."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return InputError(f"the hub failed (HTTP {status})", source.address, hint=f"wait, then {RESUME}", code="failed")
    needs_login = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    hint = LOGIN if needs_login else f"wait, then {RESUME}"
    return InputError(f"the hub refuses the request (HTTP {status})", source.address, hint=hint, code="failed")
