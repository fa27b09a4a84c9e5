"""Tasks as jobs of a Slurm cluster, sent as arrays through submitit.

Whether a task is done is read from the disk: its job writes ``records/<key>.json`` and the index entry of the stage.
The queue only tells which jobs are gone without one. So nothing here waits for Slurm's accounting, a controller that
restarts is no error, and a runner that was killed loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from probes.study.executors import Outcome, Work
from probes.study.executors.slurm_ledger import Ledger
from probes.study.executors.slurm_options import SlurmOptions, read_options
from probes.study.executors.slurm_queue import UNKNOWN, cancel, check_programs, last_state, queue
from probes.study.executors.slurm_send import Sender
from synthlang.files import read_json
from synthlang.progress import Report
from synthlang.store import Store

if TYPE_CHECKING:
    from probes.study.task import Task

FOLDER = "slurm"
LOOK = 1.0  # seconds between two looks at the records
PATIENCE = {UNKNOWN: 15.0, "COMPLETED": 15.0, "FAILED": 3.0}  # seconds that a record may need from another node
LOST = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")  # no fault of the task
LOG_BYTES = 8_000


class SlurmExecutor:
    """An executor whose tasks are jobs; ``folder`` is the study's, and must be on a disk that the nodes share."""

    def __init__(self, store: Store, folder: Path, assignments: Sequence[str] = ()) -> None:
        self.options: SlurmOptions = read_options(assignments)
        check_programs()
        self.store, self.folder = Store(store.root.absolute()), folder.absolute() / FOLDER
        self.sender = Sender(self.store, self.folder, self.options)
        self.ledger = Ledger(self.folder / "jobs.json")
        self._new: list[Work] = []
        self._running: dict[str, Work] = {}
        self._since: dict[str, float] = {}
        self._missing: dict[str, float] = {}  # key → when its job was first seen gone without a record
        self._queue: dict[str, str] = {}
        self._asked = float("-inf")
        self._over: set[str] = set()  # jobs whose outcome is known, though they may be leaving the queue still

    def submit(self, task: Work) -> None:
        """Send the task with the next array; a job of it that is still in the queue is taken over."""
        self._since[task.key] = time.monotonic()
        if self._has_job(task):
            self._running[task.key] = task
        else:
            self._new.append(task)

    def submit_graph(self, tasks: Sequence[Work]) -> None:
        """Send all ``tasks`` (parents first), each to start when those it needs have ended well.

        A task whose parent fails leaves the queue; the next start of the study sends it again if it may.
        """
        with self.ledger.sending() as name:
            wanted = [task for task in tasks if not self._has_job(task)]
            for group in self.sender.groups(wanted, {task.key for task in tasks}):
                needed = [self.ledger.jobs[key] for key in group.parents]
                self.ledger.note(self.sender.send(group.tasks, name, needed))

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """The tasks that ended; looks at the disk every second and at the queue every ``poll`` seconds."""
        end = time.monotonic() + timeout
        while True:
            self._send()
            ended = self._ended(report)
            left = end - time.monotonic()
            if ended or left <= 0 or not self._running:
                return ended
            time.sleep(min(LOOK, left))

    def capacity(self) -> int:
        """Up to ``jobs`` in the queue: the more at a time, the larger the arrays."""
        return max(0, self.options.jobs - len(self._running) - len(self._new))

    def close(self) -> None:
        """Leave the jobs to Slurm: the next start finds them."""

    def cancel(self) -> None:
        """Cancel the jobs of this run."""
        cancel([self.ledger.jobs[key] for key in self._running])

    def _has_job(self, task: Work) -> bool:
        job = self.ledger.jobs.get(task.key)
        if job is None or job in self._over:
            return False
        self._look()
        return job in self._queue

    def _send(self) -> None:
        """The tasks submitted since the last time, one array for each kind."""
        if not self._new:
            return
        with self.ledger.sending() as name:
            for group in self.sender.groups(self._new, set()):
                self.ledger.note(self.sender.send(group.tasks, name))
                self._running.update({task.key: task for task in group.tasks})
        self._new = []
        self._asked = float("-inf")  # what the queue was before says nothing of these

    def _look(self) -> bool:
        """Ask for the queue unless that was a moment ago; whether it is known."""
        if time.monotonic() - self._asked >= self.options.poll:
            found = queue()
            if found is None:
                return False
            self._queue, self._asked = found, time.monotonic()
        return True

    def _ended(self, report: Report) -> list[Outcome]:
        ended = []
        known = self._look()  # first: a job that was gone by then has written what it had to
        recorded = {path.stem for path in self.sender.records.glob("*.json")}
        for key, task in list(self._running.items()):
            outcome = self._recorded(task) if key in recorded else None
            if outcome is None and known and self.ledger.jobs[key] not in self._queue:
                outcome = self._gone(task)
            if outcome is not None:
                ended.append(outcome)
                self._over.add(self.ledger.jobs[key])
                del self._running[key]
                self._missing.pop(key, None)
        self._show(report, known)
        return ended

    def _recorded(self, task: Work) -> Outcome | None:
        """The outcome that the task's job wrote; None if another job of the task wrote it."""
        held = read_json(self.sender.record(task.key))
        if held.pop("job") != self.ledger.jobs[task.key]:
            return None
        return Outcome(**held)

    def _gone(self, task: Work) -> Outcome | None:
        """What became of a task whose job left the queue without a record; None to wait a little."""
        from probes.study.index import finished

        job = self.ledger.jobs[task.key]
        name = finished(self.store, cast("Task", task))
        if name is not None:  # killed after the work was done
            return Outcome(task.key, name, None, "", self._seconds(task.key))
        first = self._missing.setdefault(task.key, time.monotonic())
        state = last_state(job)
        if time.monotonic() - first < PATIENCE.get(state, 0.0):
            return None
        if state in LOST and self.ledger.count_requeue(task.key) <= self.options.requeues:
            del self._running[task.key], self._missing[task.key]
            self._new.append(task)
            return None
        log = self.sender.log(job, LOG_BYTES)
        error = f"its job {job} ended without a result (Slurm says {state}); log: {self.sender.log_path(job)}"
        return Outcome(task.key, None, error, log, self._seconds(task.key))

    def _seconds(self, key: str) -> float:
        return time.monotonic() - self._since[key]

    def _show(self, report: Report, known: bool) -> None:
        """How many jobs wait and run."""
        states = [self._queue.get(self.ledger.jobs[key], "") for key in self._running]
        runs, waits = states.count("RUNNING"), states.count("PENDING")
        total = len(self._since)
        done = total - len(self._running) - len(self._new)
        report("jobs", done, total, f"{runs} running, {waits} waiting" if known else "squeue does not answer")
