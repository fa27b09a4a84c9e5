"""Cells with two models, an adjusted one, or one by its name: what their transfers and probes read."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from probes.study import work
from probes.study.checks import check_cells
from probes.study.digests import Digests
from probes.study.models import open_model
from probes.study.stage import AdjustStage, AlignmentStage, ProbeStage, TransferStage
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_graphs import ADJUST, ADJUSTED, FULL, SOURCE, TWO, graph_of, run_all, write_treebank
from tests.tiny import changed

DISTANCES = {"layers": [-1], "data": {"dev": 20, "sentences": 60}, "seed": 1}
PROBES = {
    "d": {"probes": ["distances"], **DISTANCES, "distances": {"before": {"before": "cell:model"}, "picture": "none"}},
    "maps": {"probes": ["maps"], **DISTANCES, "maps": {"supervision": ["parallel"], "words": 500}},
}


@pytest.fixture(scope="module")
def adjusted(tmp_path_factory):
    """A run, adjusted, with the distances before and after and a transfer of the result."""
    store = Store(tmp_path_factory.mktemp("adjusted"))
    data = changed(ADJUSTED, seeds=[0], tasks={"pos": {}}, probes=PROBES)
    whole, _ = graph_of(data)
    run_all(whole.stages, store)
    return store, whole


def weights_of(opened):
    return np.concatenate([part.detach().numpy().ravel() for part in opened.model.parameters()])


def folders(whole, store, kind):
    return {task.key: store.path(task.kind, task.key) for task in whole.stages.values() if isinstance(task, kind)}


def test_an_adjustment_in_a_study_is_that_of_the_command(adjusted, tmp_path):
    store, whole = adjusted
    (task,) = (t for t in whole.stages.values() if isinstance(t, AdjustStage))
    run = store.path("pretrain", task.parents[0].key)
    mine = store.path("adjust", task.key)
    adjust(parse(AdjustConfig, {**ADJUST, "model": str(run)}), tmp_path / "theirs")
    for language in ("parent", "trans+inv"):
        weights = [folder / "export" / language / "model.safetensors" for folder in (mine, tmp_path / "theirs")]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        assert weights[0].read_bytes() != (run / "export" / language / "model.safetensors").read_bytes()


def test_what_follows_reads_the_adjusted_model_in_the_languages_of_its_run(adjusted):
    store, whole = adjusted
    (task,) = (t for t in whole.stages.values() if isinstance(t, AdjustStage))
    run, mine = store.path("pretrain", task.parents[0].key), store.path("adjust", task.key)
    opened = open_model(str(mine), None, False, before=str(run))
    plain, own = open_pretrained(str(run), None), open_pretrained(str(mine), "trans+inv")
    assert (opened.text, opened.natural) == (plain.text, False)
    assert opened.target.language.fingerprint == plain.target.language.fingerprint
    assert opened.fingerprint == own.fingerprint != plain.fingerprint
    words = weights_of(opened)
    assert np.array_equal(words, weights_of(own))
    assert not np.array_equal(words, weights_of(plain))
    result = read_json(next(iter(folders(whole, store, TransferStage).values())) / "result.json")
    assert (result["language"], result["parents"]["model"]) == ("trans+inv", own.fingerprint)


def test_probes_of_an_adjusted_model_have_the_one_before_beside_it(adjusted):
    store, whole = adjusted
    found = [read_json(folder / "probes.json") for folder in folders(whole, store, ProbeStage).values()]
    distances = next(held for held in found if "distances" in held["probes"])
    assert str(store.root) not in str(distances)  # no path of this machine
    assert distances["settings"]["distances"]["before"] == {"before": "cell:model"}
    assert "before" in str(distances["probes"]["distances"])
    assert "maps" in next(held for held in found if held is not distances)["probes"]


def test_an_adjustment_goes_on_after_its_store_was_moved(adjusted, tmp_path):
    store, whole = adjusted
    (task,) = (t for t in whole.stages.values() if isinstance(t, AdjustStage))
    moved = Store(tmp_path / "moved")
    shutil.copytree(store.root, moved.root)
    folder = moved.path("adjust", task.key)
    weights = (folder / "export" / "parent" / "model.safetensors").read_bytes()
    (folder / "done.json").unlink()
    shutil.rmtree(folder / "export")
    work.make(task, moved, silent)
    assert (folder / "export" / "parent" / "model.safetensors").read_bytes() == weights


def test_two_models(tmp_path):
    store = Store(tmp_path / "two")
    probes: dict[str, Any] = {
        "c": {"probes": ["cka"], "model2": None, "cka": {"paraphrase": "cell:second", "sentences": 30, "random": []}},
        "two": {"probes": ["cka"], "cka": {"sentences": 30, "random": []}, "data": {"dev": 20, "sentences": 60}},
    }
    probes["c"]["data"] = probes["two"]["data"]
    whole, (cell,) = graph_of(changed(TWO, seeds=[0], tasks={"pos": {}}, probes=probes))
    run_all(whole.stages, store)
    held = whole.of_cell[cell.name]
    result = read_json(store.path("transfer", held["transfer pos seed 0"]) / "result.json")
    runs = [str(store.path("pretrain", key)) for key in (held["pretrain"], held["second"])]
    both = open_pretrained(runs[0], None, target_model=runs[1])
    assert result["parents"]["model"] == both.fingerprint
    assert result["settings"]["target_model"] == "cell:second"
    models = {n: read_json(store.path("probe", held[f"probe {n}"]) / "probes.json")["parents"]["model"] for n in probes}
    assert models == {"c": open_pretrained(runs[0], None).fingerprint, "two": both.fingerprint}


def test_a_finished_run_by_its_name(adjusted, tmp_path):
    store, *_ = adjusted
    run = next(iter(store.root.glob("pretrain-*")))
    data = {k: v for k, v in FULL.items() if k not in ("pretrain", "source")}
    data |= {"model": str(run), "seeds": [0], "tasks": {"pos": {}}}
    mine, (cell,) = graph_of(data)
    other = Store(tmp_path / "named")
    run_all(mine.stages, other)
    assert [task.kind for task in mine.stages.values()] == ["probe", "transfer"]
    held = mine.of_cell[cell.name]
    whole, _ = graph_of(changed(FULL, seeds=[0], tasks={"pos": {}}))
    run_all(whole.stages, store)
    same = next(key for key, stage in whole.stages.items() if isinstance(stage, TransferStage))
    mine_found, found = (
        read_json(place.path("transfer", key) / "result.json")
        for place, key in ((other, held["transfer pos seed 0"]), (store, same))
    )
    assert mine_found["parents"] == found["parents"] and mine_found["scores"] == found["scores"]
    files = mine.stages[held["probe words"]].files(Digests())
    assert {Path(path).name for path in files} == {"config.yaml", "run.json", "done.json"}


def test_a_checkpoint_is_adjusted_and_transferred_by_its_name(adjusted, tmp_path):
    store, *_ = adjusted
    model = next(iter(store.root.glob("pretrain-*/export/trans+inv")))
    task = {**FULL["transfer"], "language": "trans+inv", "train": f"pos:{SOURCE}"}
    data = {"name": "named", "model": str(model), "adjust": ADJUST, "transfer": task}
    whole, cells = graph_of(data)
    check_cells(cells)
    other = Store(tmp_path / "named")
    run_all(whole.stages, other)
    assert [held.kind for held in whole.stages.values()] == ["adjust", "transfer"]
    mine, transfer = (other.path(held.kind, key) for key, held in whole.stages.items())
    assert (mine / "export" / "model.safetensors").is_file()
    result = read_json(transfer / "result.json")
    opened = open_pretrained(str(mine), "trans+inv")
    assert (result["parents"]["model"], result["model"]) == (opened.fingerprint, "trans+inv adjusted")
    assert {Path(path).name for path in next(iter(whole.stages.values())).files(Digests())} >= {
        "model.safetensors",
        "config.json",
    }


def test_two_natural_languages(tmp_path):
    """Each reads its own sentences, in the pretraining and in the task; without a training set there is no SUP."""
    en, de = (write_treebank(tmp_path / name, seed) for seed, name in enumerate(("en", "de")))
    languages = [{"name": name, "source": f"conllu:{path}"} for name, path in (("en", en), ("de", de))]
    run = {**FULL["pretrain"], "languages": languages, "vocabulary": {"kind": "joint", "size": 300}}
    run = {key: value for key, value in run.items() if key not in ("language", "dictionary")}
    task = {"length": 24, "language": "de", "train": str(en), "target": {"test": str(de)}}
    data = {"name": "n", "pretrain": run, "transfer": {**task, "fine_tune": {"epochs": 1}}, "tasks": {"pos": {}}}
    store = Store(tmp_path / "store")
    whole, cells = graph_of(data)
    check_cells(cells)
    run_all(whole.stages, store)
    result = read_json(next(iter(folders(whole, store, TransferStage).values())) / "result.json")
    assert (result["language"], result["sup"], result["delta"]) == ("de", None, None)
    assert result["zs"] is not None
    (alignment,) = (read_json(path / "result.json") for path in folders(whole, store, AlignmentStage).values())
    assert alignment["scores"] is None
    transfer = next(held for held in whole.stages.values() if isinstance(held, TransferStage))
    files = {Path(path).name for path in transfer.files(Digests())}
    assert files == {"en", "de", "x-ud-train.conllu", "x-ud-test.conllu"}


def test_an_unfinished_parent_is_one_line(tmp_path):
    whole, _ = graph_of(ADJUSTED)
    task = next(t for t in whole.stages.values() if isinstance(t, AdjustStage))
    with pytest.raises(InputError, match=r"pretrain mlm trans\+inv is not finished; start again"):
        work.make(task, Store(tmp_path), silent)
