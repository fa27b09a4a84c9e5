"""Tasks of a study: their keys and JSON, and what they make."""

import json
import os
import shutil

import pytest

from pretrain.folder import steps_in
from pretrain.stopping import Stopped
from probes.study import work
from probes.study.cell import MODEL, SECOND
from probes.study.cells import expand
from probes.study.tasks import (
    AdjustTask,
    AlignmentTask,
    PretrainTask,
    ProbeTask,
    TransferTask,
    finished,
    graph,
    task_from_json,
)
from probes.transfer.result import read_predictions
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_graphs import ADJUSTED, FULL, SOURCE, TWO, contents, graph_of, run_all, study_of
from tests.tiny import changed


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A cell with a run, its alignment, a probe and two tasks of two seeds, all of it made."""
    store = Store(tmp_path_factory.mktemp("full"))
    whole, _ = graph_of(FULL)
    return store, whole, run_all(whole.tasks, store)


# --- what there is to do ---


def test_the_tasks_of_a_cell():
    whole, (cell,) = graph_of(FULL)
    held = whole.of_cell[cell.name]
    kinds = [task.kind for task in whole.tasks.values()]
    assert kinds == ["pretrain", "alignment", "probe", *["transfer"] * 4]
    assert list(held.transfers) == [("pos", 0), ("pos", 1), ("ner", 0), ("ner", 1)]
    assert (held.second, held.adjust) == (None, None)
    assert held.keys == tuple(whole.tasks)
    assert [whole.tasks[key].config.task for key in held.transfers.values()] == ["pos", "pos", "ner", "ner"]
    for key, task in whole.tasks.items():
        assert task.key == key
        assert set(task.parents) <= set(whole.tasks)
    assert set(whole.dependents()[held.pretrain]) == set(whole.tasks) - {held.pretrain}


def test_cells_share_tasks_and_every_parent_comes_first():
    data = changed(FULL, grid={"product": {"pretrain.seed": [0, 1], "transfer.fine_tune.epochs": [1, 2]}})
    whole, cells = graph_of(data)
    assert len(cells) == 4
    assert sum(task.kind == "pretrain" for task in whole.tasks.values()) == 2
    assert sum(task.kind == "probe" for task in whole.tasks.values()) == 2
    assert sum(task.kind == "transfer" for task in whole.tasks.values()) == 4 * 2 * 2
    order = list(whole.tasks)
    for key, task in whole.tasks.items():
        assert all(order.index(parent) < order.index(key) for parent in task.parents)


def test_the_models_that_tasks_read():
    whole, (cell,) = graph_of(TWO)
    held, tasks = whole.of_cell[cell.name], whole.tasks
    assert [tasks[key].config.seed for key in (held.pretrain, held.second)] == [0, 7]
    for key in (held.probes["cka"], held.probes["plain"], held.transfers["pos", 0]):
        assert tasks[key].parents == (held.pretrain, held.second)
    assert tasks[held.alignment].parents == (held.pretrain,)
    assert cell.tasks["pos"].target_model == cell.probes["plain"].model2 == SECOND
    assert cell.probes["cka"].model2 is None
    whole, (cell,) = graph_of(ADJUSTED)
    held, tasks = whole.of_cell[cell.name], whole.tasks
    assert cell.adjust.model == MODEL
    assert tasks[held.adjust].parents == tasks[held.alignment].parents == (held.pretrain,)
    assert tasks[held.probes["d"]].parents == tasks[held.transfers["pos", 0]].parents == (held.adjust,)
    named = {k: v for k, v in ADJUSTED.items() if k not in ("pretrain", "probes", "source")} | {"model": "bert"}
    whole = graph(expand(study_of(named)), [0])
    assert [task.kind for task in whole.tasks.values()] == ["adjust", "transfer", "transfer"]
    first = next(iter(whole.tasks.values()))
    assert isinstance(first, AdjustTask) and first.model == "bert"


@pytest.mark.parametrize("data", [FULL, TWO, ADJUSTED], ids=["full", "two", "adjusted"])
def test_json_and_back_is_the_same_task(data):
    whole, _ = graph_of(data)
    for task in whole.tasks.values():
        again = task_from_json(json.loads(json.dumps(task.to_json())))
        assert (type(again), again.key, again.label, again.parents) == (type(task), task.key, task.label, task.parents)
        assert again.config == task.config
        assert again.to_json() == task.to_json()


def test_json_of_something_else_is_refused():
    with pytest.raises(InputError, match="'stage' is no kind of task; there is pretrain, adjust, tune, alignment"):
        task_from_json({"kind": "stage"})


def test_keys_cover_every_setting_and_no_name():
    base = graph_of(FULL)[0]
    again = graph_of(changed(FULL, title="other", name="other"))[0]
    assert set(again.tasks) == set(base.tasks)
    renamed = graph_of(changed(FULL, tasks={"one": {"task": "pos"}, "ner": {}}, probes={"w": FULL["probes"]["words"]}))
    assert set(renamed[0].tasks) == set(base.tasks)
    (pretrain, *_) = base.tasks.values()
    assert isinstance(pretrain, PretrainTask)
    for values in ({"pretrain__steps": 7}, {"pretrain__log_every": 3}, {"source": SOURCE.replace("500", "400")}):
        other = graph_of(changed(FULL, **values))[0]
        assert not set(other.tasks) & set(base.tasks)  # all depend on the run
    other = graph_of(changed(FULL, transfer__length=40))[0]
    assert {t.kind for k, t in base.tasks.items() if k not in other.tasks} == {"transfer"}
    models = [TransferTask(t.config, "pos", 0, model) for t in base.tasks.values() if t.kind == "transfer"
              for model in ("a", "b")]  # fmt: skip
    assert len({task.key for task in models}) == 4


# --- what tasks make ---


def test_every_stage_is_a_folder_of_its_kind(full):
    store, whole, made = full
    assert len(made) == len(whole.tasks)
    for key, task in whole.tasks.items():
        folder = store.path(task.kind, made[key])
        assert finished(store, task) == made[key]
        names = {path.name for path in folder.iterdir()}
        assert {"pretrain": "done.json", "probe": "probes.json"}.get(task.kind, "result.json") in names
    assert not list(store.root.glob("*.work"))


def test_results_are_those_of_the_commands(full):
    store, whole, made = full
    for key, task in whole.tasks.items():
        if isinstance(task, TransferTask):
            folder = store.path("transfer", made[key])
            result = read_json(folder / "result.json")
            assert (result["task"], result["seed"]) == (task.config.task, task.seed)
            assert result["delta"] == pytest.approx(result["sup"] - result["zs"], abs=1e-3)
            parts = read_predictions(folder / "predictions.parquet")
            assert {part.test for part in parts} == {"parent", "zs", "sup"}
            assert result["counts"]["target test"]["items"] == 20
            assert "target test" in result["drops"]
    (probe,) = (t for t in whole.tasks.values() if isinstance(t, ProbeTask))
    probes = read_json(store.path("probe", made[probe.key]) / "probes.json")
    (quick,) = (t for t in whole.tasks.values() if isinstance(t, AlignmentTask))
    alignment = read_json(store.path("alignment", made[quick.key]) / "result.json")
    assert probes["probes"]["words"]["scores"] == alignment["scores"]
    assert (store.path("probe", made[probe.key]) / "probes.html").is_file()


def test_a_second_start_finds_all_done_and_running_again_changes_nothing(full):
    store, whole, made = full
    before = contents(store, ("pretrain", "alignment", "probe", "transfer"))
    assert run_all(whole.tasks, store) == {}
    assert [task.run(store, silent) for task in whole.tasks.values()] == [made[key] for key in whole.tasks]
    assert contents(store, ("pretrain", "alignment", "probe", "transfer")) == before


def test_tasks_from_json_in_another_order_make_the_same_stages(full, tmp_path):
    store, whole, made = full
    other = Store(tmp_path / "elsewhere")
    first, *rest = (task_from_json(task.to_json()) for task in whole.tasks.values())
    tasks = {task.key: task for task in (first, *reversed(rest))}
    assert run_all(tasks, other) == made
    assert contents(other) == contents(store)


def test_a_pretraining_told_to_stop_saves_and_goes_on_to_the_same_weights(full, tmp_path, monkeypatch):
    store, whole, made = full
    task = next(iter(whole.tasks.values()))
    other = Store(tmp_path / "stopped")

    def impatient(name, done, total, note):
        if name.startswith("pretrain") and done == 3:
            os.kill(os.getpid(), 15)

    with pytest.raises(Stopped):
        task.run(other, impatient)
    assert finished(other, task) is None
    folder = other.path("pretrain", made[task.key])
    assert steps_in(folder / "checkpoints")
    assert not (folder / "done.json").exists()
    assert task.run(other, silent) == made[task.key]
    for name in ("parent", "trans+inv"):
        weights = [s.path("pretrain", made[task.key]) / "export" / name / "model.safetensors" for s in (store, other)]
        assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_transfer_that_is_killed_goes_on_from_its_fits(full, tmp_path, monkeypatch):
    store, whole, made = full
    task = next(t for t in whole.tasks.values() if isinstance(t, TransferTask))
    other = Store(tmp_path / "killed")
    shutil.copytree(store.root, other.root)
    shutil.rmtree(other.path("transfer", made[task.key]))
    before = contents(store)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(work, "write_predictions", killed)
        with pytest.raises(KeyboardInterrupt):
            task.run(other, silent)
    (left,) = other.root.glob("transfer-*.work")
    assert list(left.glob("fit-*"))
    fits: list[str] = []
    assert task.run(other, lambda name, *_: fits.append(name)) == made[task.key]
    assert contents(other) == before
    assert not list(other.root.glob("*.work"))
