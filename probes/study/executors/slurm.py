"""Stages as jobs of a Slurm cluster, sent as arrays through submitit.

Whether a stage is done is read from the disk: its job writes ``records/<key>.json`` and the index entry of the stage.
The queue only tells which jobs are gone without one. So nothing here waits for Slurm's accounting, a controller that
restarts is no error, and a runner that was killed loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from probes.study.done import is_done
from probes.study.executors import Outcome
from probes.study.executors.slurm_ledger import Ledger
from probes.study.executors.slurm_options import SlurmOptions, read_options
from probes.study.executors.slurm_queue import UNKNOWN, cancel, check_programs, last_state, queue
from probes.study.executors.slurm_send import BusyError, Sender, check_submitit
from probes.study.stage import Stage
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import Report
from synthlang.store import Store

FOLDER = "slurm"
LOOK = 1.0  # seconds between two looks at the records
PATIENCE = {UNKNOWN: 15.0, "COMPLETED": 15.0, "FAILED": 3.0}  # seconds that a record may need from another node
LOST = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")  # no fault of the stage
LOG_BYTES = 8_000


def check_slurm() -> None:
    """InputError if no job can be sent from here."""
    check_programs()
    check_submitit()


class SlurmExecutor:
    """An executor whose stages are jobs; ``folder`` is the study's, and must be on a disk that the nodes share."""

    def __init__(self, store: Store, folder: Path, assignments: Sequence[str] = ()) -> None:
        self.options: SlurmOptions = read_options(assignments)
        check_slurm()
        self.store, self.folder = Store(store.root.absolute()), folder.absolute() / FOLDER
        self.sender = Sender(self.store, self.folder, self.options)
        self.ledger = Ledger(self.folder / "jobs.json")
        self._new: list[Stage] = []
        self._running: dict[str, Stage] = {}
        self._submitted: set[str] = set()
        self._missing: dict[str, float] = {}  # key → when its job was first seen gone without a record
        self._queue: dict[str, str] = {}
        self._asked = float("-inf")
        self._busy = ""  # why nothing can be sent now,
        self._again = float("-inf")  # and when that is tried again
        self._over: set[str] = set()  # jobs whose outcome is known, though they may be leaving the queue still

    def submit(self, stage: Stage, cell: str = "") -> None:
        """Send the stage with the next array; a job of it that is still in the queue is taken over then."""
        del cell
        self._submitted.add(stage.key)
        self._new.append(stage)

    def submit_graph(self, stages: Sequence[Stage]) -> None:
        """Send all ``stages`` (parents first), each to start when those it needs have ended well.

        A stage whose parent fails leaves the queue; the next start of the study sends it again if it may. InputError if
        the cluster does not take all of them now; those that were taken are known to the next start.
        """
        try:
            if not self._is_clear():
                raise BusyError("squeue does not answer, or jobs of before are being cancelled")
            wanted = [stage for stage in stages if not self._has_job(stage)]
            for group in self.sender.groups(wanted, {stage.key for stage in stages}):
                needed = [self.ledger.jobs[key] for key in group.parents]
                with self.ledger.sending() as name:
                    self.ledger.note(self.sender.send(group.stages, name, needed))
        except BusyError as busy:
            raise InputError(f"{busy}; run the same command again for the rest") from busy

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """The stages that ended; looks at the disk every second and at the queue every ``poll`` seconds."""
        end = time.monotonic() + timeout
        while True:
            self._send()
            ended = self._ended(report)
            left = end - time.monotonic()
            if ended or left <= 0 or not (self._running or self._new):
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

    def _has_job(self, stage: Stage) -> bool:
        """Whether a job of the stage is in the queue, as that was last seen."""
        job = self.ledger.jobs.get(stage.key)
        return job is not None and job not in self._over and job in self._queue

    def _is_clear(self) -> bool:
        """Whether it is known which stages have jobs: else one might be sent twice."""
        return self.ledger.settle() and self._look()

    def _send(self) -> None:
        """The stages submitted since the last time, one array for each kind, or later if that cannot be now."""
        if not self._new or time.monotonic() < self._again or not self._is_clear():
            return
        self._take([stage for stage in self._new if self._has_job(stage)])
        try:
            for group in self.sender.groups(self._new, set()):
                with self.ledger.sending() as name:
                    self.ledger.note(self.sender.send(group.stages, name))
                self._take(group.stages)
                self._asked = float("-inf")  # what the queue was before says nothing of these
            self._busy = ""
        except BusyError as busy:
            self._busy, self._again = str(busy), time.monotonic() + self.options.poll

    def _take(self, stages: Sequence[Stage]) -> None:
        """Stages that have jobs now."""
        taken = {stage.key: stage for stage in stages}
        self._running |= taken
        self._new = [stage for stage in self._new if stage.key not in taken]

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
        for key, stage in list(self._running.items()):
            outcome = self._recorded(stage) if key in recorded else None
            if outcome is None and known and self.ledger.jobs[key] not in self._queue:
                outcome = self._gone(stage)
            if outcome is not None:
                ended.append(outcome)
                self._over.add(self.ledger.jobs[key])
                del self._running[key]
                self._missing.pop(key, None)
        self._show(report, known)
        return ended

    def _recorded(self, stage: Stage) -> Outcome | None:
        """The outcome that the stage's job wrote; None if another job of the stage wrote it."""
        held = read_json(self.sender.record(stage.key))
        if held.pop("job") != self.ledger.jobs[stage.key]:
            return None
        return Outcome(**held)

    def _gone(self, stage: Stage) -> Outcome | None:
        """What became of a stage whose job left the queue without a record; None to wait a little."""
        job = self.ledger.jobs[stage.key]
        if is_done(self.store, stage):  # killed after the work was done
            return Outcome(stage.key)
        first = self._missing.setdefault(stage.key, time.monotonic())
        state = last_state(job)
        if time.monotonic() - first < PATIENCE.get(state, 0.0):
            return None
        if state in LOST and self.ledger.count_requeue(stage.key) <= self.options.requeues:
            del self._running[stage.key], self._missing[stage.key]
            self._new.append(stage)
            return None
        log = self.sender.log(job, LOG_BYTES)
        error = f"its job {job} ended without a result (Slurm says {state}); log: {self.sender.log_path(job)}"
        return Outcome(stage.key, error, log)

    def _show(self, report: Report, known: bool) -> None:
        """How many jobs wait and run."""
        states = [self._queue.get(self.ledger.jobs[key], "") for key in self._running]
        runs, waits = states.count("RUNNING"), states.count("PENDING")
        total = len(self._submitted)
        done = total - len(self._running) - len(self._new)
        note = f"{runs} running, {waits} waiting" if known else "squeue does not answer"
        report("jobs", done, total, " ".join(f"{note}; {self._busy}".split()) if self._busy else note)
