"""The Slurm executor on a real Slurm of one node: jobs that are killed, requeued, preempted, lost with their node.

Every disturbed run ends with the same bits as one that nobody disturbed, every study with the same files.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.slurm_cluster import cancel, hurry, kill, lose_node, preempt, queue, requeue, restarts, until, warn, why_not
from tests.study_graphs import keyed

if why_not():
    pytest.skip(why_not(), allow_module_level=True)

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes.stages.alignment import AlignmentStage
from probes.stages.done import is_whole
from probes.stages.kinds import STAGE_KINDS
from probes.stages.pretrain import PretrainStage
from probes.study.executors.slurm import SlurmExecutor
from probes.study.stage_folders import is_folder_name
from synthlang.config import parse
from synthlang.progress import silent
from synthlang.store import Store
from tests.runs import assert_same_run
from tests.slurm_cluster import running
from tests.tiny import PRETRAIN, STUDY, changed

STEPS, EVERY = 500, 50
FAST = ["time=60", "poll=0.5"]


@pytest.fixture(scope="module", autouse=True)
def _slurm():
    with running():
        yield


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def config(**values):
    return parse(PretrainConfig, changed(PRETRAIN, steps=STEPS, checkpoints__every=EVERY, **values))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    pretrain(config(), folder / "run", Store(folder / "store"))
    return folder / "run"


def checkpoint(store: Store) -> int:
    """The step of the newest checkpoint of the only run; by its name, for looking closer belongs to the run alone."""
    return max((int(path.name[5:]) for path in store.root.glob("pretrain-*/checkpoints/step-*")), default=0)


def disturbed(executor, task, happens):
    """The outcome of a task whose job ``happens`` to once, in the middle; and its job's id."""
    executor.submit(task)
    assert executor.wait(silent, 0.0) == []
    job = executor.jobs[task.key]
    record = executor.record(task.key)
    until(lambda: checkpoint(executor.store) or record.exists(), what="a checkpoint")
    assert not record.exists(), record.read_text()
    happens(job)
    end = time.monotonic() + 120
    while not (ended := executor.wait(silent, 0.5)):
        hurry()
        assert time.monotonic() < end, queue()
    return ended[0], job


@pytest.mark.parametrize("happens", [requeue, preempt, warn, lose_node], ids=lambda function: function.__name__)
def test_a_job_that_goes_back_into_the_queue_goes_on_bit_exactly(happens, tmp_path, undisturbed):
    store, task, steps = Store(tmp_path / "stages"), keyed(PretrainStage(config=config())), []

    def happen(job):
        happens(job)
        until(lambda: queue().get(job) == "PENDING", what="the requeue")
        if happens is not lose_node:  # a busy machine may be still at it
            until(lambda: checkpoint(store) % EVERY, what="the checkpoint of where it stood")
        steps.append(checkpoint(store))

    outcome, job = disturbed(SlurmExecutor(store, tmp_path, FAST), task, happen)
    assert outcome.error is None, outcome.log
    assert restarts(job) == 1
    assert 0 < steps[0] < STEPS
    assert (steps[0] % EVERY == 0) == (happens is lose_node)  # all others save where they stand
    assert_same_run(store.path("pretrain", task.key), undisturbed)


@pytest.mark.parametrize(("happens", "state"), [(kill, "FAILED"), (cancel, "CANCELLED")], ids=["kill", "cancel"])
def test_a_killed_job_is_seen_within_seconds_and_a_retry_goes_on(happens, state, tmp_path, undisturbed):
    store, task = Store(tmp_path / "stages"), keyed(PretrainStage(config=config()))
    executor = SlurmExecutor(store, tmp_path, FAST)
    when = []

    def happen(job):
        happens(job)
        when.append(time.monotonic())

    outcome, job = disturbed(executor, task, happen)
    assert time.monotonic() - when[0] < 30  # of which cancelling takes most: the job ends its step and saves
    assert f"the Slurm job {job} ended without a result (state {state})" in outcome.error
    assert "pretrain align_mlm trans+inv: " in outcome.log
    stood = checkpoint(store)
    assert 0 < stood < STEPS
    executor.submit(task)
    outcome = until(lambda: executor.wait(silent, 1.0))[0]
    assert outcome.error is None, outcome.log
    assert executor.jobs[task.key] != job
    assert_same_run(store.path("pretrain", task.key), undisturbed)


def test_what_waits_for_a_job_that_failed_leaves_the_queue(tmp_path):
    """And the next start sends both again."""
    (tmp_path / "text.txt").write_text("a b c .\n" * 100)
    broken = keyed(PretrainStage(config=config(source=str(tmp_path / "text.txt"), optimizer__learning_rate=1e30)))
    tasks = [broken, keyed(AlignmentStage(pretrained=broken))]
    executor = SlurmExecutor(Store(tmp_path / "stages"), tmp_path, FAST)
    executor.submit_graph(tasks)
    jobs = dict(executor.jobs)
    assert set(jobs.values()) <= set(queue())
    until(lambda: not set(jobs.values()) & set(queue()), what="the end of both")
    record = json.loads(executor.record(broken.key).read_text())
    assert record["error"] and record["job"] == jobs[broken.key]
    assert not executor.record(tasks[1].key).exists()
    later = SlurmExecutor(Store(tmp_path / "stages"), tmp_path, FAST)
    later.submit(broken)
    ended = until(lambda: later.wait(silent, 1.0))
    assert ended[0].error == record["error"]
    assert later.jobs[broken.key] != jobs[broken.key]


# --- whole studies, by the command ---


def study(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    path = folder.parent / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY))
    main = "import sys; from probes.cli import main; sys.exit(main())"
    with (folder.parent / f"{folder.name}.log").open("ab") as log:
        command = [sys.executable, "-c", main, "study", str(path), "--out", str(folder), *options]
        return subprocess.Popen(command, stdout=log, stderr=log)


SLURM = ["--executor", "slurm", "--slurm", "time=60", "--slurm", "poll=0.5"]
TABLES = ["results.csv", "measures.csv"]


def tables(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in TABLES]


def sent(folder: Path) -> int:
    """Return the number of jobs that were submitted."""
    return len(list((folder / "slurm" / "jobs").glob("*_submitted.pkl")))


def noted(folder: Path) -> dict[str, str]:
    """The job of every stage, as the runner wrote them down."""
    return dict(json.loads((folder / "slurm" / "jobs.json").read_text())["jobs"])


def stages(folder: Path) -> set[str]:
    """Return the finished stages. stage.json is not read, since it is missing if the node was lost just before it."""
    paths = [path for path in (folder / "stages").glob("*-*") if is_folder_name(path.name)]
    return {path.name for path in paths if is_whole(STAGE_KINDS[path.name.partition("-")[0]].content, path)}


def over(process: subprocess.Popen[bytes], folder: Path, seconds: float = 400.0) -> None:
    """Wait for a study to end, in good order."""
    end = time.monotonic() + seconds
    while process.poll() is None:
        hurry()
        assert time.monotonic() < end, queue()
        time.sleep(0.5)
    assert process.returncode == 0, (folder.parent / f"{folder.name}.log").read_text()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The tiny study in one process."""
    folder = tmp_path_factory.mktemp("reference") / "in-process"
    over(study(folder, "--executor", "in-process"), folder)
    return folder


def test_a_study_survives_its_runner_and_its_node(tmp_path, reference):
    """Both are killed in the middle; nothing finished is lost, and the tables are the same.

    No job is sent twice, except one that the runner was sending in the moment that it was killed.
    """
    folder = tmp_path / "slurm"
    process = study(folder, *SLURM)
    until(lambda: len(stages(folder)) >= 1, what="the first stage")
    process.send_signal(signal.SIGKILL)
    process.wait()
    known = noted(folder)
    unknown = sent(folder) - len(known)
    process = study(folder, *SLURM)
    until(lambda: len(stages(folder)) >= 3 or process.poll() is not None, what="the third stage")
    made = stages(folder)
    lose_node("")
    assert made <= stages(folder)
    over(process, folder)
    assert tables(folder) == tables(reference)
    assert stages(folder) == stages(reference)
    assert noted(folder).items() >= known.items()
    assert 0 <= sent(folder) - len(stages(folder)) <= unknown


def test_a_study_handed_over_is_collected_later(tmp_path, reference):
    folder = tmp_path / "slurm"
    over(study(folder, *SLURM, "--no-wait"), folder, 120)
    assert len(queue()) > 0
    over(study(folder, *SLURM, "--no-wait"), folder, 120)  # sends nothing twice
    until(lambda: not queue(), 300, "the end of all jobs")
    assert stages(folder) == stages(reference)
    over(study(folder, *SLURM), folder, 120)
    assert tables(folder) == tables(reference)
    assert sent(folder) == len(stages(folder))


# --- parsing


def parse_text(folder: Path, model: Path, *options: str) -> subprocess.Popen[bytes]:
    main = "import sys; from probes.cli import main; sys.exit(main())"
    source = "builtin:mini-english?types=500&sentences=3000&dev=20&test=20"
    with (folder.parent / f"{folder.name}.log").open("ab") as log:
        command = [sys.executable, "-c", main, "parse", source, "--model", str(model), "--out", str(folder), *options]
        return subprocess.Popen(command, stdout=log, stderr=log)


def test_parsing_survives_its_runner_and_its_node(tmp_path):
    """The output has the bytes of one process, and no finished part is parsed again."""
    pytest.importorskip("spacy", reason="needs the extra parse: spaCy")
    from tests.test_parsing_engines import train_spacy

    model, folder, work = tmp_path / "model", tmp_path / "slurm", tmp_path / ".parsing-slurm"
    train_spacy(model)
    over(parse_text(tmp_path / "serial", model, "--cache", str(tmp_path / "own")), tmp_path / "serial")
    jobs = [*SLURM, "--job-sentences", "600"]
    process = parse_text(folder, model, *jobs)

    def finished() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (work / "stages").glob("parse-*/result.json")}

    until(finished, what="the first part")
    process.send_signal(signal.SIGKILL)
    process.wait()
    lose_node("")
    made = finished()
    assert 1 <= len(made) < 7 and not folder.exists()
    process = parse_text(folder, model, *jobs)
    until(lambda: len(finished()) > len(made) or process.poll() is not None, what="the next part")
    assert work.exists() and made.items() <= finished().items()
    over(process, folder)
    assert not work.exists()
    for name in ("train.conllu", "dev.conllu", "test.conllu", "manifest.json"):
        assert (folder / name).read_bytes() == (tmp_path / "serial" / name).read_bytes()
