"""Atomic files and folders, an output folder for one process, strict JSON, safe names.

A reader never sees a half-written artifact: everything is written beside its place under
a temporary name, flushed to disk and renamed.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import shutil
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import shorten
from typing import IO, Any

from filelock import FileLock, Timeout

from synthlang.errors import InputError

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+=,-]{0,127}")
LONGEST_LINE = 1 << 24  # bytes
GZIP = b"\x1f\x8b"  # how packed files begin
TEMPORARY = ".tmp-"


def safe_name(name: str, what: str = "name") -> str:
    """Return ``name`` if it can be a file name on any system, else raise InputError."""
    if not SAFE_NAME.fullmatch(name):
        raise InputError(f"{what} {name!r} must be 1 to 128 letters, digits or _.+=,- and start with a letter or digit")
    return name


def check_named(path: Path) -> None:
    """Raise InputError for a place to write that has no name of its own, such as ``.`` or nothing."""
    if path.name in ("", ".."):
        raise InputError(f"{str(path)!r} is no name for what is to be written; name a new file or folder")


def user_path(name: str | os.PathLike[str]) -> Path:
    """The path with ``~`` and ``~user`` filled in; InputError if there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise InputError(f"{name}: there is no such home folder") from error


class DiskError(InputError):
    """Something cannot be written, whatever the input; once there is room the same command goes on."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What goes wrong as a file or folder is written is a DiskError: no space, no permission, a file in the way, …"""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError("no space left on the disk; free some and run the same command again", path) from error
        raise DiskError(f"cannot write: {error.strerror or type(error).__name__}", path) from error


def _temporary(path: Path) -> Path:
    check_named(path)
    return path.with_name(f"{TEMPORARY}{path.name}-{uuid.uuid4().hex[:8]}")


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file that becomes ``path`` when the block ends without an error."""
    temporary = _temporary(path)
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open(mode, encoding=encoding, newline=newline) as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            temporary.replace(path)
            _fsync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, replace: bool = False) -> Iterator[Path]:
    """Give a temporary folder that becomes ``path`` when the block ends without an error.

    With ``replace`` an existing folder is moved aside and removed afterwards; without it
    an existing ``path`` is an error before any work starts.
    """
    if path.exists() and not replace:
        raise InputError("exists already; name a new folder", path)
    temporary, old = _temporary(path), _temporary(path)
    try:
        with writing(path):
            temporary.mkdir(parents=True)
            yield temporary
            for child in temporary.rglob("*"):
                if child.is_file():
                    _fsync(child)
            if path.exists():
                path.rename(old)
            try:
                temporary.rename(path)
            except BaseException:
                if old.exists():
                    old.rename(path)
                raise
            _fsync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def append_line(path: Path, line: str) -> None:
    """Append a line to a text file."""
    with writing(path), path.open("a", encoding="utf-8", newline="\n") as handle:
        handle.write(line + "\n")


def remove_leftovers(folder: Path, name: str = "", rest: str = "*") -> None:
    """Delete what killed writers left in ``folder``: of names that begin with ``name`` and end as the glob ``rest``."""
    for path in folder.glob(f"{TEMPORARY}{glob.escape(name)}{rest}"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write JSON atomically: indented (or on one line: None), sorted keys, no NaN."""
    with atomic_file(path, "w") as handle:
        json.dump(value, handle, indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False)
        handle.write("\n")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong as a file is read is an InputError: it is not there, or a folder, or no UTF-8, …"""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", path, error.object[: error.start].count(b"\n") + 1) from error
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", path) from error


def read_json(path: Path) -> Any:
    """Read JSON; a missing, truncated or badly encoded file is an InputError."""
    with reading(path):
        return json_of(path.read_bytes(), path)


def json_of(raw: bytes, path: Path, codec: str = "utf-8") -> Any:
    """The JSON value that the bytes of ``path`` spell, else InputError."""
    with reading(path):
        text = raw.decode(codec)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", path, error.lineno) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise InputError(f"not JSON that can be read: {error}", path) from error


def lines_of(handle: IO[bytes], path: Path) -> Iterator[tuple[int, str]]:
    """(line number, line without its end) of an open UTF-8 file; ``path`` is named in errors."""
    for number, raw in enumerate(iter(lambda: handle.readline(LONGEST_LINE), b""), start=1):
        if number == 1 and raw.startswith(GZIP):
            raise InputError("is packed with gzip: unpack it first (gunzip)", path)
        if len(raw) == LONGEST_LINE:
            raise InputError(f"the line has more than {LONGEST_LINE >> 20} MB", path, number)
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 (byte {error.start} of the line)", path, number) from error
        yield number, line.rstrip("\r\n")


def count_lines(path: Path) -> int:
    """How many lines ``read_lines`` yields; the text is not looked at."""
    count, last = 0, b"\n"
    with reading(path), path.open("rb") as handle:
        while block := handle.read(LONGEST_LINE):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, line without its end) of a UTF-8 text file, in bounded memory."""
    with reading(path), path.open("rb") as handle:
        yield from lines_of(handle, path)


LOCK = ".lock-"
"""How the lock of a folder, and what is kept of a store's locks, begins."""


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """No other process that asks writes ``folder``, or the file of this path, in the block; it need not exist.

    Every command takes this lock of what it writes, and waits for nothing. If the block fails, parents made for the
    folder go unless used. Raises InputError, which says who holds it, if another process writes it.
    """
    place = folder.resolve()  # by whatever name the other process calls it
    check_named(place)
    parents = [parent for parent in place.parents if not parent.exists()]  # deepest first
    path = _lock_of(place)
    lock = FileLock(path)
    try:
        with writing(folder):
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                holder = path.read_text(encoding="utf-8") if path.exists() else ""
                busy = f"is being written by {holder or 'another process'}; wait for it, or name another folder"
                raise InputError(busy, folder) from error
            command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
            path.write_text(f"process {os.getpid()} on {socket.gethostname()} ({shorten(command, 100)})", "utf-8")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # while it is ours; who opened it meanwhile finds it gone and gives up
            lock.release()
    except BaseException:
        for parent in parents:
            with suppress(OSError):  # it is not empty: somebody else uses it by now
                parent.rmdir()
        raise


def _lock_of(folder: Path) -> Path:
    """The lock file of a folder: beside it, or in it where nothing can be written beside it (a mounted volume)."""
    inside = folder.is_dir() and not os.access(folder.parent, os.W_OK)
    return folder / f"{LOCK}self" if inside else folder.with_name(LOCK + folder.name)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """A new folder that no other process writes meanwhile; InputError if it exists or another process writes it."""
    with only_writer(folder):
        if folder.exists():
            raise InputError("exists already; name a new folder", folder)
        yield


@contextmanager
def claimed_folder(folder: Path) -> Iterator[Path]:
    """``atomic_folder`` of a folder that is ``claimed``."""
    with claimed(folder):
        remove_leftovers(folder.parent, folder.name, "-????????")
        with atomic_folder(folder) as temporary:
            yield temporary
