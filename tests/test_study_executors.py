"""Where tasks run: in this process, in processes beside it, one CUDA device each."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from probes.study.done import is_done
from probes.study.executors import open_executor, resources
from probes.study.executors.base import Machine, Outcome, run_stage
from probes.study.executors.local import InlineExecutor, LocalExecutor
from probes.study.executors.resources import cuda_devices, machine_of, next_device, thread_count, worker_count
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_fakes import fake


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def until(executor, number, report=silent):
    """The next outcomes, by key."""
    found: dict[str, Outcome] = {}
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
    assert outcome == Outcome("a")
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


def test_a_process_that_dies_fails_its_task_only(store, tmp_path):
    executor = LocalExecutor(store, 2, 1)
    executor.submit(fake("a", "die"))
    executor.submit(fake("b"))
    assert executor.capacity() == 0
    found = until(executor, 2)
    assert found["a"].error.startswith("its process died (exit code -9, killed from outside")
    assert found["b"].error is None
    executor.submit(fake("c", "crash"))
    outcome = until(executor, 1)["c"]
    assert "exit code 3" in outcome.error
    assert outcome.log == "last words\n"
    executor.close()


def test_a_process_killed_from_outside_and_submitted_again(store, tmp_path):
    executor = LocalExecutor(store, 1, 1)
    task = fake("a", "wait", str(tmp_path / "go"))
    executor.submit(task)
    os.kill(int(wait_for(tmp_path / "go.a").read_text()), signal.SIGKILL)
    assert "exit code -9" in until(executor, 1)["a"].error
    (tmp_path / "go").write_text("")
    executor.submit(task)
    assert until(executor, 1)["a"].error is None
    executor.close()


def test_a_fork_server_that_is_killed_as_work_starts_is_one_line(store, monkeypatch):
    executor = LocalExecutor(store, 1, 1)

    def killed(process):
        raise EOFError

    monkeypatch.setattr("multiprocessing.context.ForkServerProcess.start", killed)
    with pytest.raises(InputError, match="the server that processes are forked from has died; start the study again"):
        executor.submit(fake("a"))
    executor.close()


def test_wait_ends_at_its_time(store, tmp_path):
    executor = LocalExecutor(store, 1, 1)
    executor.submit(fake("a", "wait", str(tmp_path / "never")))
    started = time.monotonic()
    assert executor.wait(silent, 0.2) == []
    assert time.monotonic() - started < 30
    executor.close()


def test_close_stops_what_runs(store, tmp_path):
    executor = LocalExecutor(store, 1, 1)
    executor.submit(fake("a", "wait", str(tmp_path / "never")))
    path = wait_for(tmp_path / "never.a")
    executor.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)


RUNNER = """
import sys
from pathlib import Path
from probes.study.executors.local import LocalExecutor
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_fakes import fake
if __name__ == "__main__":
    executor = LocalExecutor(Store(Path(sys.argv[1])), 1, 1)
    executor.submit(fake("a", "wait", sys.argv[2]))
    executor.wait(silent, 100.0)
"""


def test_a_worker_ends_when_its_runner_is_killed(tmp_path):
    """Though it is at work and reports nothing."""
    (tmp_path / "runner.py").write_text(RUNNER)
    command = [sys.executable, str(tmp_path / "runner.py"), str(tmp_path / "store"), str(tmp_path / "never")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent)])}
    runner = subprocess.Popen(command, env=environment)
    worker = int(wait_for(tmp_path / "never.a").read_text())
    runner.kill()
    runner.wait()
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


def test_the_device_that_became_free_is_next():
    assert next_device([], []) is None
    assert next_device(["0", "1"], []) == "0"
    assert next_device(["0", "1"], ["0", "0", "1"]) == "1"
    assert next_device(["0", "1"], ["1"]) == "0"
    assert next_device(["0", "1"], [None]) == "0"


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
    ("cells", "devices", "count"),
    [(9, [], 4), (2, [], 2), (9, ["0"], 1), (9, ["0", "1", "2"], 3), (0, [], 1)],
)
def test_how_many_workers(cells, devices, count, monkeypatch):
    monkeypatch.setattr(resources, "cores", lambda: 4)
    assert worker_count(cells, devices) == count


@pytest.mark.parametrize(
    ("executor", "workers", "machine"),
    [
        ("local", None, Machine(1, 4)),
        ("local", 3, Machine(3, 1)),  # as one asks: a cell has many seeds
        ("in-process", 3, Machine(1, 1)),  # as many threads as one of three workers has
        ("in-process", None, Machine(1, 4)),
    ],
)
def test_workers_of_a_study_of_one_cell(executor, workers, machine, monkeypatch):
    monkeypatch.setattr(resources, "cores", lambda: 4)
    monkeypatch.setattr("probes.study.executors.resources.cuda_devices", list)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert machine_of(executor, workers, 1) == machine


@pytest.mark.parametrize("name", ["in-process", "local"])
def test_progress_is_called_by_the_cell(name, store):
    heard = []
    executor = open_executor(name, store, store.root, Machine(1, 1))
    executor.submit(fake("a"), "trans, mlm")
    until(executor, 1, lambda task, *_: heard.append(task))
    executor.close()
    assert set(heard) == {"trans, mlm: fake a"}


@pytest.mark.parametrize(
    ("said", "workers", "threads"),
    [(None, 1, 8), (None, 3, 2), (None, 20, 1), ("1", 1, 1), ("3", 4, 3), ("0", 2, 4), ("x", 2, 4)],
)
def test_how_many_threads(said, workers, threads, monkeypatch):
    monkeypatch.setattr(resources, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS")
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert thread_count(workers) == threads


@pytest.mark.parametrize("name", ["in-process", "local"])
def test_every_executor_sets_the_threads(name, store):
    before = torch.get_num_threads()
    executor = open_executor(name, store, store.root, Machine(1, 2))
    executor.submit(fake("a"))
    until(executor, 1)
    executor.close()
    assert read_json(store.path("fake", "a") / "result.json")["threads"] == 2
    assert torch.get_num_threads() == before


def test_an_unknown_executor(store):
    with pytest.raises(InputError, match="executor must be one of local, in-process, slurm, not 'cloud'"):
        open_executor("cloud", store, store.root, Machine(1, 1))
