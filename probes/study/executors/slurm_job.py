"""A job of a cluster: it makes one stage of a study, and saves and requeues itself at a signal.

    python -m probes.study.executors.slurm_job TASK.json STORE    make one stage by hand

Slurm sends two signals. At SIGTERM the job ends within seconds, and Slurm has decided whether it starts again: a
preempted or requeued job does, a cancelled job does not. SIGUSR2 means that the time limit is near, and the job
requeues itself. At both signals pretraining and adjustment finish the step and save. Other stages run on until they are
finished or killed, and continue from the disk at the next start.
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
    """The callable that submitit starts on a node. Its attributes are paths and a number, so that it can be pickled.

    Attributes:
        stage: The JSON file of the stage.
        store: The folder of the store.
        record: The file for the outcome.
        warning: Seconds between SIGUSR2 and the time limit.
    """

    stage: str
    store: str
    record: str
    warning: int

    def __call__(self) -> None:
        """Make the stage and write its outcome. The exit code is not 0 if the stage failed or was stopped."""
        with _ending(self.warning) as ending:
            outcome = run_file(Path(self.stage), Path(self.store))
            if outcome.error is not None and ending.flag.is_set:  # The stage was stopped and has no fault of its own.
                outcome = ending.leave(outcome)
        write_json(Path(self.record), {**asdict(outcome), "job": job_id()})
        if outcome.error is not None:
            print(outcome.log or outcome.error, file=sys.stderr)
            raise SystemExit(1)

    def checkpoint(self) -> DelayedSubmission:
        """Return the callable for the start after a requeue: this job, since its progress is on disk."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class _Ending:
    """Handlers of the scheduler's signals, with a flag that pretraining watches."""

    def __init__(self, warning: int) -> None:
        self.flag = Flag()
        self.warning = warning
        self.is_warned = False
        self.requeue: Any = signal.getsignal(signal.SIGUSR2)  # submitit's handler, which requeues the job and exits

    def warn(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGUSR2: set the flag, and an alarm in case no training watches the flag."""
        self.flag.set(signum, frame)
        self.is_warned = True
        signal.alarm(max(1, self.warning * 2 // 3))

    def leave(self, outcome: StageOutcome) -> StageOutcome:
        """Exit, or requeue the job after a warning. Return a failed outcome if no requeue is left."""
        signal.alarm(0)
        if not self.is_warned:
            raise SystemExit(EXIT_CODE)
        try:
            self.requeue(signal.SIGUSR2, None)
        except RuntimeError as problem:  # The job reached its time limit too often.
            advice = "give the job more time (--slurm time=MINUTES) or more requeues (--slurm requeues=N)"
            return replace(outcome, error=f"{str(problem).rstrip('.')}; {advice}")
        raise AssertionError("a requeued job exits")


@contextmanager
def _ending(warning: int) -> Iterator[_Ending]:
    """Handle the signals of the scheduler inside the block, where every run watches the flag."""
    ending = _Ending(warning)
    handlers: dict[int, Any] = {signal.SIGTERM: ending.flag.set}
    if callable(ending.requeue):
        # At the alarm no training has watched the flag, so the job is requeued as it stands.
        handlers |= {
            signal.SIGUSR2: ending.warn,
            signal.SIGALRM: lambda _, frame: ending.requeue(signal.SIGUSR2, frame),
        }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with watching(ending.flag):
            yield ending
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def run_file(path: Path, store: Path) -> StageOutcome:
    """Make the stage of a JSON file with one thread for each processor of the job. Progress goes to standard error.

    Raises:
        InputError: The file cannot be read or is not JSON.
    """
    from probes.stages.kinds import stage_from_json

    use_threads(int(os.environ.get("SLURM_CPUS_PER_TASK", "1")))
    stage = stage_from_json(read_json(path))
    with Display() as display:
        display.message(f"job {job_id()}: {stage.label}")
        return run_stage(stage, Store(store), display.report)


def job_id() -> str:
    """Return the id of this job, as the queue shows it, or "" outside a job."""
    array, index = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{index}" if array else os.environ.get("SLURM_JOB_ID", "")


def main() -> None:
    """Make the stage of the given file, and exit with code 0 if it is finished, else with code 1."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m probes.study.executors.slurm_job TASK.json STORE")
    outcome = run_file(Path(sys.argv[1]), Path(sys.argv[2]))
    print("done" if outcome.error is None else outcome.log or outcome.error)
    raise SystemExit(0 if outcome.error is None else 1)


if __name__ == "__main__":
    main()
