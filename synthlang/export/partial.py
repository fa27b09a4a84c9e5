"""The folder of an export that is not finished, beside its output: ``.partial-NAME``.

partial.json     the fingerprint of what is being written
lock             held while a process writes
done/            a record for each finished shard, and its word types
spool/           batches on their way to workers
out/             becomes NAME in one rename when everything is there
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from synthlang.errors import InputError
from synthlang.files import check_named, read_json, remove_leftovers, write_json

PREFIX = ".partial-"


def partial_of(folder: Path) -> Path:
    """Where the unfinished export of ``folder`` is."""
    check_named(folder)
    return folder.with_name(PREFIX + folder.name)


@contextmanager
def claimed(folder: Path, fingerprint: str) -> Iterator[Path]:
    """The partial folder of ``folder``, new or to go on with, for this process alone.

    Raises InputError if another process writes there, or if it holds an unfinished export with
    another fingerprint, or something that is none: that is never deleted.
    """
    partial = partial_of(folder)
    if partial.exists():
        _check(partial, fingerprint)
    partial.mkdir(parents=True, exist_ok=True)
    lock = FileLock(partial / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError("is being written by another process; wait for it, or name another folder", folder) from None
    try:
        if folder.exists():  # finished by another process since we looked
            raise InputError("exists already; name a new folder", folder)
        if not (partial / "partial.json").exists():
            write_json(partial / "partial.json", {"fingerprint": fingerprint})
        _check(partial, fingerprint)
        shutil.rmtree(partial / "spool", ignore_errors=True)
        for part in (partial, partial / "done", *(partial / "out").rglob("*/")):
            remove_leftovers(part)
        yield partial
    finally:
        lock.release()


def _check(partial: Path, fingerprint: str) -> None:
    path = partial / "partial.json"
    if path.exists():
        held = read_json(path)
        found = held.get("fingerprint") if isinstance(held, dict) else None
        if found != fingerprint:
            raise InputError(
                f"holds an unfinished export of something else ({found}, not {fingerprint}); "
                "run that command again to finish it, delete the folder, or name another one",
                partial,
            )
    elif any(p.name != "lock" and not p.name.startswith(".tmp-") for p in partial.iterdir()):
        raise InputError("is no unfinished export; delete it or name another folder", partial)


def is_finished(folder: Path, fingerprint: str) -> bool:
    """Whether the export of ``folder`` was finished by a process that could not clear up after it."""
    path = partial_of(folder) / "partial.json"
    if not (folder / "manifest.json").exists() or not path.exists() or (path.parent / "out").exists():
        return False
    held = read_json(path)
    return isinstance(held, dict) and held.get("fingerprint") == fingerprint
