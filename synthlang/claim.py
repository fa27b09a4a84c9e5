"""An output folder for one process: what killed runs left is removed, and a run that fails leaves nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from synthlang.errors import InputError
from synthlang.files import TEMPORARY, atomic_folder

LOCK = ".lock-"


@contextmanager
def claimed_folder(folder: Path) -> Iterator[Path]:
    """``atomic_folder``, under a lock beside ``folder``; parents that are made for it go if the block fails.

    Raises InputError if ``folder`` exists or if another process writes it.
    """
    if folder.exists():
        raise InputError("exists already; name a new folder", folder)
    parents = [parent for parent in folder.parents if not parent.exists()]  # deepest first
    try:
        with _locked(folder):
            _remove_killed(folder)
            with atomic_folder(folder) as temporary:
                yield temporary
    except BaseException:
        for parent in parents:
            with suppress(OSError):  # it is not empty: somebody else uses it by now
                parent.rmdir()
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    path = folder.with_name(LOCK + folder.name)
    lock = FileLock(path)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError("is being written by another process; wait for it, or name another folder", folder) from error
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", folder) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is ours; who opened it meanwhile finds it gone and gives up
        lock.release()


def _remove_killed(folder: Path) -> None:
    """Delete the temporary folders of ``folder``, and of no other whose name begins alike."""
    ours = re.compile(re.escape(f"{TEMPORARY}{folder.name}-") + "[0-9a-f]{8}")
    for path in folder.parent.iterdir():
        if ours.fullmatch(path.name) and path.is_dir():
            shutil.rmtree(path)
