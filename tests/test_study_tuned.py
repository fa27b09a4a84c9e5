"""Probes of a fine-tuned model: a task of its own, shared by cells, that equals what the commands do one by one."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probes.measures import ProbeConfig
from probes.measures.command import measure
from probes.measures.probe_input import ProbeInput
from probes.study import work
from probes.study.checks import check_cells
from probes.study.digests import Digests
from probes.study.done import is_done
from probes.study.gc import check_weights, collect
from probes.study.models import open_model
from probes.study.settings import DIFFERS, common_settings
from probes.study.stage import AdjustStage, ProbeStage, TransferStage, TuneStage, stage_from_json
from probes.transfer.config import FeaturesConfig, TransferConfig
from probes.transfer.fit import _Fit
from probes.transfer.model import open_pretrained
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_cases import run_here
from tests.study_graphs import ADJUST, SOURCE, graph_of, keyed, run_all, write_treebank
from tests.study_tuned import BASE, CONTINUAL, DISTANCES, PROBE, PROBES, TUNED
from tests.tiny import changed

GRID: dict[str, Any] = {
    "tuning": {
        "none": {"tuned": None},
        "pos": {},
        "pos+continual": {"tuned.continual": CONTINUAL, "probes.d": DISTANCES},
    },
}
CELLS = {**BASE, "grid": {"product": GRID}}
STAGES = ("pretrain", "tuned", "tuned")
LANGUAGES = {"a": {"tuned.language": "trans"}, "b": {"tuned.language": "parent", "probes.d.seed": 2}}


def tunes(whole):
    return [task for task in whole.stages.values() if isinstance(task, TuneStage)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run probed as it is and after two ways of fine-tuning, of which two cells share one."""
    store = Store(tmp_path_factory.mktemp("tuned"))
    whole, cells = graph_of(CELLS)
    check_cells(cells)
    run_all(whole.stages, store)
    return store, whole, cells


def stage_of(made, cell, name):
    store, whole, _ = made
    key = whole.of_cell[cell]["probe d" if name == "probe" else name]
    return store.path(whole.stages[key].kind, key)


# --- what there is to do ---


def test_cells_of_other_target_languages_share_the_fine_tuning():
    grid = {"product": {"language": LANGUAGES, **GRID}, "exclude": [{"language": "b", "tuning": "pos+continual"}]}
    whole, cells = graph_of({**CELLS, "grid": grid})
    names = {tuple(cell.labels.values()): whole.of_cell[cell.name] for cell in cells}
    assert "tuned" not in {**names["a", "none"], **names["b", "none"]}
    assert names["a", "pos"]["tuned"] == names["b", "pos"]["tuned"] != names["a", "pos+continual"]["tuned"]
    plain, continual = tunes(whole)
    assert (plain.seed, plain.config.language, continual.config.language) == (3, None, "trans")
    assert [parent.key for parent in plain.parents] == [names["a", "pos"]["pretrain"]]
    for (_, tuning), held in names.items():
        model = whole.stages[held["probe d"]].model
        assert isinstance(model, TuneStage) == (tuning != "none")
    assert plain.label == "tune mlm trans on pos seed 3"
    assert continual.label == "tune mlm trans on pos+continual seed 3"


def test_transfers_do_not_read_it_and_the_seed_is_an_axis():
    data = changed(BASE, tasks={"pos": {}}, adjust=ADJUST, grid={"product": {"tuned.seed": [0, 5]}})
    data["adjust"] = changed(ADJUST, pairs={"x": {"kind": "derived", "source": SOURCE, "left": "trans"}})
    whole, cells = graph_of(data)
    assert [task.seed for task in tunes(whole)] == [0, 5]
    assert all(isinstance(task.model, AdjustStage) for task in tunes(whole))
    transfers = [task for task in whole.stages.values() if isinstance(task, TransferStage)]
    assert len(transfers) == 2 and all(isinstance(task.model, AdjustStage) for task in transfers)
    assert [cell.tuned_seed for cell in cells] == [0, 5]


def test_the_settings_in_full_have_it():
    found = common_settings(graph_of(CELLS)[1][1:])["tuned"]
    assert (found["task"], found["continual"], found["seed"]) == ("pos", DIFFERS, 3)
    _, cells = graph_of(changed(CELLS, grid={"product": {"tuned.seed": [0, 5]}}))
    assert common_settings(cells)["tuned"]["seed"] == DIFFERS
    assert common_settings(graph_of(CELLS)[1])["tuned"] == DIFFERS, "one cell has none"


def test_json_and_back_and_keys(made):
    _, whole, *_ = made
    for task in whole.stages.values():
        again = stage_from_json(json.loads(json.dumps(task.to_json())))
        assert again == task
    plain, _ = tunes(whole)
    longer = plain.config.model_copy(update={"train_items": 120})
    others = [plain.model_copy(update=change) for change in ({"config": longer}, {"seed": 4}, {"model": "a"})]
    assert len({plain.key, *(keyed(other).key for other in others)}) == 4


# --- what comes of it ---


@pytest.mark.parametrize("tuning", ["pos", "pos+continual"])
def test_it_is_what_the_commands_do_one_by_one(made, tuning, tmp_path):
    """``synthlang transfer --keep``, then ``synthlang probe`` of the kept folder, to the last bit."""
    store, _, cells = made
    cell = next(cell for cell in cells if tuple(cell.labels.values()) == (tuning,))
    run = str(stage_of(made, cell.name, "pretrain"))
    more = {"continual": CONTINUAL} if tuning == "pos+continual" else {}
    config = parse(TransferConfig, {**TUNED, **more, "language": "trans"})
    pretrained = open_pretrained(run, "trans")
    Transfer(pretrained, load_data(config, pretrained), config, store=store).run(3, keep=tmp_path)
    mine = stage_of(made, cell.name, "tuned")
    for language in ("parent", "trans"):
        one, other = (folder / "export" / language for folder in (mine, tmp_path / "seed-3"))
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            assert (one / name).read_bytes() == (other / name).read_bytes()
    if tuning == "pos":  # one probe will do
        return
    settings = {**DISTANCES, "distances": {"before": {"before": run}, "picture": "none"}, "language": "trans"}
    settings["pairs"] = {"text": {"kind": "derived", "source": SOURCE, "left": "trans"}}
    probe = parse(ProbeConfig, settings)
    measure(ProbeInput(open_pretrained(str(tmp_path / "seed-3"), "trans"), probe, None, store), tmp_path / "probed")
    theirs, ours = (
        read_json(folder / "probes.json") for folder in (tmp_path / "probed", stage_of(made, cell.name, "probe"))
    )
    one, other = (held["probes"]["distances"]["models"] for held in (theirs, ours))
    assert list(one["seed-3"].items()) == list(other[ours["model"]].items())
    assert one["before"] == other["before"]
    assert ours["parents"]["model"] == open_pretrained(str(mine), "trans").fingerprint


def test_probes_read_the_fine_tuned_model_in_the_languages_of_its_run(made):
    _, _, cells = made
    found = [read_json(stage_of(made, cell.name, "probe") / "probes.json")["parents"]["model"] for cell in cells]
    run, *tuned = (str(stage_of(made, cell.name, stage)) for cell, stage in zip(cells, STAGES, strict=True))
    opened = [open_pretrained(run, None), *(open_model(folder, None, False, before=run) for folder in tuned)]
    assert found == [held.fingerprint for held in opened] and len(set(found)) == 3
    assert {held.target.language.name for held in opened} == {"trans"}
    before, after = opened[0].model.state_dict(), opened[1].model.state_dict()
    assert any(not np.array_equal(before[name], after[name]) for name in after if name.startswith("layers."))


def test_the_stage_says_what_was_fitted(made):
    record = read_json(stage_of(made, made[2][1].name, "tuned") / "done.json")
    assert (record["task"], record["seed"], record["model"]) == ("pos", 3, "mlm trans")
    assert [epoch["epoch"] for epoch in record["fit"]["epochs"]] == [1, 2]
    assert record["counts"].keys() == {"source train", "source dev"}
    aligned = read_json(stage_of(made, made[2][2].name, "tuned") / "done.json")["counts"]["aligned text pretraining"]
    assert aligned["sentence pairs to train on"] == 40


def test_a_model_by_its_name_has_one_export_for_all_languages(made, tmp_path):
    store, *_ = made
    model = next(iter(store.root.glob("pretrain-*/export/trans")))
    pair = {"kind": "derived", "source": SOURCE, "left": "trans"}
    data = {"name": "n", "model": str(model), "tasks": {}, "tuned": {**TUNED, "train": f"pos:{SOURCE}"}}
    data["probes"] = {"d": {**PROBE, "language": "trans", "pairs": {"x": pair}}}
    data["adjust"] = {**ADJUST, "pairs": {"x": pair}}
    whole, cells = graph_of(data)
    check_cells(cells)
    other = Store(tmp_path)
    run_all(whole.stages, other)
    (task,) = tunes(whole)
    folder = other.path("tune", task.key)
    assert {path.name for path in folder.iterdir()} == {"export", "done.json"}
    opened = open_pretrained(str(folder), "trans")
    (probe,) = (task for task in whole.stages.values() if isinstance(task, ProbeStage))
    assert read_json(other.path("probe", probe.key) / "probes.json")["parents"]["model"] == opened.fingerprint
    assert task.label == "tune trans adjusted on pos seed 0"
    named = TuneStage(config=task.config, seed=0, model=str(model))
    assert {Path(path).name for path in named.files(Digests())} >= {"model.safetensors"}


def test_a_fit_that_is_killed_goes_on(made, tmp_path, monkeypatch):
    store, whole, _ = made
    (task, _), other = tunes(whole), Store(tmp_path / "killed")
    shutil.copytree(store.root, other.root)
    folder = other.path("tune", task.key)
    before = (folder / "export" / "trans" / "model.safetensors").read_bytes()
    shutil.rmtree(folder)
    assert not is_done(other, task)

    epochs, whole_epoch = [], _Fit.epoch

    def killed(fit, epoch, history):
        epochs.append(epoch)
        if len(epochs) == 2:
            raise KeyboardInterrupt
        return whole_epoch(fit, epoch, history)

    monkeypatch.setattr(_Fit, "epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        work.make(task, other, silent)
    (left,) = other.root.glob("tune-*.work")
    assert list(left.glob("fit-*/step-1"))
    work.make(task, other, silent)
    assert epochs == [0, 1, 1]  # the first one is not done again
    assert is_done(other, task) and not list(other.root.glob("*.work"))
    assert (folder / "export" / "trans" / "model.safetensors").read_bytes() == before


def test_a_task_that_fine_tunes_no_body_is_refused_before_data_is_read(made, monkeypatch):
    store, whole, *_ = made
    task = tunes(whole)[0]
    monkeypatch.setattr(work, "load_training", lambda *_: pytest.fail("it was read"))
    frozen = task.model_copy(
        update={"config": task.config.model_copy(update={"features": FeaturesConfig(tune="none")})}
    )
    with pytest.raises(InputError, match=r"^tuned: with features.tune none no body is fine-tuned"):
        work.make(frozen, store, silent)


def test_a_natural_language_is_aligned_by_its_own_sentences(made, tmp_path):
    """A checkpoint, sentence pairs of files, and a task without a test set or a second language."""
    store, *_ = made
    treebank = write_treebank(tmp_path / "bank")
    (treebank / "x-ud-test.conllu").unlink()
    texts = {"left": "uno dos tres cuatro\n", "right": "one two three four\n", "links": "0-0 1-1 2-2 3-3\n"}
    for name, line in texts.items():
        (tmp_path / name).write_text("".join(line.replace("one", f"one{i}") for i in range(40)))
    links = {"kind": "file", "path": str(tmp_path / "links")}
    pair = {"kind": "text", "left": str(tmp_path / "left"), "right": str(tmp_path / "right"), "links": links}
    model = str(next(iter(store.root.glob("pretrain-*/export/trans"))))
    tuned = {**TUNED, "train": str(treebank), "language": "es", "continual": {**CONTINUAL, "pairs": {"x": pair}}}
    probe = {"probes": ["cka"], "natural": True, "language": "es", "pairs": {"x": pair}}
    whole, cells = graph_of({"name": "n", "model": model, "tasks": {}, "tuned": tuned, "probes": {"d": probe}})
    check_cells(cells)
    (task,), other = tunes(whole), Store(tmp_path / "store")
    assert {Path(path).name for path in task.files(Digests())} >= {"left", "right", "links", "x-ud-train.conllu"}
    work.make(task, other, silent)
    record = read_json(other.path("tune", task.key) / "done.json")
    assert record["counts"]["aligned text x"]["sentence pairs to train on"] == 40
    assert len(record["fit"]["epochs"]) == 2


def test_a_named_run_and_a_checkpoint_are_checked_before_anything_runs(made, tmp_path):
    store, *_ = made
    run = next(iter(store.root.glob("pretrain-*")))
    data = {"name": "n", "model": str(run), "tasks": {}, "tuned": TUNED, "probes": {"d": PROBE}}
    check_cells(graph_of(data)[1])
    apart = tmp_path / "apart"
    shutil.copytree(run, apart)
    text = (apart / "config.yaml").read_text()
    assert text.count("embeddings: shared\n  layers: []") == 1
    (apart / "config.yaml").write_text(text.replace("layers: []", "layers: [1]", 1))
    with pytest.raises(InputError, match="weights of their own"):
        check_cells(graph_of({**data, "model": str(apart)})[1])
    continual = {**TUNED, "continual": CONTINUAL, "train": f"pos:{SOURCE}", "language": "trans"}
    with pytest.raises(InputError, match=r"tuned\.continual.pairs: the text of a model of Hugging Face is not known"):
        check_cells(graph_of({**data, "model": str(run / "export" / "trans"), "tuned": continual})[1])


# --- a whole study ---


def test_a_study_of_it_its_tables_and_its_weights(tmp_path):
    out = tmp_path / "out"
    data = {**CELLS, "grid": {"product": {"tuning": {"none": {"tuned": None}, "pos": {}}}}}
    run = run_here(out, data)
    assert [cell.status for cell in run.cells] == ["done", "done"]
    record = read_json(out / "study.json")
    assert set(record["cells"][1]["stages"]) == {"pretrain", "tuned", "alignment", "probe d"}
    assert record["cells"][1]["run"].rpartition("/")[2].startswith("pretrain-")
    rows = (out / "measures.csv").read_text().splitlines()
    assert {row.rpartition(",")[2] for row in rows[1:]} == {"none", "pos"}
    assert "tuned fingerprint" in (out / "report.html").read_text()
    (stage,) = (out / "stages").glob("tune-*")
    weights = stage / "export" / "trans" / "model.safetensors"
    for keep, there in (("checkpoints", True), ("final", True), ("results", False)):
        collect([out], keep)
        assert weights.exists() == there and (stage / "done.json").exists()
    assert [cell.status for cell in run_here(out, data).cells] == ["done", "done"]
    more, _ = graph_of(changed(data, probes={"e": {**PROBES["d"], "seed": 5}}))
    left = [task for task in more.stages.values() if isinstance(task, ProbeStage) and isinstance(task.model, TuneStage)]
    with pytest.raises(InputError, match=r"synthlang gc deleted .*tune-"):
        check_weights(left, run.done, run.store)
