"""What ``synthlang gc`` deletes, and above all what it leaves alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.filesize import decimal

from pretrain.run import open_run
from probes.study.gc import collect, delete_unused
from synthlang.errors import InputError
from tests.study_cases import TINY, command, opened, own_copy, rows_of, run_here, tables
from tests.tiny import changed

ONE = changed(TINY, pretrain__language="trans", seeds=[0], grid={"product": {"pretrain.objective.kind": ["mlm"]}})
FULL = changed(ONE, pretrain__checkpoints={"every": 4, "keep": 4})
"""A cell whose run keeps several checkpoints."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gc") / "out"
    run_here(folder, FULL)
    return folder


@pytest.fixture
def out(finished, tmp_path):
    """A study of its own, finished."""
    return own_copy(finished, tmp_path / "out")


def run_of(out: Path) -> Path:
    (run,) = (out / "stages").glob("pretrain-*")
    return run


def held(run: Path) -> tuple[list[str], list[str]]:
    """The checkpoints of a run, and its exports that have weights."""
    checkpoints = sorted(path.name for path in run.glob("checkpoints/*"))
    return checkpoints, sorted(path.parent.name for path in run.glob("export/*/model.safetensors"))


def all_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts}


EVERY, LAST = ["step-12", "step-16", "step-20", "step-8"], ["step-20"]
EXPORTS = ["parent", "trans"]


@pytest.mark.parametrize(
    ("keep", "checkpoints", "exports"),
    [("checkpoints", EVERY, EXPORTS), ("final", LAST, EXPORTS), ("results", [], [])],
)
def test_what_each_policy_deletes(keep, checkpoints, exports, out):
    run, before = run_of(out), all_files(out)
    assert held(run) == (EVERY, EXPORTS)
    planned = collect([out], keep, dry_run=True)
    assert all_files(out) == before
    found = collect([out], keep)
    assert found == planned
    assert held(run) == (checkpoints, exports)
    gone = before - all_files(out)
    assert all("checkpoints" in path.parts or path.name == "model.safetensors" for path in gone)
    assert found.needed == 0
    again = collect([out], keep)
    assert (again.freed, again.size) == ([], 0)


def test_the_size_is_what_the_files_had(out):
    before = sum(path.stat().st_size for path in all_files(run_of(out)))
    found = collect([out], "results")
    after = sum(path.stat().st_size for path in all_files(run_of(out)) if path.name != "dropped.json")
    assert found.size == before - after > 0


def test_the_policy_is_that_of_the_study(tmp_path):
    run_here(tmp_path / "out", {**FULL, "keep": "final"})
    collect([tmp_path / "out"])
    assert held(run_of(tmp_path / "out")) == (LAST, EXPORTS)


def test_a_study_keeps_its_results_and_starts_again_without_work(out):
    before = tables(out)
    collect([out], "results")
    run = run_here(out, FULL)
    assert [cell.status for cell in run.cells] == ["done"]
    assert tables(out) == before


def test_a_run_that_is_not_finished_or_still_needed_is_left_alone(out):
    run, record = run_of(out), json.loads((out / "study.json").read_text())
    record["cells"][0]["status"] = "pending"
    (out / "study.json").write_text(json.dumps(record))
    found = collect([out], "results")
    assert (found.freed, found.needed) == ([], 1)
    assert held(run) == (EVERY, EXPORTS)
    record["cells"][0]["status"] = "done"
    (out / "study.json").write_text(json.dumps(record))
    (run / "done.json").unlink()
    assert collect([out], "results").freed == []


# --- studies that share a store ---


def shared(tmp_path, **changes):
    """A finished study and another one, pending, of the same run in one store."""
    store = tmp_path / "store"
    run_here(tmp_path / "a", FULL, store=store)
    more = changed(FULL, seeds=[0, 1])
    run_here(tmp_path / "b", {**more, "name": "more", **changes}, store=store)
    (run,) = store.glob("pretrain-*")
    return run


def test_what_another_study_of_the_store_needs_stays(tmp_path):
    run = shared(tmp_path)
    record = json.loads((tmp_path / "b" / "study.json").read_text())
    cell = record["cells"][0]
    cell["status"] = "pending"
    for stages in (dict(cell["stages"]), {}):  # also if it had not come to see the run finished
        cell["stages"] = stages
        (tmp_path / "b" / "study.json").write_text(json.dumps(record))
        found = collect([tmp_path / "a"], "results")
        assert (found.freed, found.needed) == ([], 1)
    assert held(run) == (EVERY, EXPORTS)


@pytest.mark.parametrize(
    ("folders", "other", "checkpoints", "exports"),
    [
        (["a"], "checkpoints", EVERY, EXPORTS),  # what the other study keeps, stays
        (["a"], "final", LAST, EXPORTS),
        (["a"], "results", [], []),
        (["a", "b"], "checkpoints", [], []),  # named itself, it has the policy of the option
    ],
)
def test_the_policy_that_keeps_most_counts(folders, other, checkpoints, exports, tmp_path):
    run = shared(tmp_path, keep=other)
    collect([tmp_path / name for name in folders], "results")
    assert held(run) == (checkpoints, exports)


def test_the_command_says_who_keeps_the_rest(tmp_path, monkeypatch, capsys):
    shared(tmp_path, keep="checkpoints")
    assert command(monkeypatch, "gc", tmp_path / "a", "--keep", "results", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "would free 0 bytes of 0 runs; 1 run kept by other studies of the store (b: keep checkpoints)" in said


def test_two_stores_at_once(out, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(out, other)
    found = collect([out, other], "results")
    assert [freed.run.parents[1].name for freed in found.freed] == ["out", "other"]
    assert (held(run_of(out)), held(run_of(other))) == (([], []), ([], []))


def test_a_study_that_is_gone_needs_nothing(tmp_path):
    run = shared(tmp_path)
    shutil.rmtree(tmp_path / "b")
    collect([tmp_path / "a"], "results")
    assert held(run) == ([], [])


# --- weights that are needed after all ---


def test_a_later_study_says_that_it_needs_deleted_weights(tmp_path):
    store = tmp_path / "store"
    run_here(tmp_path / "a", FULL, store=store)
    (run,) = store.glob("pretrain-*")
    collect([tmp_path / "a"], "results")
    more = {**changed(FULL, seeds=[0, 1]), "name": "more"}
    with pytest.raises(InputError) as raised:
        opened(tmp_path / "b", more, store=store)
    message = str(raised.value)
    assert "\n" not in message
    assert "pos seed 1 of mlm trans needs weights that synthlang gc deleted (it kept results)" in message
    assert f"delete the folder {run} and start again: the run is trained anew, with the same result" in message
    assert not (tmp_path / "b").exists()
    before = (run / "metrics.jsonl").read_text().splitlines()[-1]
    shutil.rmtree(run)
    run_here(tmp_path / "b", more, store=store)
    assert json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["loss"] == json.loads(before)["loss"]
    assert rows_of(tmp_path / "b")[0]["sup"] == rows_of(tmp_path / "a")[0]["sup"]


def test_final_weights_are_enough_for_more_seeds_but_not_for_all_checkpoints(tmp_path):
    store = tmp_path / "store"
    run_here(tmp_path / "a", FULL, store=store)
    collect([tmp_path / "a"], "final")
    run_here(tmp_path / "b", {**changed(FULL, seeds=[1]), "name": "more"}, store=store)
    assert len(rows_of(tmp_path / "b")) == 1
    probes: dict[str, Any] = {"emergence": {"probes": ["words"], "words": {"checkpoints": True}}}
    with pytest.raises(InputError, match=r"probe emergence of mlm trans needs weights that .* \(it kept final\)"):
        opened(tmp_path / "c", {**FULL, "name": "probes", "probes": probes}, store=store)
    probes["emergence"]["words"]["checkpoints"] = False
    opened(tmp_path / "c", {**FULL, "name": "probes", "probes": probes}, store=store)


def test_a_run_opens_after_final(out):
    collect([out], "final")
    config, _ = open_run(run_of(out))
    assert config.steps == 20


# --- the command ---


def test_the_command_says_how_much(out, monkeypatch, capsys):
    run = run_of(out)
    size = collect([out], "final", dry_run=True).size
    assert command(monkeypatch, "gc", out, "--keep", "final", "--dry-run") == 0
    said = capsys.readouterr().out.replace("\n", " ")
    assert f"would free {decimal(size)} of 1 run" in said
    assert str(run) in said
    assert command(monkeypatch, "gc", out, "--keep", "final") == 0
    assert f"freed {decimal(size)} of 1 run" in capsys.readouterr().out
    assert held(run)[0] == LAST


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "nothing: is no study folder: study.json is missing"),
        (["out", "--keep", "all"], "keep must be one of checkpoints, final, results, not 'all'"),
        (["old"], "old/study.json: is a study of format 1, this version writes 2; choose another folder"),
    ],
)
def test_wrong_use_is_one_line(arguments, message, out, monkeypatch, capsys):
    monkeypatch.chdir(out.parent)
    (out.parent / "old").mkdir()
    (out.parent / "old" / "study.json").write_text('{"name": "x", "fingerprint": "y", "cells": [], "seconds": {}}')
    before = all_files(out)
    assert command(monkeypatch, "gc", *arguments) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
    assert all_files(out) == before


# --- stages that no cell has ---


TWO: dict[str, Any] = changed(ONE, grid={"product": {"pretrain.objective.kind": ["mlm"], "pretrain.seed": [0, 1]}})
SIX = ["alignment", "pretrain", "transfer"]


def kinds(folders: Any) -> list[str]:
    return sorted(path.name.split("-")[0] for path in folders)


def stages(store: Path) -> set[Path]:
    return {path for kind in SIX for path in store.glob(f"{kind}-*")}


def test_stages_of_a_cell_that_left_the_grid_go_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    run_here(out, TWO)
    assert delete_unused([out]) == [], "every stage has its cell"
    both, first = stages(out / "stages"), tables(out)
    run_here(out, {**ONE, "name": TWO["name"]})
    before, results = all_files(out), tables(out)
    planned = delete_unused([out], dry_run=True)
    assert all_files(out) == before and kinds(one.folder for one in planned) == SIX
    assert all(one.size == sum(path.stat().st_size for path in all_files(one.folder)) > 0 for one in planned)
    assert delete_unused([out]) == planned
    assert stages(out / "stages") == both - {one.folder for one in planned}
    gone = {path for path in before - all_files(out) if path.name != "digests.json"}
    assert all(any(path.is_relative_to(one.folder) for one in planned) for path in gone)
    assert tables(out) == results and delete_unused([out]) == []
    assert [cell.status for cell in run_here(out, {**ONE, "name": TWO["name"]}).cells] == ["done"]
    run_here(out, TWO)
    assert tables(out) == first and stages(out / "stages") == both, "made again, with the same result"


def test_unused_is_what_no_study_of_the_store_has(tmp_path):
    store = tmp_path / "store"
    run_here(tmp_path / "a", ONE, store=store)
    run_here(tmp_path / "b", {**TWO, "name": "more"}, store=store)
    assert delete_unused([tmp_path / "a"]) == []
    record = json.loads((tmp_path / "b" / "study.json").read_text())
    for cell in record["cells"]:
        cell["stages"] = {}
    (tmp_path / "b" / "study.json").write_text(json.dumps(record))
    assert delete_unused([tmp_path / "a"]) == [], "it has not come to see them finished"
    shutil.rmtree(tmp_path / "b")
    assert kinds(one.folder for one in delete_unused([tmp_path / "a"])) == SIX
    assert [cell.status for cell in run_here(tmp_path / "a", ONE, store=store).cells] == ["done"]


def test_a_stage_that_is_half_deleted_is_no_stage_and_goes_the_next_time(tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_here(out, TWO)
    first = tables(out)
    run_here(out, {**ONE, "name": TWO["name"]})
    monkeypatch.setattr(shutil, "rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        delete_unused([out])
    monkeypatch.undo()
    assert len(list((out / "stages").glob(".tmp-unused-*"))) == 1
    assert len(delete_unused([out])) == 2 and not list((out / "stages").glob(".tmp-*"))
    run_here(out, TWO)
    assert tables(out) == first


def test_the_command_deletes_unused_stages_when_asked_to(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    run_here(out, TWO)
    run_here(out, {**ONE, "name": TWO["name"]})
    whole = all_files(out)
    assert command(monkeypatch, "gc", out) == 0
    assert "stage" not in capsys.readouterr().out and all_files(out) == whole
    assert command(monkeypatch, "gc", out, "--unused", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "(no cell has pretrain mlm trans" in said and "of 3 stages that no cell has" in said
    assert "would free" in said.splitlines()[-1] and all_files(out) == whole
    assert command(monkeypatch, "gc", out, "--unused") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("freed ") and len(stages(out / "stages")) == 3
