"""A pretraining that starts from another one of its study."""

import json
import shutil

import pytest

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes.study.cell import START
from probes.study.cells import expand
from probes.study.checks import check_cells
from probes.study.stage import AlignmentStage, PretrainStage, TransferStage, stage_from_json
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.store import Store
from tests.study_graphs import FULL, SOURCE, contents, graph_of, run_all, study_of
from tests.tiny import changed

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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pretrain__start__model": "bert"}, "pretrain.start.model: pretrain starts from the run that start describes"),
        ({"grid": {"product": {"pretrain.start.model": ["a"]}}}, "pretrain.start.model: pretrain starts from the run"),
        ({"grid": {"product": {"pretrain.start": [{"model": "a"}]}}}, "pretrain.start.model: pretrain starts from"),
        ({"pretrain": None, "model": "bert"}, "start has no effect on a model that is not pretrained"),
        ({"pretrain__vocabulary": {"size": 400}}, "pretrain.start: the checkpoint brings its vocabulary and shape"),
        ({"transfer__length": 60}, "transfer.length 60 exceeds the 48 tokens that the model reads|tasks.pos.length 60"),
        ({"start__stepz": 1}, "start.stepz: unknown key"),
    ],
)
def test_what_contradicts_itself_is_refused(values, message):
    base = {**STARTED, "pretrain": {**OWN, "start": {**OWN["start"]}}}
    with pytest.raises(InputError, match=message):
        expand(study_of(changed(base, **values)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"pretrain__batch": {"rows": 8, "length": 64}},
            r"pretrain.batch.length \(64\) is over the 48 positions of sta",
        ),
        ({"pretrain__sharing": {"layers": [2]}}, "pretrain.sharing.layers: there is no layer 2, start has 1"),
        ({"start__source": "lines:none.txt"}, "none.txt: no such file"),
    ],
)
def test_what_cannot_run_is_told_before(values, message):
    base = {key: value for key, value in STARTED.items() if key != "source"}
    base |= {"start": {**FIRST, "source": SOURCE}, "pretrain": {**OWN, "source": SOURCE}}
    check_cells(expand(study_of(base)))
    with pytest.raises(InputError, match=message):
        check_cells(expand(study_of(changed(base, **values))))
