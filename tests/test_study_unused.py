"""Which stages ``gc`` takes for unused, and which runs it leaves alone; the stages are made up, so that it is quick."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from probes.study.gc import _named_by, collect, delete_unused, stages_read
from probes.study.record import registered
from probes.study.results import Tables
from synthlang.files import read_json, write_json
from synthlang.store import Store
from tests.study_cases import TINY, command, opened
from tests.study_graphs import FULL, graph_of
from tests.tiny import changed

ONE = changed(TINY, pretrain__language="trans", seeds=[0], grid={"product": {"pretrain.objective.kind": ["mlm"]}})
TWO: dict[str, Any] = changed(ONE, grid={"product": {"pretrain.objective.kind": ["mlm"], "pretrain.seed": [0, 1]}})
OTHER = changed(ONE, pretrain__steps=7)
KINDS = ["alignment", "pretrain", "transfer"]


@pytest.fixture(autouse=True)
def _no_results(monkeypatch):
    monkeypatch.setattr(Tables, "dropped", lambda self, done: {})


def study(folder: Path, data: Any) -> set[Path]:
    """A finished study of a store beside it; its stages."""
    folder.mkdir(exist_ok=True)
    run, stages = opened(folder, data, store=folder.parent / "store"), set()
    for key, stage in run.graph.stages.items():
        stages.add(run.store.path(stage.kind, key))
        for file in stage.content:
            write_json(run.store.path(stage.kind, key) / file, {"made": True})
    run.look()
    with registered(run.store, folder):
        run._write_record()
    return stages


def kinds(found: Any) -> list[str]:
    return sorted(one.folder.name.split("-")[0] for one in found)


def of_kind(stages: set[Path], kind: str) -> Path:
    (path,) = (path for path in stages if path.name.startswith(f"{kind}-"))
    return path


def edited(folder: Path, **changes: Any) -> None:
    write_json(folder / "study.json", {**read_json(folder / "study.json"), **changes})


def test_a_study_whose_folder_was_renamed_keeps_its_stages_when_it_is_named(tmp_path):
    study(tmp_path / "b", {**OTHER, "name": "b"})
    stages = study(tmp_path / "a", changed(ONE, pretrain__seed=1))
    (tmp_path / "a").rename(tmp_path / "renamed")
    assert delete_unused([tmp_path / "renamed"]) == [] and all(map(Path.is_dir, stages))


def test_stages_of_settings_or_texts_that_have_changed_go(tmp_path, monkeypatch, capsys):
    old = study(tmp_path / "a", ONE)
    new = study(tmp_path / "a", OTHER)
    planned = delete_unused([tmp_path / "a"], dry_run=True)
    assert {one.folder for one in planned} == old and all(map(Path.is_dir, old))
    assert command(monkeypatch, "gc", tmp_path / "a", "--unused") == 0
    assert "(no cell has this pretrain)" in capsys.readouterr().out
    assert not any(map(Path.exists, old)) and all(map(Path.is_dir, new))


def test_what_a_study_has_not_come_to_see_done_is_used(tmp_path):
    old = study(tmp_path / "a", ONE)
    record = read_json(tmp_path / "a" / "study.json")
    edited(tmp_path / "a", cells=[{**cell, "stages": {}, "status": "pending"} for cell in record["cells"]])
    study(tmp_path / "b", {**OTHER, "name": "b"})
    assert delete_unused([tmp_path / "b"]) == [] and all(map(Path.is_dir, old))


def test_nothing_that_is_being_made_goes(tmp_path):
    old = study(tmp_path / "a", ONE)
    study(tmp_path / "a", OTHER)
    run, transfer, alignment = (of_kind(old, kind) for kind in KINDS[1:] + KINDS[:1])
    (run / "done.json").unlink()
    (transfer / "predictions.parquet").unlink()
    words = tmp_path / "store" / f"alignment-{'0' * 16}" / "forward"  # an aligner's links, which are no stage
    beside = [run.with_name(f"{run.name}.again"), transfer.with_name(f"{transfer.name}.work"), words]
    for folder in [*beside, tmp_path / "store" / f"shards-{'0' * 16}"]:
        folder.mkdir(parents=True)
        write_json(folder / "done.json", {"made": True})
    before = sorted(path for path in (tmp_path / "store").rglob("*") if ".locks" not in path.parts)
    (alignment / "result.json").write_text('{"cut": ')
    assert delete_unused([tmp_path / "a"]) == []
    assert before == sorted(path for path in (tmp_path / "store").rglob("*") if ".locks" not in path.parts)


def test_a_stage_that_somebody_works_on_stays(tmp_path):
    old = study(tmp_path / "a", ONE)
    study(tmp_path / "a", OTHER)
    kind, _, key = of_kind(old, "transfer").name.partition("-")
    with Store(tmp_path / "store").lock(kind, key), ThreadPoolExecutor(1) as other:  # its lock is one of another holder
        assert kinds(other.submit(delete_unused, [tmp_path / "a"]).result()) == KINDS[:2]
    assert kinds(delete_unused([tmp_path / "a"])) == ["transfer"]


# --- stages that a study names by a path ---

PLACES: dict[str, Any] = {
    "model": lambda path: {"config": {"model": path}},
    "target_model": lambda path: {"config": {"tasks": {"pos": {"target_model": f"../x/{path}"}}}},
    "start": lambda path: {"config": {"pretrain": {"start": {"model": f"{path}/export/en"}}}},
    "axis": lambda path: {"config": {"grid": {"product": {"model": ["mbert", path]}}}},
    "base file": lambda path: {"settings": {"probes": {"d": {"distances": {"before": {"a": path}}}}}},
    "override": lambda path: {"cells": [{"keys": {}, "stages": {}, "overrides": {"probes.c.model2": path}}]},
    "link": lambda path: {"reads": [Path(path).name]},
}


def naming(folder: Path, other: Path, place: str, stage: Path) -> None:
    """A study in ``folder``, in the store of ``other``, that names a stage and makes none."""
    folder.mkdir()
    plain = {**read_json(other / "study.json"), "config": {}, "settings": {}, "reads": [], "cells": []}
    write_json(folder / "study.json", plain)
    edited(folder, **PLACES[place](f"store/{stage.name}"))
    with registered(Store(stage.parent), folder):
        pass


@pytest.mark.parametrize("place", PLACES)
def test_a_run_that_a_study_names_is_used(place, tmp_path):
    stages = study(tmp_path / "a", TWO)
    kept = study(tmp_path / "a", ONE)
    run = of_kind(stages - kept, "pretrain")
    assert kinds(delete_unused([tmp_path / "a"], dry_run=True)) == KINDS
    naming(tmp_path / "b", tmp_path / "a", place, run)
    assert kinds(delete_unused([tmp_path / "a"])) == ["alignment", "transfer"] and run.is_dir()
    shutil.rmtree(tmp_path / "b")
    assert kinds(delete_unused([tmp_path / "a"])) == ["pretrain"]


def test_what_a_named_run_was_made_of_is_used_too(tmp_path):
    stages = study(tmp_path / "a", TWO)
    first = of_kind(stages - study(tmp_path / "a", ONE), "pretrain")
    own = first.with_name(f"adjust-{'1' * 16}")
    own.mkdir()
    (own / "config.yaml").write_text(yaml.safe_dump({"model": f"elsewhere/{first.name}/export/en"}))
    naming(tmp_path / "b", tmp_path / "a", "model", own)
    assert kinds(delete_unused([tmp_path / "a"])) == ["alignment", "transfer"]


def test_weights_that_a_study_names_stay_and_the_command_says_so(tmp_path, monkeypatch, capsys):
    run = of_kind(study(tmp_path / "a", ONE), "pretrain")
    weights = run / "export" / "en" / "model.safetensors"
    write_json(weights, {})
    naming(tmp_path / "b", tmp_path / "a", "model", run)
    assert command(monkeypatch, "gc", tmp_path / "a", "--keep", "results") == 0
    said = capsys.readouterr().out
    assert "freed 0 bytes of 0 runs; 1 run kept since studies name them by path (b)" in said
    assert weights.exists() and not (run / "dropped.json").exists()
    shutil.rmtree(tmp_path / "b")
    assert [freed.run for freed in collect([tmp_path / "a"], "results").freed] == [run]
    assert not weights.exists()


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
    cells = graph_of(data, tmp_path / "study.yaml")[1]
    assert stages_read(cells) == names
    empty = Store(tmp_path / "empty")
    assert _named_by({"config": {}, "cells": [], "reads": names}, empty) == set(names)
    assert _named_by({"config": {}, "cells": []}, empty) == set()  # a study of an earlier version
    assert stages_read(graph_of(FULL)[1]) == []
