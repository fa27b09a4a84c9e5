"""Studies that cannot run are refused in one line, before anything starts."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.encoder import MaskedLM
from probes.results.measures import ALIGNMENT, PRETRAIN
from probes.study.cell import SECOND
from probes.study.cells import expand, load_study
from probes.study.checks import check_cells
from probes.transfer.config import TransferConfig
from probes.transfer.run import check_keep
from synthlang.errors import InputError
from tests.study_graphs import BASE, FIRST, FULL, OWN, SOURCE, STARTED, graph_of
from tests.test_study_cells import LANGUAGES, A, B, cells_of, one, study_of
from tests.tiny import STUDY, changed

LANG = {"pretrain.language": "trans"}
CKA = {"probes": ["cka"]}
SAME = "two cells of the grid are the same"


def refused(message: str, make: Callable[[], Any]) -> None:
    """In one line."""
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


# --- axes, and what they set ---


@pytest.mark.parametrize(
    ("message", "axes"),
    [
        ("steps: 9.0 must be a valid integer", {B: [9, 9.0]}),
        (f"{SAME}: 'trans, alpha=1' and 'trans, alpha=1.0' have equal", {"pretrain.objective.alpha": [1, 1.0]}),
        ("'trans, log_every=2' differ in nothing .*only in pretrain.log_every", {"pretrain.log_every": [1, 2]}),
        ("differ in nothing that their results", {"pretrain.checkpoints.every": [2, 3]}),
        (
            "'trans, mlm, alpha=1.0' and 'trans, mlm, alpha=5.0' differ in nothing",
            {"pretrain.objective.kind": ["mlm"], "pretrain.objective.alpha": [1.0, 5.0]},
        ),
        ("the same: 'trans, pretrain seed=3, a' and '.* b' have equal", {A: [3], "x": {"a": {}, "b": {A: 3}}}),
        (
            r"cell trans, stepz=5: pretrain.stepz: unknown key; did you mean steps.* \(axis 'pretrain.stepz'\)",
            {"pretrain.stepz": [5]},
        ),
        (
            r"cell trans, X: pretrain.objective.knd: unknown key; .* kind.* \(axis 'o' sets pretrain.objective.knd\)",
            {"o": {"X": {"pretrain.objective.knd": 5}}},
        ),
        ("cell trans, many: pretrain.steps: 'many' must be a valid integer", {B: [3, "many"]}),
        (r"cell trans:1.5: .*strength.*1.5", {"pretrain.language": ["trans", "trans:1.5"]}),
        ("source of a study stands at its top", {"pretrain.source": ["x"]}),
        ("length=64: transfer.length 64 exceeds the 48 tokens that the model reads", {"transfer.length": [48, 64]}),
        (
            "cell inv, align_mlm: pretrain.objective: align needs a dictionary: a transliterated language",
            {"pretrain.language": ["inv"], "pretrain.objective.kind": ["align_mlm"]},
        ),
        ("cell .*: tasks.ner.length: there is nothing to change", {"tasks.ner.length": [8]}),
        ("second.seed: there is nothing to change: .*, axis 'o'", {"o": {"X": {"second.seed": 1}}}),
        ("adjust: must be a section of keys, or null, not 3", {"adjust": [3]}),
        ("model: must be a text, not 3", {"model": [3]}),
        ("a cell has either pretrain, a config, or model", {"model": ["bert"]}),
        ("cell trans, no: pretrain: base: there is no file no.yaml", {"pretrain.base": ["no.yaml"]}),
        ("axis '' has no name", {"": {"a": {A: 1}}}),
        ("axis 'size' has an empty label", {"size": {"": {A: 1}, "b": {}}}),
        ("has a control character, which results cannot show", {"variant": {"a\x1b[31m": {B: 5}}}),
    ],
)
def test_axes_that_make_no_cells(message, axes):
    refused(message, lambda: cells_of(product=LANGUAGES | axes))


@pytest.mark.parametrize(
    ("message", "values"),
    [
        (
            "include.1 is already a cell of the product: trans, pretrain seed=3",
            {"include": [LANG | {A: 4}, LANG | {A: 3}]},
        ),
        ("include.1 is already grid.include.0: trans, pretrain seed=4", {"include": [LANG | {A: 4}, LANG | {A: 4}]}),
        ("the grid has no cell", {"exclude": [{A: 3}]}),
    ],
)
def test_entries_that_make_no_cells(message, values):
    refused(message, lambda: cells_of(product=LANGUAGES | {A: [3]}, **values))


@pytest.mark.parametrize(
    ("message", "root"),
    [
        ("transfer: must be a section of keys, not null; tasks: {} takes all tasks away, axis 'x'", "transfer"),
        ("tasks: must be a section of names and their settings, not None, axis 'x'", "tasks"),
        ("pretrain: base must be the name", "pretrain.base"),
        ("transfer: base must be the name", "transfer.base"),
        ("transfer.task: ", "transfer.task"),
        ("a cell has either pretrain, a config, or model", "pretrain"),
        ("pretrain: language parent has no source: set source", "source"),
        *((SAME, root) for root in ("start", "second", "adjust", "tuned", "probes.p")),
    ],
)
def test_null_for_a_part(message, root):
    where = "" if message == SAME else "cell trans, no: "
    refused(where + message, lambda: cells_of(product=LANGUAGES | {"x": {"yes": {}, "no": {root: None}}}))


@pytest.mark.parametrize(
    ("root", "name", "message"),
    [
        ("tasks", "a/b", "name of a task or probe 'a/b' must be 1 to 128 letters"),
        ("tasks", "x.y", "'x.y': a name of a task or probe has no dot"),
        ("probes", "a b", "name of a task or probe 'a b' must be"),
        ("probes", ALIGNMENT, "'alignment': that is what measures call the alignment of every run; give the probe"),
        ("probes", PRETRAIN, "'pretrain': that is what measures call the perplexity of every run; give the probe"),
    ],
)
def test_names_are_checked_wherever_they_stand(root, name, message):
    section = {"task": "pos"} if root == "tasks" else CKA
    refused(f"{root}: .*{message}", lambda: study_of(**{root: {name: section}}))
    refused(f"cell .*: {root}: {message}", lambda: cells_of(product=LANGUAGES | {root: [{name: section}]}))
    if "." not in name:
        refused(
            f"cell .*: {root}.{name}: {message}", lambda: cells_of(product=LANGUAGES | {f"{root}.{name}": [section]})
        )


# --- studies ---

RATE = {"pretrain__checkpoints": {"every": 4, "archive": 6}}


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("seeds", {"seeds": []}),
        ("distinct numbers", {"seeds": [1, 1]}),
        ("seeds: .* must be distinct numbers from 0 to 9223372036854775807", {"seeds": [2**63]}),
        ("grid.product is empty", {"grid": None}),
        ("grid.product is empty", {"grid": {"product": {}, "zip": None, "exclude": []}}),
        (r"mlm: pretrain.checkpoints.archive \(6\) must be a multiple of pretrain.checkpoints.every \(4\)", RATE),
        ("study name 'a/b'", {"name": "a/b"}),
        ("sources: unknown key; did you mean source", {"sources": "x"}),
        ("learned.sup: no task 'poz'; there is pos", {"learned": {"sup": {"pos": 1, "poz": 80}}}),
        ("learned.perplexity: 0.5 must be greater than or equal to 1", {"learned": {"perplexity": 0.5}}),
        ("keep: 'all' must be 'checkpoints', 'final' or 'results'", {"keep": "all"}),
        ("cell trans, mlm: probes.p.probe: unknown key; did you mean probes", {"probes": {"p": {"probe": ["cka"]}}}),
        ("cell trans, mlm: tasks.ner.lenght: unknown key; did you mean length", {"tasks": {"ner": {"lenght": 3}}}),
        ("cell trans, mlm: tasks.ner.length 64 exceeds the 48 tokens", {"tasks": {"ner": {"length": 64}}}),
        ("cell trans, mlm: second: give either language: a language", {"second": {"seed": 1}}),
        ("adjust.model: the model of the cell is adjusted; leave it out", {"adjust": {"model": "x", "pairs": {}}}),
        ("adjust.pairs: is required", {"adjust": {}}),
        (
            r"tasks\.poz: did you mean pos\? poz is none of .*ner.*; name one with tasks\.poz\.task",
            {"tasks": {"poz": {}}},
        ),
        (r"tasks\.mine: mine is none of", {"tasks": {"mine": {"length": 5}}}),
    ],
)
def test_settings_of_a_study(message, values):
    refused(message, lambda: expand(study_of(**values)))


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("pretrain.start.model: pretrain starts from the run that", {"pretrain__start__model": "bert"}),
        ("pretrain.start.model: pretrain starts", {"grid": {"product": {"pretrain.start.model": ["a"]}}}),
        ("pretrain.start.model: pretrain starts", {"grid": {"product": {"pretrain.start": [{"model": "a"}]}}}),
        (
            r"pretrain\.start: must be a section of keys, as in start: {model: NAME}, not 'bert'",
            {"grid": {"product": {"pretrain.start": ["bert"]}}},
        ),
        ("start has no effect on a model that is not pretrained", {"pretrain": None, "model": "bert"}),
        ("pretrain.start: the checkpoint brings its vocabulary", {"pretrain__vocabulary": {"size": 400}}),
        ("(transfer|tasks.pos).length 60 exceeds the 48 tokens", {"transfer__length": 60}),
        ("start.stepz: unknown key", {"start__stepz": 1}),
    ],
)
def test_settings_of_a_start(message, values):
    base = {**STARTED, "pretrain": {**OWN, "start": {**OWN["start"]}}}
    refused(message, lambda: graph_of(changed(base, **values)))


def test_what_is_set_for_all_tasks_reaches_all_or_is_refused(tmp_path):
    (tmp_path / "own.yaml").write_text("task: pos\ntrain_items: 70\nfine_tune: {epochs: 3}\n")

    def read(*assignments, **tasks):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(changed(FULL, tasks=tasks)))
        return load_study(tmp_path / "study.yaml", [*assignments])[1][0].tasks

    tasks = read("transfer.train_items=30", "transfer.fine_tune.epochs=2", pos={}, ner={})
    assert {(task.train_items, task.fine_tune.epochs) for task in tasks.values()} == {(30, 2)}
    hidden: dict[str, Any] = {"ner": {}, "mine": {"base": "own.yaml"}}
    for assignment, key in (
        ("transfer.train_items=30", "train_items"),
        ("transfer.fine_tune.epochs=2", "fine_tune.epochs"),
        ("transfer.fine_tune={epochs: 2, clip: 0.5}", "fine_tune.epochs"),
        ("transfer.fine_tune=null", "fine_tune"),
    ):
        text = rf"transfer\.{key} does not reach tasks\.mine, which has its own: set tasks\.mine\.{key}"
        refused(text, partial(read, assignment, **hidden))
    # equal to its own, of another key, and set for the task as well
    read("transfer.train_items=70", **hidden)
    read("transfer.test_items=20", **hidden)
    tasks = read("transfer.train_items=30", "tasks.mine.train_items=30", **hidden)
    assert {task.train_items for task in tasks.values()} == {30}


# --- what is looked at before anything runs ---

TEXT = {"kind": "text", "left": __file__, "right": __file__}
NO_PROGRAM = {"pairs": {"x": {**TEXT, "links": {"kind": "aligner", "program": "fast_align"}}}}
ITEMS = "pos:builtin:mini-english?sentences=50&seed=1"
MONOLINGUAL: dict[str, Any] = {"languages": [{"name": "fr", "source": "builtin:mini-english?sentences=50&seed=1"}]}
TWO_TEXTS: dict[str, Any] = {
    "pretrain__languages": [{"name": "en"}, *MONOLINGUAL["languages"]],
    "pretrain__language": None,
    "pretrain__objective": {"kind": "mlm"},
    "pretrain__dictionary": {},
}
DERIVED = {"kind": "derived", "source": STUDY["source"], "left": "trans"}
FRENCH = {"language": "fr", "target": {"test": ITEMS}, "length": 20}
NOT_DERIVED = "pairs: fr is not derived from the source language: name sentence pairs"


def transfer(**settings: Any) -> dict[str, Any]:
    return {"transfer": {"length": 20, **settings}}


def probe(**settings: Any) -> dict[str, Any]:
    return {"probes": {"p": settings}}


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("tiny: source: none.txt: no such file", {"source": "lines:none.txt"}),
        (
            "language trans.reorder needs the column",
            {"pretrain__language": "trans+reorder", "source": f"lines:{__file__}"},
        ),
        ("tiny: pretrain.dictionary.path: no such file none.txt", {"pretrain__dictionary": {"path": "none.txt"}}),
        ("tiny: pretrain.trackers: trackio is not installed; pip install", {"pretrain__trackers": ["trackio"]}),
        ("tiny: adjust: the aligner fast_align is not installed", {"adjust": NO_PROGRAM}),
        (
            "adjust.pairs.x: no language 'inv' in the run; there is",
            {"adjust": {"pairs": {"x": {**DERIVED, "left": "inv"}}}},
        ),
        (
            "adjust: the languages of the run have",
            {"adjust": {"pairs": {"x": DERIVED}}, "pretrain__objective": {"kind": "xlm"}},
        ),
        ("tiny: transfer: none: no such file", transfer(train="pos:none")),
        ("tiny: transfer: .*spa", transfer(parser="spacy:en")),
        ("transfer: the language to transfer to needs a name", transfer(target={"test": "pos:x"})),
        (
            "rotation.map: no such file none",
            {"tasks": {"ner": {"rotation": {"map": "none"}, "features": {"tune": "none"}}}},
        ),
        (
            "probes.p.retrieval.static: training word vectors needs gensim: .*, or vectors.kind: ppmi",
            probe(retrieval={"static": {"kind": "train"}}),
        ),
        (
            "probes.p.retrieval.static.left: no such file none.vec",
            probe(retrieval={"static": {"kind": "load", "left": "none.vec", "right": "r"}}),
        ),
        ("needs scikit-learn", probe(probes=["distances"], distances={"picture": "tsne"})),
        ("probes.p.maps.save: the cells of a study would write one folder", probe(maps={"save": "here"})),
        ("probes.p.words.dictionary: no such file none.txt", probe(words={"dictionary": "none.txt"})),
        ("cka.paraphrase: the cell has no second model", probe(cka={"paraphrase": "cell:second"})),
        ("cka.paraphrase: what a run starts from is read by that run only", probe(cka={"paraphrase": "cell:start"})),
        (
            "transfer.continual.before: what a run starts from is read by that run only",
            transfer(continual={"before": "cell:start"}),
        ),
        ("there is no such folder", probe(probes=["cka"], model2="./none")),
        (f"tiny: transfer.rotation.{NOT_DERIVED}", transfer(rotation={}, **FRENCH)),
        (f"tiny: transfer.continual.{NOT_DERIVED}", transfer(continual={}, **FRENCH)),
        (
            f"rotation.{NOT_DERIVED}",
            {**transfer(rotation={}, language="fr", features={"tune": "none"}), "second": MONOLINGUAL},
        ),
        (
            f"tiny: probes.p.{NOT_DERIVED}",
            {**TWO_TEXTS, **transfer(**FRENCH), **probe(probes=["cka"], language="fr")},
        ),
        (
            "rotation.pairs: parent is the source language itself: there is nothing to align",
            transfer(rotation={}, language="parent"),
        ),
    ],
)
def test_what_cannot_run_is_told_before(message, values, monkeypatch):
    monkeypatch.setattr("probes.study.checks.find_spec", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(message, lambda: check_cells([one(**values)]))


@pytest.mark.parametrize(
    ("message", "values"),
    [
        (r"pretrain.batch.length \(64\) is over the 48 positions", {"pretrain__batch": {"rows": 8, "length": 64}}),
        ("pretrain.sharing.layers: there is no layer 2, start has 1", {"pretrain__sharing": {"layers": [2]}}),
        ("none.txt: no such file", {"start__source": "lines:none.txt"}),
    ],
)
def test_a_start_that_cannot_run_is_told_before(message, values):
    base = {key: value for key, value in STARTED.items() if key != "source"}
    base |= {"start": {**FIRST, "source": SOURCE}, "pretrain": {**OWN, "source": SOURCE}}
    check_cells(graph_of(base)[1])
    refused(message, lambda: check_cells(graph_of(changed(base, **values))[1]))


NOWHERE = {"kind": "text", "left": "no", "right": "no"}
SEPARATE = {"pretrain__sharing": {"embeddings": "separate"}, "pretrain__vocabulary": {"kind": "joint", "size": 300}}


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("tuned has no effect on a cell without probes", {"probes": {}, "tasks": {"pos": {}}}),
        ("a cell has either tuned or second", {"second": {**FULL["pretrain"], "seed": 7}}),
        ("tuned.task: 'poss' must be 'nli', 'ner'", {"tuned": {"task": "poss"}}),
        ("tuned.seed: 'one' must be a valid integer", {"tuned": {"seed": "one"}}),
        ("tuned.*must be a section of keys", {"tuned": [1]}),
        ("tuned.epochs: unknown key", {"tuned": {"epochs": 3}}),
        ("tuned.length 500 exceeds the 48 tokens that the model reads", {"tuned": {"length": 500}}),
        ("tuned.features.tune: with none no body", {"tuned": {"search": {"features.tune": ["all", "none"]}}}),
        ("tuned.rotation: a rotation is no part of the model", {"transfer__rotation": {}}),
        ("tuned.best: the probes read one", {"tuned": {"best": 2, "search": {"fine_tune.rows": [4, 8]}}}),
        ("tuned.chosen_by: the model that probes read", {"tuned": {"chosen_by": "target"}}),
        ("tuned.*nowhere", {"tuned": {"train": "conllu:/nowhere"}}),
        ("tuned: the languages of the run have weights of their own", SEPARATE),
        ("words: inv is no language of the run", {"probes": {"w": {"probes": ["words"], "language": "inv"}}}),
        ("no such file no", {"tuned": {"language": "trans", "continual": {"pairs": {"x": NOWHERE}}}}),
        (SAME, {"grid": {"product": {"tuned.test_items": [5, 6]}}}),
        (r"tuned.fine_tune.epoch: unknown key; .*\(axis", {"grid": {"product": {"tuned.fine_tune.epoch": [5]}}}),
    ],
)
def test_a_fine_tuning_for_probes_that_cannot_be(message, values):
    refused(message, lambda: check_cells(graph_of(changed(BASE, **values))[1]))


@pytest.mark.parametrize("part", ["language ids", "layers"])
def test_a_body_with_parts_of_a_language_is_not_kept(part):
    ids, size = [np.arange(10)] * 2, ModelConfig(layers=1, heads=1, hidden=4, feed_forward=4)
    sharing = SharingConfig(layers=(1,) if part == "layers" else ())
    body = MaskedLM(size, sharing, ids=ids, size=10, positions=8, pad=1, language_ids=part == "language ids", seed=0)
    pretrained: Any = SimpleNamespace(model=body)
    refused(
        "^tuned: the model has parts of its own for each language",
        lambda: check_keep(TransferConfig(), pretrained, "tuned"),
    )


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
