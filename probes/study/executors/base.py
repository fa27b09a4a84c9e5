"""Where the stages of a study are made: in this process, in processes beside it, on a cluster.

An executor is given stages whose parents are done and tells what became of them. What is done is told by the stage's
folder alone, so that it counts though the runner was killed before it heard of it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from probes.stages.base import Stage
from probes.stages.done import is_done, note
from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store


@dataclass(frozen=True)
class Outcome:
    """What became of a stage: it is done, or there is an ``error`` as one line with ``log``, its traceback."""

    key: str
    error: str | None = None
    log: str = ""


class Executor(Protocol):
    """Makes stages; the runner submits no more of them than ``capacity`` and waits for them to end."""

    def submit(self, stage: Stage, cell: str = "") -> None:
        """Start a stage whose parents are done; one that failed may be submitted again.

        ``cell`` is the first that wants it, in front of what its progress is called.
        """

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """The stages that ended: after the first of them, or after ``timeout`` seconds with none.

        Progress of those that run goes to ``report``. InputError for what makes every further stage pointless.
        """

    def capacity(self) -> int:
        """How many more stages may be submitted now."""

    def close(self) -> None:
        """Give up: stop what runs (local processes) or leave it to its scheduler."""


class Detached(Executor, Protocol):
    """An executor whose stages go on when the runner has gone."""

    def submit_graph(self, stages: Sequence[Stage]) -> None:
        """Hand over all ``stages`` (parents first, none that is done), each to start after those it is made of."""


class _Unheard(BaseException):
    """Nobody listens to ``report`` any more. Not an Exception: a stage must not take it for a problem of its own."""


def run_stage(stage: Stage, store: Store, report: Report) -> Outcome:
    """Make a stage in this process; an error becomes an outcome.

    BrokenPipeError of ``report`` goes on: the process that listens is gone. One of the work (a program that it started
    has died) is an error like others.
    """
    from probes.stages.making import make  # with torch

    started = time.monotonic()

    def told(name: str, done: int, total: int, note: str) -> None:
        try:
            report(name, done, total, note)
        except BrokenPipeError as error:
            raise _Unheard from error

    try:
        # another study of the store may have made it since this one looked
        if not is_done(store, stage):
            make(stage.reread(store), store, told)
            note(store, stage, time.monotonic() - started)
        return Outcome(stage.key)
    except _Unheard as gone:
        raise BrokenPipeError("nobody listens to the progress") from gone
    except Exception as problem:  # one failed cell must not stop the others
        line = str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"
        return Outcome(stage.key, " ".join(line.split()), traceback.format_exc())


@dataclass(frozen=True)
class Machine:
    """What an executor may use of this machine: processes, threads in each, and CUDA devices by name."""

    workers: int
    threads: int
    devices: tuple[str, ...] = ()
