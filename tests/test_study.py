"""A study: its grid by hand, the tiny study on both executors, and what killing it leaves."""

import csv
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from pretrain.run import pretrain as run_pretraining
from probes import cli
from probes.study import runner, stages
from probes.study.config import GridConfig, StudyConfig, cell_name, expand, load_study
from probes.study.runner import StudyRun
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.progress import Display
from tests.tiny import STUDY, changed

A, B, C = "pretrain.seed", "pretrain.steps", "transfer.fine_tune.epochs"


def grid(**values) -> GridConfig:
    return parse(GridConfig, values)


def study_of(**values) -> StudyConfig:
    return parse(StudyConfig, changed(STUDY, **values))


def cells_of(**values):
    return expand(study_of(grid=values))


# --- the grid ---


def test_product_is_in_the_order_of_the_yaml_with_the_last_axis_fastest():
    assert grid(product={B: [5, 6], A: [0, 1]}).cells() == [
        {B: 5, A: 0},
        {B: 5, A: 1},
        {B: 6, A: 0},
        {B: 6, A: 1},
    ]


def test_zip_walks_its_lists_together():
    assert grid(zip={A: [0, 1], B: [5, 6]}).cells() == [{A: 0, B: 5}, {A: 1, B: 6}]


def test_product_and_zip_together():
    assert grid(product={C: [1, 2]}, zip={A: [0, 1], B: [5, 6]}).cells() == [
        {C: 1, A: 0, B: 5},
        {C: 1, A: 1, B: 6},
        {C: 2, A: 0, B: 5},
        {C: 2, A: 1, B: 6},
    ]


def test_exclude_leaves_out_what_agrees_with_every_key():
    product = {A: [0, 1], B: [5, 6]}
    assert grid(product=product, exclude=[{A: 0, B: 6}]).cells() == [{A: 0, B: 5}, {A: 1, B: 5}, {A: 1, B: 6}]
    assert grid(product=product, exclude=[{A: 0}, {B: 6}]).cells() == [{A: 1, B: 5}]


def test_no_axis_is_one_cell():
    assert grid().cells() == [{}]
    (cell,) = expand(parse(StudyConfig, {**STUDY, "pretrain": {**STUDY["pretrain"], "language": "trans"}, "grid": {}}))
    assert cell.name == "tiny"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"product": {"model.layers": [1]}}, "axis 'model.layers' must start with one of source, pretrain, transfer"),
        ({"zip": {"seeds": [1]}}, "axis 'seeds' must start with one of source, pretrain, transfer"),
        ({"zip": {A: [0, 1], B: [5]}}, "lists of zip must have the same length"),
        ({"product": {A: []}}, f"axis '{A}' has no values"),
        ({"zip": {A: []}}, f"axis '{A}' has no values"),
        ({"product": {A: [0]}, "zip": {A: [1]}}, f"axis '{A}' stands in product and in zip"),
        ({"product": {A: 0}}, f"product.{A}.* must be a list"),
        ({"produkt": {A: [0]}}, "produkt.*did you mean product"),
    ],
)
def test_wrong_grids(values, message):
    with pytest.raises(InputError, match=message):
        study_of(grid=values)


LANGUAGES = {"pretrain.language": ["trans"]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"product": LANGUAGES | {A: [3, 3]}}, "two cells of the grid are the same"),
        ({"product": LANGUAGES | {A: [0]}, "exclude": [{A: 0}]}, "the grid has no cell"),
        ({"product": LANGUAGES | {"pretrain.stepz": [5]}}, "cell trans, stepz=5: stepz: unknown key; .*steps"),
        (
            {"product": LANGUAGES | {"transfer.fine_tune.epoch": [5]}},
            "cell trans, epoch=5: fine_tune.epoch: unknown key; .*epochs",
        ),
        (
            {"product": LANGUAGES | {"pretrain.objective.mask": [0.1]}},
            "cell trans, mask=0.1: objective.mask: unknown key; .*mask_rate",
        ),
        ({"product": LANGUAGES | {B: [3, "many"]}}, "cell trans, many: steps: 'many' must be an integer"),
        ({"product": {"pretrain.language": ["trans", "trans:1.5"]}}, r"cell trans:1.5: .*strength.*1.5"),
        ({"product": {"pretrain.language": ["trans", "swap"]}}, "cell swap: .*'swap' is none of"),
        ({"product": LANGUAGES | {"pretrain.source": ["x"]}}, "source of a study stands at its top"),
        (
            {"product": LANGUAGES | {"transfer.length": [48, 64]}},
            "cell trans, length=64: transfer.length 64 exceeds the 48 tokens that the model reads",
        ),
        (
            {"product": {"pretrain.language": ["inv"], "pretrain.objective.kind": ["align_mlm"]}},
            "cell inv, align_mlm: objective: align needs a dictionary: a transliterated language",
        ),
    ],
)
def test_wrong_cells_are_named(values, message):
    with pytest.raises(InputError, match=message):
        cells_of(**values)


def test_overrides_reach_the_settings_and_leave_the_rest():
    first, second = cells_of(
        product={"pretrain.language": ["trans"], "pretrain.objective.kind": ["mlm"]},
        zip={"pretrain.optimizer.learning_rate": [0.5, 0.25], "transfer.fine_tune.epochs": [3, 4]},
    )
    assert [c.pretrain.optimizer.learning_rate for c in (first, second)] == [0.5, 0.25]
    assert [c.transfer.fine_tune.epochs for c in (first, second)] == [3, 4]
    for cell in (first, second):
        assert cell.pretrain.objective.mask_rate == 0.3
        assert cell.pretrain.optimizer.warmup_steps == 2
        assert cell.transfer.train_items == 60


def test_cell_names():
    language = {"name": "half", "transforms": [{"kind": "transliterate", "strength": 0.5}]}
    assert cell_name({"pretrain.language": "trans", "pretrain.dictionary.coverage": 0.25}) == "trans, coverage=0.25"
    assert cell_name({"pretrain.language": language, A: 3}) == "half, seed=3"


def test_set_reaches_the_study(tmp_path):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(STUDY))
    study, cells = load_study(tmp_path / "s.yaml", ["seeds=[4]", "pretrain.steps=9"])
    assert study.seeds == [4]
    assert [cell.pretrain.steps for cell in cells] == [9, 9]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "distinct numbers"),
        ({"seeds": [-1]}, "from 0 on"),
        ({"name": "a/b"}, "study name 'a/b'"),
        ({"sources": "x"}, "sources: unknown key; did you mean source"),
    ],
)
def test_wrong_studies(values, message):
    with pytest.raises(InputError, match=message):
        study_of(**values)


def test_the_title_is_no_part_of_the_fingerprint():
    assert study_of(title="x").fingerprint == study_of(title="y").fingerprint
    assert study_of(seeds=[0]).fingerprint != study_of(seeds=[1]).fingerprint


# --- the tiny study ---


STEPS = 20  # so that a pretraining lasts long enough to be killed
TINY = changed(STUDY, pretrain__steps=STEPS)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "study.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def run_here(folder: Path, data=None) -> StudyRun:
    """Start or continue a study in this process."""
    study = parse(StudyConfig, data or TINY)
    run = StudyRun(study, expand(study), folder)
    run.run("in-process")
    return run


def command(monkeypatch, *arguments) -> int:
    """The exit code of ``synthlang …`` run in this process."""
    monkeypatch.setattr(sys, "argv", ["synthlang", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The tiny study, run without interruption in one process."""
    folder = tmp_path_factory.mktemp("study") / "out"
    run_here(folder)
    return folder


@pytest.fixture(scope="module")
def local(tmp_path_factory, config):
    """The same study on two worker processes."""
    folder = tmp_path_factory.mktemp("local") / "out"
    with pytest.MonkeyPatch.context() as patch:
        assert command(patch, "study", config, "--out", folder, "--workers", 2) == 0
    return folder


def results(folder: Path) -> bytes:
    return (folder / "results.csv").read_bytes()


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def cells_in(folder: Path) -> dict[str, dict[str, Any]]:
    return {cell["name"]: cell for cell in json.loads((folder / "study.json").read_text())["cells"]}


def stages_of(folder: Path, kind: str) -> list[Path]:
    return sorted((folder / "stages").glob(f"{kind}-*"))


def times(folder: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if ".locks" not in p.parts}


def test_the_results_of_the_tiny_study(reference):
    rows = rows_of(reference)
    assert [(r["cell"], r["objective"], r["seed"]) for r in rows] == [
        ("trans, mlm", "mlm", "0"),
        ("trans, mlm", "mlm", "1"),
        ("trans, align_mlm", "align_mlm", "0"),
        ("trans, align_mlm", "align_mlm", "1"),
    ]
    for row in rows:
        assert float(row["delta"]) == pytest.approx(float(row["sup"]) - float(row["zs"]), abs=1e-3)
        assert (row["language"], row["task"], row["source"]) == ("trans", "pos", STUDY["source"])
    # only the aligned objective pulls pairs of the dictionary together
    aligned = [float(row["alignment_dictionary"]) for row in rows]
    assert aligned[0] < 20 < 60 < aligned[2]


def test_two_workers_give_the_results_of_one_process(reference, local):
    assert results(local) == results(reference)


def test_parquet_equals_csv(reference):
    table = pq.read_table(reference / "results.parquet").to_pylist()
    text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in table]
    assert text == rows_of(reference)


@pytest.mark.parametrize("which", ["reference", "local"])
def test_the_study_folder(which, request):
    folder = request.getfixturevalue(which)
    study = json.loads((folder / "study.json").read_text())
    assert study["fingerprint"] == parse(StudyConfig, TINY).fingerprint
    assert [cell["status"] for cell in study["cells"]] == ["done", "done"]
    assert {p.name for p in folder.iterdir()} == {
        *("study.json", "results.csv", "results.parquet", "report.html", "report.md", "figures", "stages")
    }
    for page in ("report.html", "report.md"):
        assert "trans, align_mlm" in (folder / page).read_text(encoding="utf-8")
    assert [len(stages_of(folder, kind)) for kind in ("pretrain", "probe", "transfer")] == [2, 2, 4]
    for cell, rows in zip(study["cells"], (rows_of(folder)[:2], rows_of(folder)[2:]), strict=True):
        run = folder / cell["run"]
        probes, transfers = (json.loads((run / name).read_text()) for name in ("probes.json", "transfer.json"))
        assert list(probes) == [rows[0]["probe"]]
        assert sorted(transfers) == sorted(row["transfer"] for row in rows)
        for row in rows:
            assert str(transfers[row["transfer"]]["sup"]) == row["sup"]
            assert row["pretrain"] == cell["stages"]["pretrain"] == run.name.removeprefix("pretrain-")
    assert not list(folder.rglob(".tmp-*"))


def test_a_finished_study_is_not_run_again(local, config, reference, monkeypatch):
    before = times(local / "stages")
    assert len(before) > 50
    assert command(monkeypatch, "study", config, "--out", local, "--workers", 2) == 0
    assert times(local / "stages") == before
    assert results(local) == results(reference)


def test_a_study_stopped_as_it_starts_keeps_the_results_it_had(reference, tmp_path, monkeypatch):
    shutil.copytree(reference, tmp_path / "out")

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_in_process", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_here(tmp_path / "out")
    assert results(tmp_path / "out") == results(reference)
    assert [cell["status"] for cell in cells_in(tmp_path / "out").values()] == ["done", "done"]


# --- killed and started again ---


def start(config: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """``synthlang study`` as a process in a session of its own."""
    arguments = [sys.executable, "-m", "probes.cli", "study", str(config), "--out", str(out), *options]
    return subprocess.Popen(arguments, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def wait_for(folder: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    """Until a path appears; an error if the process ends before."""
    deadline = time.monotonic() + 180
    while not any(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline, f"no {pattern} in {folder}"
        time.sleep(0.002)


def alive_in(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it ended while we looked
        if int(of_session) == session and state != "Z":
            found.append(int(entry.name))
    return found


def wait_for_the_end_of(session: int) -> None:
    """Until no process of a session is left: workers stop when their study is gone."""
    deadline = time.monotonic() + 60
    while alive_in(session):
        assert time.monotonic() < deadline, f"still alive: {alive_in(session)}"
        time.sleep(0.02)


CHECKPOINT = "stages/pretrain-*/checkpoints/step-*"


def assert_unfinished(folder: Path) -> None:
    assert len(rows_of(folder)) < 4, "the study was over before it was killed"


def test_killed_while_data_is_prepared(config, reference, tmp_path):
    process = start(config, tmp_path / "out", "--executor", "in-process")
    wait_for(tmp_path / "out", "stages/shards-*", process)
    process.kill()
    process.communicate()
    assert_unfinished(tmp_path / "out")
    assert not stages_of(tmp_path / "out", "probe")
    run_here(tmp_path / "out")
    assert results(tmp_path / "out") == results(reference)


def test_killed_while_pretraining_and_again_while_fine_tuning(config, reference, tmp_path):
    """First only the main process: its workers are still there when the same command runs again. Then all."""
    out = tmp_path / "out"
    first = start(config, out, "--workers", "2")
    wait_for(out, CHECKPOINT, first)
    first.kill()
    first.communicate()
    assert_unfinished(out)
    assert not stages_of(out, "transfer")
    second = start(config, out, "--workers", "2")
    wait_for(out, "stages/transfer-*", second)
    os.killpg(second.pid, signal.SIGKILL)
    second.communicate()
    assert_unfinished(out)
    for process in (first, second):
        wait_for_the_end_of(process.pid)
    run_here(out)
    assert results(out) == results(reference)


@pytest.fixture
def _keyboard():
    """Ctrl-C reaches what is started here, though a shell that runs the tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_keyboard")
def test_interrupted_from_the_keyboard(config, reference, tmp_path):
    """Ctrl-C reaches every process of the terminal; one line says how to go on."""
    process = start(config, tmp_path / "out", "--workers", "2")
    wait_for(tmp_path / "out", CHECKPOINT, process)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1].decode()
    wait_for_the_end_of(process.pid)
    assert process.returncode == 130
    assert "stopped; run the same command again" in errors
    assert "Traceback" not in errors
    assert_unfinished(tmp_path / "out")
    run_here(tmp_path / "out")
    assert results(tmp_path / "out") == results(reference)


# --- cells that fail ---


def test_a_killed_worker_fails_its_cell_only(config, reference, tmp_path, monkeypatch, capsys):
    killed: list[int] = []

    def kills(self, task, done, total, note=""):
        if task == "pretrain align_mlm trans" and not killed:
            (worker,) = multiprocessing.active_children()
            assert worker.pid
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        patch.setattr(Display, "report", kills)
        assert command(patch, "study", config, "--out", tmp_path / "out", "--workers", 1) == 1
    assert killed
    assert "failed trans, align_mlm: its process died (exit code -9)" in capsys.readouterr().out
    cells = cells_in(tmp_path / "out")
    assert {name: cell["status"] for name, cell in cells.items()} == {
        "trans, mlm": "done",
        "trans, align_mlm": "failed",
    }
    assert results(tmp_path / "out").splitlines() == results(reference).splitlines()[:3]
    assert "its process died" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert command(monkeypatch, "study", config, "--out", tmp_path / "out", "--workers", 2) == 0
    assert results(tmp_path / "out") == results(reference)
    assert cells_in(tmp_path / "out")["trans, align_mlm"]["error"] is None


def treebank(folder: Path, words: int) -> str:
    """One sentence to train on and one to test on, each of so many words."""
    folder.mkdir()
    line = "{}\tw{}\t_\tX\t_\t_\t{}\tx\t_\t_\n"
    for split in ("train", "test"):
        text = "".join(line.format(i, i % 7, i - 1) for i in range(1, words + 1))
        (folder / f"x-{split}.conllu").write_text(f"{text}\n")
    return f"conllu:{folder}"


@pytest.fixture(scope="module")
def partly_failed(tmp_path_factory):
    """A study of three sources: one too small to pretrain on, one too small to fine-tune on, a sound one."""
    folder = tmp_path_factory.mktemp("failing")
    sources = [treebank(folder / "short[a]", 4), treebank(folder / "single", 90), STUDY["source"]]
    data = changed(STUDY, grid={"product": {"pretrain.language": ["trans"]}, "zip": {"source": sources}})
    (folder / "study.yaml").write_text(yaml.safe_dump(data))
    with pytest.MonkeyPatch.context() as patch:
        out = folder / "out"
        code = command(patch, "study", folder / "study.yaml", "--out", out, "--executor", "in-process")
    return folder, sources, code


def test_failed_cells_are_reported_and_the_rest_go_on(partly_failed):
    folder, sources, code = partly_failed
    assert code == 1
    short, single, sound = (cells_in(folder / "out")[f"trans, {source}"] for source in sources)
    assert short["status"] == single["status"] == "failed"
    assert "tokens do not fill one row of length 48" in short["error"]
    assert "Traceback" in short["log"]
    assert not short["stages"]
    assert single["error"] == f"pos:{sources[1]}: one item is too few to train on and to choose by"
    assert set(single["stages"]) == {"pretrain", "probe"}
    assert (sound["status"], sound["error"]) == ("done", None)
    assert [row["cell"] for row in rows_of(folder / "out")] == [f"trans, {sources[2]}"] * 2
    page = (folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "do not fill one row of length 48" in page
    assert "too few to train on" in page


def test_the_same_failures_come_again_and_done_work_stays(partly_failed, monkeypatch):
    folder, _, _ = partly_failed
    before, table = times(folder / "out" / "stages"), results(folder / "out")
    arguments = ("study", folder / "study.yaml", "--out", folder / "out", "--executor", "in-process")
    assert command(monkeypatch, *arguments) == 1
    assert {p: t for p, t in times(folder / "out" / "stages").items() if p in before} == before
    assert results(folder / "out") == table


def test_a_failed_cell_is_printed_with_its_name_in_full(partly_failed, monkeypatch, capsys):
    """``[a]`` in a path is a name, no markup of the terminal."""
    folder, sources, _ = partly_failed
    arguments = ("study", folder / "study.yaml", "--out", folder / "out", "--executor", "in-process")
    assert command(monkeypatch, *arguments) == 1
    assert f"failed trans, {sources[0]}: " in capsys.readouterr().out


def test_a_crash_is_recorded_with_its_traceback_and_the_next_start_mends_it(reference, tmp_path, monkeypatch):
    shutil.copytree(reference, tmp_path / "out")
    broken = cells_in(tmp_path / "out")["trans, mlm"]["stages"]["probe"]
    shutil.rmtree(tmp_path / "out" / "stages" / f"probe-{broken}")

    def boom(*_):
        raise RuntimeError("two\nlines")

    with monkeypatch.context() as patch:
        patch.setattr(stages, "probe_alignment", boom)
        run_here(tmp_path / "out")
    failed, sound = cells_in(tmp_path / "out").values()
    assert (failed["status"], failed["error"]) == ("failed", "RuntimeError: two lines")
    assert "in boom" in failed["log"]
    assert sound["status"] == "done"
    assert results(tmp_path / "out").splitlines() == [results(reference).splitlines()[i] for i in (0, 3, 4)]
    run_here(tmp_path / "out")
    assert results(tmp_path / "out") == results(reference)


# --- folders and shared stages ---


def content(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def test_a_folder_of_another_study_is_refused_before_anything_is_written(reference):
    before = content(reference)
    for data in (changed(TINY, seeds=[0]), changed(TINY, pretrain__seed=1)):
        with pytest.raises(InputError, match=r"out: holds another study \(tiny, [0-9a-f]{16}\); choose another folder"):
            run_here(reference, data)
    assert content(reference) == before


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no study; choose another folder"):
        run_here(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_another_title_is_the_same_study(reference, tmp_path):
    shutil.copytree(reference, tmp_path / "out")
    before = times(tmp_path / "out" / "stages")
    run_here(tmp_path / "out", changed(TINY, title="Another title"))
    assert times(tmp_path / "out" / "stages") == before
    assert "Another title" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert results(tmp_path / "out") == results(reference)


def test_cells_share_their_stages(tmp_path, monkeypatch):
    """Cells that differ in transfer only, or in the name of a language only, share a run."""
    trained: list[str] = []

    def counted(config, run, *rest):
        trained.append(run.name)
        return run_pretraining(config, run, *rest)

    monkeypatch.setattr(stages, "pretrain", counted)
    product = {"pretrain.language": ["trans", "trans:1.0"], "transfer.fine_tune.epochs": [1, 2]}
    out = tmp_path / "out"
    run_here(out, changed(STUDY, seeds=[0], grid={"product": product}))
    rows = rows_of(out)
    assert [row["cell"] for row in rows] == [f"{a}, epochs={e}" for a in ("trans", "trans:1.0") for e in (1, 2)]
    assert len(trained) == 2  # once for each name; the second finds the first one's run
    assert len({row["pretrain"] for row in rows}) == len(stages_of(out, "pretrain")) == 1
    assert len({row["probe"] for row in rows}) == len(stages_of(out, "probe")) == 1
    assert len({row["transfer"] for row in rows}) == len(stages_of(out, "transfer")) == 2
    assert rows[0]["transfer"] != rows[1]["transfer"]
    assert [row["sup"] for row in rows[:2]] == [row["sup"] for row in rows[2:]]
    (run,) = stages_of(out, "pretrain")
    assert len(json.loads((run / "transfer.json").read_text())) == 2


def test_other_settings_are_other_runs(tmp_path):
    product = {"pretrain.language": ["trans"], "pretrain.seed": [0, 1]}
    run_here(tmp_path / "out", changed(STUDY, seeds=[0], grid={"product": product}))
    first, second = rows_of(tmp_path / "out")
    assert [first["pretrain_seed"], second["pretrain_seed"]] == ["0", "1"]
    assert first["pretrain"] != second["pretrain"]
    assert len(stages_of(tmp_path / "out", "vocabulary")) == 1
