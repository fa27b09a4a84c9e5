"""Studies that cannot run are refused in one line, before anything starts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from probes.study.cell import SECOND
from probes.study.cells import expand
from probes.study.checks import check_cells
from probes.study.config import StudyConfig
from synthlang.config import parse
from synthlang.errors import InputError
from tests.test_study_cells import LANGUAGES, A, B, cells_of, one, study_of
from tests.tiny import STUDY

LANG = {"pretrain.language": "trans"}

# --- what is refused ---


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"product": LANGUAGES | {A: [3, 3]}}, f"axis '{A}' has 3 twice"),
        ({"product": LANGUAGES | {B: [9, 9.0]}}, "steps: 9.0 must be a valid integer"),
        (
            {"product": LANGUAGES | {"pretrain.objective.alpha": [1, 1.0]}},
            "two cells of the grid are the same: 'trans, alpha=1' and 'trans, alpha=1.0' have equal settings",
        ),
        (
            {"product": LANGUAGES | {A: [3]}, "include": [LANG | {A: 4}, LANG | {A: 3}]},
            "grid.include.1 is already a cell of the product: trans, pretrain seed=3",
        ),
        (
            {"product": LANGUAGES | {A: [3]}, "include": [LANG | {A: 4}, LANG | {A: 4}]},
            "grid.include.1 is already grid.include.0: trans, pretrain seed=4",
        ),
        (
            {"product": LANGUAGES | {"pretrain.log_every": [1, 2]}},
            "the same: 'trans, log_every=1' and 'trans, log_every=2' differ in nothing .*only in pretrain.log_every",
        ),
        (
            {"product": LANGUAGES | {"pretrain.trackers": [[], ["wandb"]]}},
            "differ in nothing that their results depend",
        ),
        ({"product": LANGUAGES | {"pretrain.validation.every": [0, 3]}}, "differ in nothing that their results"),
        ({"product": LANGUAGES | {"pretrain.checkpoints.every": [2, 3]}}, "differ in nothing that their results"),
        (
            {"product": LANGUAGES | {"pretrain.objective.kind": ["mlm"], "pretrain.objective.alpha": [1.0, 5.0]}},
            "'trans, mlm, alpha=1.0' and 'trans, mlm, alpha=5.0' differ in nothing",
        ),
        (
            {"product": LANGUAGES | {A: [3], "x": {"a": {}, "b": {A: 3}}}},
            "the same: 'trans, pretrain seed=3, a' and '.* b' have equal",
        ),
        ({"product": LANGUAGES | {A: [0]}, "exclude": [{A: 0}]}, "the grid has no cell"),
        (
            {"product": LANGUAGES | {"pretrain.stepz": [5]}},
            r"cell trans, stepz=5: pretrain.stepz: unknown key; did you mean steps.* \(axis 'pretrain.stepz'\)",
        ),
        (
            {"product": LANGUAGES | {"o": {"X": {"pretrain.objective.knd": 5}}}},
            r"cell trans, X: pretrain.objective.knd: unknown key; .* kind.* \(axis 'o' sets pretrain.objective.knd\)",
        ),
        (
            {"product": LANGUAGES | {"transfer.fine_tune.epoch": [5]}},
            "cell trans, epoch=5: transfer.fine_tune.epoch: unknown key; .*epochs",
        ),
        ({"product": LANGUAGES | {B: [3, "many"]}}, "cell trans, many: pretrain.steps: 'many' must be a valid integer"),
        ({"product": {"pretrain.language": ["trans", "trans:1.5"]}}, r"cell trans:1.5: .*strength.*1.5"),
        ({"product": {"pretrain.language": ["trans", "swap"]}}, "cell swap: .*'swap' is none of"),
        ({"product": LANGUAGES | {"pretrain.source": ["x"]}}, "source of a study stands at its top"),
        (
            {"product": LANGUAGES | {"transfer.length": [48, 64]}},
            "cell trans, length=64: transfer.length 64 exceeds the 48 tokens that the model reads",
        ),
        (
            {"product": {"pretrain.language": ["inv"], "pretrain.objective.kind": ["align_mlm"]}},
            "cell inv, align_mlm: pretrain.objective: align needs a dictionary: a transliterated language",
        ),
        ({"product": LANGUAGES | {"tasks.ner.length": [8]}}, "cell .*: tasks.ner.length: there is nothing to change"),
        (
            {"product": LANGUAGES | {"o": {"X": {"second.seed": 1}}}},
            "second.seed: there is nothing to change: .*, axis 'o'",
        ),
        ({"product": LANGUAGES | {"adjust": [3]}}, "adjust: must be a mapping or null, not 3"),
        ({"product": LANGUAGES | {"model": ["bert"]}}, "a cell has either pretrain, a config, or model"),
        (
            {"product": LANGUAGES | {"pretrain.base": ["no.yaml"]}},
            "cell trans, no: pretrain: base: there is no file no.yaml",
        ),
        ({"product": LANGUAGES | {"pretrain.base": [3]}}, "pretrain: base must be the name of a YAML file or a list"),
        ({"product": LANGUAGES | {"pretrain.sharing.layers.0": [3]}}, "cell .*sharing.layers|layers"),
    ],
)
def test_wrong_cells_are_named(values, message):
    with pytest.raises(InputError, match=message) as caught:
        cells_of(**values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "distinct numbers"),
        ({"seeds": [-1]}, "from 0 to"),
        ({"seeds": [2**63]}, "seeds: .* must be distinct numbers from 0 to 9223372036854775807"),
        ({"grid": {}}, "grid.product is empty"),
        ({"grid": None}, "grid.product is empty"),
        ({"grid": {"product": None}}, "grid.product is empty"),
        ({"grid": {"product": {}, "zip": None, "exclude": []}}, "grid.product is empty"),
        (
            {"pretrain__checkpoints": {"every": 4, "archive": 6}},
            r"mlm: pretrain.checkpoints.archive \(6\) must be a multiple of pretrain.checkpoints.every \(4\)",
        ),
        ({"name": "a/b"}, "study name 'a/b'"),
        ({"sources": "x"}, "sources: unknown key; did you mean source"),
        ({"keep": "all"}, "keep: 'all' must be 'checkpoints', 'final' or 'results'"),
        ({"tasks": {"a.b": {}}}, "a name of a task or probe has no dot"),
        ({"probes": {"p": {"probe": ["cka"]}}}, "cell trans, mlm: probes.p.probe: unknown key; did you mean probes"),
        ({"tasks": {"ner": {"lenght": 3}}}, "cell trans, mlm: tasks.ner.lenght: unknown key; did you mean length"),
        ({"tasks": {"ner": {"length": 64}}}, "cell trans, mlm: tasks.ner.length 64 exceeds the 48 tokens"),
        ({"second": {"seed": 1}}, "cell trans, mlm: second: give either language: a language"),
        ({"adjust": {"model": "x", "pairs": {}}}, "adjust.model: the model of the cell is adjusted; leave it out"),
        ({"adjust": {}}, "adjust.pairs: is required"),
    ],
)
def test_wrong_studies(values, message):
    with pytest.raises(InputError, match=message) as caught:
        expand(study_of(**values))
    assert "\n" not in str(caught.value)


# --- what is looked at before anything runs ---

TEXT = {"kind": "text", "left": __file__, "right": __file__}
NO_PROGRAM = {"pairs": {"x": {**TEXT, "links": {"kind": "aligner", "program": "fast_align"}}}}
ITEMS = "pos:builtin:mini-english?sentences=50&seed=1"
MONOLINGUAL: dict[str, Any] = {"languages": [{"name": "fr", "source": "builtin:mini-english?sentences=50&seed=1"}]}
TWO_TEXTS: dict[str, Any] = {
    "pretrain__languages": [{"name": "en"}, *MONOLINGUAL["languages"]],
    "pretrain__language": None,
}
TWO_TEXTS |= {"pretrain__objective": {"kind": "mlm"}, "pretrain__dictionary": {}}
DERIVED = {"kind": "derived", "source": STUDY["source"], "left": "trans"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"source": "lines:none.txt"}, "tiny: source: none.txt: no such file"),
        (
            {"pretrain__language": "trans+reorder", "source": f"lines:{__file__}"},
            "language trans.reorder needs the column",
        ),
        ({"pretrain__dictionary": {"path": "none.txt"}}, "tiny: pretrain.dictionary.path: no such file none.txt"),
        ({"pretrain__trackers": ["trackio"]}, "tiny: pretrain.trackers: trackio is not installed; pip install"),
        ({"adjust": NO_PROGRAM}, "tiny: adjust: the aligner fast_align is not installed"),
        (
            {"adjust": {"pairs": {"x": {**DERIVED, "left": "inv"}}}},
            "adjust.pairs.x: no language 'inv' in the run; there is",
        ),
        (
            {"adjust": {"pairs": {"x": DERIVED}}, "pretrain__objective": {"kind": "xlm"}},
            "adjust: the languages of the run have",
        ),
        ({"transfer": {"train": "pos:none", "length": 20}}, "tiny: transfer: none: no such file"),
        ({"transfer": {"parser": "spacy:en", "length": 20}}, "tiny: transfer: .*spa"),
        (
            {"transfer": {"target": {"test": "pos:x"}, "length": 20}},
            "transfer: the language to transfer to needs a name",
        ),
        (
            {"tasks": {"ner": {"rotation": {"map": "none"}, "features": {"tune": "none"}}}},
            "rotation.map: no such file none",
        ),
        (
            {"probes": {"p": {"maps": {"static": {"kind": "train"}}}}},
            "probes.p.maps.static: training word vectors needs gensim",
        ),
        (
            {"probes": {"p": {"retrieval": {"static": {"kind": "train"}}}}},
            "probes.p.retrieval.static: training word vectors needs gensim: .*, or vectors.kind: ppmi",
        ),
        (
            {"probes": {"p": {"retrieval": {"static": {"kind": "load", "left": "none.vec", "right": "r"}}}}},
            "probes.p.retrieval.static.left: no such file none.vec",
        ),
        ({"probes": {"p": {"probes": ["distances"], "distances": {"picture": "tsne"}}}}, "needs scikit-learn"),
        (
            {"probes": {"p": {"maps": {"save": "here"}}}},
            "probes.p.maps.save: the cells of a study would write one folder",
        ),
        ({"probes": {"p": {"words": {"dictionary": "none.txt"}}}}, "probes.p.words.dictionary: no such file none.txt"),
        ({"probes": {"p": {"cka": {"paraphrase": "cell:second"}}}}, "cka.paraphrase: the cell has no second model"),
        ({"probes": {"p": {"probes": ["cka"], "model2": "./none"}}}, "there is no such folder"),
        (
            {"transfer": {"rotation": {}, "language": "fr", "target": {"test": ITEMS}, "length": 20}},
            "tiny: transfer.rotation.pairs: fr is not derived from the source language: name sentence pairs",
        ),
        (
            {"transfer": {"continual": {}, "language": "fr", "target": {"test": ITEMS}, "length": 20}},
            "tiny: transfer.continual.pairs: fr is not derived from the source language: name sentence pairs",
        ),
        (
            {
                "transfer": {"rotation": {}, "language": "fr", "length": 20, "features": {"tune": "none"}},
                "second": MONOLINGUAL,
            },
            "rotation.pairs: fr is not derived from the source language",
        ),
        (
            {
                **TWO_TEXTS,
                "transfer": {"language": "fr", "target": {"test": ITEMS}, "length": 20},
                "probes": {"p": {"probes": ["cka"], "language": "fr"}},
            },
            "tiny: probes.p.pairs: fr is not derived from the source language: name sentence pairs",
        ),
        (
            {"transfer": {"rotation": {}, "language": "parent", "length": 20}},
            "rotation.pairs: parent is the source language itself: there is nothing to align",
        ),
    ],
)
def test_what_cannot_run_is_told_before(values, message, monkeypatch):
    monkeypatch.setattr("probes.study.checks.find_spec", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=message) as caught:
        check_cells([one(**values)])
    assert "\n" not in str(caught.value)


def test_a_problem_of_many_cells_is_told_of_all():
    good, bad = one(), one(source="lines:none.txt")
    named = [replace(cell, name=name) for name, cell in zip("abcd", (good, bad, bad, bad), strict=True)]
    for cells, whose in ((named, "b and 2 other cells"), (named[:3], "b and 1 other cell"), (named[:2], "b")):
        with pytest.raises(InputError, match=rf"^{whose}: source: none\.txt: no such file or folder$"):
            check_cells(cells)
    other = replace(one(source="lines:gone.txt"), name="e")
    with pytest.raises(InputError, match=r"^a and 1 other cell: source: none\.txt"):
        check_cells([replace(bad, name="a"), other, replace(bad, name="f")])


def bert(folder, positions):
    """The settings of a BERT."""
    folder.mkdir()
    settings = {"model_type": "bert", "max_position_embeddings": positions, "num_hidden_layers": 2, "pad_token_id": 0}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "model.safetensors").write_bytes(b"")
    return str(folder)


@pytest.fixture
def checkpoint(tmp_path):
    """One that reads 24 tokens."""
    return bert(tmp_path / "bert", 24)


def test_rows_that_a_checkpoint_cannot_read(checkpoint):
    named = {"pretrain": None, "source": "", "model": checkpoint}
    task = {"language": "trans", "train": "pos:builtin:mini-english?sentences=50"}
    check_cells([one(**named, transfer={**task, "length": 24})])
    with pytest.raises(InputError, match="tiny: transfer: length 25 is longer than the 24 tokens that the model reads"):
        check_cells([one(**named, transfer={**task, "length": 25})])
    run = {"steps": 9, "start": {"model": checkpoint}, "batch": {"length": 24}, "optimizer": {"warmup_steps": 1}}
    check_cells([one(pretrain=run, transfer={"length": 24})])
    with pytest.raises(InputError, match="tiny: transfer: length 40 is longer than the 24 tokens"):
        check_cells([one(pretrain=run, transfer={"length": 40})])
    with pytest.raises(InputError, match=r"tiny: pretrain\.batch\.length \(48\) is over the 24 positions"):
        check_cells([one(pretrain={**run, "batch": {"length": 48}}, transfer={"length": 24})])


def test_rows_that_one_of_several_models_cannot_read(checkpoint, tmp_path):
    """What was looked at for the first model says nothing of the second one."""
    long = bert(tmp_path / "long", 48)
    task = {"language": "trans", "train": "pos:builtin:mini-english?sentences=50", "length": 48}
    named = {"pretrain": None, "source": "", "transfer": task}
    check_cells([one(**named, model=long), one(**named, model=long)])
    with pytest.raises(InputError, match="transfer: length 48 is longer than the 24 tokens that the model reads"):
        check_cells([one(**named, model=long), one(**named, model=checkpoint)])


def test_columns_are_looked_at_although_a_cell_of_two_models_needs_none(tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).write_text(f"{name} B-PER\n\n")
    files = {name: f"ner:{tmp_path / name}" for name in ("train", "test")}
    cell = one(
        transfer={"task": "ner", "language": "trans+reorder", "length": 20, "features": {"tune": "none"}, **files}
    )
    task = cell.tasks["ner"].model_copy(update={"target_model": SECOND})
    two = replace(cell, second=cell.pretrain, tasks={"ner": task})
    check_cells([two])
    with pytest.raises(InputError, match=r"transfer: the language trans\+reorder needs the column"):
        check_cells([two, cell])


def test_models_that_are_not_there(monkeypatch):
    named = {"pretrain": None, "source": "", "transfer": {"language": "trans", "train": "pos:builtin:mini-english"}}
    with pytest.raises(InputError, match="tiny: none: there is no such folder; name a run"):
        check_cells([one(**named, model="./none")])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"no-such/model is no folder and is not in the cache, and HF_HUB_OFFLINE"):
        check_cells([one(**named, model="no-such/model")])


def test_a_sound_study_passes():
    check_cells(
        [*expand(parse(StudyConfig, STUDY)), one(probes={"p": {"probes": ["words", "cka"]}}, tasks={"ner": {}})]
    )
