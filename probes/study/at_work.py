"""The store as a task sees it while it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock

from synthlang.store import Store


class TaskStore(Store):
    """A store inside ``with``, for one task of the kind ``kind``.

    ``entries`` of the index, by key, are what the tasks that it is made of had made when its work began: it reads those
    stages, whoever makes others meanwhile. The lock of the stage that it makes, or finds made, is its own until the
    block ends and its entry is written: so nobody takes that for a stage without a task.
    """

    def __init__(self, store: Store, kind: str, entries: Mapping[str, dict[str, Any]]) -> None:
        super().__init__(store.root)
        self.entries = entries
        self._kind = kind
        self._locks: dict[str, FileLock] = {}

    def obtain(self, kind: str, fingerprint: str, build: Callable[[Path], None]) -> Path:
        """As of any store; the task's own stage is locked also if it is there."""
        if kind == self._kind:
            self.lock(kind, fingerprint)
        return super().obtain(kind, fingerprint, build)

    def lock(self, kind: str, fingerprint: str) -> FileLock:
        """As of any store; that of the task's own stage is taken now, and given back when the block ends."""
        if kind != self._kind:
            return super().lock(kind, fingerprint)
        if fingerprint not in self._locks:
            lock = super().lock(kind, fingerprint)
            lock.acquire()
            self._locks[fingerprint] = lock
        return self._locks[fingerprint]

    def __enter__(self) -> TaskStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lock in self._locks.values():
            lock.release(force=True)
