"""Where tasks run: in this process, in processes beside it, one CUDA device each."""

import os
import signal
import time
from pathlib import Path

import pytest
import torch

from pretrain.threads import set_environment, threads_for, use_threads
from probes.stages.done import is_done
from probes.study.executors import open_executor, resources
from probes.study.executors.base import Machine, StageOutcome, run_stage
from probes.study.executors.local import InlineExecutor, LocalExecutor
from probes.study.executors.resources import cuda_devices, machine_of
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.refusals import refused
from tests.runs import forked
from tests.study_fakes import fake


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def until(executor, number, report=silent):
    """The next outcomes, by key."""
    found: dict[str, StageOutcome] = {}
    deadline = time.monotonic() + 60
    while len(found) < number:
        found |= {outcome.key: outcome for outcome in executor.wait(report, 1.0)}
        assert time.monotonic() < deadline, found
    return found


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.005)
    return path


@pytest.fixture(params=["inline", "local"])
def executor(request, store):
    made = InlineExecutor(store, 1) if request.param == "inline" else LocalExecutor(store, 1, 1)
    yield made
    made.close()


def test_a_stage_is_made_and_noted(executor, store):
    seen = []
    executor.submit(fake("a"))
    assert executor.capacity() == 0
    outcome = until(executor, 1, lambda *said: seen.append(said))["a"]
    assert outcome == StageOutcome("a")
    assert executor.capacity() == 1
    assert is_done(store, fake("a"))
    assert read_json(store.path("fake", "a") / "stage.json")["label"] == "fake a"
    assert seen == [("fake a", 0, 1, "ok"), ("fake a", 1, 1, "")]


@pytest.mark.parametrize(
    ("does", "error", "log"),
    [("raise", "RuntimeError: two lines", "in _raise"), ("input", "that cannot be", "in _input")],
)
def test_an_error_is_one_line_with_its_traceback(does, error, log, executor, store):
    executor.submit(fake("a", does))
    outcome = until(executor, 1)["a"]
    assert outcome.error == error
    assert log in outcome.log
    assert not is_done(store, fake("a"))


def test_a_task_that_another_runner_finished_is_not_run_again(executor, store):
    run_stage(fake("a"), store, silent)
    made = (store.path("fake", "a") / "result.json").stat().st_mtime_ns
    executor.submit(fake("a", "raise"))
    assert until(executor, 1)["a"].error is None
    assert (store.path("fake", "a") / "result.json").stat().st_mtime_ns == made


def test_wait_without_tasks_returns(executor):
    assert executor.wait(silent, 0.0) == []


# --- processes ---


@pytest.fixture
def local(store):
    made = LocalExecutor(store, 2, 1)
    yield made
    made.close()


def test_a_process_that_dies_fails_its_task_only_which_may_be_submitted_again(local, tmp_path):
    local.submit(fake("a", "die"))
    local.submit(fake("b"))
    assert local.capacity() == 0
    found = until(local, 2)
    assert found["a"].error.startswith("the worker process died (exit code -9, killed from outside")
    assert found["b"].error is None
    local.submit(fake("c", "crash"))
    outcome = until(local, 1)["c"]
    assert "exit code 3" in outcome.error
    assert outcome.log == "last words\n"
    task = fake("d", "wait", str(tmp_path / "go"))
    local.submit(task)
    assert local.wait(silent, 0.2) == [], "it waits no longer than it is told to"
    os.kill(int(wait_for(tmp_path / "go.d").read_text()), signal.SIGKILL)
    assert "exit code -9" in until(local, 1)["d"].error
    (tmp_path / "go").write_text("")
    local.submit(task)
    assert until(local, 1)["d"].error is None


def test_a_fork_server_that_is_killed_as_work_starts_is_one_line(local, monkeypatch):
    def killed(process):
        raise EOFError

    monkeypatch.setattr("multiprocessing.context.ForkServerProcess.start", killed)
    with pytest.raises(InputError, match="the process that starts the workers has ended; start the study again"):
        local.submit(fake("a"))


def test_close_stops_what_runs(store, tmp_path):
    executor = LocalExecutor(store, 1, 1)
    executor.submit(fake("a", "wait", str(tmp_path / "never")))
    path = wait_for(tmp_path / "never.a")
    executor.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)


def run_one(root, never):
    executor = LocalExecutor(Store(root), 1, 1)
    executor.submit(fake("a", "wait", never))
    executor.wait(silent, 100.0)


def test_a_worker_ends_when_its_runner_is_killed(tmp_path):
    """Though it is at work and reports nothing."""
    runner = forked(run_one, tmp_path / "store", tmp_path / "never")
    worker = int(wait_for(tmp_path / "never.a").read_text())
    runner.kill()
    runner.join()
    deadline = time.monotonic() + 30
    while (
        Path(f"/proc/{worker}").exists() and "Z" not in Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2][:3]
    ):
        assert time.monotonic() < deadline, "the worker lives on"
        time.sleep(0.01)
    assert not list(tmp_path.glob("store/fake-*"))


# --- what a worker gets ---


def test_each_worker_sees_the_least_busy_device(store, tmp_path):
    executor = LocalExecutor(store, 3, 1, ["2", "GPU-7"])
    go = tmp_path / "go"
    for key in "abc":
        executor.submit(fake(key, "wait", str(go)))
    go.write_text("")
    until(executor, 3)
    executor.submit(fake("d"))
    until(executor, 1)
    executor.close()
    seen = {key: read_json(store.path("fake", key) / "result.json")["visible"] for key in "abcd"}
    assert seen == {"a": "2", "b": "GPU-7", "c": "2", "d": "2"}
    assert os.environ.get("CUDA_VISIBLE_DEVICES") is None


@pytest.mark.parametrize(
    ("count", "visible", "names"),
    [
        (0, None, []),
        (3, None, ["0", "1", "2"]),
        (2, "5, 3", ["5", "3"]),
        (1, "GPU-ab,GPU-cd", ["GPU-ab"]),  # the second one does not exist
        (0, "", []),
    ],
)
def test_names_of_devices(count, visible, names, monkeypatch):
    monkeypatch.setattr(resources, "version", lambda name: "2.9.0+cu128")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert cuda_devices() == names


def test_a_build_without_cuda_is_not_asked(monkeypatch):
    monkeypatch.setattr(resources, "version", lambda name: "2.9.0+cpu")
    monkeypatch.setattr(torch.cuda, "device_count", None)
    assert cuda_devices() == []


@pytest.mark.parametrize(
    ("executor", "workers", "cells", "devices", "said", "machine"),
    [
        ("local", None, 9, "", None, (8, 1)),
        ("local", None, 2, "", None, (2, 4)),
        ("local", None, 9, "0", None, (1, 8)),
        ("local", None, 9, "012", None, (3, 2)),
        ("local", None, 0, "", None, (1, 8)),
        ("local", 3, 1, "", None, (3, 2)),  # as one asks: a cell has many seeds
        ("in-process", 3, 1, "", None, (1, 2)),  # as many threads as one of three workers has
        ("local", 20, 9, "", None, (20, 1)),
        ("local", 4, 9, "", "3", (4, 3)),
        ("local", 2, 9, "", "0", (2, 4)),
        ("local", 2, 9, "", "x", (2, 4)),
    ],
)
def test_workers_and_threads(executor, workers, cells, devices, said, machine, monkeypatch):
    monkeypatch.setattr(resources, "cores", lambda: 8)
    monkeypatch.setattr(resources, "cuda_devices", lambda: [*devices])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert machine_of(executor, workers, cells) == Machine(machine[0], machine[1], tuple(devices))


def test_a_narrow_model_has_one_thread_and_waiting_threads_sleep(monkeypatch):
    """A tiny pretraining took 962 s with a thread a core, on two that others used, and 78 s with one."""
    monkeypatch.setattr(resources, "cores", lambda: 8)
    monkeypatch.setattr("pretrain.threads.cores", lambda: 8)
    monkeypatch.setattr(resources, "cuda_devices", list)
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "GLIBC_TUNABLES"):
        monkeypatch.setenv(name, "")  # so that it is taken back
        monkeypatch.delenv(name)
    assert [threads_for(hidden) for hidden in (64, 512, None)] == [1, 8, 8]
    settings = ((None, 64), (3, 64), (None, 512))
    assert [machine_of("local", 2, 9, said, hidden).threads for said, hidden in settings] == [1, 3, 4]
    set_environment()
    assert (os.environ["GOMP_SPINCOUNT"], os.environ["GLIBC_TUNABLES"]) == ("1000", "glibc.malloc.hugetlb=1")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_for(64) == 2
    assert refused(use_threads, -1) == ("threads", "range")


@pytest.mark.parametrize("name", ["in-process", "local"])
def test_every_executor_sets_the_threads_and_calls_progress_by_the_cell(name, store):
    before, heard = torch.get_num_threads(), []
    executor = open_executor(name, store, store.root, Machine(1, 2))
    executor.submit(fake("a"), "trans, mlm")
    until(executor, 1, lambda task, *_: heard.append(task))
    executor.close()
    assert set(heard) == {"trans, mlm: fake a"}
    assert read_json(store.path("fake", "a") / "result.json")["threads"] == 2
    assert torch.get_num_threads() == before
