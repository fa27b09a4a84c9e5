"""Tasks in processes of their own, with their progress, results and failures.

Each task runs in a fresh process forked from a small server that has the libraries loaded:
one that dies takes nothing with it, and none inherits state from another. A worker whose
parent is gone stops at its next progress report.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from probes.study.stages import Task
from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store


@dataclass(frozen=True)
class Outcome:
    """What became of a task: ``result``, or ``error`` as one line with ``log``, its traceback."""

    task: Task
    result: dict[str, Any] | None
    error: str | None
    log: str
    seconds: float


def run_task(task: Task, root: Path, report: Report) -> Outcome:
    """Run a task in this process; an error becomes an outcome."""
    started = time.monotonic()
    try:
        result, error, log = task.run(Store(root), report), None, ""
    except BrokenPipeError:
        raise  # nobody listens any more: see _work
    except Exception as problem:  # one failed cell must not stop the others
        line = str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"
        result, error, log = None, " ".join(line.split()), traceback.format_exc()
    return Outcome(task, result, error, log, time.monotonic() - started)


def _work(task: Task, root: Path, threads: int, connection: Connection) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the study kills its workers itself
    torch.set_num_threads(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

    def report(name: str, done: int, total: int, note: str) -> None:
        connection.send((name, done, total, note))

    try:
        connection.send(run_task(task, root, report))
    except BrokenPipeError:
        os._exit(1)  # the study was killed; its next start goes on from what is on disk


Next = Callable[[Outcome], Iterable[Task]]


def run_in_processes(
    tasks: Iterable[Task], follow: Next, root: Path, workers: int, threads: int, report: Report
) -> None:
    """Run tasks, and those that ``follow(outcome)`` names after each, on ``workers`` processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["probes.study.stages"])
    waiting = deque(tasks)
    running: dict[Connection, tuple[BaseProcess, Task, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                task = waiting.popleft()
                mine, theirs = context.Pipe(duplex=False)
                process: BaseProcess = context.Process(target=_work, args=(task, root, threads, theirs), daemon=True)
                process.start()
                theirs.close()
                running[mine] = (process, task, time.monotonic())
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                outcome = _receive(ready, running, report)
                if outcome is not None:
                    # what follows a finished stage goes first, so that cells finish one after another
                    waiting.extendleft(reversed(list(follow(outcome))))
    finally:
        for process, _, _ in running.values():
            process.kill()


def _receive(
    ready: Connection, running: dict[Connection, tuple[BaseProcess, Task, float]], report: Report
) -> Outcome | None:
    """A message of a worker; an Outcome when its task has ended."""
    process, task, started = running[ready]
    try:
        message = ready.recv()
    except EOFError:
        process.join()
        error = f"its process died (exit code {process.exitcode}); start the study again to go on"
        message = Outcome(task, None, error, "", time.monotonic() - started)
    if not isinstance(message, Outcome):
        report(*message)
        return None
    del running[ready]
    process.join()
    ready.close()
    return message


def run_in_process(tasks: Iterable[Task], follow: Next, root: Path, report: Report) -> None:
    """Run the same tasks one after another in this process."""
    waiting = deque(tasks)
    while waiting:
        waiting.extendleft(reversed(list(follow(run_task(waiting.popleft(), root, report)))))
