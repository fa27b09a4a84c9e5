"""A pretraining that starts from another one of its study."""

import json
import shutil

import pytest

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes.study.cell import START
from probes.study.stage import AlignmentStage, PretrainStage, TransferStage, stage_from_json
from synthlang.config import parse
from synthlang.files import read_json
from synthlang.store import Store
from tests.study_graphs import FULL, SOURCE, contents, graph_of, run_all

FIRST = {k: v for k, v in FULL["pretrain"].items() if k not in ("language", "dictionary")}
FIRST = {**FIRST, "languages": [{"name": "en"}, {"name": "hi", "language": "trans"}]}
OWN = {k: v for k, v in FIRST.items() if k not in ("vocabulary", "model")}
OWN = {**OWN, "languages": [{"name": "en"}, {"name": "hi", "language": "trans+inv"}]}
OWN = {**OWN, "start": {"extend": {"language": "hi", "size": 40}}}
STARTED = {**FULL, "seeds": [0], "start": FIRST, "pretrain": OWN, "tasks": {"pos": {}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("started"))
    whole, _ = graph_of(STARTED)
    run_all(whole.stages, store)
    return store, whole


def test_the_run_it_starts_from_is_a_stage_of_its_own():
    whole, (cell,) = graph_of(STARTED)
    held = whole.of_cell[cell.name]
    assert cell.pretrain.start.model == START
    assert [task.kind for task in whole.stages.values()] == ["pretrain", "pretrain", "alignment", "probe", "transfer"]
    assert [parent.key for parent in whole.stages[held["pretrain"]].parents] == [held["start"]]
    assert list(held) == ["start", "pretrain", "alignment", "probe words", "transfer pos seed 0"]
    grid = {"product": {"pretrain.seed": [0, 1]}}
    whole, _ = graph_of({**STARTED, "grid": grid})
    assert [t.start is None for t in whole.stages.values() if isinstance(t, PretrainStage)] == [True, False, False]
    whole, _ = graph_of({**STARTED, "grid": {"product": {"start.seed": [0, 1]}}})
    assert len({t.key for t in whole.stages.values() if isinstance(t, PretrainStage)}) == 4


def test_json_and_back_is_the_same_stage():
    for stage in graph_of(STARTED)[0].stages.values():
        assert stage_from_json(json.loads(json.dumps(stage.to_json()))) == stage


def test_the_same_run_as_two_commands_make(made, tmp_path):
    store, whole = made
    first = parse(PretrainConfig, {"source": SOURCE, **FIRST})
    begun = pretrain(first, tmp_path / "first")
    start = {**OWN["start"], "model": str(tmp_path / "first" / "export" / "en")}
    own = parse(PretrainConfig, {"source": SOURCE, **OWN, "start": start})
    by_hand = pretrain(own, tmp_path / "own")
    runs = [store.path("pretrain", key) for key, held in whole.stages.items() if isinstance(held, PretrainStage)]
    assert [read_json(run / "run.json")["fingerprint"] for run in runs] == [begun, by_hand]
    for name in ("en", "hi"):
        weights = [folder / "export" / name / "model.safetensors" for folder in (tmp_path / "own", _run(made))]
        assert weights[0].read_bytes() == weights[1].read_bytes()
    assert any(isinstance(task, AlignmentStage) for task in whole.stages.values())
    (transfer,) = (k for k, t in whole.stages.items() if isinstance(t, TransferStage))
    result = read_json(store.path("transfer", transfer) / "result.json")
    assert result["delta"] == pytest.approx(result["sup"] - result["zs"], abs=1e-3)


def _run(made):
    store, whole = made
    own = next(k for k, t in whole.stages.items() if isinstance(t, PretrainStage) and t.start is not None)
    return store.path("pretrain", own)


def test_a_store_that_was_moved_is_gone_on_with(made, tmp_path):
    store, whole = made
    moved = Store(tmp_path / "moved")
    shutil.copytree(store.root, moved.root)
    transfer = next(k for k, t in whole.stages.items() if isinstance(t, TransferStage))
    shutil.rmtree(moved.path("transfer", transfer))
    before = contents(store)
    shutil.move(store.root, tmp_path / "aside")
    try:
        assert run_all(whole.stages, moved) == [transfer]
    finally:
        shutil.move(tmp_path / "aside", store.root)
    assert contents(moved) == before
