"""Stages made here: one after another in this process, or in processes of their own."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from pretrain.threads import use_threads
from probes.stages.base import Stage
from probes.study.executors.base import Outcome, run_stage
from probes.study.executors.resources import VISIBLE, in_cell
from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store
from synthlang.workers import end_with_parent, plain_main, warm_up


class InlineExecutor:
    """One stage at a time; ``wait`` does the work, with as many threads as a local worker would have."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._given: deque[tuple[Stage, str]] = deque()
        self._threads_before = use_threads(threads)

    def submit(self, stage: Stage, cell: str = "") -> None:
        self._given.append((stage, cell))

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """Run the stage that was submitted, however long it takes."""
        del timeout
        if not self._given:
            return []
        stage, cell = self._given.popleft()
        return [run_stage(stage, self._store, in_cell(report, cell))]

    def capacity(self) -> int:
        return 0 if self._given else 1

    def close(self) -> None:
        self._given.clear()
        use_threads(self._threads_before)


GRACE = 5.0
"""Seconds that workers get to save when the runner ends."""
LAST_WORDS = 20_000
"""How many bytes of what a process wrote before it died are kept as its log."""


@dataclass(frozen=True)
class _Worker:
    """A process at work, for a ``cell``; ``written`` is the file that its standard error goes to."""

    process: BaseProcess
    stage: Stage
    cell: str
    device: str | None
    written: Path


class LocalExecutor:
    """At most ``workers`` processes of ``threads`` threads; with ``devices`` each sees the least busy one alone."""

    def __init__(self, store: Store, workers: int, threads: int, devices: Sequence[str] = ()) -> None:
        self._store, self._workers, self._threads, self._devices = store, workers, threads, devices
        self._running: dict[Connection, _Worker] = {}
        self._files = tempfile.TemporaryDirectory(prefix="synthlang-")
        self._number = 0
        if devices:
            # the server that workers are forked from must count devices without initialising CUDA
            os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        self._context = warm_up("probes.stages.loaded")  # with all that stages need

    def submit(self, stage: Stage, cell: str = "") -> None:
        self._number += 1
        written = Path(self._files.name, str(self._number))
        load = Counter(worker.device for worker in self._running.values())
        device = min(self._devices, key=lambda name: load[name], default=None)
        receiving, sending = self._context.Pipe(duplex=False)
        arguments = (stage, self._store.root, self._threads, device, written, sending)
        # no daemon: a stage may start processes of its own (parsers, aligners)
        process: BaseProcess = self._context.Process(target=_work, args=arguments, daemon=False)
        try:
            with plain_main():
                process.start()
        except (EOFError, ConnectionError) as error:
            raise InputError("the server that processes are forked from has died; start the study again") from error
        sending.close()  # so that our end sees the end of the process
        self._running[receiving] = _Worker(process, stage, cell, device, written)

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """Pass progress on until a stage ends or the time is over."""
        deadline = time.monotonic() + timeout
        ended: list[Outcome] = []
        while self._running and not ended:
            ready = wait(list(self._running), max(0.0, deadline - time.monotonic()))
            for connection in ready:
                assert isinstance(connection, Connection)
                outcome = self._receive(connection, report)
                ended += [outcome] if outcome else []
            if time.monotonic() >= deadline:
                break
        return ended

    def capacity(self) -> int:
        return self._workers - len(self._running)

    def close(self) -> None:
        """Stop what runs. A training that is told to end saves its step first; after a while all are killed."""
        try:
            for worker in self._running.values():
                worker.process.terminate()
            deadline = time.monotonic() + GRACE
            for worker in self._running.values():
                worker.process.join(max(0.0, deadline - time.monotonic()))
        finally:
            for connection, worker in self._running.items():
                worker.process.kill()
                worker.process.join()
                connection.close()
            self._running.clear()
            self._files.cleanup()

    def _receive(self, connection: Connection, report: Report) -> Outcome | None:
        """A message of a worker; an Outcome when its stage has ended."""
        worker = self._running[connection]
        try:
            message = connection.recv()
        except (EOFError, ConnectionError):
            message = _died(worker)
        if not isinstance(message, Outcome):
            in_cell(report, worker.cell)(*message)
            return None
        del self._running[connection]
        connection.close()
        worker.process.join()
        worker.written.unlink(missing_ok=True)
        return message


def _died(worker: _Worker) -> Outcome:
    """The outcome of a process that ended without a word, with the last it wrote as its log."""
    worker.process.join()
    code = worker.process.exitcode
    why = ", killed from outside, most often for want of memory" if code == -signal.SIGKILL else ""
    error = f"its process died (exit code {code}{why}); start the study again to go on"
    raw = worker.written.read_bytes()[-LAST_WORDS:] if worker.written.exists() else b""
    return Outcome(worker.stage.key, error, raw.decode("utf-8", "replace"))


def _work(stage: Stage, root: Path, threads: int, device: str | None, written: Path, connection: Connection) -> None:
    """What a process does; ``root`` is that of the store."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the runner kills its workers itself
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with written.open("wb") as file:
            os.dup2(file.fileno(), 2)  # warnings would tear the progress display; the last words of a crash are its log
    except FileNotFoundError:  # the runner gave up while this process was being started
        os._exit(1)
    if device is not None:
        os.environ[VISIBLE] = device  # before anything asks CUDA
    use_threads(threads)

    def report(name: str, done: int, total: int, note: str) -> None:
        connection.send((name, done, total, note))

    try:
        connection.send(run_stage(stage, Store(root), report))
    except BrokenPipeError:
        os._exit(1)  # the runner was killed; its next start goes on from what is on disk
