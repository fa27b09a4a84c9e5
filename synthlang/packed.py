"""Files packed with gzip, unpacked as they are read, up to a limit.

A file of a few megabytes can unpack to gigabytes of one repeated byte. Text and JSON unpack to 3 to 20 times their
size.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synthlang.errors import InputError

GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""
TO_UTF8 = "convert it: iconv -f {} -t UTF-8 FILE > NEW"
FOREIGN = {
    GZIP: ("packed with gzip", "unpack it first (gunzip < FILE > NEW)"),
    b"PK\x03\x04": ("a zip archive", "unpack it first (unzip)"),
    b"\xfd7zXZ\x00": ("packed with xz", "unpack it first (unxz < FILE > NEW)"),
    b"BZh": ("packed with bzip2", "unpack it first (bunzip2 < FILE > NEW)"),
    b"\x28\xb5\x2f\xfd": ("packed with Zstandard", "unpack it first (unzstd < FILE > NEW)"),
    b"%PDF-": ("a PDF", "extract the text of the file first"),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), ("UTF-16", TO_UTF8.format("UTF-16"))),
}
"""Name of the format and hint of the error, by the first bytes of content that is not UTF-8 text."""
NOT_PACKED = "if it is plain text, rename it without .gz; otherwise download it again"
BLOCK = 1 << 20
SIZE = 4
"""Number of bytes at the end of a gzip file that hold its unpacked size."""
START = 64
"""Number of bytes by which the format of a file is recognised."""
LIMIT = "SYNTHLANG_UNPACKED_RATIO"
"""Environment variable with the largest ratio of the unpacked to the packed size."""
RATIO = 100
"""Default of the ratio in the environment variable."""
FREE = 1 << 26
"""Size in bytes up to which any file may unpack."""


def check_is_text(start: bytes, path: Path) -> None:
    """Check by ``start``, the first START bytes of a file, that it is neither packed nor a PDF nor UTF-16.

    UTF-16 without a byte order mark is recognised by Latin letters, of which every second byte is 0.

    Raises:
        InputError: The content is packed, a PDF or UTF-16.
    """
    found = next((about for first, about in FOREIGN.items() if start.startswith(first)), None)
    pairs = len(start) // 2
    for order, zeros in (("BE", start[::2]), ("LE", start[1::2])):
        if found is None and pairs > 1 and zeros.count(0) == pairs:
            found = "UTF-16", TO_UTF8.format(f"UTF-16{order}")
    if found is not None:
        raise InputError(f"is {found[0]}, not UTF-8 text", path, hint=found[1], code="unsupported")


@contextmanager
def open_packed(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a gzip file for reading. An OSError, such as that of a missing file, is raised unchanged.

    Raises:
        InputError: The file is not a gzip file, is damaged, or unpacks to more bytes than ``most_unpacked`` allows, or
            the environment variable LIMIT is not a whole number.
    """
    try:
        most = most_unpacked(path.stat().st_size)
        if stated_size(path) > most:
            _count(path, most)
        with gzip.open(path) as packed, io.BufferedReader(Limited(packed, path, most)) as handle:
            yield handle
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        if _is_packed(path):
            hint = "download or pack the file again"
            raise InputError(f"is damaged: {error}", path, hint=hint, code="damaged") from error
        raise InputError("is not a gzip file", path, hint=NOT_PACKED, code="format") from error


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


class Limited(io.RawIOBase):
    """Reader of an open packed file. It raises an InputError after ``most`` unpacked bytes.

    ``packed`` is the open file, and ``path`` the file that the error names.
    """

    def __init__(self, packed: Any, path: Path, most: int) -> None:
        self._packed, self._path, self._count, self._most = packed, path, 0, most

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._packed.fileno())

    def readinto(self, buffer: Any) -> int:
        count = int(self._packed.readinto(buffer))
        self._count += count
        if self._count > self._most:
            raise unpacks_to_more(self._path, self._most)
        return count


def stated_size(path: Path) -> int:
    """Return the unpacked size in bytes, modulo 2**32, from the end of a gzip file.

    The number is the size of the last member of the file. It is 0 for a file that is not a gzip file, and arbitrary for
    a file that is cut off or has other bytes at its end. An OSError is raised unchanged.
    """
    with path.open("rb") as file:
        if file.read(len(GZIP)) != GZIP or file.seek(0, os.SEEK_END) < SIZE:
            return 0
        file.seek(-SIZE, os.SEEK_END)
        return int.from_bytes(file.read(SIZE), "little")


def _count(path: Path, most: int) -> None:
    """Unpack a gzip file, and refuse one that is damaged or has more than ``most`` bytes.

    The check takes seconds. Reading a file of line breaks up to the limit, line by line, would take minutes.
    """
    with gzip.open(path) as packed, io.BufferedReader(Limited(packed, path, most), BLOCK) as handle:
        while handle.read(BLOCK):
            pass


def unpacks_to_more(path: Path, most: int) -> InputError:
    """Return the error for a file that unpacks to more than ``most`` bytes.

    Raises:
        InputError: The environment variable LIMIT is not a whole number.
    """
    reason = f"unpacks to more than {most >> 20:,} MB"
    more = 10 * _ratio() or RATIO
    hint = f"if the file is correct, set the environment variable {LIMIT} to a larger number, such as {more}"
    return InputError(reason, path, hint=hint, code="range")


def most_unpacked(size: int) -> int:
    """Return the number of bytes that a packed file of ``size`` bytes may unpack to.

    Raises:
        InputError: The environment variable LIMIT is not a whole number.
    """
    return max(FREE, _ratio() * size)


def _ratio() -> int:
    given = os.environ.get(LIMIT, str(RATIO))
    if not given.isdecimal():
        hint = f"set this variable to a number such as {RATIO}, or unset it"
        raise InputError(f"must be a whole number, not {given!r}", LIMIT, hint=hint, code="type")
    return int(given)
