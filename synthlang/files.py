"""Atomic files and folders, locks of outputs, strict JSON and safe names.

A reader never sees a half-written artifact: everything is written beside its place under a temporary name, flushed
to disk and renamed.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import shorten
from typing import IO, Any

from filelock import FileLock, Timeout

from synthlang.errors import InputError
from synthlang.packed import START, check_is_text

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+=,-]{0,127}")
LONGEST_LINE = 1 << 24  # bytes
TEMPORARY = ".tmp-"
UNIQUE = "-????????"
"""Glob for the random end of temporary names."""
FULL = (errno.ENOSPC, errno.EDQUOT)
IN_THE_WAY = ("a file has the name of one of its folders", "rename that file or name another path")
PERMISSIONS = "check the permissions of the folder"
WRITE_FAULTS = {
    errno.ENOTDIR: IN_THE_WAY,
    errno.EEXIST: IN_THE_WAY,
    errno.ENOENT: ("its folder does not exist", "create the folder"),
    errno.EISDIR: ("a folder has this name", "rename the folder or name another path"),
    errno.EACCES: ("permission denied", PERMISSIONS),
    errno.EPERM: ("operation not permitted", PERMISSIONS),
    errno.EROFS: ("the file system is read-only", "name a path on another file system"),
    errno.ENAMETOOLONG: ("the name is too long", "name a shorter path"),
}
"""Reason and action for each kind of OSError when a file or a folder is written."""
READ_FAULTS = {
    errno.EISDIR: ("this is a folder, not a file", "name a file"),
    errno.EACCES: ("permission denied", "check the permissions of the file and of its folders"),
    errno.ENOTDIR: ("a file has the name of one of its folders", "correct the path"),
    errno.ENAMETOOLONG: ("the name is too long", "correct the path"),
}
"""Reason and action for each kind of OSError when a file is read."""


def safe_name(name: str, what: str = "name") -> str:
    """Return ``name`` if it can be a file name on any system.

    Args:
        name: The name to check.
        what: Kind of the name, for the error.

    Raises:
        InputError: The name cannot be a file name.
    """
    if not SAFE_NAME.fullmatch(name):
        hint = "use 1 to 128 of the characters A-Z, a-z, 0-9 and _.+=,- and begin with a letter or digit"
        raise InputError(f"{what} {name!r} cannot be a file name", hint=hint, code="format")
    return name


def check_named(path: Path) -> None:
    """Check that an output path ends in a name, unlike ``.`` or an empty path.

    Raises:
        InputError: The path has no name, or ends in ``..``.
    """
    if path.name in ("", ".."):
        reason = "cannot be an output, because the path does not end in a name"
        raise InputError(reason, path, hint="add the name of a file or folder", code="format")


def user_path(name: str | os.PathLike[str]) -> Path:
    """Return the path with ``~`` and ``~user`` expanded.

    Raises:
        InputError: The user does not exist.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise InputError(
            "the home folder of this user is unknown",
            name,
            hint="write the whole path, or ./~NAME for a file of that name",
            code="missing",
        ) from error


def no_such(
    path: str | os.PathLike[str], what: str = "file", hint: str = "", keys: Sequence[str] | str = ()
) -> InputError:
    """Return the error for a path that does not exist. The error also shows the absolute form of a relative path.

    Args:
        path: The path.
        what: Kind of the path, for the message.
        hint: Action that corrects the fault (default: to correct the path).
        keys: Keys of a config that lead to the path.
    """
    place = Path(path)
    where = "" if place.is_absolute() else f" (looked for {place.absolute()})"
    error = InputError(f"no such {what}{where}", path, hint=hint or "correct the path", keys=keys, code="missing")
    error.absent = place.as_posix()
    return error


class DiskError(InputError):
    """Error for an output that cannot be written, a stream of input that broke off, or a worker that was killed.

    The same command resumes once the cause is gone.
    """


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an OSError that occurs while ``path`` is written to a DiskError.

    Text that is not UTF-8, such as a foreign file name, becomes an InputError.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        reason = f"cannot hold the text {error.object[error.start : error.end]!a}, which is not UTF-8"
        hint = "remove this text from the name or the input that contains it"
        raise InputError(reason, path, hint=hint, code="format") from error
    except OSError as error:
        raise unwritable(error, path) from error


def unwritable(error: OSError, path: Path) -> DiskError:
    """Return the error for an output that could not be written because of ``error``."""
    if error.errno in FULL:
        reason = "no space is left on the disk or in its quota"
        return DiskError(reason, path, hint="free some space, and try again", code="resources")
    reason, action = WRITE_FAULTS.get(error.errno or 0, (error.strerror or str(error), "check the disk"))
    return DiskError(f"cannot be written: {reason}", path, hint=f"{action}, and try again", code="failed")


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
    """Open a temporary file that becomes ``path`` when the block ends without an error.

    Missing parent folders are made. A mode without ``b`` writes UTF-8 with ``\\n`` as the line break.

    Raises:
        InputError: The path has no name, or a text is not UTF-8.
        DiskError: The file cannot be written.
    """
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
        with suppress(OSError):  # nothing was written, for example because a file is in the place of the folder
            temporary.unlink()


@contextmanager
def atomic_folder(path: Path, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block ends without an error.

    With ``replace`` an existing folder is moved aside and removed afterwards. Without it an existing ``path`` is an
    error before any work starts.

    Raises:
        InputError: The folder exists and ``replace`` is false, the path has no name, or a text is not UTF-8.
        DiskError: The folder cannot be written.
    """
    if path.exists() and not replace:
        raise InputError("exists already", path, hint="name a new folder", code="exists")
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
    """Append a line to a UTF-8 text file. The write is not atomic.

    Raises:
        InputError: The line is not UTF-8.
        DiskError: The file cannot be written.
    """
    with writing(path), path.open("a", encoding="utf-8", newline="\n") as handle:
        handle.write(line + "\n")


def remove_leftovers(folder: Path, name: str = "", rest: str = "*") -> None:
    """Delete temporary files and folders that killed writers left in ``folder``.

    Their names consist of the prefix TEMPORARY, of ``name``, and of a text that matches the glob ``rest``.

    Raises:
        OSError: A file or folder cannot be deleted.
    """
    for path in folder.glob(f"{TEMPORARY}{glob.escape(name)}{rest}"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write a JSON value atomically, with sorted keys. With ``indent`` None the JSON is one line.

    Raises:
        ValueError: A number is NaN or infinite.
        InputError: The path has no name, or a text is not UTF-8.
        DiskError: The file cannot be written.
    """
    with atomic_file(path, "w") as handle:
        json.dump(value, handle, indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False)
        handle.write("\n")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert an OSError or a UnicodeDecodeError that occurs while ``path`` is read to an InputError."""
    try:
        yield
    except UnicodeDecodeError as error:
        check_is_text(error.object[:START], path)
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(
            "is not UTF-8", path, line, hint="convert the file to UTF-8, for example with iconv", code="format"
        ) from error
    except OSError as error:
        raise unreadable(error, path) from error


def unreadable(error: OSError, path: Path) -> InputError:
    """Return the error for a file that could not be read because of ``error``."""
    if isinstance(error, FileNotFoundError):
        return no_such(path)
    reason, action = READ_FAULTS.get(error.errno or 0, (error.strerror or str(error), "check the file and its disk"))
    return InputError(f"cannot be read: {reason}", path, hint=action, code="failed")


def read_json(path: Path) -> Any:
    """Read the JSON value in a file.

    Raises:
        InputError: The file is missing or cannot be read, or its content is not JSON in UTF-8 (see ``json_of``).
    """
    with reading(path):
        return json_of(path.read_bytes(), path)


def json_of(raw: bytes, path: Path) -> Any:
    """Return the JSON value in the bytes of ``path``, which may begin with a byte order mark.

    Raises:
        InputError: The bytes are not UTF-8 or not JSON, or a number or the nesting is too large to read.
    """
    with reading(path):
        text = raw.decode("utf-8-sig")
    return json_value(text, path)


def json_value(text: str, path: Path, line: int | None = None) -> Any:
    """Return the JSON value in a text of ``path``: in its line ``line``, or by default in the whole file.

    Raises:
        InputError: The text is not JSON, or a number or the nesting is too large to read. The error names the line.
    """
    if line is None and not text.strip():
        raise InputError("is empty, not JSON", path, 1, hint="restore or replace this file", code="format")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"is not JSON: {error.msg} at column {error.colno}"
        hint = "correct or restore the file" if line is None else "correct this line"
        raise InputError(reason, path, line or error.lineno, hint=hint, code="format") from error
    except ValueError as error:
        reason = "has a number with thousands of digits"
        raise InputError(reason, path, line, hint="shorten this number", code="format") from error
    except RecursionError as error:
        reason = "has thousands of nested brackets"
        raise InputError(reason, path, line, hint="reduce the nesting", code="format") from error


def lines_of(handle: IO[bytes], path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its line break) for each line of an open UTF-8 file.

    Raises:
        InputError: A line is not UTF-8 or has LONGEST_LINE bytes or more, or the content is packed, a PDF or UTF-16.
            The error names ``path``.
    """
    for number, raw in enumerate(iter(lambda: handle.readline(LONGEST_LINE), b""), start=1):
        if number == 1:
            check_is_text(raw[:START], path)
        if len(raw) == LONGEST_LINE:
            raise InputError(
                f"the line has {LONGEST_LINE >> 20} MB or more", path, number, hint="shorten this line", code="range"
            )
        yield number, decoded(raw, "utf-8-sig" if number == 1 else "utf-8", path, number).rstrip("\r\n")


def decoded(raw: bytes, codec: str, path: Path, line: int) -> str:
    """Decode the bytes of one line of a text file.

    Raises:
        InputError: The bytes are not text in ``codec``. The error names ``path`` and ``line``.
    """
    try:
        return raw.decode(codec)
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 (byte 0x{raw[error.start]:02X})"
        hint = "convert the file to UTF-8, for example with iconv"
        raise InputError(reason, path, line, hint=hint, code="format") from error


def count_lines(path: Path) -> int:
    """Return the number of lines that ``read_lines`` yields, without decoding the text.

    Raises:
        InputError: The file is missing or cannot be read.
    """
    count, last = 0, b"\n"
    with reading(path), path.open("rb") as handle:
        while block := handle.read(LONGEST_LINE):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its line break) of a UTF-8 text file, in bounded memory.

    Raises:
        InputError: The file is missing or cannot be read, or a line is not UTF-8 or too long (see ``lines_of``).
    """
    with reading(path), path.open("rb") as handle:
        yield from lines_of(handle, path)


LOCK = ".lock-"
"""Prefix of the names of lock files."""
LOCKS = ".lock"
"""Common prefix of the names of lock files and of the folder of locks in a store."""


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Lock an output folder or file against other processes during the block.

    The output need not exist yet. Every command takes this lock for its output, and fails at once if another process
    holds it. Temporary files that killed writers of this output left are deleted. If the block fails, empty parent
    folders that were created for the output are removed.

    Raises:
        InputError: Another process holds the lock, or the path has no name. The error names the process if it is known.
        DiskError: The lock cannot be written.
    """
    place = folder.resolve()  # the other process may use another name of the same folder
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
                if not path.exists():
                    path.touch()  # an OSError here is the reason: the lock cannot be written
                holder = path.read_text("utf-8", "replace")
                reason = f"is being written by {holder or 'another process'}"
                hint = "wait until this process ends, or name another output"
                raise InputError(reason, folder, hint=hint, code="locked") from error
            command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
            told = f"process {os.getpid()} on {socket.gethostname()} ({shorten(command, 100)})"
            path.write_text(told, "utf-8", "backslashreplace")  # a path need not be UTF-8
            _remove_abandoned(place)
        try:
            yield
        finally:
            # Deleted while the lock is held: a process that opened the file meanwhile finds it gone and gives up.
            path.unlink(missing_ok=True)
            lock.release()
    except BaseException:
        for parent in parents:
            with suppress(OSError):  # the folder is not empty, so another process uses it by now
                parent.rmdir()
        raise


def _remove_abandoned(place: Path) -> None:
    """Delete the temporary files that killed writers left beside an output and in it.

    Folders in which another process may write now, such as a store, are left alone.
    """
    remove_leftovers(place.parent, place.name, UNIQUE)
    for name, folders, files in os.walk(place):
        others = (one for one in (*folders, *files) if one.startswith(LOCKS) and one != f"{LOCK}self")
        if next(others, None) is not None:
            folders.clear()
            continue
        remove_leftovers(Path(name), "", f"*{UNIQUE}")
        folders[:] = [folder for folder in folders if not folder.startswith(TEMPORARY)]


def _lock_of(folder: Path) -> Path:
    """Return the lock file beside a folder, or inside it if its parent is read-only (a mounted volume)."""
    inside = folder.is_dir() and not os.access(folder.parent, os.W_OK)
    return folder / f"{LOCK}self" if inside else folder.with_name(LOCK + folder.name)


@contextmanager
def claimed_folder(folder: Path) -> Iterator[Path]:
    """Reserve a new folder, and yield a temporary folder that becomes this folder (see ``atomic_folder``).

    Raises:
        InputError: The folder exists, another process writes it, the path has no name, or a text is not UTF-8.
        DiskError: The folder cannot be written.
    """
    with only_writer(folder), atomic_folder(folder) as temporary:
        yield temporary
