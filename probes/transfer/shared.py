"""Fits that several transfers share. The first transfer trains the fit, and the others load it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout


@dataclass(frozen=True)
class SharedPlace:
    """A folder for the state of a shared fit.

    Attributes:
        lock: A lock that a process holds while it trains there.
    """

    folder: Path
    lock: FileLock

    @contextmanager
    def taken(self) -> Iterator[Path | None]:
        """Yield the folder, or None if another process trains there or the folder is gone."""
        try:
            self.lock.acquire(timeout=0)
        except Timeout:  # waiting would take as long as training without sharing
            yield None
            return
        try:
            yield self.folder if self.folder.is_dir() else None
        finally:
            self.lock.release()

    def delete(self) -> bool:
        """Delete the folder unless a process trains there. Return whether it was deleted."""
        with self.taken() as folder:
            if folder is not None:
                shutil.rmtree(folder)
            return folder is not None
