"""The files that data sets need: listed once, and downloaded several at a time to the folder of downloads.

With a mirror folder nothing is downloaded: the files are at the same places there. A mirror can also be an address. The
place of a file is then appended to this address. Files of the hub still come from the hub.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from synthlang.data import hub, web
from synthlang.data.hub import HubFile
from synthlang.data.sizes import MEGABYTE, Size
from synthlang.data.sources import HubFiles, Source, UrlFile
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import sha256_file
from synthlang.progress import Report, silent

DOWNLOADS = ".downloads"
"""Name of the folder of downloads in a folder of data."""
AT_ONCE = 4
"""Number of files that are downloaded at a time."""
TASK = "download (MB)"


@dataclass(frozen=True)
class Wanted:
    """A file to download, or to read from a mirror.

    Attributes:
        remote: The file.
        size: Size in bytes, or None if the server does not state it.
    """

    remote: UrlFile | HubFile
    size: int | None

    @property
    def place(self) -> str:
        """Path below the folder of downloads."""
        return self.remote.place

    @property
    def download(self) -> Size | None:
        """Size in megabytes, or None if the server does not state it."""
        return None if self.size is None else Size(stated=self.size / MEGABYTE)


class Downloads:
    """A folder of downloads, or a mirror in its place.

    Args:
        root: The folder of data.
        mirror: A folder, or the address of a mirror (default: the sources themselves).

    Attributes:
        address: The address of the mirror, or None if the mirror is a folder or there is no mirror.
        is_mirror: True if the mirror is a folder, from which nothing is downloaded.
        folder: The folder of downloads, or the mirror folder.

    Raises:
        InputError: The folder of the mirror does not exist.
    """

    def __init__(self, root: Path, mirror: str | None = None) -> None:
        self.address = mirror.rstrip("/") if mirror and mirror.startswith(("http://", "https://")) else None
        self.is_mirror = mirror is not None and self.address is None
        self.folder = user_path(mirror) if mirror is not None and self.is_mirror else root / DOWNLOADS
        if self.is_mirror and not self.folder.is_dir():
            reason = "is a file, not the folder of a mirror" if self.folder.exists() else "no such folder"
            hint = (
                "name a folder that has hub/ and url/, such as .downloads of another folder of data, "
                "or an address with http:// or https://"
            )
            raise InputError(reason, self.folder, hint=hint, code="type" if self.folder.exists() else "missing")

    def wanted(self, source: Source) -> list[Wanted]:
        """Return the files of a source with their sizes.

        Raises:
            InputError: The hub cannot be reached, refuses, or lacks a file, or the mirror folder lacks a file.
        """
        if isinstance(source, HubFiles):
            found = self._in_mirror(source) if self.is_mirror else hub.list_files(source)
            return [Wanted(file, file.size) for file in found]
        remote: list[UrlFile] = getattr(source, "remote", [])
        if not self.is_mirror:
            return [Wanted(file, self._size(file)) for file in remote]
        for file in remote:
            if not (self.folder / file.place).is_file():
                hint = f"put the file from {file.url} there"
                raise InputError("is not in the mirror", self.folder / file.place, hint=hint, code="missing")
        return [Wanted(file, (self.folder / file.place).stat().st_size) for file in remote]

    def path(self, wanted: Wanted) -> Path:
        """Return the path of a file in the folder of downloads or in the mirror folder, where it need not exist."""
        return self.folder / wanted.place

    def left(self, files: Iterable[Wanted]) -> list[Wanted]:
        """Return the files that are not yet in the folder of downloads."""
        return [file for file in files if not self.path(file).is_file()]

    def get(self, files: Sequence[Wanted], report: Report = silent) -> dict[str, InputError]:
        """Download files, several at a time, and return the error of each failed download by the place of the file.

        Args:
            files: The files. A file that is already in the folder is checked, and a damaged file of the hub is
                downloaded again. Files of the hub in a mirror folder are not checked.
            report: Called with the progress.

        Raises:
            OSError: A file in the folder cannot be read.
        """
        progress = _Progress(files, report)
        failed: dict[str, InputError] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            jobs: Mapping[Future[None], Wanted] = {
                pool.submit(self._get, file, progress.of(file)): file for file in files
            }
            try:
                for job in as_completed(jobs):
                    if (error := job.exception()) is not None:
                        if not isinstance(error, InputError):
                            raise error
                        failed[jobs[job].place] = error
            except BaseException:
                progress.is_stopped = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return failed

    def _get(self, wanted: Wanted, count: Callable[[int], None]) -> None:
        path = self.path(wanted)
        if isinstance(wanted.remote, HubFile):
            if self.is_mirror or hub.is_intact(wanted.remote, path):
                count(wanted.size or 0)
            else:
                hub.download(wanted.remote, self.folder, count)
        elif path.is_file():
            count(wanted.size or 0)
            _check(wanted.remote, path)
        else:
            web.download(wanted.remote, self._url(wanted.remote), path, count)

    def _url(self, file: UrlFile) -> str:
        return file.url if self.address is None else f"{self.address}/{file.place}"

    def _size(self, file: UrlFile) -> int | None:
        size = web.size_at(self._url(file))
        return size if size is None or file.first is None else min(size, file.first)

    def _in_mirror(self, source: HubFiles) -> list[HubFile]:
        """Return the files of a source in a mirror folder, whose hashes the hub does not confirm."""
        folder = self.folder / "hub" / source.repo
        revision = source.revision or next((one.name for one in sorted(folder.glob("*"))), "main")
        inside = {
            path.relative_to(folder / revision).as_posix(): path
            for path in sorted((folder / revision).rglob("*"))
            if path.is_file()
        }
        found = []
        for pattern in source.files:
            names = [name for name in inside if fnmatchcase(name, pattern) and not name.startswith(".")]
            if not names:
                hint = f"put the files of {source.address} there"
                raise InputError("is not in the mirror", folder / revision / pattern, hint=hint, code="missing")
            found += [HubFile(source, revision, name, inside[name].stat().st_size) for name in names]
        return found


class _StoppedError(Exception):
    """Raised in the threads of downloads after Ctrl-C."""


class _Progress:
    """Progress bar for all files. Several threads count at once, and each stops at its next count if ``is_stopped``."""

    def __init__(self, files: Sequence[Wanted], report: Report) -> None:
        self.is_stopped = False
        self._total = sum(file.size or 0 for file in files)
        self._done, self._report, self._lock, self._last = 0, report, threading.Lock(), -1

    def of(self, wanted: Wanted) -> Callable[[int], None]:
        """Return the function that counts the bytes of a file."""
        name = wanted.remote.name.rpartition("/")[2]

        def count(size: int) -> None:
            if self.is_stopped:
                raise _StoppedError
            with self._lock:
                self._done += size
                done = round(self._done / MEGABYTE)
                if done != self._last:
                    self._last = done
                    self._report(TASK, done, max(done, round(self._total / MEGABYTE), 1), name)

        return count


def _check(file: UrlFile, path: Path) -> None:
    """Check the content of a file that was there before, if its checksum is known."""
    if file.sha256 is not None and (found := sha256_file(path)) != file.sha256:
        reason = f"the SHA-256 of the file is {found}, not {file.sha256}"
        hint = "delete the file, or replace it in a mirror (--from), and run the same command again"
        raise InputError(reason, path, hint=hint, code="damaged")
