"""The interface of executors, which make the stages of a study in this process, in local processes or on a cluster.

An executor receives stages whose parents are finished, and returns their outcomes. A stage is finished if its folder is
complete. So a finished stage counts even if the runner was killed before it received the outcome.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from typing import Protocol

from probes.stages.base import Stage
from probes.stages.done import is_done, note
from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store


@dataclass(frozen=True)
class StageOutcome:
    """The outcome of a stage.

    Attributes:
        key: The key of the stage.
        error: The error in one line, or None if the stage is finished.
        log: The traceback of the error, or the last output of a process or job that died. It may be "".
    """

    key: str
    error: str | None = None
    log: str = ""


class Executor(Protocol):
    """Maker of stages. The runner submits at most ``capacity`` stages and waits until one ends."""

    def submit(self, stage: Stage, cell: str = "") -> None:
        """Start a stage whose parents are finished. A failed stage may be submitted again.

        ``cell`` is the name of the first cell that needs the stage, and precedes its lines of progress.

        Raises:
            InputError: No stage can be started.
        """

    def wait(self, report: Report, timeout: float) -> list[StageOutcome]:
        """Wait until a stage ends or ``timeout`` seconds have passed, and return the outcomes of ended stages.

        Raises:
            InputError: No further stage can run.
        """

    def capacity(self) -> int:
        """Return the number of stages that may be submitted now."""

    def close(self) -> None:
        """Stop the running stages, or leave them to the scheduler of the cluster."""


def run_stage(stage: Stage, store: Store, report: Report) -> StageOutcome:
    """Make a stage in this process and return its outcome. An exception of the stage becomes an outcome."""
    from probes.stages.making import make  # imports torch

    started = time.monotonic()
    try:
        # Another study of the store may have made the stage in the meantime.
        if not is_done(store, stage):
            make(stage.reread(store), store, report)
            note(store, stage, time.monotonic() - started)
        return StageOutcome(stage.key)
    except Exception as problem:  # One failed cell must not stop the others.
        line = str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"
        return StageOutcome(stage.key, " ".join(line.split()), traceback.format_exc())


@dataclass(frozen=True)
class Machine:
    """The resources that an executor may use.

    Attributes:
        workers: Number of processes.
        threads: Threads in each process.
        devices: CUDA devices, by their names in ``CUDA_VISIBLE_DEVICES``.
    """

    workers: int
    threads: int
    devices: tuple[str, ...] = ()
