"""Making of a stage under its lock. Another runner of the store waits, and then uses the finished stage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from filelock import BaseFileLock

from pretrain.folder import EXPORT
from probes.stages.base import DONE, Stage
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import CHECKPOINTS, damage, is_done
from synthlang.checksums import RECORD, damaged_files
from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store

AGAIN = "run the same command again, which makes the stage"
RESTORED = (f"{EXPORT}/", DONE, "config.yaml")
"""Files of a run that can be written again without training. A name that ends in a slash is a folder."""


def make(stage: Stage, store: Store, report: Report) -> None:
    """Make a stage whose parents are done, or continue it if it is unfinished.

    Any error of the stage is raised, such as InputError for a file that changed while it was read.
    """
    stage.run(Making(stage, store, report))


class Making:
    """A stage that is being made: its place in the store, its parents, and the user's files that it reads.

    Args:
        stage: The stage, with its key.
        store: The store with the stage and its parents.
        report: Function that receives the progress.

    Raises:
        InputError: The table of content hashes in the store cannot be read.
    """

    def __init__(self, stage: Stage, store: Store, report: Report) -> None:
        self.stage, self.store, self.report = stage, store, report
        self._before = stage.files(ContentHashes(store))

    # --- the folder of the stage ---

    @property
    def folder(self) -> Path:
        """The folder of the stage in the store, which need not exist."""
        return self.store.path(self.stage.kind, self.stage.key)

    @property
    def unfinished(self) -> Path:
        """Folder that keeps the fits of the stage until the stage is finished."""
        return self.folder.with_name(f"{self.folder.name}.work")

    @cached_property
    def lock(self) -> BaseFileLock:
        """The lock of the stage."""
        return self.store.lock(self.stage.kind, self.stage.key)

    @property
    def is_intact(self) -> bool:
        """True if the stage is finished and undamaged.

        Raises:
            InputError: The record of the checksums of the stage, or its file ``dropped.json``, cannot be read.
        """
        return is_done(self.store, self.stage)

    def obtain(self, build: Callable[[Path], None]) -> None:
        """Make the folder of the stage with the function ``build``, if the folder is missing or damaged.

        When the stage is finished, its folder ``unfinished`` is deleted. An error of ``build`` is raised unchanged.

        Raises:
            InputError: A file that the stage reads has changed since the work began, or the record of the checksums of
                the stage cannot be read.
            DiskError: The checksums of the stage cannot be written.
        """

        def whole(path: Path) -> None:
            build(path)
            self.check_unchanged(path)
            if self.unfinished.exists():
                shutil.rmtree(self.unfinished)

        self.store.obtain(self.stage.kind, self.stage.key, whole, lambda _: self.is_intact)

    def reopen_run(self) -> None:
        """Prepare a run that is unfinished or damaged to continue.

        The run continues from its last sound checkpoint. If this is the checkpoint of the last step, nothing is trained
        and only the export is written again. A finished run without a sound checkpoint starts again. A run that lost a
        file of its training, such as the log, also starts again.

        Raises:
            InputError: The record of the checksums of the run is damaged.
        """
        from pretrain.checkpoints import is_sound  # with torch
        from pretrain.folder import steps_in

        if set(filter(lambda name: not name.startswith(RESTORED), damaged_files(self.folder))):
            shutil.rmtree(self.folder)
        (self.folder / RECORD).unlink(missing_ok=True)
        folder = self.folder / CHECKPOINTS
        is_finished = (self.folder / DONE).exists()
        if is_finished and not any(is_sound(folder / f"step-{step}") for step in reversed(steps_in(folder))):
            shutil.rmtree(folder, ignore_errors=True)
        (self.folder / DONE).unlink(missing_ok=True)

    # --- the parents of the stage ---

    def done_folder(self, stage: Stage) -> Path:
        """Return the folder of a finished stage.

        Raises:
            InputError: The stage is not finished, or one of its files is damaged.
        """
        if not is_done(self.store, stage):
            raise InputError(f"{stage.label} is not finished", hint=AGAIN, code="missing")
        folder = self.store.path(stage.kind, stage.key)
        if damaged := damage(folder, thorough=True):
            raise InputError(f"{stage.label} is damaged", folder / damaged[0], hint=AGAIN, code="damaged")
        return folder

    def model_name(self, model: Stage | str) -> str:
        """Return the folder of a model of the study, or the name of another model.

        Raises:
            InputError: The stage of the model is not finished, or one of its files is damaged.
        """
        return model if isinstance(model, str) else str(self.done_folder(model))

    # --- the user's files ---

    def check_unchanged(self, made: Path | None = None) -> None:
        """Raise InputError if the content of a file has changed since the work began.

        The stage may have read a mixture of old and new content, so its folder ``made`` is then deleted.
        """
        now = self.stage.files(ContentHashes(self.store))
        changed = [path for path in {**self._before, **now} if self._before.get(path) != now.get(path)]
        try:
            if changed:
                self.stage.reread(self.store)  # no error if only times of change differ
        except InputError:
            if made is not None:
                shutil.rmtree(made)
            reason = "has changed while it was read"
            raise InputError(reason, changed[0], hint="run the same command again", code="changed") from None
