"""Studies in real processes: the same results however they were run, killed or resumed."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from probes.study.config import StudyConfig, expand
from probes.study.runner import StudyRun
from synthlang.config import parse
from synthlang.errors import InputError
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


def test_the_artifacts(finished):
    out = finished / "out"
    rows = rows_of(out)
    assert [(r["objective"], r["seed"]) for r in rows] == [(o, s) for o in ("mlm", "align_mlm") for s in ("0", "1")]
    for row in rows:
        assert float(row["delta"]) == pytest.approx(float(row["sup"]) - float(row["zs"]))
    table = pq.read_table(out / "results.parquet").to_pylist()
    assert [{k: str(v) for k, v in row.items()} for row in table] == rows
    study = read_json(out / "study.json")
    assert [cell["status"] for cell in study["cells"]] == ["done", "done"]
    page = (out / "report.html").read_text()
    assert "align_mlm" in page
    assert 'src="http' not in page
    run = out / study["cells"][0]["run"]
    assert len(read_json(run / "transfer.json")) == 2
    assert len(read_json(run / "probes.json")) == 1
    assert {p.name for p in (run / "export").iterdir()} == {"parent", "trans"}


def test_in_process_gives_the_same_bytes(finished, tmp_path):
    subprocess.run(
        command(finished, tmp_path / "out", "--executor", "in-process"),
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )
    assert results(tmp_path / "out") == results(finished / "out")


def test_a_second_start_runs_nothing(finished):
    stages = finished / "out" / "stages"
    before = {p: p.stat().st_mtime_ns for p in stages.rglob("*") if ".locks" not in p.parts}
    results_before = results(finished / "out")
    subprocess.run(command(finished, finished / "out"), env=ENVIRONMENT, check=True, capture_output=True)
    assert before == {p: p.stat().st_mtime_ns for p in stages.rglob("*") if ".locks" not in p.parts}
    assert results(finished / "out") == results_before


MOMENTS = [  # a file that shows where the study is; whether its workers are killed with it
    ("shards-*", False),
    ("pretrain-*/checkpoints/step-*", True),
    ("pretrain-*/done.json", False),
    ("transfer-*/result.json", True),
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
    data = changed(STUDY, grid={"product": {"pretrain.dictionary.coverage": [0.5, 0.0]}}, pretrain__language="trans")
    data["seeds"] = [0]
    study = study_of(data)
    run = StudyRun(study, expand(study), tmp_path / "out")
    run.run("in-process")
    assert [state.status(1) for state in run.states] == ["done", "failed"]
    assert run.states[1].error is not None
    assert "empty dictionary" in run.states[1].error
    assert len(run.rows()) == 1
    assert "empty dictionary" in (tmp_path / "out" / "report.html").read_text()


def test_cells_share_a_pretraining(tmp_path):
    data = changed(STUDY, grid={"product": {"transfer.epochs": [1, 2]}}, pretrain__language="trans")
    data["seeds"] = [0]
    study = study_of(data)
    run = StudyRun(study, expand(study), tmp_path / "out")
    run.run("in-process")
    rows = run.rows()
    assert len({row["pretrain"] for row in rows}) == 1
    assert len({row["transfer"] for row in rows}) == 2


def test_another_study_in_the_folder_is_refused(finished):
    before = results(finished / "out")
    study = study_of(changed(STUDY, seeds=[5]))
    with pytest.raises(InputError, match=r"holds another study .tiny, "):
        StudyRun(study, expand(study), finished / "out").run("in-process")
    assert results(finished / "out") == before


def names(grid):
    study = study_of(changed(STUDY, grid=grid, pretrain__language="trans"))
    return [cell.name for cell in expand(study)]


def test_grids_by_hand():
    assert names({}) == ["tiny"]
    product = {"pretrain.language": ["trans", "trans+inv"], "pretrain.seed": [0, 1]}
    assert names({"product": product}) == ["trans, seed=0", "trans, seed=1", "trans+inv, seed=0", "trans+inv, seed=1"]
    excluded = {"product": product, "exclude": [{"pretrain.language": "trans", "pretrain.seed": 1}]}
    assert names(excluded) == ["trans, seed=0", "trans+inv, seed=0", "trans+inv, seed=1"]
    walked = {"product": {"pretrain.seed": [0, 1]}, "zip": {"pretrain.steps": [4, 8], "transfer.epochs": [1, 2]}}
    assert names(walked)[:2] == ["seed=0, steps=4, epochs=1", "seed=0, steps=8, epochs=2"]
    assert len(names(walked)) == 4


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"product": {"pretain.seed": [0]}}, "axis 'pretain.seed' must start with one of source, pretrain, transfer"),
        ({"product": {"pretrain.seed": []}}, "axis 'pretrain.seed' has no values"),
        ({"zip": {"pretrain.seed": [0, 1], "transfer.epochs": [1]}}, "same length"),
        ({"product": {"pretrain.seed": [0]}, "zip": {"pretrain.seed": [1]}}, "stands in product and in zip"),
        ({"product": {"pretrain.sed": [0]}}, "cell sed=0: .*sed: unknown key"),
        ({"product": {"pretrain.language": ["trans:7"]}}, "cell trans:7: .*strength"),
        ({"product": {"transfer.length": [4096]}}, "transfer.length 4096 exceeds pretrain.batch.length 48"),
        ({"product": {"pretrain.seed": [0, 0]}}, "two cells of the grid are the same"),
        ({"product": {"pretrain.seed": [0]}, "exclude": [{"pretrain.seed": 0}]}, "the grid has no cell"),
    ],
)
def test_wrong_grids(grid, message):
    with pytest.raises(InputError, match=message):
        names(grid)
