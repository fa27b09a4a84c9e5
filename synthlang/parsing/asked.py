"""Sentences on their way to parsing processes: a folder for each run, under its lock, beside the parses."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

PREFIX = ".asked-"
GUARD = ".asked.lock"  # held while folders come and go, so that none is seen before its own lock is held


@contextmanager
def asked_folder(root: Path) -> Iterator[Path]:
    """A folder in ``root`` for this run alone, removed at the end of the block."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{PREFIX}{uuid.uuid4().hex[:8]}"
    lock = FileLock(folder / "lock")
    with FileLock(root / GUARD):
        folder.mkdir()
        lock.acquire(timeout=0)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def remove_asked(root: Path) -> None:
    """Delete what killed runs left in ``root``; a run that lives holds the lock of its folder."""
    files = list(root.glob("*/*.json.gz.asked"))  # as an earlier version named them
    if not files and next(root.glob(f"{PREFIX}*/"), None) is None:
        return
    with suppress(PermissionError), FileLock(root / GUARD):  # in a cache of somebody else it is theirs to do
        for file in files:
            file.unlink(missing_ok=True)
        for folder in root.glob(f"{PREFIX}*/"):
            lock = FileLock(folder / "lock")
            with suppress(Timeout):
                lock.acquire(timeout=0)
                shutil.rmtree(folder)
                lock.release()
