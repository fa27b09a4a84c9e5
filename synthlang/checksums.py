"""Checksums of the files of a folder, to find damage before a damaged file is read.

``FOLDER/.checksums.json`` holds the size and the SHA-256 of each file. This record is written last. A file with the
recorded size counts as unchanged if it is not younger than the record. Only a thorough check opens such files.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.fingerprint import sha256_file

RECORD = ".checksums.json"
PAGE = "README.md"
"""Name of the page that describes a folder. Records leave this page out, because people may edit it."""
_whole: set[tuple[Path, int]] = set()
"""Folders whose files this process has read and found unchanged, each with the modification time of its record."""


def record_checksums(folder: Path, leave_out: Collection[str] = ()) -> None:
    """Write the record of the files of a folder and of its subfolders.

    Hidden files and folders are not recorded. Neither are files and folders with the name ``README.md`` or with a name
    in ``leave_out``.

    Raises:
        OSError: A file cannot be read.
        InputError: The name of a file is not UTF-8.
        DiskError: The record cannot be written.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part in {PAGE, *leave_out} for part in parts):
            found["/".join(parts)] = [path.stat().st_size, sha256_file(path)]
    write_json(folder / RECORD, found)


def damaged_files(folder: Path, thorough: bool = False) -> list[str]:
    """Return the recorded files of a folder that are missing or have changed.

    The list is empty for a folder without a record.

    Args:
        folder: Folder to check.
        thorough: True to read every file, once in each process. The modification time of a damaged file is then set to
            the present, so that later checks find the file by its time alone. If all files are unchanged but some are
            younger than the record, as in a copy, the modification time of the record is set instead.

    Raises:
        InputError: The record is damaged or cannot be read.
    """
    path = folder / RECORD
    if not path.is_file():
        return []
    written = path.stat().st_mtime_ns
    thorough = thorough and (folder.absolute(), written) not in _whole
    record = _record(path)
    found = [name for name, known in record.items() if not _is_as_recorded(folder / name, known, written, thorough)]
    if thorough:
        is_copy = not found and any((folder / name).stat().st_mtime_ns > written for name in record)
        for name in [*found, *([RECORD] if is_copy else [])]:
            with suppress(OSError):  # it is gone, or another user's
                os.utime(folder / name)
        if not found:
            _whole.add((folder.absolute(), path.stat().st_mtime_ns))
    return found


def _record(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict) or not all(isinstance(one, list) and len(one) == 2 for one in record.values()):
        hint = "if the other files of the folder are undamaged, delete this file"
        raise InputError("is not a record of checksums", path, hint=hint, code="damaged")
    return record


def _is_as_recorded(path: Path, known: list[Any], written: int, thorough: bool) -> bool:
    try:
        status = path.stat()
        if status.st_size != known[0]:
            return False
        return (status.st_mtime_ns <= written and not thorough) or sha256_file(path) == known[1]
    except OSError:
        return False
