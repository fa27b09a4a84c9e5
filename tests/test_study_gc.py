"""Files that ``synthlang gc`` deletes and files that it keeps. Most stages are made up, so that tests are quick."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from pretrain.run import open_run
from probes.results.collect import Tables
from probes.study.gc import collect, delete_unused, size_of
from probes.study.record import registered
from probes.study.stage_folders import stages_read
from synthlang.files import read_json, write_json
from synthlang.store import Store
from tests.refusals import refusal, refused
from tests.study_cases import command, made_here, opened, own_copy, rows_of, stages_of, tables
from tests.study_graphs import FULL, graph_of
from tests.tiny import STUDY, changed

ONE = changed(STUDY, pretrain__language="trans", seeds=[0], grid={"product": {"pretrain.objective.kind": ["mlm"]}})
TWO: dict[str, Any] = changed(ONE, grid={"product": {"pretrain.objective.kind": ["mlm"], "pretrain.seed": [0, 1]}})
OTHER = changed(ONE, pretrain__steps=7)
MORE = {**changed(ONE, seeds=[0, 1]), "name": "more"}
KINDS = ["alignment", "pretrain", "transfer"]
EVERY, LAST, EXPORTS = ["step-4", "step-6", "step-8"], ["step-8"], ["parent", "trans"]


@pytest.fixture
def _no_results(monkeypatch):
    monkeypatch.setattr(Tables, "dropped", lambda self, done: {})


made_up = pytest.mark.usefixtures("_no_results")


def study(folder: Path, data: Any = ONE) -> set[Path]:
    """A finished study of a store beside it, of which nothing was run; its stages."""
    folder.mkdir(exist_ok=True)
    run, stages = opened(folder, data, store=folder.parent / "store"), set()
    for key, stage in run.graph.stages.items():
        path = run.store.path(stage.kind, key)
        stages.add(path)
        for file in stage.content:
            write_json(path / file, {"made": True})
        if stage.kind == "pretrain":
            for name in EVERY:
                write_json(path / "checkpoints" / name / "state.json", {"step": name})
            for name in EXPORTS:
                write_json(path / "export" / name / "model.safetensors", {})
    run.look()
    with registered(run.store, folder):
        run._write_record()
    return stages


def of_kind(stages: set[Path], kind: str) -> Path:
    (path,) = (path for path in stages if path.name.startswith(f"{kind}-"))
    return path


def kinds(found: Any) -> list[str]:
    return sorted(one.folder.name.split("-")[0] for one in found)


def weights_of(run: Path) -> tuple[list[str], list[str]]:
    """The checkpoints of a run, and its exports that have weights."""
    checkpoints = sorted(path.name for path in run.glob("checkpoints/*"))
    return checkpoints, sorted(path.parent.name for path in run.glob("export/*/model.safetensors"))


def all_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts}


def edited(folder: Path, **changes: Any) -> None:
    path = folder / "study.json"
    write_json(path, {**(read_json(path) if path.exists() else {}), **changes})


def pending(folder: Path, **more: Any) -> None:
    edited(folder, cells=[{**c, "status": "pending", **more} for c in read_json(folder / "study.json")["cells"]])


# --- weights ---


@made_up
@pytest.mark.parametrize(
    ("keep", "left"),
    [("checkpoints", (EVERY, EXPORTS)), ("final", (LAST, EXPORTS)), ("results", ([], []))],
)
@pytest.mark.parametrize("by_option", [True, False], ids=["option", "study"])
def test_what_each_policy_deletes(keep, left, by_option, tmp_path):
    out = tmp_path / "a"
    run = of_kind(study(out, ONE if by_option else {**ONE, "keep": keep}), "pretrain")
    before, size = all_files(tmp_path), size_of(run)
    option = keep if by_option else None
    planned = collect([out], option, dry_run=True)
    assert all_files(tmp_path) == before and weights_of(run) == (EVERY, EXPORTS)
    found = collect([out], option)
    assert found == planned and found.needed == 0 and weights_of(run) == left
    gone = before - all_files(tmp_path)
    assert all("checkpoints" in path.parts or path.name == "model.safetensors" for path in gone)
    note = run / "dropped.json"
    assert found.size == size - size_of(run) + (note.stat().st_size if note.exists() else 0)
    again = collect([out], option)
    assert (again.freed, again.size) == ([], 0)


@made_up
def test_a_run_that_is_not_finished_or_still_needed_is_left_alone(tmp_path):
    run = of_kind(study(tmp_path / "a"), "pretrain")
    study(tmp_path / "b", MORE)
    changes: tuple[dict[str, Any], ...] = ({}, {"stages": {}})
    for more in changes:  # also if it had not come to see the run finished
        pending(tmp_path / "b", **more)
        found = collect([tmp_path / "a"], "results")
        assert (found.freed, found.needed, weights_of(run)) == ([], 1, (EVERY, EXPORTS))
    shutil.rmtree(tmp_path / "b")
    done = (run / "done.json").read_bytes()
    (run / "done.json").unlink()
    assert collect([tmp_path / "a"], "results").freed == []
    (run / "done.json").write_bytes(done)
    collect([tmp_path / "a"], "results")
    assert weights_of(run) == ([], []), "a study that is gone needs nothing"


@made_up
@pytest.mark.parametrize(
    ("folders", "other", "left"),
    [
        (["a"], "checkpoints", (EVERY, EXPORTS)),  # what the other study keeps, stays
        (["a"], "final", (LAST, EXPORTS)),
        (["a"], "results", ([], [])),
        (["a", "b"], "checkpoints", ([], [])),  # named itself, it has the policy of the option
    ],
)
def test_the_policy_that_keeps_most_counts(folders, other, left, tmp_path, monkeypatch, capsys):
    run = of_kind(study(tmp_path / "a"), "pretrain")
    study(tmp_path / "b", {**MORE, "keep": other})
    paths = [tmp_path / name for name in folders]
    assert command(monkeypatch, "gc", *paths, "--keep", "results", "--dry-run") == 0
    said = capsys.readouterr().out.splitlines()[-1]
    kept = f"; 1 run kept by other studies of the store (b: keep {other})" if other in ("checkpoints", "final") else ""
    assert said.endswith(kept if len(folders) == 1 else "of 1 run")
    collect(paths, "results")
    assert weights_of(run) == left


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nothing"],
            "nothing: is not a study folder: study.json is missing; name the folder that synthlang study wrote",
        ),
        (["a", "--keep", "all"], "--keep: unknown policy 'all'; choose one of checkpoints, final, results"),
        (
            ["archived"],
            "archived/study.json: is the record of an archived study, which has no store and no runs; name the folder "
            "in which the study was run",
        ),
        (
            ["old"],
            "old/study.json: has no key 'format', but this version of synthlang reads format 2; use the version "
            "of synthlang that wrote this file, or run the study again in another folder",
        ),
    ],
)
@made_up
def test_wrong_use_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    study(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    old = {"name": "x", "fingerprint": "y", "cells": [], "seconds": {}}
    write_json(tmp_path / "old" / "study.json", old)
    write_json(tmp_path / "archived" / "study.json", old | {"format": 2, "kept": {"format": 1}})
    before = all_files(tmp_path)
    assert command(monkeypatch, "gc", *arguments) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
    assert all_files(tmp_path) == before


# --- weights that are needed after all: a run that was trained ---


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gc") / "out"
    made_here(folder, ONE)
    return folder


@pytest.fixture
def out(finished, tmp_path):
    return own_copy(finished, tmp_path / "out")


def test_results_stay_and_a_later_study_says_that_it_needs_deleted_weights(out, tmp_path):
    before, (run,) = tables(out), stages_of(out, "pretrain")
    collect([out], "results")
    assert [cell.status for cell in made_here(out, ONE).cells] == ["done"]
    assert tables(out) == before
    error = refusal(opened, tmp_path / "b", MORE, store=out / "stages")
    assert (error.path, error.code) == (run, "missing")
    assert error.reason == "pos seed 1 of mlm trans needs weights that synthlang gc deleted (policy results)"
    assert error.hint == "delete this folder and start the study again, which trains the run anew"
    assert not (tmp_path / "b").exists()
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    shutil.rmtree(run)
    made_here(tmp_path / "b", MORE, store=out / "stages")
    assert json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["loss"] == last["loss"]
    assert rows_of(tmp_path / "b")[0]["sup"] == rows_of(out)[0]["sup"]


def test_final_weights_are_enough_for_more_seeds_but_not_for_all_checkpoints(out, tmp_path):
    collect([out], "final")
    assert open_run(stages_of(out, "pretrain")[0])[0].steps == 6
    made_here(tmp_path / "b", {**changed(ONE, seeds=[1]), "name": "more"}, store=out / "stages")
    assert len(rows_of(tmp_path / "b")) == 1
    probes: dict[str, Any] = {"emergence": {"probes": ["words"], "words": {"checkpoints": True}}}
    (run,) = stages_of(out, "pretrain")
    asked = {**ONE, "name": "probes", "probes": probes}
    assert refused(opened, tmp_path / "c", asked, store=out / "stages") == (run.name, "missing")
    named = {"emergence": {"probes": ["words"], "checkpoints": "all"}}
    curves = changed({**ONE, "name": "probes", "probes": named}, pretrain__checkpoints={"at": [2]})
    assert refused(opened, tmp_path / "c", curves, store=out / "stages") == (run.name, "missing")
    probes["emergence"]["words"]["checkpoints"] = False
    opened(tmp_path / "c", {**ONE, "name": "probes", "probes": probes}, store=out / "stages")


# --- stages that no cell uses ---


def test_a_stage_that_is_half_deleted_is_no_stage_and_all_are_made_again_with_the_same_result(out, monkeypatch):
    made_here(out, TWO)
    assert delete_unused([out]) == [], "every stage has its cell"
    first, before = tables(out), {path for kind in KINDS for path in stages_of(out, kind)}
    made_here(out, ONE)
    assert kinds(delete_unused([out], dry_run=True)) == KINDS
    monkeypatch.setattr(shutil, "rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        delete_unused([out])
    monkeypatch.undo()
    assert len(list((out / "stages").glob(".tmp-unused-*"))) == 1
    assert len(delete_unused([out])) == 2 and not list((out / "stages").glob(".tmp-*"))
    made_here(out, TWO)
    assert tables(out) == first and {path for kind in KINDS for path in stages_of(out, kind)} == before


@made_up
def test_stages_of_settings_or_texts_that_have_changed_go_if_asked_to(tmp_path, monkeypatch, capsys):
    old = study(tmp_path / "a")
    new = study(tmp_path / "a", OTHER)
    planned, whole = delete_unused([tmp_path / "a"], dry_run=True), all_files(tmp_path)
    assert {one.folder for one in planned} == old and all(map(Path.is_dir, old))
    assert all(one.size == size_of(one.folder) > 0 for one in planned)
    assert command(monkeypatch, "gc", tmp_path / "a") == 0
    assert "stage" not in capsys.readouterr().out
    assert command(monkeypatch, "gc", tmp_path / "a", "--unused", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "(no cell uses this stage of kind pretrain)" in said and "of 3 stages that no cell uses" in said
    assert "would free" in said.splitlines()[-1] and all_files(tmp_path) == whole
    assert command(monkeypatch, "gc", tmp_path / "a", "--unused") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("freed ")
    assert not any(map(Path.exists, old)) and all(map(Path.is_dir, new))


@made_up
def test_unused_is_what_no_study_of_the_store_has(tmp_path):
    study(tmp_path / "a", OTHER)
    old = study(tmp_path / "b", {**TWO, "name": "b"})
    assert delete_unused([tmp_path / "a"]) == []
    pending(tmp_path / "b", stages={})
    assert delete_unused([tmp_path / "a"]) == [], "it has not come to see them finished"
    (tmp_path / "b").rename(tmp_path / "renamed")
    assert delete_unused([tmp_path / "renamed"]) == [] and all(map(Path.is_dir, old)), "it is named"
    assert {one.folder for one in delete_unused([tmp_path / "a"])} == old


@made_up
def test_nothing_that_is_being_made_goes(tmp_path):
    old = study(tmp_path / "a")
    study(tmp_path / "a", OTHER)
    alignment, run, transfer = (of_kind(old, kind) for kind in KINDS)
    (run / "done.json").unlink()
    (transfer / "predictions.parquet").unlink()
    words = tmp_path / "store" / f"alignment-{'0' * 16}" / "forward"  # an aligner's links, which are no stage
    beside = [run.with_name(f"{run.name}.again"), transfer.with_name(f"{transfer.name}.work"), words]
    for folder in [*beside, tmp_path / "store" / f"shards-{'0' * 16}"]:
        write_json(folder / "done.json", {"made": True})
    (alignment / "result.json").write_text('{"cut": ')
    before = all_files(tmp_path)
    assert delete_unused([tmp_path / "a"]) == []
    assert all_files(tmp_path) == before


@made_up
def test_a_stage_that_somebody_works_on_stays(tmp_path):
    old = study(tmp_path / "a")
    study(tmp_path / "a", OTHER)
    kind, _, key = of_kind(old, "transfer").name.partition("-")
    with Store(tmp_path / "store").lock(kind, key), ThreadPoolExecutor(1) as other:  # its lock is one of another holder
        assert kinds(other.submit(delete_unused, [tmp_path / "a"]).result()) == KINDS[:2]
    assert kinds(delete_unused([tmp_path / "a"])) == ["transfer"]


# --- stages that a study names by a path ---


def naming(folder: Path, other: Path, stage: Path) -> None:
    """A study in ``folder``, in the store of ``other``, that names a stage and makes none."""
    edited(folder, **{**read_json(other / "study.json"), "config": {}, "reads": [stage.name], "cells": []})
    with registered(Store(stage.parent), folder):
        pass


@made_up
def test_a_run_that_a_study_names_is_used(tmp_path):
    stages = study(tmp_path / "a", TWO)
    run = of_kind(stages - study(tmp_path / "a"), "pretrain")
    own = run.with_name(f"adjust-{'1' * 16}")  # names it in turn
    own.mkdir()
    (own / "config.yaml").write_text(yaml.safe_dump({"model": f"elsewhere/{run.name}/export/en"}))
    assert kinds(delete_unused([tmp_path / "a"], dry_run=True)) == KINDS
    for stage in (run, own):
        naming(tmp_path / "b", tmp_path / "a", stage)
        assert kinds(delete_unused([tmp_path / "a"], dry_run=True)) == ["alignment", "transfer"], stage
        shutil.rmtree(tmp_path / "b")
    assert kinds(delete_unused([tmp_path / "a"])) == KINDS and not run.exists()


@made_up
def test_the_recorded_graph_leads_from_a_named_stage_to_what_it_is_made_of(tmp_path):
    stages = study(tmp_path / "a", TWO)
    run = of_kind(stages - study(tmp_path / "a"), "pretrain")
    named = f"adjust-{'1' * 16}"
    naming(tmp_path / "b", tmp_path / "a", run)
    edited(tmp_path / "b", reads=[named], parents={named: [run.name]})
    assert kinds(delete_unused([tmp_path / "a"], dry_run=True)) == ["alignment", "transfer"]
    edited(tmp_path / "b", reads=[])
    assert kinds(delete_unused([tmp_path / "a"], dry_run=True)) == KINDS, "a graph alone names nothing"


@made_up
def test_nothing_is_deleted_beside_a_record_without_a_graph(tmp_path):
    study(tmp_path / "a", TWO)
    record = tmp_path / "a" / "study.json"
    write_json(record, {key: value for key, value in read_json(record).items() if key not in ("parents", "reads")})
    assert refused(delete_unused, [tmp_path / "a"]) == ("study.json", "format")
    study(tmp_path / "a", TWO)  # a start reads the former record, and writes it anew
    assert kinds(delete_unused([tmp_path / "a"], dry_run=True)) == []


@made_up
def test_weights_that_a_study_names_stay_and_the_command_says_so(tmp_path, monkeypatch, capsys):
    run = of_kind(study(tmp_path / "a"), "pretrain")
    naming(tmp_path / "b", tmp_path / "a", run)
    assert command(monkeypatch, "gc", tmp_path / "a", "--keep", "results") == 0
    said = capsys.readouterr().out
    assert "freed 0 bytes of 0 runs; 1 run kept because studies name them by path (b)" in said
    assert weights_of(run) == (EVERY, EXPORTS) and not (run / "dropped.json").exists()
    shutil.rmtree(tmp_path / "b")
    assert [freed.run for freed in collect([tmp_path / "a"], "results").freed] == [run]


def test_what_only_a_base_file_or_a_link_names_is_in_the_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"pretrain-{digit * 16}" for digit in "123"]
    for name in names:
        (tmp_path / "store" / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "store" / names[1])
    frozen = {"features": {"tune": "none"}}
    for file, model in (("a", f"store/{names[0]}"), ("b", "link")):
        (tmp_path / f"{file}.yaml").write_text(yaml.safe_dump({"target_model": model, **frozen}))
    grid = {"product": {"target": {name: {"tasks.pos.base": f"{name}.yaml"} for name in "ab"}}}
    data = {**FULL, "model": str(tmp_path / "store" / names[2]), "tasks": {"pos": {}}, "probes": {}, "grid": grid}
    del data["pretrain"], data["source"]
    assert stages_read(graph_of(data, tmp_path / "study.yaml")[1]) == names
    assert stages_read(graph_of(FULL)[1]) == []
