"""Fits that several transfers need: one of them makes a fit, the others find it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout


@dataclass(frozen=True)
class SharedPlace:
    """A folder for the states of fits (fit.Progress), of which a finished one is loaded and not trained again.

    lock   held while somebody fits there
    """

    folder: Path
    lock: FileLock

    @contextmanager
    def taken(self) -> Iterator[Path | None]:
        """Yield the folder while nobody else fits there, None if somebody does or the folder is gone."""
        try:
            self.lock.acquire(timeout=0)
        except Timeout:  # waiting would take as long as a fit of one's own
            yield None
            return
        try:
            yield self.folder if self.folder.is_dir() else None
        finally:
            self.lock.release()

    def delete(self) -> bool:
        """Delete it, unless somebody fits there; whether it was."""
        with self.taken() as folder:
            if folder is not None:
                shutil.rmtree(folder)
            return folder is not None
