"""Behaviour of a job when it is done, when its task fails, and when Slurm ends it."""

import json
import os
import signal
import sys
import time

import pytest

pytest.importorskip("submitit", reason="submitit is not installed (pip install 'synthlang-study[slurm]')")

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from pretrain.stopping import EXIT_CODE, Flag, Stopped, on_sigterm, watched, watching
from probes.stages import making
from probes.stages.pretrain import PretrainStage
from probes.study.executors import slurm_job
from probes.study.executors.base import StageOutcome
from probes.study.executors.slurm_job import Job
from synthlang.config import parse
from synthlang.files import write_json
from synthlang.store import Store
from tests.runs import assert_same_run
from tests.study_graphs import keyed
from tests.tiny import PRETRAIN

DONE = StageOutcome("k")
STOPPED = StageOutcome("k", "Stopped: 3", "a traceback")


class Requeue:
    """In the place of submitit's handler of SIGUSR2."""

    def __init__(self, problem=None):
        self.problem, self.calls = problem, 0

    def __call__(self, signum, frame):
        self.calls += 1
        if self.problem:
            raise RuntimeError(self.problem)
        raise SystemExit(-1)


@pytest.fixture
def requeue():
    handler = Requeue()
    before = signal.signal(signal.SIGUSR2, handler)
    yield handler
    assert signal.getsignal(signal.SIGUSR2) is handler  # as it was before the job
    signal.signal(signal.SIGUSR2, before)


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Make a job whose task is a function."""
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    write_json(tmp_path / "task.json", keyed(PretrainStage(config=parse(PretrainConfig, PRETRAIN))).to_json())

    def make(does):
        monkeypatch.setattr(slurm_job, "run_stage", lambda task, store, report: does())
        return Job(str(tmp_path / "task.json"), str(tmp_path), str(tmp_path / "record.json"), 90)

    return make


def record(tmp_path):
    path = tmp_path / "record.json"
    return json.loads(path.read_text()) if path.exists() else None


def told(number, outcome):
    """A task that is told to end, and does when it looks."""

    def run():
        assert not watched().is_set
        os.kill(os.getpid(), number)
        assert watched().is_set
        return outcome

    return run


def test_a_job_writes_what_became_of_its_task(job, tmp_path, monkeypatch, capsys):
    job(lambda: DONE)()
    assert record(tmp_path)["error"] is None and record(tmp_path)["job"] == "12"
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "11")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    with pytest.raises(SystemExit) as end:
        job(lambda: StageOutcome("k", "no", "a traceback"))()
    assert end.value.code == 1
    assert record(tmp_path)["error"] == "no" and record(tmp_path)["job"] == "11_3"
    assert "a traceback" in capsys.readouterr().err


TOO_OFTEN = "Job not requeued because: timed-out too many times."


@pytest.mark.parametrize(
    ("number", "outcome", "problem", "code", "calls", "error"),
    [
        (signal.SIGTERM, DONE, None, None, 0, None),
        (signal.SIGUSR2, DONE, None, None, 0, None),
        (signal.SIGTERM, STOPPED, None, EXIT_CODE, 0, "no record"),  # Slurm has decided whether it starts again
        (signal.SIGUSR2, STOPPED, None, -1, 1, "no record"),  # it puts itself back into the queue
        (
            signal.SIGUSR2,
            STOPPED,
            TOO_OFTEN,
            1,
            1,
            f"{TOO_OFTEN.rstrip('.')}; give the job more time (--slurm time=MINUTES)",
        ),
    ],
)
def test_a_job_that_is_told_to_end(job, tmp_path, requeue, number, outcome, problem, code, calls, error):
    requeue.problem = problem
    run = job(told(number, outcome))
    if code is None:
        run()
    else:
        with pytest.raises(SystemExit) as end:
            run()
        assert end.value.code == code
    outcome = record(tmp_path) or {"error": "no record"}
    assert outcome["error"] == error or outcome["error"].startswith(error)
    assert requeue.calls == calls
    assert signal.alarm(0) == 0


def test_who_does_not_look_is_requeued_before_the_end(job, tmp_path, requeue, monkeypatch):
    asked = []

    def soon(seconds):
        asked.append(seconds)
        signal.setitimer(signal.ITIMER_REAL, 0.02 if seconds else 0.0)

    monkeypatch.setattr(signal, "alarm", soon)

    def run():
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(10)
        return DONE

    with pytest.raises(SystemExit) as end:
        job(run)()
    assert end.value.code == -1
    assert (requeue.calls, asked[0], record(tmp_path)) == (1, 60, None)


def test_a_pretraining_in_a_job_watches_its_flag_and_goes_on_bit_exactly(tmp_path):
    """The way of the flag: no argument, the block around the task."""
    config, store, flag = parse(PretrainConfig, PRETRAIN), Store(tmp_path), Flag()
    flag.is_set = True
    task = keyed(PretrainStage(config=config))
    for _ in range(2):
        with watching(flag), pytest.raises(Stopped):
            making.make(task, store, lambda name, done, total, note: None)
    making.make(task, store, lambda name, done, total, note: None)
    pretrain(config, tmp_path / "undisturbed", store)
    assert_same_run(store.path("pretrain", task.key), tmp_path / "undisturbed")


def test_flags_of_blocks():
    outer, inner = Flag(), Flag()
    assert watched() is not watched()
    with watching(outer):
        with watching(inner):
            assert watched() is inner
        with on_sigterm() as flag:
            assert flag is outer
            assert signal.getsignal(signal.SIGTERM) != flag.set
        assert watched() is outer
    with on_sigterm() as flag:
        assert flag is not outer
        assert signal.getsignal(signal.SIGTERM) == flag.set


def test_the_command_runs_one_task(tmp_path, monkeypatch, capsys):
    task = keyed(PretrainStage(config=parse(PretrainConfig, PRETRAIN)))
    write_json(tmp_path / "task.json", task.to_json())
    monkeypatch.setattr(sys, "argv", ["slurm_job", str(tmp_path / "task.json"), str(tmp_path / "stages")])
    with pytest.raises(SystemExit) as end:
        slurm_job.main()
    assert end.value.code == 0
    assert capsys.readouterr().out == "done\n"
    assert (tmp_path / "stages" / f"pretrain-{task.key}" / "done.json").exists()
