"""Studies killed or failing in places that test_study.py leaves out."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from probes.study.config import StudyConfig, expand
from probes.study.runner import StudyRun
from synthlang.config import parse
from synthlang.files import read_json
from tests.tiny import STUDY, changed

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def study_of(data):
    return parse(StudyConfig, data)


def command(folder: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "probes.cli", "study", str(folder / "study.yaml"), "--out", str(out), *options]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with study.yaml and ``out``, an uninterrupted run on two workers."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    done = subprocess.run(
        command(folder, folder / "out", "--workers", "2"), env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    return folder


def results(out):
    return (out / "results.csv").read_bytes()


def rows_of(out):
    with (out / "results.csv").open() as handle:
        return list(csv.DictReader(handle))


MOMENTS = [  # a file that shows where the study is; whether its workers are killed with it
    ("shards-*", False),
    ("pretrain-*/done.json", True),
]


@pytest.mark.parametrize(("moment", "whole_group"), MOMENTS)
def test_kill_9_and_start_again_gives_the_same_results(finished, tmp_path, moment, whole_group):
    """Killed as soon as a file of a stage appears: the runner alone, or with all its workers."""
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(finished, out, "--workers", "2"),
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not list((out / "stages").glob(moment)) and time.monotonic() < deadline:
        time.sleep(0.002)
    if whole_group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    assert not (out / "report.html").exists(), "the study was over before it was killed"
    subprocess.run(command(finished, out, "--workers", "2"), env=ENVIRONMENT, check=True, capture_output=True)
    assert results(out) == results(finished / "out")


def test_a_killed_worker_fails_its_cell_only_and_the_next_start_mends_it(finished, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(changed(STUDY, pretrain__steps=300)))
    process = subprocess.Popen(
        command(tmp_path, out, "--workers", "2"), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while len(list((out / "stages").glob("pretrain-*/checkpoints/step-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = [
        int(p)
        for p in descendants(process.pid)
        if "spawn_main" not in command_line(p) and "forkserver" in command_line(p)
    ]
    os.kill(max(workers), signal.SIGKILL)
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 1
    assert b"its process died" in output
    statuses = sorted(cell["status"] for cell in read_json(out / "study.json")["cells"])
    assert statuses == ["done", "failed"]
    subprocess.run(command(tmp_path, out, "--workers", "2"), env=ENVIRONMENT, check=True, capture_output=True)
    assert len(rows_of(out)) == 4


def descendants(pid):
    """Processes below ``pid``, from /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended while we looked
        parents[path.parent.name] = fields[1]
    found, grown = {str(pid)}, True
    while grown:
        new = {p for p, parent in parents.items() if parent in found} - found
        found |= new
        grown = bool(new)
    return sorted(found - {str(pid)}, key=int)


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_a_cell_that_fails_is_reported_and_the_rest_go_on(tmp_path):
    """A cell whose dictionary turns out empty once its text is known."""
    data = changed(STUDY, grid={"product": {"pretrain.dictionary.coverage": [0.5, 0.001]}}, pretrain__language="trans")
    data["seeds"] = [0]
    study = study_of(data)
    run = StudyRun(study, expand(study), tmp_path / "out")
    run.run("in-process")
    assert [state.status(1) for state in run.states] == ["done", "failed"]
    assert run.states[1].error is not None
    assert "empty dictionary" in run.states[1].error
    assert len(run.rows()) == 1
    assert "empty dictionary" in (tmp_path / "out" / "report.html").read_text()
