"""Stages that cannot run are refused before anything runs: each stage checks itself."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from probes.models.names import CellModel
from probes.study.checks import check_cells, with_missing
from synthlang.errors import InputError
from synthlang.files import no_such
from tests.refusals import refusal
from tests.study_graphs import BASE, FIRST, OWN, SOURCE, STARTED, graph_of
from tests.test_study_cells import one
from tests.tiny import PRETRAIN, STUDY, changed

TEXT = {"kind": "text", "left": __file__, "right": __file__}
NO_PROGRAM = {"pairs": {"x": {**TEXT, "links": {"kind": "aligner", "program": "fast_align"}}}}
ITEMS = "pos:builtin:mini-english?sentences=50&seed=1"
QUESTIONS = "qa:builtin:mini-english?sentences=50"
MONOLINGUAL: dict[str, Any] = {"languages": [{"name": "fr", "source": "builtin:mini-english?sentences=50&seed=1"}]}
DERIVED = {"kind": "derived", "source": STUDY["source"], "left": "trans"}
FRENCH = {"language": "fr", "target": {"test": ITEMS}, "length": 20}
ADJUST: dict[str, Any] = {"pairs": {"x": DERIVED}}
PPMI = {"kind": "train", "vectors": {"kind": "ppmi"}}
WORDS = {"probes": ["words"]}
FROZEN = {"tune": "none", "layers": [9]}
NOWHERE = {"kind": "text", "left": "no", "right": "no"}
SEPARATE = {"pretrain__sharing": {"embeddings": "separate"}, "pretrain__vocabulary": {"kind": "joint", "size": 300}}
ALONE = {"pretrain__language": "parent", "pretrain__objective": {"kind": "mlm"}, "pretrain__dictionary": {}}
DECODER: dict[str, Any] = {
    "pretrain__model": {**PRETRAIN["model"], "kind": "gpt2"},
    "pretrain__objective": {"kind": "clm"},
}
SAME_ITEMS = {"train": "pos:builtin:mini-english", "test": "pos:builtin:mini-english#train"}


def transfer(**settings: Any) -> dict[str, Any]:
    return {"transfer": {"length": 20, **settings}}


def probe(**settings: Any) -> dict[str, Any]:
    return {"probes": {"p": settings}}


def adjust(**settings: Any) -> dict[str, Any]:
    return {"adjust": {**ADJUST, **settings}}


def refused_stage(*cells) -> tuple[str, str]:
    """Keys and code of the refusal of cells, of which the last one is refused by its name."""
    error = refusal(check_cells, list(cells))
    assert str(error.path).startswith(f"cell {cells[-1].name}")
    return ".".join(error.keys), error.code


CASES: list[tuple[dict[str, Any], str, str | None]] = [
    # pretraining
    ({"source": "lines:none.txt"}, "source", None),
    ({"pretrain__language": "trans+reorder", "source": f"lines:{__file__}"}, "source", None),
    ({"pretrain__trackers": ["trackio"]}, "pretrain.trackers", "extra"),
    ({"pretrain__batch": {"rows": 3, "accumulation": 2, "length": 48}}, "pretrain.batch.rows", "range"),
    ({"pretrain__processes": 4}, "pretrain.processes", "conflict"),
    (
        {**DECODER, "pretrain__objective": {"kind": "clm", "mask_rate": 0.3}},
        "pretrain.objective.mask_rate",
        "no_effect",
    ),
    ({**DECODER, "pretrain__validation": {"mask_rate": 0.3}}, "pretrain.validation.mask_rate", "no_effect"),
    # adjustment
    ({"adjust": NO_PROGRAM}, "adjust.pairs.x", None),
    ({"adjust": {"pairs": {"x": {**DERIVED, "left": "inv"}}}}, "adjust.pairs.x", "unknown"),
    ({"adjust": ADJUST, "pretrain__objective": {"kind": "xlm"}}, "adjust", "unsupported"),
    ({**DECODER, **adjust()}, "adjust", "unsupported"),
    (adjust(loss={"layers": [9]}), "adjust.loss.layers", "range"),
    (adjust(data={"length": 1000}), "adjust.data.length", "range"),
    (adjust(rows=3, accumulation=2), "adjust.rows", "range"),
    # transfer: items
    (transfer(train="pos:none"), "transfer", None),
    (transfer(parser="spacy:en"), "transfer.parser", None),
    (transfer(target={"test": "pos:x"}), "transfer.language", "missing"),
    ({**ALONE, **transfer()}, "transfer.language", "missing"),
    ({**ALONE, "tasks": {"pos": {}, "ner": {}}}, "tasks.pos.language", "missing"),
    (transfer(**SAME_ITEMS), "transfer.test", "conflict"),
    # transfer: settings
    ({"transfer": {"length": 64}}, "transfer.length", "range"),
    ({"tasks": {"pos": {}, "ner": {"length": 64}}}, "tasks.ner.length", "range"),
    (transfer(task="qa", length=32), "transfer.stride", "range"),
    (transfer(features=FROZEN), "transfer.features.layers", "range"),
    (transfer(search={"features.layers": [[0], [9]]}), "transfer.search.features.layers", "range"),
    ({**DECODER, **transfer(task="ner")}, "transfer.features.subword", "conflict"),
    (
        {**DECODER, **transfer(task="nli", continual={"loss": {"pulled": "cls"}})},
        *("transfer.continual.loss.pulled", "conflict"),
    ),
    # transfer: aligned text
    (
        {"tasks": {"ner": {"rotation": {"map": "none"}, "features": {"tune": "none"}}}},
        *("transfer.rotation.map", "missing"),
    ),
    (transfer(continual={"before": "cell:start"}), "transfer.continual.before", "conflict"),
    (transfer(continual={"loss": {"layers": [9]}}), "transfer.continual.loss.layers", "range"),
    (transfer(continual={"data": {"length": 1000}}), "transfer.continual.data.length", "range"),
    (transfer(rotation={}, **FRENCH), "transfer.rotation.pairs", "missing"),
    (transfer(continual={}, **FRENCH), "transfer.continual.pairs", "missing"),
    (
        {**transfer(rotation={}, language="fr", features={"tune": "none"}), "target_model": MONOLINGUAL},
        *("transfer.rotation.pairs", "missing"),
    ),
    (transfer(rotation={}, language="parent"), "transfer.rotation.pairs", "conflict"),
    # probes
    (probe(retrieval={"static": {"kind": "train"}}), "probes.p.retrieval.static.vectors.kind", "extra"),
    (
        probe(retrieval={"static": {"kind": "load", "left": "none.vec", "right": "r"}}),
        *("probes.p.retrieval.static.left", "missing"),
    ),
    (probe(probes=["distances"], distances={"picture": "tsne"}), "probes.p.distances.picture", "extra"),
    (probe(maps={"save": "here"}), "probes.p.maps.save", "conflict"),
    (probe(words={"dictionary": "none.txt"}), "probes.p.words.dictionary", "missing"),
    (probe(cka={"paraphrase": "cell:second"}), "probes.p.cka.paraphrase", "missing"),
    (probe(probes=["cka"], model2="./none"), "probes.p.model2", "missing"),
    (probe(probes=["cka"], layers=[7]), "probes.p.layers", "range"),
    (probe(probes=["distances"], distances={"layer": 7}), "probes.p.distances.layer", "range"),
    (probe(probes=["distances"], layers=[0], distances={"layer": 1}), "probes.p.distances.layer", "conflict"),
    (probe(probes=["cka"], data={"length": 1000}), "probes.p.data.length", "range"),
    (
        {**DECODER, **transfer(task="nli"), **probe(probes=["cka"], cka={"pooling": "first"})},
        *("probes.p.cka.pooling", "conflict"),
    ),
    (probe(probes=["sentences"], sentences={"text": "lines:none.txt"}), "probes.p.sentences.text", "missing"),
    (
        probe(probes=["sentences"], sentences={"split": "dev", "text": f"lines:{__file__}"}),
        *("probes.p.sentences.split", "missing"),
    ),
    (
        probe(probes=["minimal_pairs"], minimal_pairs={"items": "minimal:none"}),
        "probes.p.minimal_pairs.items",
        "missing",
    ),
    (probe(probes=["minimal_pairs"], natural=True, language="fr"), "probes.p.minimal_pairs.other", "missing"),
    (probe(**WORDS, language="perm"), "probes.p.language", "unknown"),
    ({**ALONE, "tasks": {}, **probe(**WORDS)}, "probes.p.language", "missing"),
]


@pytest.mark.parametrize(("values", "keys", "code"), CASES)
def test_a_stage_that_cannot_run(values, keys, code, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for module in ("probes.measures.distances", "probes.static.settings"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    found = refused_stage(one(**values))
    assert found == (keys, code or found[1])


@pytest.mark.parametrize(
    ("values", "keys", "code"),
    [
        ({"pretrain__batch": {"rows": 8, "length": 64}}, "pretrain.batch.length", "range"),
        ({"pretrain__sharing": {"layers": [2]}}, "pretrain.sharing.layers", "range"),
        ({"init_from__source": "lines:none.txt"}, "init_from.source", None),
        ({"transfer__length": 60}, "transfer.length", "range"),
    ],
)
def test_an_initial_model_that_does_not_fit(values, keys, code):
    base = {key: value for key, value in STARTED.items() if key != "source"}
    base |= {"init_from": {**FIRST, "source": SOURCE}, "pretrain": {**OWN, "source": SOURCE}}
    check_cells(graph_of(base)[1])
    found = refused_stage(*graph_of(changed(base, **values))[1])
    assert found == (keys, code or found[1])


@pytest.mark.parametrize(
    ("values", "keys", "code"),
    [
        ({"finetuned": {"length": 500}}, "finetuned.length", "range"),
        ({"finetuned": {"search": {"features.tune": ["all", "none"]}}}, "finetuned.search.features.tune", "conflict"),
        ({"transfer__rotation": {}}, "finetuned.rotation", "conflict"),
        ({"finetuned": {"best": 2, "search": {"fine_tune.rows": [4, 8]}}}, "finetuned.best", "conflict"),
        ({"finetuned": {"chosen_by": "target"}}, "finetuned.chosen_by", "conflict"),
        ({"finetuned": {"train": "conllu:/nowhere"}}, "finetuned", None),
        (SEPARATE, "finetuned", "unsupported"),
        ({"probes": {"w": {"probes": ["words"], "language": "inv"}}}, "probes.w.language", "unknown"),
        (
            {"finetuned": {"language": "trans", "continual": {"pairs": {"x": NOWHERE}}}},
            *("finetuned.continual.pairs.x.left", "missing"),
        ),
    ],
)
def test_a_fine_tuning_for_probes_that_cannot_be(values, keys, code):
    found = refused_stage(*graph_of(changed(BASE, **values))[1])
    assert found == (keys, code or found[1])


def test_an_error_of_a_missing_file_lists_all_missing_files():
    """An error about a missing key keeps its own hint."""
    required = InputError("is required", keys="language", hint="set this key", code="missing")
    assert with_missing(required, ["a", "b"]).hint == "set this key"
    assert with_missing(no_such("a"), ["a", "b"]).hint == "add the 2 missing inputs: a, b"


def test_a_problem_of_many_cells_is_told_of_all():
    good, bad = one(), one(source="lines:none.txt")
    named = [replace(cell, name=name) for name, cell in zip("abcd", (good, bad, bad, bad), strict=True)]
    for cells, whose in (
        (named, "cell b and 2 other cells"),
        (named[:3], "cell b and 1 other cell"),
        (named[:2], "cell b"),
    ):
        error = refusal(check_cells, cells)
        assert str(error.path) == whose and str(error).startswith(f"{whose}: source: none.txt: ")
    other = replace(one(source="lines:gone.txt"), name="e")
    error = refusal(check_cells, [replace(bad, name="a"), other, replace(bad, name="f")])
    assert str(error.path) == "cell a and 1 other cell"


@pytest.mark.parametrize(
    "values",
    [
        transfer(features={"tune": "none", "layers": [-2, 1]}, best=2, search={"fine_tune.rows": [4, 8]}),
        {"tasks": {"qa": {"length": 32, "stride": 8}}},
        probe(probes=["cka", "distances"], layers=[-1, 0], distances={"layer": 0}),
        {"probes": {"p": {**WORDS, "language": "trans"}, "q": {"probes": ["cka"], "language": "perm"}}},
        probe(**WORDS, layers=[9]),  # which reads none
        probe(probes=["retrieval"], layers=[9], retrieval={"static": PPMI}),  # nor does this
        adjust(loss={"layers": [-2]}, data={"length": 48}, rows=4, accumulation=2),
        {"pretrain__processes": 1, "pretrain__batch": {"rows": 4, "accumulation": 2, "length": 48}},
    ],
)
def test_settings_at_the_limit_pass(values):
    check_cells([one(**{"transfer": {"length": 32}, **values})])


# --- models by their names ---


def bert(folder, positions):
    """The settings of a BERT."""
    folder.mkdir()
    settings = {"model_type": "bert", "max_position_embeddings": positions, "num_hidden_layers": 2, "pad_token_id": 0}
    (folder / "config.json").write_text(json.dumps(settings))
    save_file({"first": torch.zeros(1), "second": torch.zeros(1)}, folder / "model.safetensors")
    return str(folder)


@pytest.fixture
def checkpoint(tmp_path):
    """One that reads 24 tokens."""
    return bert(tmp_path / "bert", 24)


def test_rows_that_a_checkpoint_cannot_read(checkpoint):
    named = {"pretrain": None, "source": "", "model": checkpoint}
    task = {"language": "trans", "train": "pos:builtin:mini-english?sentences=50"}
    check_cells([one(**named, transfer={**task, "length": 24})])
    too_long = ("transfer.length", "range")
    assert refused_stage(one(**named, transfer={**task, "length": 25})) == too_long
    run = {"steps": 9, "start": {"model": checkpoint}, "batch": {"length": 24}, "optimizer": {"warmup_steps": 1}}
    check_cells([one(pretrain=run, transfer={"length": 24})])
    assert refused_stage(one(pretrain=run, transfer={"length": 40})) == too_long
    longer = one(pretrain={**run, "batch": {"length": 48}}, transfer={"length": 24})
    assert refused_stage(longer) == ("pretrain.batch.length", "range")


def test_rows_that_one_of_several_models_cannot_read(checkpoint, tmp_path):
    """The result of the check of the first model does not apply to the second model."""
    long = bert(tmp_path / "long", 48)
    task = {"language": "trans", "train": "pos:builtin:mini-english?sentences=50", "length": 48}
    named = {"pretrain": None, "source": "", "transfer": task}
    check_cells([one(**named, model=long), one(**named, model=long)])
    assert refused_stage(one(**named, model=long), one(**named, model=checkpoint)) == ("transfer.length", "range")


def test_a_checkpoint_at_hand_has_its_layers(tmp_path):
    named = {"pretrain": None, "source": "", "model": bert(tmp_path / "bert", 64)}
    task = {"language": "trans", "train": "pos:builtin:mini-english?sentences=50", "length": 20}
    known = {"language": "trans", "pairs": {"x": DERIVED}, "probes": ["cka"]}
    check_cells([one(**named, transfer={**task, "features": {"layers": [2]}}, probes={"p": {**known, "layers": [2]}})])
    run = {"steps": 9, "start": {"model": named["model"]}, "batch": {"length": 24}, "optimizer": {"warmup_steps": 1}}
    for values, keys in (
        ({**named, "transfer": {**task, "features": FROZEN}}, "transfer.features.layers"),
        ({**named, "transfer": task, "probes": {"p": {**known, "layers": [3]}}}, "probes.p.layers"),
        ({**named, "transfer": task, **adjust(loss={"layers": [9]})}, "adjust.loss.layers"),
        ({**named, "transfer": task, **adjust(data={"length": 1000})}, "adjust.data.length"),
        ({"pretrain": run, "transfer": {"length": 24, "features": FROZEN}}, "transfer.features.layers"),
    ):
        assert refused_stage(one(**values)) == (keys, "range")
    unnamed = {"p": {"pairs": {"x": DERIVED}, "probes": ["cka"]}}
    assert refused_stage(one(**named, transfer=task, probes=unnamed)) == ("probes.p.language", "missing")


def test_models_that_are_not_there(monkeypatch):
    named = {"pretrain": None, "source": "", "transfer": {"language": "trans", "train": "pos:builtin:mini-english"}}
    assert refused_stage(one(**named, model="./none")) == ("transfer", "missing")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert refused_stage(one(**named, model="no-such/model")) == ("transfer", "missing")


def test_a_model_that_is_not_at_hand_is_left_alone(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    task = {"task": "qa", "language": "trans", "train": QUESTIONS, "length": 32, "stride": 27, "features": FROZEN}
    named = {"pretrain": None, "source": "", "model": "no-such/model"}
    check_cells([one(**named, transfer=task)])
    assert refused_stage(one(**named, transfer={**task, "stride": 28})) == ("transfer.stride", "range")


# --- cells of two models ---


def test_columns_are_looked_at_although_a_cell_of_two_models_needs_none(tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).write_text(f"{name} B-PER\n\n")
    files = {name: f"ner:{tmp_path / name}" for name in ("train", "test")}
    cell = one(
        transfer={"task": "ner", "language": "trans+reorder", "length": 20, "features": {"tune": "none"}, **files}
    )
    task = cell.tasks["ner"].model_copy(update={"target_model": CellModel.TARGET})
    two = replace(cell, target_model=cell.pretrain, tasks={"ner": task})
    check_cells([two])
    assert refused_stage(two, cell) == ("transfer.language", "missing")


@pytest.mark.parametrize("part", ["target_model", "model2"])
def test_layers_of_a_second_model(part):
    second = {**STUDY["pretrain"], **MONOLINGUAL, "objective": {"kind": "mlm"}}
    second["model"] = {**second["model"], "layers": 3}
    pairs = {"x": {**DERIVED, "left": "trans"}}
    values: dict[str, Any] = {"target_model": second, "tasks": {}}
    if part == "model2":
        values["probes"] = {"p": {"probes": ["cka"], "pairs": pairs, "layers": [3]}}
    else:
        values |= {"tasks": {"pos": {}}, "pretrain__model": second["model"] | {"layers": 4}}
        values["transfer"] = {"length": 20, "features": {"tune": "none", "layers": [4]}}
    keys = "probes.p.layers" if part == "model2" else "transfer.features.layers"
    assert refused_stage(one(**values)) == (keys, "range")


# --- sentence pairs in files ---


@pytest.fixture
def texts(tmp_path):
    """A pair of files of four lines, with links."""
    files = {"left": "a b\n" * 4, "right": "c d\n" * 4, "links": "0-0 1-1\n\n0-1\n1p0\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    pair: dict[str, Any] = {"kind": "text", "left": str(tmp_path / "left"), "right": str(tmp_path / "right")}
    pair |= {"links": {"kind": "file", "path": str(tmp_path / "links")}, "tokenizers": ["trans", "parent"]}
    return tmp_path, pair


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("right", "c d\n" * 3),
        ("left", "a b\n" * 4 + "a"),
        ("links", "0-0\n" * 2),
        ("links", "0-0\n0:1\n\n\n"),
    ],
)
def test_files_that_do_not_fit(file, text, texts):
    folder, pair = texts
    settings = {"pairs": {"x": pair}, "data": {"dev": 1}}
    check_cells([one(adjust=settings)])
    (folder / file).write_text(text)
    assert refused_stage(one(adjust=settings))[0] == "adjust.pairs.x"
    plain = {**pair, "tokenizers": None}
    continual = {"length": 20, "continual": {"pairs": {"x": plain}}}
    assert refused_stage(one(transfer=continual))[0] == "transfer.continual.pairs.x"
    probes = {"p": {"probes": ["cka"], "pairs": {"x": plain}}}
    assert refused_stage(one(probes=probes))[0] == "probes.p.pairs.x"


def test_more_sentence_pairs_held_out_than_there_are(texts):
    _, pair = texts
    for data in ({"dev": 5}, {"dev": 4}, {"dev": 2, "test": 2}, {}):
        assert refused_stage(one(adjust={"pairs": {"x": pair}, "data": data})) == ("adjust.pairs.x", "empty")
    check_cells([one(adjust={"pairs": {"x": pair}, "data": {"dev": 3}})])
