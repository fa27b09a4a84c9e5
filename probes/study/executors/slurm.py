"""Stages as jobs of a Slurm cluster, sent as arrays through submitit.

Whether a stage is done is read from the disk: its job writes ``records/<key>.json``. The queue only tells which jobs
are gone without one, so nothing here waits for Slurm's accounting. ``jobs.json`` says which job makes which stage, so
that a restarted runner finds its jobs. A runner killed in the moment that it sends a job may send that once more: the
second one waits for the lock of the first, and finds the stage made. Where the cluster does not answer, the same
command goes on.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from probes.stages.base import Stage
from probes.stages.done import is_done
from probes.study.executors.base import StageOutcome
from probes.study.executors.slurm_job import Job
from probes.study.executors.slurm_options import SlurmOptions, read_options
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.progress import Report
from synthlang.store import Store

FOLDER = "slurm"
PROGRAMS = ("sbatch", "squeue", "srun")
ANSWER = 60.0  # seconds; a controller that answers later is away
FORMAT = 2
LOOK = 1.0  # seconds between two looks at the records
UNKNOWN = "UNKNOWN"
PATIENCE = {UNKNOWN: 15.0, "COMPLETED": 15.0, "FAILED": 10.0}
"""Seconds that a record may need from another node, or Slurm to put a job back that ends by the signal to do so."""
LOST = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")  # no fault of the stage
LOG_BYTES = 8_000
FULL = "SubmitJob|MaxJobCount"
"""What sbatch says at a limit on the number of jobs."""


def check_slurm() -> None:
    """InputError if no job can be sent from here."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise InputError(
            f"{', '.join(missing)} not found: --executor slurm runs where jobs are submitted (a login node)"
        )
    if queue() is None:
        raise InputError("squeue does not answer: see `scontrol ping`, and SLURM_CONF if the cluster needs it")
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise InputError("--executor slurm needs submitit: pip install 'synthlang[slurm]'") from error


def queue() -> dict[str, str] | None:
    """{job id: state} of this user's jobs that wait, run or are ending; None without an answer.

    An id is ``12``, or ``12_3`` for the element of an array.
    """
    found = _said("squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i %T")
    if found is None:
        return None
    pairs = (line.split() for line in found.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def last_state(job: str) -> str:
    """How a job ended (FAILED, CANCELLED, TIMEOUT, …), or UNKNOWN: without accounting Slurm forgets it."""
    found = _said("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State")
    return next(iter((found or "").split("\n")[0].split()), UNKNOWN)


def _said(*command: str) -> str | None:
    """What a command prints, None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _python() -> str:
    """The Python that runs now; it looks into the working folder, where a user has files of any name, only if this one
    does."""
    here = {os.path.realpath(place or ".") for place in sys.path}
    return shlex.quote(sys.executable) + ("" if os.path.realpath(".") in here else " -P")


class JobArray(NamedTuple):
    """Stages of one kind that wait for the same jobs: one array."""

    stages: Sequence[Stage]
    parents: Sequence[str]


class FullError(Exception):
    """The cluster takes no more jobs now."""


class SlurmExecutor:
    """An executor whose stages are jobs; ``folder`` is the study's, and must be on a disk that the nodes share.

    jobs   key of a stage → id of its last job, as jobs.json has it
    """

    def __init__(self, store: Store, folder: Path, assignments: Sequence[str] = ()) -> None:
        self.options: SlurmOptions = read_options(assignments)
        check_slurm()
        os.environ.setdefault("SUBMITIT_PREEMPT_SIGNAL", "USR2")  # the one slurm_job answers to
        self.store, self.folder = Store(store.root.absolute()), folder.absolute() / FOLDER
        for name in ("tasks", "records", "jobs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "jobs.json"
        self.jobs: dict[str, str] = _read_jobs(self.path)
        self.size = self.options.array_size  # of arrays, smaller after a limit of the cluster
        self._requeues: dict[str, int] = {}
        self._new: list[Stage] = []
        self._running: dict[str, Stage] = {}
        self._submitted: set[str] = set()
        self._missing: dict[str, float] = {}  # key → when its job was first seen gone without a record
        self._queue: dict[str, str] = {}
        self._asked = float("-inf")
        self._full = ""  # why nothing can be sent now,
        self._again = float("-inf")  # and when that is tried again
        self._over: set[str] = set()  # jobs whose outcome is known, though they may be leaving the queue still

    def submit(self, stage: Stage, cell: str = "") -> None:
        """Send the stage with the next array; a job of it that is still in the queue is taken over then."""
        del cell
        self._submitted.add(stage.key)
        self._new.append(stage)

    def submit_graph(self, stages: Sequence[Stage]) -> None:
        """Send all ``stages`` (parents first), each to start when those it is made of have ended well.

        One whose parent fails leaves the queue; the next start of the study sends it again if it may. InputError if the
        cluster does not take all of them now; those that were taken are known to the next start.
        """
        if not self._look():
            raise InputError("squeue does not answer; run the same command again")
        wanted = [stage for stage in stages if not self._has_job(stage)]
        try:
            for array in self._arrays(wanted, {stage.key for stage in stages}):
                self._send_array(array)
        except FullError as full:
            raise InputError(f"{full}; run the same command again for the rest") from full

    def wait(self, report: Report, timeout: float) -> list[StageOutcome]:
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

    def record(self, key: str) -> Path:
        return self.folder / "records" / f"{key}.json"

    def log_path(self, job: str) -> Path:
        """What the job of an id wrote to stderr, and Slurm about it."""
        return self.folder / "jobs" / f"{job}_0_log.err"

    # --- sending ---

    def _has_job(self, stage: Stage) -> bool:
        """Whether a job of the stage is in the queue, as that was last seen."""
        job = self.jobs.get(stage.key)
        return job is not None and job not in self._over and job in self._queue

    def _send(self) -> None:
        """The stages submitted since the last time, one array for each kind; later at a limit of the cluster."""
        if not self._new or time.monotonic() < self._again or not self._look():
            return
        self._take([stage for stage in self._new if self._has_job(stage)])
        try:
            for array in self._arrays(self._new, set()):
                self._send_array(array)
                self._take(array.stages)
                self._asked = float("-inf")  # what the queue was before says nothing of these
            self._full = ""
        except FullError as full:
            self._full, self._again = str(full), time.monotonic() + self.options.poll

    def _take(self, stages: Sequence[Stage]) -> None:
        taken = {stage.key: stage for stage in stages}
        self._running |= taken
        self._new = [stage for stage in self._new if stage.key not in taken]

    def _arrays(self, stages: Sequence[Stage], waited: set[str]) -> Iterator[JobArray]:
        """Arrays in the order in which they can be sent; of the parents only those in ``waited`` count."""
        depth: dict[str, int] = {}
        found: dict[tuple[int, tuple[str, ...], str], list[Stage]] = {}
        for stage in stages:
            parents = tuple(sorted(parent.key for parent in stage.parents if parent.key in waited))
            depth[stage.key] = 1 + max((depth.get(key, 0) for key in parents), default=0)
            found.setdefault((depth[stage.key], parents, stage.kind), []).append(stage)
        size = self.size  # of this time: sending changes it
        for (_, parents, _), members in sorted(found.items(), key=lambda item: item[0][0]):
            for start in range(0, len(members), size):
                yield JobArray(members[start : start + size], parents)

    def _send_array(self, array: JobArray) -> None:
        """Send one array, to start when the jobs of its parents have ended well, and note its ids.

        FullError at a limit on the number of jobs, InputError for anything else that sbatch says.
        """
        import submitit

        kind = array.stages[0].kind
        executor = submitit.SlurmExecutor(
            self.folder / "jobs", max_num_timeout=self.options.requeues, python=self.options.python or _python()
        )
        executor.update_parameters(**self._parameters(kind, [self.jobs[key] for key in array.parents]))
        try:
            sent = executor.submit_array([self._job(stage) for stage in array.stages])
        except (RuntimeError, OSError) as error:
            if re.search(FULL, str(error)):
                self.size = max(1, min(self.size, len(array.stages)) // 2)
                raise FullError(
                    f"the cluster takes no more jobs of yours now (--slurm jobs=N sends fewer): {error}"
                ) from error
            away = "; run the same command again when the controller is back" if queue() is None else ""
            raise InputError(f"sbatch refuses the jobs of kind {kind}: {error}{away}") from error
        self.size = min(2 * self.size, self.options.array_size)
        self.jobs |= {stage.key: str(job.job_id) for stage, job in zip(array.stages, sent, strict=True)}
        write_json(self.path, {"format": FORMAT, "jobs": self.jobs})

    def _job(self, stage: Stage) -> Job:
        path = self.folder / "tasks" / f"{stage.key}.json"
        write_json(path, stage.to_json())  # of the same key with other spellings, or other steps to log at, the last
        self.record(stage.key).unlink(missing_ok=True)
        return Job(str(path), str(self.store.root), str(self.record(stage.key)), self.options.warning)

    def _parameters(self, kind: str, needed: Sequence[str]) -> dict[str, Any]:
        """What submitit writes into the job script."""
        job = self.options.of(kind)
        parameters: dict[str, Any] = {
            **{key: getattr(job, key) for key in ("partition", "account", "qos", "constraint", "exclude", "gres")},
            "time": job.time,
            "mem": job.mem,
            "cpus_per_task": job.cpus,
            "gpus_per_node": job.gpus or None,
            "setup": list(job.setup) or None,
            "dependency": f"afterok:{':'.join(needed)}" if needed else None,
            "job_name": f"synthlang-{kind}",
            "array_parallelism": self.options.array_parallelism,
            "signal_delay_s": self.options.warning,
            # since 22.05 srun does not take the processors of the job by itself
            "srun_args": [f"--cpus-per-task={job.cpus}"],
            "additional_parameters": {"requeue": True, "kill-on-invalid-dep": "yes"},
        }
        return {key: value for key, value in parameters.items() if value is not None}

    # --- what becomes of jobs ---

    def _look(self) -> bool:
        """Ask for the queue unless that was a moment ago; whether it is known."""
        if time.monotonic() - self._asked >= self.options.poll:
            found = queue()
            if found is None:
                return False
            self._queue, self._asked = found, time.monotonic()
        return True

    def _ended(self, report: Report) -> list[StageOutcome]:
        ended = []
        known = self._look()  # first: a job that was gone by then has written what it had to
        recorded = {path.stem for path in (self.folder / "records").glob("*.json")}
        for key, stage in list(self._running.items()):
            outcome = self._recorded(stage) if key in recorded else None
            if outcome is None and known and self.jobs[key] in self._queue:
                self._missing.pop(key, None)  # it was between two starts
            elif outcome is None and known:
                outcome = self._gone(stage)
            if outcome is not None:
                ended.append(outcome)
                self._over.add(self.jobs[key])
                del self._running[key]
                self._missing.pop(key, None)
        self._show(report, known)
        return ended

    def _recorded(self, stage: Stage) -> StageOutcome | None:
        """The outcome that the stage's job wrote; None if another job of the stage wrote it."""
        record = read_json(self.record(stage.key))
        if record.pop("job") != self.jobs[stage.key]:
            return None
        return StageOutcome(**record)

    def _gone(self, stage: Stage) -> StageOutcome | None:
        """What became of a stage whose job left the queue without a record; None to wait a little."""
        job = self.jobs[stage.key]
        if is_done(self.store, stage):  # killed after the work was done
            return StageOutcome(stage.key)
        first = self._missing.setdefault(stage.key, time.monotonic())
        state = last_state(job)
        if time.monotonic() - first < PATIENCE.get(state, 0.0):
            return None
        if state in LOST and self._requeues.get(stage.key, 0) < self.options.requeues:
            self._requeues[stage.key] = self._requeues.get(stage.key, 0) + 1
            del self._running[stage.key], self._missing[stage.key]
            self._new.append(stage)
            return None
        path = self.log_path(job)
        log = path.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace") if path.exists() else ""
        return StageOutcome(stage.key, f"its job {job} ended without a result (Slurm says {state}); log: {path}", log)

    def _show(self, report: Report, known: bool) -> None:
        states = [self._queue.get(self.jobs[key], "") for key in self._running]
        runs, waits = states.count("RUNNING"), states.count("PENDING")
        total = len(self._submitted)
        done = total - len(self._running) - len(self._new)
        note = f"{runs} running, {waits} waiting" if known else "squeue does not answer"
        report("jobs", done, total, " ".join(f"{note}; {self._full}".split()) if self._full else note)


def _read_jobs(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    content: Any = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"is no list of jobs of format {FORMAT}; cancel the study's jobs and delete it", path)
    return dict(content["jobs"])
