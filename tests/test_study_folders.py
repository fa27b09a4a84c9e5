"""Whose folder and whose store it is, one runner at a time, and the options of the command."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from probes.commands import run_study
from probes.study import runner
from probes.study.common_settings import describe_changes
from probes.study.options import StudyOptions
from probes.study.record import log_name
from synthlang.errors import InputError
from synthlang.files import only_writer
from tests.refusals import place_and_code, refusal
from tests.study_cases import (
    TINY,
    cells_in,
    command,
    opened,
    rows_of,
    run_here,
    start,
    tables,
    times,
)
from tests.study_finished import finish_all
from tests.tiny import changed

MLM = {"pretrain.objective.kind": ["mlm"]}


# --- folders and stores ---


def content(folder):
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def test_a_folder_of_another_study_is_refused_before_anything_is_written(reference):
    before = content(reference)
    with pytest.raises(InputError, match="holds another study, 'tiny'; name another folder with --out"):
        run_here(reference, changed(TINY, name="other"))
    assert content(reference) == before


def test_a_study_grows_and_shrinks_in_its_folder(reference, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(reference, out)
    before = times(out / "stages")
    (out / "logs").mkdir()
    (out / "logs" / "mine.log").write_text("mine")
    gone = json.loads((out / "study.json").read_text())
    gone["cells"][1] |= {"error": "it broke", "log": "why"}
    (out / "study.json").write_text(json.dumps(gone))
    (out / "logs" / log_name("trans, align_mlm")).write_text("it broke")
    said: list[str] = []
    more = changed(TINY, seeds=[0, 1, 2], grid={"product": {"pretrain.language": ["trans", "inv"], **MLM}})
    run = opened(out, more)
    assert run.changed == (
        "grid.product.pretrain.language: 1 → 2 values; grid.product.pretrain.objective.kind: 2 → 1 values; "
        "seeds: 2 → 3 values; 0 of 2 cells are finished; "
        "1 former cell left out of the results"
    )
    run.run(say=said.append)
    assert said[0] == run.changed and [line.partition(":")[0] for line in said[1:3]] == ["trans, mlm", "inv, mlm"]
    record = json.loads((out / "study.json").read_text())
    names = {name for cell in record["cells"] for name in cell["stages"].values()}
    assert {stage.rpartition("-")[2] for stage in record["seconds"]} == names, "no time of stages that it has no more"
    assert [row["cell"] for row in rows_of(out)] == ["trans, mlm"] * 3 + ["inv, mlm"] * 3
    assert rows_of(out)[:2] == [row for row in rows_of(reference) if row["cell"] == "trans, mlm"]
    kept = {path for path in before if path.parts[-2].split("-")[0] in ("pretrain", "transfer", "alignment")}
    assert kept and {path: before[path] for path in kept}.items() <= times(out / "stages").items()
    assert [path.name for path in (out / "logs").iterdir()] == ["mine.log"]  # the user's own
    back = opened(out)  # as it was: nothing is left to do
    assert not back.to_do() and "3 → 2 values" in back.changed and "2 of 2 cells are finished" in back.changed
    back.run()
    assert tables(out) == tables(reference)
    assert opened(out).changed == ""
    before = times(out / "stages")
    run_here(out, changed(TINY, title="Another title"))
    assert times(out / "stages") == before and tables(out) == tables(reference), "it is the same study"
    assert "Another title" in (out / "report.md").read_text(encoding="utf-8")


def test_what_changed_in_few_words():
    assert describe_changes({"a": {"b": 1, "c": 2}, "title": "x"}, {"a": {"b": 1, "d": "t" * 60}, "title": "y"}) == (
        "a.c is gone; a.d is new"
    )
    assert describe_changes({"a": "x", "b": [1]}, {"a": "t" * 60, "b": [2]}) == f"a: x → {'t' * 40}…; b.0: 1 → 2"
    assert describe_changes({}, {}) == "a base file has changed"
    assert describe_changes({"a": 1}, {"a": 2, "start": None}) == "a: 1 → 2"
    assert describe_changes({}, dict.fromkeys("abcdefg", 1)).endswith("e is new; and 2 more")


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no study; name another folder with --out"):
        run_here(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(InputError, match="is a file"):
        run_here(tmp_path / "thesis.txt")


@pytest.mark.parametrize("number", [None, 3])
def test_a_study_of_another_format_is_one_line(number, reference, tmp_path):
    record = json.loads((reference / "study.json").read_text())
    del record["format"]
    (tmp_path / "study.json").write_text(json.dumps(record if number is None else record | {"format": number}))
    found = "no key 'format'" if number is None else f"format {number}"
    with pytest.raises(InputError, match=f"has {found}, but this version of synthlang reads format 2; "):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"studies.json": '{"format": 9, "studies": []}'},
            r"is a store of format 9, but this version of synthlang reads format 3",
        ),
        ({"studies.json": "[]"}, "is not the list of the studies of a store; restore the file"),
        ({"thesis.txt": "mine"}, "is not empty and holds no store; name another folder with --store"),
    ],
)
def test_a_store_of_another_format_is_one_line(files, message, tmp_path):
    for name, text in files.items():
        (tmp_path / "store" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "store" / name).write_text(text)
    before = content(tmp_path)
    with pytest.raises(InputError, match=f"(store|studies.json): {message}"):
        run_here(tmp_path / "out", store=tmp_path / "store")
    assert content(tmp_path) == before


def test_a_cell_with_results_that_is_not_chosen_needs_its_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a b c\n" * 400)
    data = changed(TINY, source="lines:text.txt", grid={"product": {"pretrain.language": ["trans", "trans+inv"]}})
    finish_all(opened(tmp_path / "out", data, dry_run=True).graph.stages.values(), tmp_path / "out" / "stages")
    opened(tmp_path / "out", data)._write_record()
    Path("text.txt").unlink()
    error = refusal(opened, tmp_path / "out", data, only=("pretrain.language=trans",))
    assert place_and_code(error) == ("cell trans+inv", "missing")
    assert error.hint == "restore the file or folder"


def test_a_second_runner_of_a_study_is_refused_in_one_line(config, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    with only_writer(out):
        assert command(monkeypatch, "study", config, "--out", out, "--executor", "in-process") == 2
        assert not out.exists()
    assert f"error: {out}: is being written by process {os.getpid()} on " in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_one_line(config, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/x: cannot be written: "):
        run_study(config, tmp_path / "file" / "x", StudyOptions(), [])


def test_two_studies_of_one_store_at_once(reference, config, tmp_path):
    """They want the same stages at the same time: each is made once, and both studies are right."""
    store = tmp_path / "store"
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**TINY, "name": "other"}))
    runs = [
        start(path, tmp_path / path.stem, "--store", str(store), "--executor", "in-process") for path in (config, other)
    ]
    for run in runs:
        code, said = run.ended()
        assert code == 0, said
    for name in ("study", "other"):
        assert tables(tmp_path / name) == tables(reference)
        assert not (tmp_path / name / "stages").exists()
    assert len(list(store.glob("transfer-*"))) == 4
    for run in store.glob("pretrain-*"):
        steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
        assert steps == sorted(set(steps)), "a run was trained twice"
    listed = json.loads((store / "studies.json").read_text())
    assert listed == {"format": 3, "studies": ["../other", "../study"]}
    again = opened(tmp_path / "study")  # the store is remembered
    assert again.store.root.resolve() == store.resolve()
    assert not again.to_do()


# --- the command ---


def test_a_dry_run_writes_nothing(config, reference, tmp_path, monkeypatch, capsys):
    assert command(monkeypatch, "study", config, "--out", tmp_path / "out", "--dry-run") == 0
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().out
    assert "2 cells" in said
    assert "trans, align_mlm" in said
    before = content(reference)
    assert command(monkeypatch, "study", config, "--out", reference, "--dry-run", "--only", "align") == 0
    assert content(reference) == before
    said = capsys.readouterr().out
    assert "1 cell × 2 fine-tuning seeds" in said
    assert "trans, mlm" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "cloud"], "--executor: unknown executor 'cloud'; choose one of local, in-process, slurm"),
        (["--no-wait"], "--no-wait: the option is for Slurm only; add --executor slurm"),
        (["--slurm", "partition=gpu"], "--slurm: the option is for Slurm only; add --executor slurm"),
        (["--store", "study.yaml"], "study.yaml: is a file, not a folder; name another folder with --store"),
        (["--set", "source=text:none.txt"], "trans, mlm and 1 other cell: source: none.txt: no such"),
        (
            ["--executor", "slurm", "--dry-run"],
            "--executor slurm: the commands sbatch, squeue, srun of Slurm are not on the PATH",
        ),
    ],
)
def test_wrong_use_is_one_line_before_anything_is_written(options, message, config, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(config.parent)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command(monkeypatch, "study", config.name, "--out", tmp_path / "out", *options) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert message in said
    assert not (tmp_path / "out").exists()


def test_no_wait_hands_over_what_is_not_done(reference, tmp_path, monkeypatch):
    """All of it, parents first; what it did meanwhile is collected by the next start."""
    out = tmp_path / "out"
    shutil.copytree(reference, out)
    lost = cells_in(out)["trans, mlm"]
    for stage in ("alignment", "transfer pos seed 0"):
        shutil.rmtree(out / "stages" / f"{stage.split()[0]}-{lost['stages'][stage]}")
    given: list[Any] = []
    fake = SimpleNamespace(submit_graph=given.extend, close=lambda: given.append("closed"))
    monkeypatch.setattr(runner, "open_executor", lambda *_: fake)
    said: list[str] = []
    run = opened(out, executor="slurm", wait=False)
    run.run(say=said.append)
    *tasks, last = given
    assert [task.key for task in tasks] == [lost["keys"]["alignment"], lost["keys"]["transfer pos seed 0"]]
    assert last == "closed"
    assert said[:1] == ["submitted 2 stages; start the study again to collect the results"]
    assert [cell["status"] for cell in cells_in(out).values()] == ["pending", "done"]
