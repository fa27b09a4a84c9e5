"""Executors on this machine: one stage after another in this process, or in several local processes."""

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
from probes.study.executors.base import StageOutcome, run_stage
from probes.study.executors.resources import of_cell
from synthlang.errors import InputError
from synthlang.progress import Report
from synthlang.store import Store
from synthlang.workers import VISIBLE, end_with_parent, plain_main, warm_up


class InlineExecutor:
    """Executor in this process. It makes one stage at a time, inside ``wait``, with the threads of a local worker."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._given: deque[tuple[Stage, str]] = deque()
        self._threads_before = use_threads(threads)

    def submit(self, stage: Stage, cell: str = "") -> None:
        self._given.append((stage, cell))

    def wait(self, report: Report, timeout: float) -> list[StageOutcome]:
        """Run the submitted stage to its end, and return its outcome, or [] if no stage was submitted."""
        del timeout
        if not self._given:
            return []
        stage, cell = self._given.popleft()
        return [run_stage(stage, self._store, of_cell(report, cell))]

    def capacity(self) -> int:
        return 0 if self._given else 1

    def close(self) -> None:
        self._given.clear()
        use_threads(self._threads_before)


GRACE = 5.0
"""Seconds for workers to save when the runner ends."""
LAST_WORDS = 20_000
"""Maximum size of the log of a process that died, in bytes."""


@dataclass(frozen=True)
class _Worker:
    """A running process. Its standard error goes to the file ``written``."""

    process: BaseProcess
    stage: Stage
    cell: str
    device: str | None
    written: Path


class LocalExecutor:
    """Executor in up to ``workers`` local processes of ``threads`` threads.

    Each process sees one of the CUDA ``devices``, if there are any.
    """

    def __init__(self, store: Store, workers: int, threads: int, devices: Sequence[str] = ()) -> None:
        self._store, self._workers, self._threads, self._devices = store, workers, threads, devices
        self._running: dict[Connection, _Worker] = {}
        self._files = tempfile.TemporaryDirectory(prefix="synthlang-")
        self._number = 0
        if devices:
            # The server that forks the workers must count devices without initialising CUDA.
            os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        self._context = warm_up("probes.stages.loaded")  # imports everything that stages need

    def submit(self, stage: Stage, cell: str = "") -> None:
        self._number += 1
        written = Path(self._files.name, str(self._number))
        load = Counter(worker.device for worker in self._running.values())
        device = min(self._devices, key=lambda name: load[name], default=None)
        receiving, sending = self._context.Pipe(duplex=False)
        arguments = (stage, self._store.root, self._threads, device, written, sending)
        # A daemon could not start processes of its own, which parsers and aligners do.
        process: BaseProcess = self._context.Process(target=_work, args=arguments, daemon=False)
        try:
            with plain_main():
                process.start()
        except (EOFError, ConnectionError) as error:
            reason = "the process that starts the workers has ended"
            raise InputError(reason, hint="start the study again", code="failed") from error
        sending.close()  # so that our end of the pipe notices the end of the process
        self._running[receiving] = _Worker(process, stage, cell, device, written)

    def wait(self, report: Report, timeout: float) -> list[StageOutcome]:
        """Forward progress until a stage ends or ``timeout`` seconds have passed, and return the outcomes."""
        deadline = time.monotonic() + timeout
        ended: list[StageOutcome] = []
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
        """Stop the running stages. Trainings save first. After ``GRACE`` seconds all processes are killed."""
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

    def _receive(self, connection: Connection, report: Report) -> StageOutcome | None:
        """Receive a message of a worker. Return the outcome if the stage has ended, else None."""
        worker = self._running[connection]
        try:
            message = connection.recv()
        except (EOFError, ConnectionError):
            message = _died(worker)
        if not isinstance(message, StageOutcome):
            of_cell(report, worker.cell)(*message)
            return None
        del self._running[connection]
        connection.close()
        worker.process.join()
        worker.written.unlink(missing_ok=True)
        return message


def _died(worker: _Worker) -> StageOutcome:
    """Return the outcome of a process that died, with its last output as the log."""
    worker.process.join()
    code = worker.process.exitcode
    why = ", killed from outside, usually for lack of memory" if code == -signal.SIGKILL else ""
    error = f"the worker process died (exit code {code}{why}); start the study again to continue"
    raw = worker.written.read_bytes()[-LAST_WORDS:] if worker.written.exists() else b""
    return StageOutcome(worker.stage.key, error, raw.decode("utf-8", "replace"))


def _work(stage: Stage, root: Path, threads: int, device: str | None, written: Path, connection: Connection) -> None:
    """Run a worker process, which makes one stage of the store in ``root``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # On Ctrl-C the runner stops its workers itself.
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with written.open("wb") as file:
            os.dup2(file.fileno(), 2)  # Warnings would break the progress display. The file is the log of a crash.
    except FileNotFoundError:  # The runner ended while this process was starting.
        os._exit(1)
    if device is not None:
        os.environ[VISIBLE] = device  # before CUDA is initialised
    use_threads(threads)

    def send(message: StageOutcome | tuple[str, int, int, str]) -> None:
        try:
            connection.send(message)
        except BrokenPipeError:
            os._exit(1)  # The runner was killed. Its next start continues from the disk.

    send(run_stage(stage, Store(root), lambda *told: send(told)))
