"""Studies killed, stopped and failing: no finished stage is lost, and the results are those of an undisturbed run."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from synthlang.progress import Display
from tests.study_cases import (
    CHECKPOINT,
    cells_in,
    command,
    rows_of,
    run_here,
    start,
    tables,
    times,
    wait_for,
    wait_for_the_end_of,
)
from tests.tiny import STUDY, changed


def finished_stages(out: Path) -> dict[Path, int]:
    """Every file of every stage that is done."""
    names = {path.name for path in (out / "stages").iterdir()} if (out / "stages").exists() else set()
    entries: dict[Path, int] = {}
    kept = [out / "stages" / name for name in names if name.split("-")[0] in ("alignment", "transfer")]
    kept += [path.parent for path in (out / "stages").glob("pretrain-*/done.json")]
    for folder in kept:
        if not folder.name.endswith(".work"):
            entries |= times(folder)
    return entries


def test_killed_at_every_stage_and_started_again(config, reference, tmp_path):
    """The runner alone, whose workers may outlive it for a moment; then all its processes."""
    out = tmp_path / "out"
    moments = [CHECKPOINT, "stages/transfer-*"]
    kept: dict[Path, int] = {}
    for number, moment in enumerate(moments):
        process = start(config, out, "--workers", "2")
        wait_for(out, moment, process)
        if number % 2:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.process.kill()
        process.ended()
        assert not (out / "report.html").exists(), "the study was over before it was killed"
        if not number % 2:
            continue  # the next one starts while workers of this one may be ending
        wait_for_the_end_of(process.pid)
        kept = finished_stages(out)
    assert kept
    run_here(out)
    assert kept.items() <= finished_stages(out).items(), "a finished stage was made again"
    assert tables(out) == tables(reference)
    assert not list((out / "stages").rglob("*.work"))


@pytest.mark.usefixtures("_keyboard")
@pytest.mark.parametrize("seconds", [0.3, 3])
def test_an_early_interrupt_is_one_line(seconds, config, tmp_path):
    """In the first seconds, an interrupt must not show a traceback of imports."""
    arguments = ["study", str(config), "--out", str(tmp_path / "out"), "--workers", "2"]
    code = f"import sys; sys.argv[1:] = {arguments}\nfrom probes.entry import main\nprint(flush=True)\nmain()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout
    process.stdout.readline()  # the command is about to start, however slow the machine is
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1].splitlines()
    told = [line for line in said if not line.startswith(("study ", "tiny"))]
    assert process.returncode == 130 and told == ["stopped; run the same command again to continue"], said


def test_a_killed_worker_fails_its_cell_only_and_with_retry_nothing(config, reference, tmp_path, monkeypatch, capsys):
    out, stage = tmp_path / "out", "pretrain align_mlm trans"
    with monkeypatch.context() as patch:
        killed = kill_the_first(patch, stage)
        assert command(patch, "study", config, "--out", out, "--workers", 1) == 1
    assert killed
    said = capsys.readouterr().out
    assert "failed trans, align_mlm: the worker process died (exit code -9, killed from outside" in said
    status = {name: cell["status"] for name, cell in cells_in(out).items()}
    assert status == {"trans, mlm": "done", "trans, align_mlm": "failed"}
    (log,) = (out / "logs").iterdir()
    assert f"(log: {log})" in said
    assert log.read_text().startswith("the worker process died")
    whole = (reference / "results.csv").read_bytes().splitlines()
    assert (out / "results.csv").read_bytes().splitlines() == whole[:3]
    assert "the worker process died" in (out / "report.md").read_text(encoding="utf-8")
    with monkeypatch.context() as patch:
        killed = kill_the_first(patch, stage)
        assert command(patch, "study", config, "--out", out, "--workers", 1, "--retry", 1) == 0
    assert len(killed) == 1
    assert f"{stage} failed and is tried again: the worker process died" in capsys.readouterr().err
    assert tables(out) == tables(reference)
    assert cells_in(out)["trans, align_mlm"]["error"] is None
    assert not (out / "logs").exists()


def kill_the_first(patch: pytest.MonkeyPatch, wanted: str) -> list[int]:
    """Kill the worker that reports this task first; the list gets its process id."""
    killed: list[int] = []

    def kills(self, task, done, total, note=""):
        if task.endswith(f": {wanted}") and not killed:
            (worker,) = multiprocessing.active_children()
            assert worker.pid
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)

    patch.setattr(Display, "report", kills)
    return killed


@pytest.fixture
def _keyboard():
    """Ctrl-C reaches what is started here, though a shell that runs the tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


CTRL_C, SIGTERM = (signal.SIGINT, 130), (signal.SIGTERM, 143)


@pytest.mark.parametrize(
    ("executor", "stops"),
    [("local", {CHECKPOINT: CTRL_C, "stages/transfer-*": SIGTERM}), ("in-process", {CHECKPOINT: SIGTERM})],
    ids=["local", "in process"],
)
def test_stopped_from_outside(executor, stops, config, reference, tmp_path):
    """Ctrl-C reaches every process of the terminal, SIGTERM of a cluster every process of the job."""
    out = tmp_path / "out"
    for moment, (number, code) in stops.items():
        process = start(config, out, "--workers", "2", "--executor", executor)
        wait_for(out, moment, process)
        os.killpg(process.pid, number)
        ended, errors = process.ended()
        wait_for_the_end_of(process.pid)
        assert ended == code, errors
        assert "stopped; run the same command again" in errors
        assert "Traceback" not in errors
        assert "failed" not in {cell["status"] for cell in cells_in(out).values()}
    run_here(out)
    assert tables(out) == tables(reference)


# --- cells that fail ---


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
    assert " tokens, but a row of length 48 needs 47" in short["error"]
    assert "Traceback" in short["log"]
    assert not short["stages"]
    hint = "give more items, or a dev set"
    assert single["error"] == (
        f"pos:{sources[1]}: only one item is read, but training and model selection need at least two; {hint}"
    )
    assert set(single["stages"]) == {"pretrain", "alignment"}
    assert (sound["status"], sound["error"]) == ("done", None)
    assert [row["cell"] for row in rows_of(folder / "out")] == [f"trans, {sources[2]}"] * 2
    page = (folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "but a row of length 48 needs 47" in page
    assert "need at least two" in page
    logs = sorted(path.read_text().splitlines()[0] for path in (folder / "out" / "logs").iterdir())
    assert logs == sorted([short["error"], single["error"]])


def test_the_same_failures_come_again_and_done_work_stays(partly_failed, monkeypatch, capsys):
    """And they are printed with their names in full: ``[a]`` in a path is a name, no markup of the terminal."""
    folder, sources, _ = partly_failed
    before, table = times(folder / "out" / "stages"), tables(folder / "out")
    arguments = ("study", folder / "study.yaml", "--out", folder / "out", "--executor", "in-process")
    assert command(monkeypatch, *arguments) == 1
    assert before.items() <= times(folder / "out" / "stages").items()
    assert tables(folder / "out") == table
    assert f"failed trans, {sources[0]}: " in capsys.readouterr().out
    known = {name: (cell["status"], cell["error"]) for name, cell in cells_in(folder / "out").items()}
    assert command(monkeypatch, *arguments, "--only", "builtin") == 1  # others failed before, and that is kept
    assert {name: (cell["status"], cell["error"]) for name, cell in cells_in(folder / "out").items()} == known


def test_a_crash_is_recorded_with_its_traceback_and_the_next_start_mends_it(reference, tmp_path, monkeypatch):
    out = tmp_path / "out"
    shutil.copytree(reference, out)
    shutil.rmtree(out / "stages" / f"alignment-{cells_in(out)['trans, mlm']['stages']['alignment']}")

    def boom(*_, **__):
        raise RuntimeError("two\nlines")

    with monkeypatch.context() as patch:
        patch.setattr("probes.measures.words.alignment.probe_alignment", boom)
        run_here(out)
    failed, sound = cells_in(out).values()
    assert (failed["status"], failed["error"]) == ("failed", "RuntimeError: two lines")
    assert "in boom" in failed["log"]
    assert sound["status"] == "done"
    whole = (reference / "results.csv").read_bytes().splitlines()
    assert (out / "results.csv").read_bytes().splitlines() == [whole[i] for i in (0, 3, 4)]
    run_here(out)
    assert tables(out) == tables(reference)
