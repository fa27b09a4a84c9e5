"""Results of stages on one or two models, also adjusted, fine-tuned and continued ones, and shared work.

Each is as the commands one by one would make it, and as it would be without the interruption.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.config import PretrainConfig
from pretrain.folder import steps_in
from pretrain.run import open_run, pretrain
from pretrain.word_pairs import word_pairs
from probes.measures.probe_command import measure
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.opening import open_pretrained
from probes.stages import making
from probes.stages.adjust import AdjustStage
from probes.stages.alignment import AlignmentStage
from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import is_done
from probes.stages.finetune import TuneStage
from probes.stages.pretrain import PretrainStage
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage
from probes.study.checks import check_cells
from probes.study.executors.base import run_stage
from probes.study.gc import check_weights, collect
from probes.transfer.config import ContinualConfig, TransferConfig
from probes.transfer.fit import _Fit
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.checksums import RECORD
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.adjust_models import save_model
from tests.study_cases import run_here
from tests.study_fakes import FakeStage
from tests.study_graphs import (
    ADJUST,
    ADJUSTED,
    BASE,
    CELLS,
    CONTINUAL,
    DISTANCES,
    FIRST,
    FULL,
    OWN,
    PAIR,
    PROBE,
    PROBES,
    SOURCE,
    STARTED,
    TUNED,
    contents,
    graph_of,
    of_kind,
    run_all,
    write_treebank,
)
from tests.tiny import changed

MADE = ("pretrain", "alignment", "probe", "transfer")


def keys_of(whole, kind):
    return [key for key, stage in whole.stages.items() if stage.kind == kind]


def place(store, stage):
    return store.path(stage.kind, stage.key)


def copied(store, folder):
    """Another store with the same stages."""
    shutil.copytree(store.root, folder)
    return Store(folder)


# --- of one model ---


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A cell with a run, its alignment, a probe and two tasks of two seeds, all of it made."""
    store = Store(tmp_path_factory.mktemp("full"))
    whole, _ = graph_of(FULL)
    assert run_all(whole.stages, store) == list(whole.stages)
    return store, whole


def test_the_alignment_is_that_of_the_probe(full):
    store, whole = full
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
        making.make(stage, store, silent)
    assert contents(store, MADE) == before


def test_what_is_made_of_a_stage_that_is_gone(full, tmp_path):
    """It is as good as before; nothing more is made of the stage until that is made again, and then it is the same."""
    store, whole = full
    other = copied(store, tmp_path / "copy")
    pretrain, *rest = whole.stages.values()
    shutil.rmtree(other.path("pretrain", pretrain.key))
    assert [is_done(other, stage) for stage in (pretrain, *rest)] == [False, *[True] * len(rest)]
    shutil.rmtree(other.path(rest[-1].kind, rest[-1].key))
    error = run_stage(rest[-1], other, silent).error
    assert error is not None and error.startswith("pretrain mlm trans+inv is not finished; run the same command again")
    assert run_all(whole.stages, other) == [pretrain.key, rest[-1].key]
    assert contents(other) == contents(store)


def test_a_transfer_that_is_killed_goes_on_from_its_fits(full, tmp_path, monkeypatch):
    store, whole = full
    stage = of_kind(whole, TransferStage)[0]
    other = copied(store, tmp_path / "killed")
    shutil.rmtree(other.path("transfer", stage.key))
    before = contents(store)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("probes.transfer.result.write_predictions", killed)
        with pytest.raises(KeyboardInterrupt):
            making.make(stage, other, silent)
    (left,) = other.root.glob("transfer-*.work")
    assert list(left.glob("fit-*"))
    making.make(stage, other, silent)
    assert contents(other) == before
    assert not list(other.root.glob("*.work"))


# --- of a model that starts from another ---


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("started"))
    whole, _ = graph_of(STARTED)
    run_all(whole.stages, store)
    return store, whole


def test_a_start_is_the_same_run_as_two_commands_make(started, tmp_path):
    store, whole = started
    begun = pretrain(parse(PretrainConfig, {"source": SOURCE, **FIRST}), tmp_path / "first")
    start = {**OWN["start"], "model": str(tmp_path / "first" / "export" / "en")}
    by_hand = pretrain(parse(PretrainConfig, {"source": SOURCE, **OWN, "start": start}), tmp_path / "own")
    runs = [place(store, stage) for stage in of_kind(whole, PretrainStage)]
    assert [read_json(run / "run.json")["fingerprint"] for run in runs] == [begun, by_hand]
    for name in ("en", "hi"):
        weights = [folder / "export" / name / "model.safetensors" for folder in (tmp_path / "own", runs[1])]
        assert weights[0].read_bytes() == weights[1].read_bytes()
    (transfer,) = of_kind(whole, TransferStage)
    result = read_json(place(store, transfer) / "result.json")
    assert result["delta"] == pytest.approx(result["sup"] - result["zs"], abs=1e-3)


# --- of an adjusted model, of two models, of models by their names ---

SEEN = {"layers": [-1], "data": {"dev": 20, "sentences": 60}, "seed": 1}
BOTH = {
    "d": {"probes": ["distances"], **SEEN, "distances": {"before": {"before": "cell:model"}, "picture": "none"}},
    "maps": {"probes": ["maps"], **SEEN, "maps": {"supervision": ["parallel"], "words": 500}},
}


@pytest.fixture(scope="module")
def adjusted(tmp_path_factory):
    """A run, adjusted, with the distances before and after and a transfer of the result."""
    store = Store(tmp_path_factory.mktemp("adjusted"))
    data = changed(ADJUSTED, seeds=[0], tasks={"pos": {}}, probes=BOTH)
    whole, _ = graph_of(data)
    run_all(whole.stages, store)
    return store, whole


def test_an_adjustment_in_a_study_is_that_of_the_command(adjusted, tmp_path):
    store, whole = adjusted
    (task,) = of_kind(whole, AdjustStage)
    run = store.path("pretrain", task.parents[0].key)
    mine = store.path("adjust", task.key)
    adjust(parse(AdjustConfig, {**ADJUST, "model": str(run)}), tmp_path / "theirs")
    for language in ("parent", "trans+inv"):
        weights = [folder / "export" / language / "model.safetensors" for folder in (mine, tmp_path / "theirs")]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        assert weights[0].read_bytes() != (run / "export" / language / "model.safetensors").read_bytes()


def test_probes_of_an_adjusted_model_have_the_one_before_beside_it(adjusted):
    store, whole = adjusted
    found = [read_json(place(store, stage) / "probes.json") for stage in of_kind(whole, ProbeStage)]
    distances = next(record for record in found if "distances" in record["probes"])
    assert str(store.root) not in str(distances)  # no path of this machine
    assert distances["settings"]["distances"]["before"] == {"before": "cell:model"}
    assert "before" in str(distances["probes"]["distances"])
    assert "maps" in next(record for record in found if record is not distances)["probes"]


def test_continual_learning_holds_an_adjusted_model_where_the_original_was(adjusted):
    """f⁰ is the model before its adjustment (equation 1), as for the command; another one may be named."""
    store, first = adjusted
    befores = {"printed": {}, "original": "cell:model", "adjusted": "cell:adjusted"}
    axis = {name: {"transfer.continual.before": before} if before else {} for name, before in befores.items()}
    data = changed(ADJUSTED, seeds=[0], tasks={"pos": {}}, probes={}, grid={"product": {"before": axis}})
    whole, cells = graph_of(changed(data, transfer__continual=CONTINUAL))
    check_cells(cells)
    run_all(whole.stages, store)
    stages = of_kind(whole, TransferStage)
    assert len({stage.key for stage in stages}) == 3
    printed, original, itself = (read_json(place(store, stage) / "result.json") for stage in stages)
    assert printed["fits"] == original["fits"] != itself["fits"]
    run, mine = (place(store, stage) for stage in (of_kind(first, PretrainStage)[0], of_kind(first, AdjustStage)[0]))
    by_name = open_pretrained(str(mine), "trans+inv")
    assert by_name.original == str(run)
    pair = {**PAIR, "right": "parent"}
    config = stages[0].config.model_copy(
        update={"train": SOURCE, "continual": parse(ContinualConfig, {"pairs": {"x": pair}})}
    )
    transfer = Transfer(by_name, load_data(config, by_name), config, store=store)
    before, plain = transfer._before, open_pretrained(str(run), None).model
    assert before is not None
    for name, tensor in plain.state_dict().items():
        assert np.array_equal(before.state_dict()[name], tensor) or "ids" in name
    alone = Transfer(replace(by_name, original=None), transfer.data, config, store=store)
    assert alone._before is None and alone.fingerprint != transfer.fingerprint
    stranger = replace(by_name, original=str(save_model(store.root / "stranger", "bert")))
    with pytest.raises(InputError, match=r"continual\.before: .* has another vocabulary than"):
        Transfer(stranger, transfer.data, config).run(0)


def test_the_keys_of_what_was_never_adjusted_are_as_before_there_was_a_name_for_f0():
    data = changed(FULL, seeds=[0], tasks={"pos": {}}, probes={}, transfer__continual=CONTINUAL)
    (stage,) = of_kind(graph_of(data)[0], TransferStage)
    assert "before" not in StageKeys().settings_of(stage.config)["continual"]
    assert stage.settings(StageKeys()) == [StageKeys().hash_of(stage.config), 0, None]
    (other,) = of_kind(graph_of({**data, "adjust": ADJUST})[0], TransferStage)
    assert other.settings(StageKeys()) == [StageKeys().hash_of(stage.config), 0, None, "original"]


def test_an_adjustment_goes_on_after_its_store_was_moved(adjusted, tmp_path):
    store, whole = adjusted
    (task,) = of_kind(whole, AdjustStage)
    moved = copied(store, tmp_path / "moved")
    folder = moved.path("adjust", task.key)
    weights = (folder / "export" / "parent" / "model.safetensors").read_bytes()
    (folder / "done.json").unlink()
    shutil.rmtree(folder / "export")
    making.make(task, moved, silent)
    assert (folder / "export" / "parent" / "model.safetensors").read_bytes() == weights


def test_a_finished_run_by_its_name(full, tmp_path):
    store, whole = full
    (run,) = of_kind(whole, PretrainStage)
    data = {k: v for k, v in FULL.items() if k not in ("pretrain", "source")}
    mine, _ = graph_of({**data, "model": str(place(store, run)), "seeds": [0], "tasks": {"pos": {}}})
    other = Store(tmp_path / "named")
    run_all(mine.stages, other)
    probe, transfer = mine.stages.values()
    same = of_kind(whole, TransferStage)[0]
    ours, theirs = (read_json(place(*stage) / "result.json") for stage in ((other, transfer), (store, same)))
    assert ours["parents"] == theirs["parents"] and ours["scores"] == theirs["scores"]
    assert {Path(path).name for path in probe.files(ContentHashes())} == {"config.yaml", "run.json", "done.json"}


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
    (transfer,) = of_kind(whole, TransferStage)
    result = read_json(place(store, transfer) / "result.json")
    assert (result["language"], result["sup"], result["delta"]) == ("de", None, None)
    assert result["zs"] is not None
    (alignment,) = of_kind(whole, AlignmentStage)
    assert read_json(place(store, alignment) / "result.json")["scores"] is None
    files = {Path(path).name for path in transfer.files(ContentHashes())}
    assert files == {"en", "de", "x-ud-train.conllu", "x-ud-test.conllu"}


# --- of a model that was fine-tuned for its probes ---


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A run probed as it is and after two ways of fine-tuning, of which two cells share one."""
    store = Store(tmp_path_factory.mktemp("tuned"))
    whole, cells = graph_of(CELLS)
    check_cells(cells)
    run_all(whole.stages, store)
    return store, whole, cells


def stage_of(tuned, cell, name):
    store, whole, _ = tuned
    key = whole.of_cell[cell]["probe d" if name == "probe" else name]
    return store.path(whole.stages[key].kind, key)


@pytest.mark.parametrize("tuning", ["pos", "pos+continual"])
def test_it_is_what_the_commands_do_one_by_one(tuned, tuning, tmp_path):
    """``synthlang transfer --keep``, then ``synthlang probe`` of the kept folder, to the last bit."""
    store, _, cells = tuned
    cell = next(cell for cell in cells if tuple(cell.labels.values()) == (tuning,))
    run = str(stage_of(tuned, cell.name, "pretrain"))
    more = {"continual": CONTINUAL} if tuning == "pos+continual" else {}
    config = parse(TransferConfig, {**TUNED, **more, "language": "trans"})
    pretrained = open_pretrained(run, "trans")
    Transfer(pretrained, load_data(config, pretrained), config, store=store).run(3, keep=tmp_path)
    mine = stage_of(tuned, cell.name, "tuned")
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
        read_json(folder / "probes.json") for folder in (tmp_path / "probed", stage_of(tuned, cell.name, "probe"))
    )
    one, other = (record["probes"]["distances"]["models"] for record in (theirs, ours))
    assert list(one["seed-3"].items()) == list(other[ours["model"]].items())
    assert one["before"] == other["before"]
    assert ours["parents"]["model"] == open_pretrained(str(mine), "trans").fingerprint


def test_the_alignment_of_words_after_fine_tuning(tuned, tmp_path):
    """Alignment is measured on the fine-tuned rows and the words of the run, against a plain computation."""
    store = copied(tuned[0], tmp_path / "words")
    tunings = {
        "frozen": {"transfer.features.freeze_embeddings": True},
        "far": {"finetuned.fine_tune.learning_rate": 0.3},
    }
    whole, cells = graph_of(changed(BASE, probes=WORDS, grid={"product": {"tuning": tunings}}))
    check_cells(cells)
    run_all(whole.stages, store)
    found = {}
    for cell in cells:
        keys = whole.of_cell[cell.name]
        record = read_json(store.path("probe", keys["probe w"]) / "probes.json")["probes"]["words"]
        assert "checkpoints" not in record and record["language"] == "trans"
        found[cell.labels["tuning"]] = record["scores"]["all"]["cosine"]["forward"]
        rows = load_file(store.path("tune", keys["tuned"]) / "export" / "parent" / "model.safetensors")
        words = next(tensor for name, tensor in rows.items() if name.endswith("word_embeddings.weight"))
        pairs = word_pairs(open_run(store.path("pretrain", keys["pretrain"]))[1], 1)
        assert pairs is not None
        left, right = (words[ids] / np.linalg.norm(words[ids], axis=1, keepdims=True) for ids in pairs.candidates)
        nearest = dict(zip(pairs.candidates[0].tolist(), (left @ right.T).argmax(1).tolist(), strict=True))
        right_ones = [pairs.candidates[1][nearest[one]] == other for one, other in pairs.pairs.tolist()]
        assert found[cell.labels["tuning"]] == pytest.approx(100 * np.mean(right_ones), abs=1e-3)
    before = read_json(store.path("alignment", keys["alignment"]) / "result.json")["scores"]["all"]["cosine"]["forward"]
    assert found["frozen"] == before != found["far"]


def test_a_model_by_its_name_has_one_export_for_all_languages(tuned, tmp_path):
    store, *_ = tuned
    model = next(iter(store.root.glob("pretrain-*/export/trans")))
    pair = {"kind": "derived", "source": SOURCE, "left": "trans"}
    data = {"name": "n", "model": str(model), "tasks": {}, "finetuned": {**TUNED, "train": f"pos:{SOURCE}"}}
    data["probes"] = {"d": {**PROBE, "language": "trans", "pairs": {"x": pair}}}
    data["adjust"] = {**ADJUST, "pairs": {"x": pair}}
    whole, cells = graph_of(data)
    check_cells(cells)
    other = Store(tmp_path)
    run_all(whole.stages, other)
    (task,) = of_kind(whole, TuneStage)
    folder = other.path("tune", task.key)
    assert {path.name for path in folder.iterdir()} == {"export", "done.json", RECORD}
    opened = open_pretrained(str(folder), "trans")
    (probe,) = of_kind(whole, ProbeStage)
    assert read_json(other.path("probe", probe.key) / "probes.json")["parents"]["model"] == opened.fingerprint
    assert task.label == "tune trans adjusted on pos seed 0"
    named = TuneStage(config=task.config, seed=0, model=str(model))
    assert {Path(path).name for path in named.files(ContentHashes())} >= {"model.safetensors"}


def test_a_fit_that_is_killed_goes_on(tuned, tmp_path, monkeypatch):
    store, whole, _ = tuned
    (task, _), other = of_kind(whole, TuneStage), copied(store, tmp_path / "killed")
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
        making.make(task, other, silent)
    (left,) = other.root.glob("tune-*.work")
    assert list(left.glob("fit-*/step-1"))
    making.make(task, other, silent)
    assert epochs == [0, 1, 1]  # the first one is not done again
    assert is_done(other, task) and not list(other.root.glob("*.work"))
    assert (folder / "export" / "trans" / "model.safetensors").read_bytes() == before


def test_a_natural_language_is_aligned_by_its_own_sentences(tuned, tmp_path):
    """A checkpoint, sentence pairs of files, and a task without a test set or a second language."""
    store, *_ = tuned
    treebank = write_treebank(tmp_path / "bank")
    (treebank / "x-ud-test.conllu").unlink()
    texts = {"left": "uno dos tres cuatro\n", "right": "one two three four\n", "links": "0-0 1-1 2-2 3-3\n"}
    for name, line in texts.items():
        (tmp_path / name).write_text("".join(line.replace("one", f"one{i}") for i in range(40)))
    links = {"kind": "file", "path": str(tmp_path / "links")}
    pair = {"kind": "text", "left": str(tmp_path / "left"), "right": str(tmp_path / "right"), "links": links}
    model = str(next(iter(store.root.glob("pretrain-*/export/trans"))))
    tuning = {**TUNED, "train": str(treebank), "language": "es", "continual": {**CONTINUAL, "pairs": {"x": pair}}}
    probe = {"probes": ["cka"], "natural": True, "language": "es", "pairs": {"x": pair}}
    whole, cells = graph_of({"name": "n", "model": model, "tasks": {}, "finetuned": tuning, "probes": {"d": probe}})
    check_cells(cells)
    (task,), other = of_kind(whole, TuneStage), Store(tmp_path / "store")
    assert {Path(path).name for path in task.files(ContentHashes())} >= {"left", "right", "links", "x-ud-train.conllu"}
    making.make(task, other, silent)
    record = read_json(other.path("tune", task.key) / "done.json")
    assert record["counts"]["aligned text x"]["sentence pairs to train on"] == 40
    assert len(record["fit"]["epochs"]) == 2


def test_a_named_run_and_a_checkpoint_are_checked_before_anything_runs(tuned, tmp_path):
    store, *_ = tuned
    run = next(iter(store.root.glob("pretrain-*")))
    data = {"name": "n", "model": str(run), "tasks": {}, "finetuned": TUNED, "probes": {"d": PROBE}}
    check_cells(graph_of(data)[1])
    apart = tmp_path / "apart"
    shutil.copytree(run, apart)
    text = (apart / "config.yaml").read_text()
    assert text.count("embeddings: shared\n  layers: []") == 1
    (apart / "config.yaml").write_text(text.replace("layers: []", "layers: [1]", 1))
    with pytest.raises(InputError, match="separate weights"):
        check_cells(graph_of({**data, "model": str(apart)})[1])
    continual = {**TUNED, "continual": CONTINUAL, "train": f"pos:{SOURCE}", "language": "trans"}
    with pytest.raises(
        InputError, match=r"finetuned\.continual\.pairs: is required, because the pretraining text of the model"
    ):
        check_cells(graph_of({**data, "model": str(run / "export" / "trans"), "finetuned": continual})[1])


# --- a whole study ---


def test_a_study_of_it_its_tables_and_its_weights(tuned, tmp_path):
    out = tmp_path / "out"
    write_json(copied(tuned[0], out / "stages").root / "studies.json", {"format": 3, "studies": []})
    data = {**CELLS, "grid": {"product": {"tuning": {"none": {"finetuned": None}, "pos": {}}}}}
    run = run_here(out, data)
    assert [cell.status for cell in run.cells] == ["done", "done"]
    record = read_json(out / "study.json")
    assert set(record["cells"][1]["stages"]) == {"pretrain", "tuned", "alignment", "probe d"}
    assert record["cells"][1]["run"].rpartition("/")[2].startswith("pretrain-")
    rows = (out / "measures.csv").read_text().splitlines()
    assert {row.rpartition(",")[2] for row in rows[1:]} == {"none", "pos"}
    assert "tuned fingerprint" in (out / "report.html").read_text()
    stage = out / "stages" / f"tune-{record['cells'][1]['stages']['tuned']}"
    weights = stage / "export" / "trans" / "model.safetensors"
    for keep, there in (("checkpoints", True), ("final", True), ("results", False)):
        collect([out], keep)
        assert weights.exists() == there and (stage / "done.json").exists()
    assert [cell.status for cell in run_here(out, data).cells] == ["done", "done"]
    more, _ = graph_of(changed(data, probes={"e": {**PROBES["d"], "seed": 5}}))
    left = [stage for stage in of_kind(more, ProbeStage) if isinstance(stage.model, TuneStage)]
    with pytest.raises(InputError, match=r"tune-.* synthlang gc deleted"):
        check_weights(left, run.done, run.store)


# --- what cells, studies and working folders share of a store ---

PLAIN = changed(FULL, seeds=[0], probes={}, tasks={})  # a run and its alignment
WORDS = {"w": {"probes": ["words"]}}


def test_a_probe_reads_the_checkpoints_of_its_own_config(tmp_path):
    """A run shared with a study that keeps fewer gets those that are missing; results are those of an empty store."""
    few, many = {"every": 3, "keep": 1}, {"every": 2, "keep": 1, "archive": 2}
    shared, alone = Store(tmp_path / "shared"), Store(tmp_path / "alone")
    steps, probes = [], []
    for policy, probed, store in ((few, {}, shared), (many, WORDS, shared), (few, WORDS, shared), (many, WORDS, alone)):
        whole, _ = graph_of(changed(PLAIN, pretrain__checkpoints=policy, probes=probed))
        run_all(whole.stages, store)
        (run,) = keys_of(whole, "pretrain")
        steps.append(steps_in(store.path("pretrain", run) / "checkpoints"))
        for name in keys_of(whole, "probe"):
            found = read_json(store.path("probe", name) / "probes.json")["probes"]["words"]["checkpoints"]
            probes.append((name, [row["step"] for row in found]))
    assert steps == [[6], [2, 4, 6], [2, 4, 6], [2, 4, 6]]
    assert [steps for _, steps in probes] == [[2, 4, 6], [6], [2, 4, 6]]
    assert probes[0] == probes[2] != probes[1]
    kinds = ("probe", "alignment")
    assert contents(alone, kinds).items() <= contents(shared, kinds).items()
    assert not list(shared.root.glob("*.again"))


# --- who makes a stage ---


class Piped(FakeStage):
    def _pipe(self, store):
        raise BrokenPipeError("the aligner has died")


def test_a_broken_pipe_of_the_task_is_its_own(tmp_path):
    outcome = run_stage(Piped(key="p", does="pipe"), Store(tmp_path), silent)
    assert outcome.error == "BrokenPipeError: the aligner has died"
