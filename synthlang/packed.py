"""Files packed with gzip, unpacked as they are read, up to a limit.

A file of a few megabytes can unpack to gigabytes of one repeated byte. Text and JSON unpack to 3 to 20 times their
size.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from synthlang.errors import InputError

LIMIT = "SYNTHLANG_UNPACKED_RATIO"
"""Environment variable with the largest ratio of the unpacked to the packed size."""
RATIO = 100
FREE = 1 << 26
"""Bytes that any file may unpack to."""


@contextmanager
def open_packed(path: Path) -> Iterator[IO[bytes]]:
    """Open a gzip file.

    Raises:
        InputError: The file is not a gzip file, is damaged, or unpacks to more than the limit.
    """
    try:
        with gzip.open(path) as packed, io.BufferedReader(_Limited(packed, path)) as handle:
            yield handle
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        hint = "download it again"
        raise InputError(f"is damaged or no gzip file: {error}", path, hint=hint, code="damaged") from error


class _Limited(io.RawIOBase):
    """Reader of an open gzip file that refuses content beyond the limit."""

    def __init__(self, packed: Any, path: Path) -> None:
        self._packed, self._path, self._read = packed, path, 0
        about = os.fstat(packed.fileno())
        ratio = _ratio()
        self._most = max(FREE, ratio * about.st_size) if stat.S_ISREG(about.st_mode) else None  # None: a pipe

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._packed.fileno())

    def readinto(self, buffer: Any) -> int:
        count = int(self._packed.readinto(buffer))
        self._read += count
        if self._most is not None and self._read > self._most:
            reason = f"unpacks to more than {self._most >> 20:,} MB"
            hint = f"if the file is right, unpack it, or set {LIMIT} to more than {_ratio():,}"
            raise InputError(reason, self._path, hint=hint, code="range")
        return count


def _ratio() -> int:
    given = os.environ.get(LIMIT, str(RATIO))
    if not given.isdecimal():
        raise InputError(f"must be a whole number, not {given!r}", LIMIT, code="type")
    return int(given)
