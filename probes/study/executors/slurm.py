"""Executor whose stages are jobs of a Slurm cluster, submitted as arrays by submitit.

submitit writes the job scripts, submits them, starts the jobs and requeues them. The state of a job is read here and
not by submitit, for two reasons: submitit runs ``sacct``, which many clusters do not have, and it returns results as
pickles. A job writes its outcome to ``records/<key>.json``. The queue (``squeue``) shows which jobs ended without a
record, so nothing waits for the accounting of Slurm.

``jobs.json`` maps stages to jobs, so that a restarted runner finds its jobs. If the runner is killed while it submits a
job, the job may be submitted twice. The second job then waits for the lock of the first, and finds the stage finished.
If the cluster does not answer, the same command continues later.
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
from typing import Any

from probes.stages.base import Stage
from probes.stages.done import is_done
from probes.study.executors.base import StageOutcome
from probes.study.executors.slurm_job import Job
from probes.study.executors.slurm_options import SlurmOptions, read_options
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.files import read_json, write_json, writing
from synthlang.progress import Report
from synthlang.store import Store

FOLDER = "slurm"
PROGRAMS = ("sbatch", "squeue", "srun")
ANSWER = 60.0
"""Seconds without an answer after which the controller of Slurm counts as unreachable."""
NO_QUEUE, NO_MORE = f"squeue failed, or took over {ANSWER:.0f} s", "the cluster accepts no more of your jobs now"
"""Reasons of errors."""
FORMAT = 2
LOOK = 1.0
"""Seconds between two checks of the records."""
UNKNOWN = "UNKNOWN"
PATIENCE = {UNKNOWN: 15.0, "COMPLETED": 15.0, "FAILED": 10.0}
"""Last state of a job → seconds to wait until its record appears on the shared disk, or Slurm requeues it."""
LOST = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
"""States of jobs that the cluster lost, with no fault of the stage."""
LOG_BYTES = 8_000
FULL = "SubmitJob|MaxJobCount"
"""Pattern of the messages of sbatch at a limit on the number of jobs."""


def check_slurm(folder: Path) -> None:
    """Raise InputError if this machine cannot submit jobs, or cannot submit them for a study in this folder."""
    if "%" in str(folder.absolute()):
        reason = "the path has the character %, which Slurm replaces in the names of logs"
        raise InputError(reason, folder, hint="name a path without this character", code="unsupported")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        one, verb = ("command", "is") if len(missing) == 1 else ("commands", "are")
        reason = f"the {one} {', '.join(missing)} of Slurm {verb} not on the PATH"
        hint = "run the same command on a login node of the cluster"
        raise InputError(reason, "--executor slurm", hint=hint, code="extra")
    if queue() is None:
        hint = "run `scontrol ping`, and set SLURM_CONF if the cluster needs it"
        raise InputError(NO_QUEUE, "--executor slurm", hint=hint, code="failed")
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        hint = f"run {install_command('slurm')}"
        raise InputError("submitit is not installed", "--executor slurm", hint=hint, code="extra") from error


def queue() -> dict[str, str] | None:
    """Return the jobs of this user in the queue: job id → state. Return None if ``squeue`` does not answer.

    A job id is ``12``, or ``12_3`` for an element of an array.
    """
    found = _said("squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i %T")
    if found is None:
        return None
    pairs = (line.split() for line in found.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def last_state(job: str) -> str:
    """Return the last state of a job (FAILED, CANCELLED, TIMEOUT, …), or UNKNOWN without accounting."""
    found = _said("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State")
    return next(iter((found or "").split("\n")[0].split()), UNKNOWN)


def _said(*command: str) -> str | None:
    """Return the output of a command, or None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _python() -> str:
    """Return the command that starts this Python.

    The option -P keeps the working folder, whose files could hide modules, out of ``sys.path``. It is left out if this
    process has the folder there.
    """
    here = {os.path.realpath(place or ".") for place in sys.path}
    return shlex.quote(sys.executable) + ("" if os.path.realpath(".") in here else " -P")


class FullError(Exception):
    """Raised when the cluster accepts no more jobs for now. Its text is the message of sbatch."""


class SlurmExecutor:
    """An executor whose stages are jobs. The folder of the study must be on a disk that all nodes share.

    Args:
        store: The store of the stages, on a disk that all nodes share.
        folder: The folder of the study.
        assignments: Options of Slurm, as ``KEY=VALUE`` or ``KIND.KEY=VALUE``.

    Raises:
        InputError: An option is wrong, this machine cannot submit jobs for this folder, or jobs.json cannot be read or
            has another format.

    Attributes:
        options: The options of Slurm.
        store: The store, with an absolute path.
        folder: The folder ``slurm`` of the study.
        path: The file jobs.json.
        jobs: Key of a stage → id of its last job, as in jobs.json.
        size: Largest number of jobs in the next array. A limit of the cluster reduces it.
    """

    def __init__(self, store: Store, folder: Path, assignments: Sequence[str] = ()) -> None:
        self.options: SlurmOptions = read_options(assignments)
        check_slurm(folder)
        os.environ.setdefault("SUBMITIT_PREEMPT_SIGNAL", "USR2")  # the signal that slurm_job handles
        self.store, self.folder = Store(store.root.absolute()), folder.absolute() / FOLDER
        for name in ("tasks", "records", "jobs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "jobs.json"
        self.jobs: dict[str, str] = _read_jobs(self.path)
        self.size = self.options.array_size  # of arrays, reduced at a limit of the cluster
        self._requeues: dict[str, int] = {}
        self._new: list[Stage] = []
        self._running: dict[str, Stage] = {}
        self._submitted: set[str] = set()
        self._missing: dict[str, float] = {}  # key → time when its job was first missing without a record
        self._queue: dict[str, str] = {}
        self._asked = float("-inf")
        self._full = ""  # the reason why nothing can be submitted now
        self._again = float("-inf")  # the time of the next try
        self._over: set[str] = set()  # jobs with a known outcome, which may still be in the queue

    def submit(self, stage: Stage, cell: str = "") -> None:
        """Submit a stage with the next array, unless a job of the stage is still in the queue."""
        del cell
        self._submitted.add(stage.key)
        self._new.append(stage)

    def submit_graph(self, stages: Sequence[Stage]) -> None:
        """Submit all stages (parents first), each to start when its parents have succeeded.

        A stage whose parent fails leaves the queue. The next start of the study may submit it again.

        Raises:
            InputError: The cluster does not answer, refuses a job, or does not accept all stages now. The accepted
                stages are recorded for the next start.
        """
        if not self._look():
            hint = "run the same command again when squeue works"
            raise InputError(NO_QUEUE, "--executor slurm", hint=hint, code="failed")
        wanted = [stage for stage in stages if not self._has_job(stage)]
        try:
            for array, parents in self._arrays(wanted, {stage.key for stage in stages}):
                self._send_array(array, parents)
        except FullError as full:
            reason, hint = f"{NO_MORE}: {full}", "run the same command again later, which submits the other jobs"
            raise InputError(reason, "--executor slurm", hint=hint, code="failed") from full

    def wait(self, report: Report, timeout: float) -> list[StageOutcome]:
        """Return the outcomes of ended stages. The disk is checked every second, the queue every ``poll`` seconds.

        Raises:
            InputError: sbatch fails for another reason than a limit on the number of jobs, or the record of a job or
                the checksums of its stage cannot be read.
            DiskError: A file of the jobs cannot be written.
        """
        end = time.monotonic() + timeout
        while True:
            self._send()
            ended = self._ended(report)
            left = end - time.monotonic()
            if ended or left <= 0 or not (self._running or self._new):
                return ended
            time.sleep(min(LOOK, left))

    def capacity(self) -> int:
        """Return the number of jobs that are free under the limit ``jobs``."""
        return max(0, self.options.jobs - len(self._running) - len(self._new))

    def close(self) -> None:
        """Leave the jobs to Slurm. The next start finds them."""

    def record(self, key: str) -> Path:
        """Return the file to which the job of the stage with this key writes its outcome."""
        return self.folder / "records" / f"{key}.json"

    def log_path(self, job: str) -> Path:
        """Return the file with the standard error of a job and the messages of Slurm about it."""
        return self.folder / "jobs" / f"{job}_0_log.err"

    # --- submission ---

    def _has_job(self, stage: Stage) -> bool:
        """Return whether a job of the stage was in the queue at the last check."""
        job = self.jobs.get(stage.key)
        return job is not None and job not in self._over and job in self._queue

    def _send(self) -> None:
        """Submit the new stages in arrays. Stages beyond a limit of the cluster wait."""
        if not self._new or time.monotonic() < self._again or not self._look():
            return
        self._take([stage for stage in self._new if self._has_job(stage)])
        try:
            for array, parents in self._arrays(self._new, set()):
                self._send_array(array, parents)
                self._take(array)
                self._asked = float("-inf")  # The known queue does not have these jobs yet.
            self._full = ""
        except FullError as full:
            self._full = f"{NO_MORE} (--slurm jobs=N submits fewer): {full}"
            self._again = time.monotonic() + self.options.poll

    def _take(self, stages: Sequence[Stage]) -> None:
        taken = {stage.key: stage for stage in stages}
        self._running |= taken
        self._new = [stage for stage in self._new if stage.key not in taken]

    def _arrays(self, stages: Sequence[Stage], waited: set[str]) -> Iterator[tuple[list[Stage], tuple[str, ...]]]:
        """Group stages of one kind with equal parents into arrays, parents first.

        Args:
            stages: The stages.
            waited: Keys of the parents that are dependencies of jobs.

        Yields:
            The stages of an array, and the keys of the parents whose jobs must succeed first.
        """
        depth: dict[str, int] = {}
        found: dict[tuple[int, tuple[str, ...], str], list[Stage]] = {}
        for stage in stages:
            parents = tuple(sorted(parent.key for parent in stage.parents if parent.key in waited))
            depth[stage.key] = 1 + max((depth.get(key, 0) for key in parents), default=0)
            found.setdefault((depth[stage.key], parents, stage.kind), []).append(stage)
        size = self.size  # Submission changes self.size.
        for (_, parents, _), members in sorted(found.items(), key=lambda item: item[0][0]):
            for start in range(0, len(members), size):
                yield members[start : start + size], parents

    def _send_array(self, stages: Sequence[Stage], parents: Sequence[str]) -> None:
        """Submit an array that starts after the jobs of its parents succeed, and record its job ids.

        Raises:
            FullError: The cluster limits the number of jobs.
            InputError: sbatch fails for another reason.
            DiskError: A file of the jobs cannot be written.
        """
        import submitit

        kind = stages[0].kind
        executor = submitit.SlurmExecutor(
            self.folder / "jobs", max_num_timeout=self.options.requeues, python=self.options.python or _python()
        )
        executor.update_parameters(**self._parameters(kind, [self.jobs[key] for key in parents]))
        try:
            with writing(self.folder / "jobs"):
                sent = executor.submit_array([self._job(stage) for stage in stages])
        except RuntimeError as error:
            if re.search(FULL, str(error)):
                self.size = max(1, min(self.size, len(stages)) // 2)
                raise FullError(str(error)) from error
            hint = f"correct the options of {kind} with --slurm, or run the same command again if Slurm was only busy"
            if queue() is None:
                hint = "run the same command again when squeue works"
            reason = f"sbatch failed for the jobs of kind {kind}: {error}"
            raise InputError(reason, "--executor slurm", hint=hint, code="failed") from error
        self.size = min(2 * self.size, self.options.array_size)
        self.jobs |= {stage.key: str(job.job_id) for stage, job in zip(stages, sent, strict=True)}
        write_json(self.path, {"format": FORMAT, "jobs": self.jobs})

    def _job(self, stage: Stage) -> Job:
        path = self.folder / "tasks" / f"{stage.key}.json"
        write_json(path, stage.to_json())  # Stages with one key may be spelled differently. The last one counts.
        self.record(stage.key).unlink(missing_ok=True)
        return Job(str(path), str(self.store.root), str(self.record(stage.key)), self.options.warning)

    def _parameters(self, kind: str, needed: Sequence[str]) -> dict[str, Any]:
        """Return the parameters of the job script for submitit."""
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
            # Since version 22.05, srun does not use the processors of the job by itself.
            "srun_args": [f"--cpus-per-task={job.cpus}"],
            "additional_parameters": {"requeue": True, "kill-on-invalid-dep": "yes"},
        }
        return {key: value for key, value in parameters.items() if value is not None}

    # --- outcomes of jobs ---

    def _look(self) -> bool:
        """Update the queue if the last update is old, and return whether the queue is known."""
        if time.monotonic() - self._asked >= self.options.poll:
            found = queue()
            if found is None:
                return False
            self._queue, self._asked = found, time.monotonic()
        return True

    def _ended(self, report: Report) -> list[StageOutcome]:
        ended = []
        known = self._look()  # This comes first, because a job that has left the queue has written its record.
        recorded = {path.stem for path in (self.folder / "records").glob("*.json")}
        for key, stage in list(self._running.items()):
            outcome = self._recorded(stage) if key in recorded else None
            if outcome is None and known and self.jobs[key] in self._queue:
                self._missing.pop(key, None)  # The job was between two starts.
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
        """Return the outcome that the job of a stage wrote, or None if another job of the stage wrote it."""
        record = read_json(self.record(stage.key))
        if record.pop("job") != self.jobs[stage.key]:
            return None
        return StageOutcome(**record)

    def _gone(self, stage: Stage) -> StageOutcome | None:
        """Return the outcome of a job that left the queue without a record, or None if it is not known yet."""
        job = self.jobs[stage.key]
        if is_done(self.store, stage):  # The job was killed after the stage was finished.
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
        error = f"the Slurm job {job} ended without a result (state {state}); see the log {path}"
        return StageOutcome(stage.key, error, log)

    def _show(self, report: Report, known: bool) -> None:
        states = [self._queue.get(self.jobs[key], "") for key in self._running]
        runs, waits = states.count("RUNNING"), states.count("PENDING")
        total = len(self._submitted)
        done = total - len(self._running) - len(self._new)
        note = f"{runs} running, {waits} waiting" if known else NO_QUEUE
        report("jobs", done, total, " ".join(f"{note}; {self._full}".split()) if self._full else note)


def _read_jobs(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    content: Any = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        hint = "cancel the jobs in the queue, and delete this file"
        raise InputError(f"is not a list of jobs of format {FORMAT}", path, hint=hint, code="format")
    return dict(content["jobs"])
