"""A folder of artifacts named by kind and fingerprint. Each artifact is built once and is never stale."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from synthlang.checksums import damaged_files, record_checksums
from synthlang.files import remove_leftovers


class Store:
    """A folder ``root`` of artifacts. ``path(kind, fingerprint)`` is a complete folder or does not exist."""

    LOCKS = ".locks"

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, kind: str, fingerprint: str) -> Path:
        """Return the folder of an artifact, whether it exists or not."""
        return self.root / f"{kind}-{fingerprint}"

    def obtain(
        self,
        kind: str,
        fingerprint: str,
        build: Callable[[Path], None],
        is_intact: Callable[[Path], bool] = lambda path: not damaged_files(path),
    ) -> Path:
        """Return the folder of an artifact, which is built first if it is missing or not intact.

        If two processes need the same artifact, the second waits. The lock belongs to the operating system, so a
        killed process does not keep it. An error of ``build`` is raised unchanged.

        Args:
            kind: Kind of the artifact, the first part of the folder's name.
            fingerprint: Fingerprint of the artifact, the second part of the folder's name.
            build: Function that writes the artifact atomically to the path that it is given.
            is_intact: Function that checks the artifact at a path (default: no recorded file is missing or has
                changed). An artifact that is not intact is deleted and built again.

        Raises:
            InputError: The checksums of a stored artifact cannot be read.
            OSError: The folder of locks cannot be made, or a damaged artifact cannot be deleted.
            DiskError: The checksums of a new artifact cannot be written.
        """
        path = self.path(kind, fingerprint)
        if path.exists() and is_intact(path):
            return path
        with self.lock(kind, fingerprint):
            if path.exists() and not is_intact(path):
                shutil.rmtree(path)
            if not path.exists():
                remove_leftovers(self.root, f"{path.name}-")
                build(path)
                record_checksums(path)
        assert path.exists(), f"{path} was not built"
        return path

    def lock(self, kind: str, fingerprint: str) -> FileLock:
        """Return the unlocked ``FileLock`` of one artifact, for builders that continue the work of a killed builder.

        Raises:
            OSError: The folder of locks cannot be made.
        """
        locks = self.root / self.LOCKS
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{kind}-{fingerprint}")
