"""Stages into job arrays: who goes with whom, what sbatch is told, where logs and records lie."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.study.executors.slurm_job import Job
from probes.study.executors.slurm_options import SlurmOptions
from probes.study.executors.slurm_queue import queue
from probes.study.stage import Stage
from synthlang.errors import InputError
from synthlang.files import write_json
from synthlang.store import Store

FULL = "SubmitJob|MaxJobCount"
"""What sbatch says at a limit on the number of jobs,"""
AWAY = "contact slurm controller|timed out|temporarily|standby|zero bytes|connection refused|not connected"
"""and when the controller is away or starting."""


class BusyError(Exception):
    """Nothing was taken, as far as one knows, and the same may go well later."""


@dataclass(frozen=True)
class Group:
    """Stages of one kind that wait for the same stages: one array."""

    stages: tuple[Stage, ...]
    parents: tuple[str, ...]


class Sender:
    """Sends stages to the queue; ``folder`` holds stages/, records/ and submitit's own files in jobs/."""

    def __init__(self, store: Store, folder: Path, options: SlurmOptions) -> None:
        os.environ.setdefault("SUBMITIT_PREEMPT_SIGNAL", "USR2")  # the one slurm_job answers to
        self.store, self.folder, self.options = store, folder, options
        self.size = options.array_size
        self.stages, self.records, self.jobs = folder / "stages", folder / "records", folder / "jobs"
        for path in (self.stages, self.records, self.jobs):
            path.mkdir(parents=True, exist_ok=True)

    def record(self, key: str) -> Path:
        """Where the job of a stage writes its outcome."""
        return self.records / f"{key}.json"

    def log_path(self, job: str) -> Path:
        """What the job of an id wrote to stderr, and Slurm about it."""
        return self.jobs / f"{job}_0_log.err"

    def log(self, job: str, size: int) -> str:
        """The end of a job's log; empty if it never started."""
        path = self.log_path(job)
        if not path.exists():
            return ""
        with path.open("rb") as handle:
            handle.seek(max(0, path.stat().st_size - size))
            return handle.read().decode("utf-8", "replace")

    def groups(self, stages: Sequence[Stage], waited: set[str]) -> Iterator[Group]:
        """Arrays in the order in which they can be sent; of the parents only those in ``waited`` count.

        None is larger than what a limit of the cluster let through last.
        """
        depth: dict[str, int] = {}
        found: dict[tuple[int, tuple[str, ...], str], list[Stage]] = {}
        for stage in stages:
            parents = tuple(sorted(parent.key for parent in stage.parents if parent.key in waited))
            depth[stage.key] = 1 + max((depth.get(key, 0) for key in parents), default=0)
            found.setdefault((depth[stage.key], parents, stage.kind), []).append(stage)
        size = self.size  # of this time: sending changes it
        for (_, parents, _), held in sorted(found.items(), key=lambda item: item[0][0]):
            for start in range(0, len(held), size):
                yield Group(tuple(held[start : start + size]), parents)

    def send(self, stages: Sequence[Stage], name: str, needed: Sequence[str] = ()) -> dict[str, str]:
        """Send one array of stages of one kind, to start when the jobs ``needed`` have ended well; {key: job id}.

        BusyError if that may go well later, InputError if it will not.
        """
        import submitit

        kind = stages[0].kind
        executor = submitit.SlurmExecutor(self.jobs, max_num_timeout=self.options.requeues, python=self.options.python)
        executor.update_parameters(**self._parameters(kind, name, needed))
        work = [self._job(stage) for stage in stages]
        try:
            sent = executor.submit_array(work)
        except (RuntimeError, OSError) as error:
            if re.search(FULL, str(error)):
                self.size = max(1, min(self.size, len(stages)) // 2)
                raise BusyError(
                    f"the cluster takes no more jobs of yours now (--slurm jobs=N sends fewer): {error}"
                ) from error
            if re.search(AWAY, str(error), re.IGNORECASE) or queue() is None:
                raise BusyError(f"sbatch does not answer: {error}") from error
            raise InputError(f"sbatch refuses the jobs of kind {kind}: {error}") from error
        self.size = min(2 * self.size, self.options.array_size)
        return {stage.key: str(job.job_id) for stage, job in zip(stages, sent, strict=True)}

    def _job(self, stage: Stage) -> Job:
        path = self.stages / f"{stage.key}.json"
        if not path.exists():
            write_json(path, stage.to_json())
        self.record(stage.key).unlink(missing_ok=True)
        return Job(str(path), str(self.store.root), str(self.record(stage.key)), self.options.warning)

    def _parameters(self, kind: str, name: str, needed: Sequence[str]) -> dict[str, Any]:
        """What submitit writes into the job script."""
        asked = self.options.of(kind)
        additional: dict[str, Any] = {"requeue": True, "kill-on-invalid-dep": "yes"}
        parameters: dict[str, Any] = {
            **{key: getattr(asked, key) for key in ("partition", "account", "qos", "constraint", "exclude", "gres")},
            "time": asked.time,
            "mem": asked.mem,
            "cpus_per_task": asked.cpus,
            "gpus_per_node": asked.gpus or None,
            "setup": list(asked.setup) or None,
            "dependency": f"afterok:{':'.join(needed)}" if needed else None,
            "job_name": name,
            "array_parallelism": self.options.array_parallelism,
            "signal_delay_s": self.options.warning,
            # since 22.05 srun does not take the processors of the job by itself
            "srun_args": [f"--cpus-per-stage={asked.cpus}"],
            "additional_parameters": additional,
        }
        return {key: value for key, value in parameters.items() if value is not None}


def check_submitit() -> None:
    """InputError if the extra is missing."""
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise InputError("--executor slurm needs submitit: pip install 'synthlang[slurm]'") from error
