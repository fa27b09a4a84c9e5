"""Which stages ``gc`` takes for unused, and which runs it leaves alone; the stages are made up, so that it is quick."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from probes.study.index import entry_path, finish
from probes.study.unused import delete_unused
from probes.study.users import stages_named, stages_read

from probes.study import unused
from probes.study.executors import run_stage
from probes.study.gc import collect
from probes.study.record import registered
from probes.study.tables import Tables
from synthlang.files import read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_cases import TINY, command, opened
from tests.study_fakes import RUN, FakeTask
from tests.study_graphs import FULL, graph_of
from tests.tiny import changed

ONE = changed(TINY, pretrain__language="trans", seeds=[0], grid={"product": {"pretrain.objective.kind": ["mlm"]}})
TWO: dict[str, Any] = changed(ONE, grid={"product": {"pretrain.objective.kind": ["mlm"], "pretrain.seed": [0, 1]}})
KINDS = ["alignment", "pretrain", "transfer"]


@pytest.fixture(autouse=True)
def _no_results(monkeypatch):
    monkeypatch.setattr(Tables, "dropped", lambda self, done: {})


def study(folder: Path, data: Any, content: str = "") -> set[Path]:
    """A finished study of a store beside it, of stages that depend on ``content``; these stages."""
    folder.mkdir(exist_ok=True)
    run, stages = opened(folder, data, store=folder.parent / "store"), set()
    for key, task in run.graph.stages.items():
        name = fingerprint("made up", key=key, content=content)
        stages.add(run.store.path(task.kind, name))
        for file in task.content:
            write_json(run.store.path(task.kind, name) / file, {"made": True})
        finish(run.store, task, name, 1.0)
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
    study(tmp_path / "b", {**ONE, "name": "b"}, "another text")
    stages = study(tmp_path / "a", changed(ONE, pretrain__seed=1))
    (tmp_path / "a").rename(tmp_path / "renamed")
    assert delete_unused([tmp_path / "renamed"]) == [] and all(map(Path.is_dir, stages))


def test_stages_that_were_made_of_a_text_that_has_changed_go(tmp_path, monkeypatch, capsys):
    old = study(tmp_path / "a", ONE)
    new = study(tmp_path / "a", ONE, "another text")  # the keys are the same: no entry names the old ones
    planned = delete_unused([tmp_path / "a"], dry_run=True)
    assert {one.folder for one in planned} == old and all(map(Path.is_dir, old))
    assert command(monkeypatch, "gc", tmp_path / "a", "--unused") == 0
    assert "(no cell has this pretrain)" in capsys.readouterr().out
    assert not any(map(Path.exists, old)) and all(map(Path.is_dir, new))


def test_a_study_that_has_not_looked_since_keeps_what_it_has(tmp_path):
    old = study(tmp_path / "a", ONE)
    study(tmp_path / "b", {**ONE, "name": "b"}, "another text")
    assert delete_unused([tmp_path / "b"]) == [] and all(map(Path.is_dir, old))


def test_nothing_that_is_being_made_goes(tmp_path):
    old = study(tmp_path / "a", ONE)
    study(tmp_path / "a", ONE, "another text")
    run, transfer, alignment = (of_kind(old, kind) for kind in ("pretrain", "transfer", "alignment"))
    (run / "done.json").unlink()
    (transfer / "predictions.parquet").unlink()
    (alignment / "result.json").write_text('{"cut": ')
    words = tmp_path / "store" / f"alignment-{'0' * 16}" / "forward"  # an aligner's links, which are no stage
    beside = [run.with_name(f"{run.name}.again"), transfer.with_name(f"{transfer.name}.work"), words]
    for folder in [*beside, tmp_path / "store" / f"shards-{'0' * 16}"]:
        folder.mkdir(parents=True)
        write_json(folder / "done.json", {"made": True})
    before = sorted((tmp_path / "store").rglob("*"))
    assert delete_unused([tmp_path / "a"]) == []
    assert sorted(path for path in (tmp_path / "store").rglob("*") if ".locks" not in path.parts) == [
        path for path in before if ".locks" not in path.parts
    ]


# --- a study that runs at the same time ---


@dataclass(frozen=True, eq=False)
class Finds(FakeTask):
    """Finds a stage that another task has made; before it has its entry, ``gc`` looks for unused ones."""

    def run(self, store, report):
        path = store.path(self.kind, self.does)
        assert store.obtain(self.kind, self.does, lambda path: pytest.fail("it is there")) == path
        with ThreadPoolExecutor(1) as other:
            assert other.submit(delete_unused, [Path(self.where)]).result() == []
        return self.does


@pytest.fixture
def found(tmp_path):
    """A stage whose only entry is that of a task that has left, the key of a task that comes to the same, its study."""
    stage = of_kind(study(tmp_path / "a", ONE), "alignment")
    (key,) = (
        key for key in read_json(tmp_path / "a" / "study.json")["cells"][0]["keys"].values() if _is_of(key, stage)
    )
    store = Store(tmp_path / "store")
    entry_path(store, key).rename(entry_path(store, "left"))
    record = read_json(tmp_path / "a" / "study.json")
    record["cells"][0]["stages"] = {}
    edited(tmp_path / "a", cells=record["cells"])
    return stage, key, tmp_path / "a"


def _is_of(key: str, stage: Path) -> bool:
    return str(read_json(entry_path(Store(stage.parent), key))["fingerprint"]) == stage.name.partition("-")[2]


def test_a_stage_that_a_task_has_just_found_stays(found):
    stage, key, folder = found
    assert [one.folder for one in delete_unused([folder], dry_run=True)] == [stage]
    name = stage.name.partition("-")[2]
    outcome = run_stage(Finds(RUN, key, name, str(folder)), Store(stage.parent), silent)
    assert (outcome.fingerprint, outcome.error) == (name, None)
    assert stage.is_dir() and delete_unused([folder]) == []
    with Store(stage.parent).lock("alignment", name).acquire(timeout=0):
        pass  # the lock is free again


def test_the_index_is_looked_at_again_before_a_stage_goes(found, monkeypatch):
    stage, key, folder = found
    store, delete = Store(stage.parent), unused._delete

    def meanwhile(*arguments):
        shutil.copy(entry_path(store, "left"), entry_path(store, key))
        return delete(*arguments)

    monkeypatch.setattr(unused, "_delete", meanwhile)
    assert delete_unused([folder]) == [] and stage.is_dir()
    assert entry_path(store, "left").exists()


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
    assert stages_named({"config": {}, "cells": [], "reads": names}, empty) == set(names)
    assert stages_named({"config": {}, "cells": []}, empty) == set()  # a study of an earlier version
    assert stages_read(graph_of(FULL)[1]) == []
