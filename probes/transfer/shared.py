"""Fits that several transfers share. The first transfer trains the model, and the other transfers load its weights."""

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
        folder: The folder. If it does not exist, the fit is not shared.
        lock: A lock that a process holds while it trains in the folder.
    """

    folder: Path
    lock: FileLock

    @contextmanager
    def taken(self) -> Iterator[Path | None]:
        """Yield the folder, or None if another process trains in it or the folder does not exist."""
        try:
            self.lock.acquire(timeout=0)
        except Timeout:  # to wait would take as long as to train without sharing
            yield None
            return
        try:
            yield self.folder if self.folder.is_dir() else None
        finally:
            self.lock.release()

    def delete(self) -> bool:
        """Delete the folder unless a process trains in it. Return True if the folder existed and was deleted."""
        with self.taken() as folder:
            if folder is not None:
                shutil.rmtree(folder)
            return folder is not None
