"""One job of a cluster: a stage of a study, which saves and goes back into the queue when it is told to end.

    python -m probes.study.executors.slurm_job TASK.json STORE    the same by hand, as a job would do it

Slurm speaks in two ways. SIGTERM: the job ends within seconds, and whether it starts again is settled already
(preempted and requeued: yes; cancelled: no). SIGUSR2: the time limit is near, and the job puts itself back into the
queue. In both cases pretraining and adjustment finish the step and save; what does not look at the flag goes on until
it is done or ended, and starts from what it has on disk.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from pretrain.stopping import EXIT_CODE, Flag, watching
from pretrain.threads import use_threads
from probes.study.executors.base import StageOutcome, run_stage
from synthlang.files import read_json, write_json
from synthlang.progress import Display
from synthlang.store import Store

if TYPE_CHECKING:
    from submitit.core.utils import DelayedSubmission


@dataclass(frozen=True)
class Job:
    """What submitit starts on a node: names of files, nothing else.

    ``stage`` is the stage as JSON, ``record`` where its outcome goes; ``warning`` the seconds between SIGUSR2 and the
    time limit.
    """

    stage: str
    store: str
    record: str
    warning: int

    def __call__(self) -> None:
        """Run the stage, write its outcome; the exit code is not 0 if it failed or was told to end."""
        with _ending(self.warning) as ending:
            outcome = run_file(Path(self.stage), Path(self.store))
            if outcome.error is not None and ending.flag.is_set:  # it was stopped: nothing is wrong with the stage
                outcome = ending.leave(outcome)
        write_json(Path(self.record), {**asdict(outcome), "job": job_id()})
        if outcome.error is not None:
            print(outcome.log or outcome.error, file=sys.stderr)
            raise SystemExit(1)

    def checkpoint(self) -> DelayedSubmission:
        """What submitit starts after a requeue: the same; where it stood is on disk."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class _Ending:
    """Signals of the scheduler, as a flag that pretraining watches."""

    def __init__(self, warning: int) -> None:
        self.flag = Flag()
        self.warning = warning
        self.is_warned = False
        self.requeue: Any = signal.getsignal(signal.SIGUSR2)  # submitit's: requeues the job and exits

    def warn(self, signum: int, frame: FrameType | None) -> None:
        """SIGUSR2: save if somebody watches the flag, else leave while there is time."""
        self.flag.set(signum, frame)
        self.is_warned = True
        signal.alarm(max(1, self.warning * 2 // 3))

    def leave_now(self, signum: int, frame: FrameType | None) -> None:
        """SIGALRM: nobody watched the flag."""
        del signum
        self.requeue(signal.SIGUSR2, frame)

    def leave(self, outcome: StageOutcome) -> StageOutcome:
        """Exit, after a warning by way of the queue; an outcome if the queue takes it no more."""
        signal.alarm(0)
        if not self.is_warned:
            raise SystemExit(EXIT_CODE)
        try:
            self.requeue(signal.SIGUSR2, None)
        except RuntimeError as problem:  # it reached its time limit too often
            return replace(outcome, error=f"{problem} Give it more time (--slurm time=MINUTES) or more requeues")
        raise AssertionError("a requeued job exits")


@contextmanager
def _ending(warning: int) -> Iterator[_Ending]:
    """Signals set the flag inside the block, and every run in it watches the flag."""
    ending = _Ending(warning)
    handlers: dict[int, Any] = {signal.SIGTERM: ending.flag.set}
    if callable(ending.requeue):
        handlers |= {signal.SIGUSR2: ending.warn, signal.SIGALRM: ending.leave_now}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with watching(ending.flag):
            yield ending
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def run_file(path: Path, store: Path) -> StageOutcome:
    """Run the stage that a JSON file holds, with as many threads as the job has processors; progress goes to stderr."""
    from probes.stages.kinds import stage_from_json

    use_threads(int(os.environ.get("SLURM_CPUS_PER_TASK", "1")))
    stage = stage_from_json(read_json(path))
    with Display() as display:
        display.message(f"job {job_id()}: {stage.label}")
        return run_stage(stage, Store(store), display.report)


def job_id() -> str:
    """The id of this job as the queue shows it; empty outside one."""
    array, index = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{index}" if array else os.environ.get("SLURM_JOB_ID", "")


def main() -> None:
    """The command: exit code 0 if the stage is done."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m probes.study.executors.slurm_job TASK.json STORE")
    outcome = run_file(Path(sys.argv[1]), Path(sys.argv[2]))
    print("done" if outcome.error is None else outcome.log or outcome.error)
    raise SystemExit(0 if outcome.error is None else 1)


if __name__ == "__main__":
    main()
