"""Members of downloaded archives, read one by one up to a limit.

The caller chooses the files that members are copied to. The paths in an archive are not used, so that no member is
written outside its folder. An archive is refused as a whole if the path of a member would leave the folder, or if a
wanted member is a link or a device. Such an archive is not the one that the catalogue describes.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import Any

from synthlang.data.sources import ANEW, OTHER
from synthlang.errors import InputError
from synthlang.packed import most_unpacked, open_packed, unpacks_to_more

BLOCK = 1 << 20


def copy_members(archive: Path, wanted: Mapping[str, Path]) -> None:
    """Copy members of an archive to files.

    Args:
        archive: A zip file, or a tar file packed with gzip.
        wanted: The file to write for each member.

    Raises:
        InputError: The archive is damaged, has an unsafe path, unpacks to more than the limit, or lacks a member, or a
            wanted member is not a regular file.
        OSError: The archive cannot be read, or a file cannot be written.
    """
    left = dict(wanted)
    with _damage(archive):
        for name, is_file, opened in _zip(archive) if archive.name.endswith(".zip") else _tar(archive):
            _check_name(name, archive)
            target = left.pop(name, None)
            if target is None:
                continue
            if not is_file:
                raise _hostile(archive, f"its member {name!r} is encrypted, a link, a device or a folder")
            with opened() as content, target.open("wb") as written:
                copyfileobj(content, written, BLOCK)
    if left:
        raise InputError(f"has no member {next(iter(left))!r}", archive, hint=OTHER, code="missing")


Member = tuple[str, bool, Any]
"""Name of a member, True for a regular file, and the function that opens the member."""


def _zip(path: Path) -> Iterator[Member]:
    most = most_unpacked(path.stat().st_size)
    with zipfile.ZipFile(path) as archive:
        if sum(about.file_size for about in archive.infolist()) > most:  # a member is read up to its stated size
            raise unpacks_to_more(path, most)
        for about in archive.infolist():
            kind = about.external_attr >> 28  # the type of the file in Unix, 0 where the system has none
            is_file = not about.is_dir() and kind in (0, 0o10) and not about.flag_bits & 1
            yield about.filename, is_file, partial(archive.open, about)


def _tar(path: Path) -> Iterator[Member]:
    with open_packed(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for about in archive:
            name = about.name + ("/" if about.isdir() else "")
            yield name, about.isreg(), partial(archive.extractfile, about)


def _check_name(name: str, archive: Path) -> None:
    """Raise InputError for a name that a careless program would unpack outside its folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise _hostile(archive, f"its member {name!r} would leave the folder")


def _hostile(archive: Path, why: str) -> InputError:
    hint = "delete this archive, and name a mirror with another archive (--from)"
    return InputError(f"is not unpacked, because {why}", archive, hint=hint, code="unsupported")


@contextmanager
def _damage(archive: Path) -> Iterator[None]:
    """Convert the errors that a damaged archive raises to an InputError."""
    try:
        yield
    except InputError as error:
        if error.code not in ("damaged", "format"):
            raise
        raise InputError("is damaged, or is not an archive", archive, hint=ANEW, code="damaged") from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        reason = f"cannot be unpacked: {str(error) or 'a member ends too early'}"
        raise InputError(reason, archive, hint=ANEW, code="damaged") from error
