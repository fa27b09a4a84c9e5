"""Where the tasks of a study run: in this process, in processes beside it, on a cluster.

An executor is given tasks whose parents are finished and tells what became of them. Whoever runs a task writes its
index entry (``run_task`` does), so that a finished stage counts though the runner was killed before it heard of it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store

if TYPE_CHECKING:
    from probes.study.tasks import Task

NAMES = ("local", "in-process", "slurm")


class Work(Protocol):
    """What an executor needs to know of a task (the classes of tasks.py)."""

    @property
    def kind(self) -> str:
        """Which kind of stage it makes."""

    @property
    def key(self) -> str:
        """The fingerprint of what is to be done; the same key is the same work."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Keys of the tasks that come before."""

    @property
    def label(self) -> str:
        """What it is called in progress and logs."""

    def run(self, store: Store, report: Report) -> str:
        """Do the work; the fingerprint of the stage."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task: ``fingerprint`` of its stage, or ``error`` as one line with ``log``, its traceback."""

    key: str
    fingerprint: str | None
    error: str | None
    log: str
    seconds: float


class Executor(Protocol):
    """Runs tasks; the runner submits no more of them than ``capacity`` and waits for them to end."""

    def submit(self, task: Work, cell: str = "") -> None:
        """Start a task whose parents are finished; one that failed may be submitted again.

        ``cell`` is the first that wants it, in front of what its progress is called.
        """

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """The tasks that ended: after the first of them, or after ``timeout`` seconds with none.

        Progress of those that run goes to ``report``. InputError for what makes every further task pointless.
        """

    def capacity(self) -> int:
        """How many more tasks may be submitted now."""

    def close(self) -> None:
        """Give up: stop what runs (local processes) or leave it to its scheduler."""


class Detached(Executor, Protocol):
    """An executor whose tasks live on when the runner has gone."""

    def submit_graph(self, tasks: Sequence[Work]) -> None:
        """Hand over all ``tasks`` (parents first, finished ones left out), each to start after those it needs."""


class _Unheard(BaseException):
    """Nobody listens to ``report`` any more. Not an Exception: a task must not take it for a problem of its own."""


def run_task(task: Work, store: Store, report: Report) -> Outcome:
    """Run a task in this process and write its index entry; an error becomes an outcome.

    BrokenPipeError of ``report`` goes on: the process that listens is gone. One of the task (a program that it started
    has died) is an error like others.
    """
    from probes.study.at_work import TaskStore
    from probes.study.finished import finished
    from probes.study.index import finish, seen_now

    work, started = cast("Task", task), time.monotonic()

    def told(name: str, done: int, total: int, note: str) -> None:
        try:
            report(name, done, total, note)
        except BrokenPipeError as error:
            raise _Unheard from error

    try:
        # another study of the store may have done it since this one looked
        name = finished(store, work)
        if name is None:
            seen = seen_now(store, work)
            with TaskStore(store, work.kind, seen.entries) as held:
                name = task.run(held, told)
                finish(store, work, name, time.monotonic() - started, seen)
        return Outcome(task.key, name, None, "", time.monotonic() - started)
    except _Unheard as gone:
        raise BrokenPipeError("nobody listens to the progress") from gone
    except Exception as problem:  # one failed cell must not stop the others
        line = str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"
        seconds = time.monotonic() - started
        return Outcome(task.key, None, " ".join(line.split()), traceback.format_exc(), seconds)


@dataclass(frozen=True)
class Machine:
    """What an executor may use of this machine: processes, threads in each, and CUDA devices by name."""

    workers: int
    threads: int
    devices: tuple[str, ...] = ()


def open_executor(name: str, store: Store, folder: Path, machine: Machine, slurm: Iterable[str] = ()) -> Executor:
    """The executor of a name; ``slurm`` are KEY=VALUE, ``folder`` is that of the study.

    SlurmExecutor(store, folder, assignments) is a ``Detached`` one.
    """
    if name == "in-process":
        from probes.study.executors.inline import InlineExecutor

        return InlineExecutor(store, machine.threads)
    if name == "local":
        from probes.study.executors.local import LocalExecutor

        return LocalExecutor(store, machine.workers, machine.threads, machine.devices)
    if name == "slurm":
        from probes.study.executors.slurm import SlurmExecutor

        return SlurmExecutor(store, folder, list(slurm))
    raise InputError(f"executor must be one of {', '.join(NAMES)}, not {name!r}")
