"""Cells of a study: bases, tasks, probes and changes become checked configs; what cannot be is one line."""

import time
from typing import Any

import pytest
import yaml

from pretrain.config import PretrainConfig
from probes.study.cell import MODEL, Cell
from probes.study.cells import expand, load_study
from probes.study.config import StudyConfig
from probes.study.stage import graph
from synthlang.config import parse
from synthlang.errors import InputError
from tests.tiny import STUDY, changed

A, B, C = "pretrain.seed", "pretrain.steps", "transfer.fine_tune.epochs"
LANGUAGES = {"pretrain.language": ["trans"]}


def study_of(**values) -> StudyConfig:
    return parse(StudyConfig, changed(STUDY, **values))


def cells_of(**values):
    return expand(study_of(grid=values))


def one(**values):
    """The only cell of the tiny study with other settings and no grid."""
    plain = changed(STUDY, **values)
    plain.pop("grid")
    plain["pretrain"] = {"language": "trans", **(plain["pretrain"] or {})} if plain.get("pretrain") else None
    (cell,) = expand(parse(StudyConfig, plain))
    return cell


def run_of(cell: Cell) -> PretrainConfig:
    assert cell.pretrain is not None
    return cell.pretrain


def write(folder, **files):
    """YAML files; ``a__b`` is a/b.yaml."""
    for name, data in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
    return folder / "studies" / "s.yaml"


# --- what a cell has ---


def test_a_study_as_they_were():
    cells = expand(parse(StudyConfig, STUDY))
    assert [cell.name for cell in cells] == ["trans, mlm", "trans, align_mlm"]
    assert [run_of(cell).objective.kind for cell in cells] == ["mlm", "align_mlm"]
    assert all(run_of(cell).source == STUDY["source"] for cell in cells)
    assert [list(cell.tasks) for cell in cells] == [["pos"], ["pos"]]
    assert cells[0].tasks["pos"] is cells[1].tasks["pos"]  # parsed once
    assert (cells[0].probes, cells[0].second, cells[0].model, cells[0].adjust) == ({}, None, None, None)
    assert cells[1].labels == {"pretrain.language": "trans", "pretrain.objective.kind": "align_mlm"}


def test_overrides_reach_the_settings_and_leave_the_rest():
    first, second = cells_of(
        product={"pretrain.language": ["trans"], "pretrain.objective.kind": ["mlm"]},
        zip={"pretrain.optimizer.learning_rate": [0.5, 0.25], C: [3, 4]},
    )
    assert [c.pretrain.optimizer.learning_rate for c in (first, second)] == [0.5, 0.25]
    assert [c.tasks["pos"].fine_tune.epochs for c in (first, second)] == [3, 4]
    assert first.pretrain.optimizer.warmup_steps == 2
    assert first.tasks["pos"].length == 48


def test_tasks_are_changes_to_what_they_have_in_common():
    cell = one(
        transfer={"length": 32, "fine_tune": {"epochs": 3, "rows": 8}},
        tasks={"pos": {}, "ner": {"fine_tune": {"epochs": 5}}, "words": {"task": "pos", "length": 16}, "qa": None},
    )
    assert list(cell.tasks) == ["pos", "ner", "words"]
    assert [task.task for task in cell.tasks.values()] == ["pos", "ner", "pos"]
    assert [task.fine_tune.epochs for task in cell.tasks.values()] == [3, 5, 3]
    assert [task.length for task in cell.tasks.values()] == [32, 32, 16]
    assert cell.tasks["ner"].fine_tune.rows == 8


def test_no_task_and_the_usual_one():
    assert one(tasks={}).tasks == {}
    assert list(one(transfer={"task": "ner", "length": 48}).tasks) == ["ner"]
    cells = expand(study_of(grid={"product": LANGUAGES | {"transfer.task": ["pos", "ner"]}}))
    assert [list(cell.tasks) for cell in cells] == [["pos"], ["ner"]]


def test_axes_change_tasks_probes_and_whole_sections():
    pair = {"x": {"kind": "derived", "source": STUDY["source"], "left": "trans"}}
    axes = {
        "pretrain.language": ["trans"],
        "tasks.ner": [None, {"length": 20}],
        "probes.p.cka.sentences": [50, 60],
        "adjust": [None, {"pairs": pair}],
    }
    study = study_of(tasks={"pos": {}, "ner": {}}, probes={"p": {"probes": ["cka"]}}, grid={"product": axes})
    cells = expand(study)
    assert [list(cell.tasks) for cell in cells[::4]] == [["pos"], ["pos", "ner"]]
    assert cells[4].tasks["ner"].length == 20
    assert [cell.probes["p"].cka.sentences for cell in cells[:3]] == [50, 50, 60]
    assert [cell.adjust and cell.adjust.model for cell in cells[:2]] == [None, MODEL]


def test_a_model_by_its_name():
    cell = one(source="", pretrain=None, model="bert-base-multilingual-cased", transfer={"language": "trans"})
    assert (cell.pretrain, cell.model) == (None, "bert-base-multilingual-cased")
    axes = {"m": {"own": {}, "theirs": {"pretrain": None, "source": None, "model": "bert"}}}
    data = changed(STUDY, grid={"product": axes}, pretrain__language="trans")
    assert [cell.model for cell in expand(parse(StudyConfig, data))] == [None, "bert"]


# --- base files ---

BASES: dict[str, Any] = {
    "runs__mlm": {
        "objective": {"kind": "mlm"},
        "steps": 9,
        "language": "trans",
        "model": {"layers": 2, "hidden": 8},
        "optimizer": {"warmup_steps": 1},
    },
    "runs__size": {"base": "deep/more.yaml", "steps": 50, "batch": {"rows": 4, "length": 40}, "source": "lines:none"},
    "runs__deep__more": {"seed": 5, "steps": 1, "optimizer": {"warmup_steps": 3}},
    "runs__align": {"objective": {"kind": "align_mlm"}},
    "tasks__tiny": {"length": 24, "fine_tune": {"epochs": 2}},
    "tasks__ner": {"base": "tiny.yaml", "task": "ner"},
    "probes__p": {"probes": ["cka"], "cka": {"sentences": 70}},
}
BASED = {
    "name": "based",
    "source": STUDY["source"],
    "pretrain": {"base": ["../runs/mlm.yaml", "../runs/size.yaml"], "model": {"hidden": 16, "heads": 2}},
    "transfer": {"base": "../tasks/tiny.yaml"},
    "tasks": {"pos": {}, "entities": {"base": "../tasks/ner.yaml", "length": 20}},
    "probes": {"p": {"base": "../probes/p.yaml", "seed": 3}},
}


def based(folder, *assignments, **values):
    path = write(folder, **BASES, studies__s=changed(BASED, **values))
    return load_study(path, list(assignments))[1]


def test_bases_are_read_from_the_studys_folder_and_its_keys_stand_above(tmp_path):
    (cell,) = based(tmp_path)
    run = cell.pretrain
    assert (run.steps, run.seed, run.batch.length, run.optimizer.warmup_steps) == (50, 5, 40, 3)
    assert (run.model.layers, run.model.hidden, run.model.heads) == (2, 16, 2)
    assert run.source == STUDY["source"]  # that of a study is meant for the data of its bases too
    assert [(name, t.task, t.length, t.fine_tune.epochs) for name, t in cell.tasks.items()] == [
        ("pos", "pos", 24, 2),
        ("entities", "ner", 20, 2),
    ]
    assert (cell.probes["p"].cka.sentences, cell.probes["p"].seed) == (70, 3)


def test_an_axis_of_bases_leaves_the_studys_keys_on_top(tmp_path):
    product: dict[str, Any] = {"pretrain.base": [["../runs/mlm.yaml"], ["../runs/mlm.yaml", "../runs/size.yaml"]]}
    product["pretrain.optimizer.warmup_steps"] = [0]
    first, second = based(tmp_path, grid={"product": product})
    assert (first.pretrain.steps, second.pretrain.steps) == (9, 50)
    assert first.pretrain.model.hidden == second.pretrain.model.hidden == 16
    assert second.pretrain.optimizer.warmup_steps == 0
    assert (first.name, second.name) == ("mlm, warmup_steps=0", "mlm+size, warmup_steps=0")


def test_changes_before_and_after_a_base_in_the_order_of_the_axes(tmp_path):
    row = {"pretrain.base.0": "../runs/align.yaml", "pretrain.language": "trans"}
    axes = {A: [8], "row": {"ALIGN": row}, "pretrain.model": [{"hidden": 24, "heads": 3}]}
    (cell,) = based(tmp_path, grid={"product": axes})
    assert (cell.pretrain.objective.kind, cell.pretrain.seed, cell.pretrain.steps) == ("align_mlm", 8, 50)
    assert (cell.pretrain.model.hidden, cell.pretrain.model.layers) == (24, 8)  # a mapping replaces the whole
    axes = {"tasks.pos": [{"base": "../tasks/ner.yaml", "task": "pos"}], "tasks.pos.length": [22]}
    (cell,) = based(tmp_path, grid={"product": axes})
    assert (cell.tasks["pos"].task, cell.tasks["pos"].length) == ("pos", 22)


def test_languages_with_sources_of_their_own_keep_them(tmp_path):
    languages = [{"name": "en", "source": "lines:en"}, {"name": "de", "source": "lines:de"}]
    study = {"name": "n", "source": "lines:x", "tasks": {}, "pretrain": {"base": "../runs/n.yaml"}}
    path = write(tmp_path, runs__n={"languages": languages, "vocabulary": {"kind": "joint"}}, studies__s=study)
    (cell,) = load_study(path, [])[1]
    assert [member.source for member in run_of(cell).all_languages] == ["lines:en", "lines:de"]
    assert run_of(cell).source == ""


# --- --set ---


def test_set_reaches_every_key(tmp_path):
    (cell,) = based(
        tmp_path, "pretrain.steps=60", "tasks.entities.length=12", "probes.p.cka.sentences=20", "tasks.pos=null"
    )
    assert (cell.pretrain.steps, list(cell.tasks), cell.tasks["entities"].length) == (60, ["entities"], 12)
    assert cell.probes["p"].cka.sentences == 20
    (cell,) = based(tmp_path, "pretrain.base=../runs/mlm.yaml", "source=builtin:mini-english")
    assert (cell.pretrain.steps, cell.pretrain.source) == (9, "builtin:mini-english")


def test_set_reaches_the_grid(tmp_path):
    grid = {"product": {A: [0, 1], "row": {"x": {B: 20}, "y": {B: 30}}}, "exclude": [{A: 0, "row": "x"}]}

    def names(*assignments):
        return [cell.name for cell in based(tmp_path, *assignments, grid=grid)]

    assert names() == ["pretrain seed=0, y", "pretrain seed=1, x", "pretrain seed=1, y"]
    assert names("grid.product.pretrain.seed=[1, 7]", "grid.exclude=[]")[-1] == "pretrain seed=7, y"
    assert names("grid.product.pretrain.seed=null", "grid.exclude=[]") == ["x", "y"]
    assert names("grid.exclude.0.pretrain.seed=1") == ["pretrain seed=0, x", "pretrain seed=0, y", "pretrain seed=1, y"]
    cells = based(tmp_path, "grid.product.row.y.pretrain.steps=77", "grid.product.row.z={pretrain.steps: 5}",
                  "pretrain.optimizer.warmup_steps=1", grid=grid)  # fmt: skip
    assert [(cell.name, cell.pretrain.steps) for cell in cells[1:4]] == [
        ("pretrain seed=0, z", 5),
        ("pretrain seed=1, x", 20),
        ("pretrain seed=1, y", 77),
    ]
    with pytest.raises(InputError, match=r"--set grid\.product\.pretrain\.seed"):
        names("grid.product.pretrain.seed")
    with pytest.raises(InputError, match="must be a list of values"):
        names("grid.product.pretrain.seed=3")


def test_set_reaches_labels_with_dots(tmp_path):
    """Of several that begin alike it is the longest that there is."""
    labels = {"0.25": {B: 20}, "0": {B: 25}, "0.5.x": {B: 30}, "Adjust.+more": {B: 35}}
    cells = based(
        tmp_path, "grid.product.dose.0.25.pretrain.steps=21", "grid.product.dose.0.pretrain.seed=7",
        "grid.product.dose.0.5.x.pretrain.steps=31", "grid.product.dose.Adjust.+more.pretrain.seed=3",
        "grid.product.dose.0.75={pretrain.steps: 40}", "pretrain.optimizer.warmup_steps=1",
        grid={"product": {"dose": {**labels, "0.75": {B: 39}}}},
    )  # fmt: skip
    got = [(cell.labels["dose"], cell.pretrain.steps, cell.pretrain.seed) for cell in cells]
    seed = cells[0].pretrain.seed
    assert got == [("0.25", 21, seed), ("0", 25, 7), ("0.5.x", 31, seed), ("Adjust.+more", 35, 3), ("0.75", 40, seed)]


def test_set_of_a_plain_study(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY))
    study, cells = load_study(path, ["seeds=[4]", "pretrain.steps=9", "transfer.length=20"])
    assert (study.seeds, run_of(cells[0]).steps, cells[0].tasks["pos"].length) == ([4], 9, 20)
    with pytest.raises(InputError, match="stepz: unknown key; did you mean steps"):
        load_study(path, ["pretrain.stepz=9"])


# --- names and fingerprints ---


def test_names_that_values_alone_do_not_tell_apart():
    cells = cells_of(
        include=[{"pretrain.language": "trans", A: 1}, {"pretrain.language": "trans", "x": {"pretrain seed=1": {A: 2}}}]
    )
    assert [cell.name for cell in cells] == [
        "pretrain.language=trans, pretrain.seed=1",
        "pretrain.language=trans, x=pretrain seed=1",
    ]


def test_the_fingerprint_is_of_what_the_cells_are(tmp_path):
    def prints(*assignments, **values):
        path = write(tmp_path, **{**BASES, **values}, studies__s=BASED)
        study, _ = load_study(path, list(assignments))
        return study.fingerprint

    first = prints()
    assert prints("title=other", "paper=align_mlm/table3", "keep=final", "claims=[align_mlm]", "scale=tiny") == first
    assert len({first, prints("seeds=[1]"), prints("name=other"), prints("pretrain.seed=6"),
                prints(runs__size={**BASES["runs__size"], "batch": {"rows": 4, "length": 41}})}) == 5  # fmt: skip
    assert prints(runs__align={"steps": 3}) == first  # a file that no cell reads


# --- 1,000 cells ---


def test_a_thousand_cells_expand_and_hash_quickly():
    axes = {
        "pretrain.language": ["trans", "trans+inv"],
        A: list(range(50)),
        "pretrain.dictionary.coverage": [i / 10 for i in range(1, 11)],
    }
    study = study_of(
        tasks={"pos": {}, "ner": {}}, probes={"p": {"probes": ["words"]}}, seeds=[0, 1, 2], grid={"product": axes}
    )
    start = time.process_time()
    cells = expand(study)
    whole = graph(cells, study.seeds)
    took = time.process_time() - start
    assert (len(cells), len(whole.of_cell), len(whole.stages)) == (1000, 1000, 9000)
    assert study.fingerprint
    assert took < 5
