"""Stages of a study: their keys and JSON, and what they make."""

import json
import os
import shutil

import pytest

from pretrain.folder import steps_in
from pretrain.stopping import Stopped
from probes.study import work
from probes.study.cell import MODEL, SECOND
from probes.study.cells import expand
from probes.study.digests import Digests
from probes.study.done import is_done
from probes.study.executors.base import run_stage
from probes.study.stage import (
    OF_DATA,
    AdjustStage,
    AlignmentStage,
    Look,
    PretrainStage,
    ProbeStage,
    TransferStage,
    graph,
    stage_from_json,
)
from probes.transfer.result import read_predictions
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_graphs import ADJUSTED, FULL, SOURCE, TWO, contents, graph_of, run_all, study_of
from tests.tiny import changed

MADE = ("pretrain", "alignment", "probe", "transfer")


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A cell with a run, its alignment, a probe and two tasks of two seeds, all of it made."""
    store = Store(tmp_path_factory.mktemp("full"))
    whole, _ = graph_of(FULL)
    assert run_all(whole.stages, store) == list(whole.stages)
    return store, whole


def of_kind(whole, kind):
    return [stage for stage in whole.stages.values() if isinstance(stage, kind)]


# --- what there is to do ---


def test_another_format_of_the_data_is_another_key(monkeypatch):
    """Also of what is made of the run; a raised format finds nothing that was made before."""
    before, _ = graph_of(FULL)
    formats = "probes.study.stage.OF_DATA"
    monkeypatch.setattr(formats, (*OF_DATA[:-1], OF_DATA[-1] + 1))
    after, _ = graph_of(FULL)
    assert len(after.stages) == len(before.stages) and not after.stages.keys() & before.stages.keys()


def test_the_stages_of_a_cell():
    whole, (cell,) = graph_of(FULL)
    held = whole.of_cell[cell.name]
    transfers = [f"transfer {task} seed {seed}" for task in ("pos", "ner") for seed in (0, 1)]
    assert list(held) == ["pretrain", "alignment", "probe words", *transfers]
    assert list(held.values()) == list(whole.stages)
    assert [whole.stages[held[name]].config.task for name in transfers] == ["pos", "pos", "ner", "ner"]
    for key, stage in whole.stages.items():
        assert stage.key == key
        assert {parent.key for parent in stage.parents} == ({held["pretrain"]} if stage.kind != "pretrain" else set())


def test_cells_share_stages_and_every_parent_comes_first():
    data = changed(FULL, grid={"product": {"pretrain.seed": [0, 1], "transfer.fine_tune.epochs": [1, 2]}})
    whole, cells = graph_of(data)
    assert len(cells) == 4
    numbers = {kind: len(of_kind(whole, kind)) for kind in (PretrainStage, ProbeStage, TransferStage)}
    assert list(numbers.values()) == [2, 2, 4 * 2 * 2]
    order = list(whole.stages)
    for key, stage in whole.stages.items():
        assert all(order.index(parent.key) < order.index(key) for parent in stage.parents)


def test_the_models_that_stages_read():
    whole, (cell,) = graph_of(TWO)
    held, stages = whole.of_cell[cell.name], whole.stages

    def parents(name):
        return tuple(parent.key for parent in stages[held[name]].parents)

    assert [stages[held[name]].config.seed for name in ("pretrain", "second")] == [0, 7]
    for name in ("probe cka", "probe plain", "transfer pos seed 0"):
        assert parents(name) == (held["pretrain"], held["second"])
    assert parents("alignment") == (held["pretrain"],)
    assert cell.tasks["pos"].target_model == cell.probes["plain"].model2 == SECOND
    assert cell.probes["cka"].model2 is None
    whole, (cell,) = graph_of(ADJUSTED)
    held, stages = whole.of_cell[cell.name], whole.stages
    assert cell.adjust.model == MODEL
    assert parents("adjust") == parents("alignment") == (held["pretrain"],)
    assert parents("probe d") == parents("transfer pos seed 0") == (held["adjust"],)
    named = {k: v for k, v in ADJUSTED.items() if k not in ("pretrain", "probes", "source")} | {"model": "bert"}
    whole = graph(expand(study_of(named)), [0])
    assert [stage.kind for stage in whole.stages.values()] == ["adjust", "transfer", "transfer"]
    assert of_kind(whole, AdjustStage)[0].model == "bert"


@pytest.mark.parametrize("data", [FULL, TWO, ADJUSTED], ids=["full", "two", "adjusted"])
def test_json_and_back_is_the_same_stage(data):
    whole, _ = graph_of(data)
    for stage in whole.stages.values():
        again = stage_from_json(json.loads(json.dumps(stage.to_json())))
        assert again == stage and type(again) is type(stage)
        assert again.key == Look(Digests()).key(again) == stage.key


def test_json_of_something_else_is_refused():
    with pytest.raises(InputError, match=r"is no stage: .*'pretrain', 'adjust', 'tune', 'alignment'"):
        stage_from_json({"kind": "stage"})


def kinds_of_other_keys(data):
    """The kinds of stages whose keys are other ones than those of FULL."""
    whole, base = graph_of(data)[0], graph_of(FULL)[0]
    return {stage.kind for key, stage in whole.stages.items() if key not in base.stages}


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"title": "other", "name": "other"}, set()),
        ({"tasks": {"one": {"task": "pos"}, "ner": {}}, "probes": {"w": FULL["probes"]["words"]}}, set()),
        ({"pretrain__steps": 7}, {*MADE}),
        ({"source": SOURCE.replace("500", "400")}, {*MADE}),
        ({"source": SOURCE.replace("?types=500&sentences=200", "?sentences=200&types=500")}, set()),
        ({"pretrain__log_every": 3, "pretrain__validation": {"every": 2}}, set()),
        ({"pretrain__checkpoints": {"every": 2}}, set()),
        ({"pretrain__dictionary": {"coverage": 0.25}}, {"alignment", "probe"}),  # nothing else reads one
        ({"transfer__length": 40}, {"transfer"}),
        ({"transfer__search": {"fine_tune.rows": [8]}}, {"transfer"}),
        ({"seeds": [0, 1, 2]}, {"transfer"}),
        ({"probes": {"words": {"probes": ["words"], "seed": 1}}}, {"probe"}),
    ],
)
def test_keys_cover_what_the_content_depends_on_and_nothing_else(values, kinds):
    assert kinds_of_other_keys(changed(FULL, **values)) == kinds


def test_a_probe_of_every_checkpoint_depends_on_which_there_are():
    probes = {"words": {"probes": ["words"], "words": {"checkpoints": True}}}
    one, two = (graph_of(changed(FULL, probes=probes, pretrain__checkpoints={"every": n}))[0] for n in (1, 2))
    assert {one.stages[key].kind for key in one.stages.keys() - two.stages} == {"probe"}


def test_keys_cover_models_by_their_names():
    (first, *_) = of_kind(graph_of(FULL)[0], TransferStage)
    keys = {Look().key(first.model_copy(update={"model": model})) for model in ("a", "b")}
    assert len(keys) == 2


# --- what stages make ---


def test_every_stage_is_a_folder_of_its_kind(full):
    store, whole = full
    for key, stage in whole.stages.items():
        assert is_done(store, stage)
        names = {path.name for path in store.path(stage.kind, key).iterdir()}
        assert {"pretrain": "done.json", "probe": "probes.json"}.get(stage.kind, "result.json") in names
    assert not list(store.root.glob("*.work"))


def test_results_are_those_of_the_commands(full):
    store, whole = full
    for stage in of_kind(whole, TransferStage):
        folder = store.path("transfer", stage.key)
        result = read_json(folder / "result.json")
        assert (result["task"], result["seed"]) == (stage.config.task, stage.seed)
        assert result["delta"] == pytest.approx(result["sup"] - result["zs"], abs=1e-3)
        parts = read_predictions(folder / "predictions.parquet")
        assert {part.test for part in parts} == {"parent", "zs", "sup"}
        assert result["counts"]["target test"]["items"] == 20
        assert "target test" in result["drops"]
    (probe,), (quick,) = of_kind(whole, ProbeStage), of_kind(whole, AlignmentStage)
    probes = read_json(store.path("probe", probe.key) / "probes.json")
    alignment = read_json(store.path("alignment", quick.key) / "result.json")
    assert probes["probes"]["words"]["scores"] == alignment["scores"]
    assert (store.path("probe", probe.key) / "probes.html").is_file()


def test_a_second_start_finds_all_done_and_making_again_changes_nothing(full):
    store, whole = full
    before = contents(store, MADE)
    assert run_all(whole.stages, store) == []
    for stage in whole.stages.values():
        work.make(stage, store, silent)
    assert contents(store, MADE) == before


def test_stages_from_json_in_another_order_make_the_same(full, tmp_path):
    store, whole = full
    other = Store(tmp_path / "elsewhere")
    first, *rest = (stage_from_json(stage.to_json()) for stage in whole.stages.values())
    run_all({stage.key: stage for stage in (first, *reversed(rest))}, other)
    assert contents(other) == contents(store)


def test_what_is_made_is_noted_with_its_time(full, tmp_path):
    _, whole = full
    other, stage = Store(tmp_path / "noted"), next(iter(whole.stages.values()))
    assert run_stage(stage, other, silent).error is None
    noted = other.path("pretrain", stage.key) / "stage.json"
    assert read_json(noted)["label"] == "pretrain mlm trans+inv" and read_json(noted)["seconds"] > 0
    before = noted.stat().st_mtime_ns
    assert run_stage(stage, other, silent).error is None and noted.stat().st_mtime_ns == before


def test_what_is_made_of_a_stage_that_is_gone(full, tmp_path):
    """It is as good as before; nothing more is made of the stage until that is made again, and then it is the same."""
    store, whole = full
    other = Store(tmp_path / "copy")
    shutil.copytree(store.root, other.root)
    pretrain, *rest = whole.stages.values()
    shutil.rmtree(other.path("pretrain", pretrain.key))
    assert [is_done(other, stage) for stage in (pretrain, *rest)] == [False, *[True] * len(rest)]
    shutil.rmtree(other.path(rest[-1].kind, rest[-1].key))
    error = run_stage(rest[-1], other, silent).error
    assert error is not None and error.startswith("pretrain mlm trans+inv is not finished; start again")
    assert run_all(whole.stages, other) == [pretrain.key, rest[-1].key]
    assert contents(other) == contents(store)


def test_a_pretraining_told_to_stop_saves_and_goes_on_to_the_same_weights(full, tmp_path):
    store, whole = full
    stage = next(iter(whole.stages.values()))
    other = Store(tmp_path / "stopped")

    def impatient(name, done, total, note):
        if name.startswith("pretrain") and done == 3:
            os.kill(os.getpid(), 15)

    with pytest.raises(Stopped):
        work.make(stage, other, impatient)
    folder = other.path("pretrain", stage.key)
    assert steps_in(folder / "checkpoints")
    assert not is_done(other, stage) and not (folder / "done.json").exists()
    work.make(stage, other, silent)
    for name in ("parent", "trans+inv"):
        weights = [s.path("pretrain", stage.key) / "export" / name / "model.safetensors" for s in (store, other)]
        assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_transfer_that_is_killed_goes_on_from_its_fits(full, tmp_path, monkeypatch):
    store, whole = full
    stage = of_kind(whole, TransferStage)[0]
    other = Store(tmp_path / "killed")
    shutil.copytree(store.root, other.root)
    shutil.rmtree(other.path("transfer", stage.key))
    before = contents(store)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(work, "write_predictions", killed)
        with pytest.raises(KeyboardInterrupt):
            work.make(stage, other, silent)
    (left,) = other.root.glob("transfer-*.work")
    assert list(left.glob("fit-*"))
    work.make(stage, other, silent)
    assert contents(other) == before
    assert not list(other.root.glob("*.work"))
