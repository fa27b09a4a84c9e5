"""Studies whose cells cannot be built are refused, with the place of the wrong setting."""

from functools import partial
from typing import Any

import pytest
import yaml

from probes.results.measures import ALIGNMENT, PRETRAIN
from probes.study.cells import expand, load_study
from probes.study.config import StudyConfig
from synthlang.config import parse
from tests.refusals import refusal, refused
from tests.study_graphs import BASE, FULL, OWN, STARTED, graph_of
from tests.test_study_cells import LANGUAGES, A, B, cells_of, study_of
from tests.tiny import changed

LANG = {"pretrain.language": "trans"}
CKA = {"probes": ["cka"]}
SAME = ("grid", "duplicate")


def refused_in(call) -> tuple[str, str, str]:
    """Cell, keys and code of a refusal; the file, or the name of the study, is left out."""
    error = refusal(call)
    _, _, cell = str(error.path or "").partition(" cell ")
    return cell, ".".join(error.keys), error.code


# --- axes, and what they set ---


@pytest.mark.parametrize(
    ("axes", "cell", "keys", "code"),
    [
        ({B: [9, 9.0]}, "trans, steps=9.0", B, "type"),
        ({"pretrain.objective.alpha": [1, 1.0]}, "", *SAME),
        ({"pretrain.checkpoints.every": [2, 3]}, "", *SAME),
        ({"pretrain.objective.kind": ["mlm"], "pretrain.objective.alpha": [1.0, 5.0]}, "", *SAME),
        ({A: [3], "x": {"a": {}, "b": {A: 3}}}, "", *SAME),
        ({"pretrain.stepz": [5]}, "trans, stepz=5", "pretrain.stepz", "unknown"),
        ({"pretrain.source": ["x"]}, "trans, x", "pretrain.source", "conflict"),
        (
            {"pretrain.language": ["inv"], "pretrain.objective.kind": ["align_mlm"]},
            "inv, align_mlm",
            "pretrain.objective",
            None,
        ),
        ({"tasks.ner.length": [8]}, "trans, length=8", "tasks.ner.length", "missing"),
        ({"o": {"X": {"target_model.seed": 1}}}, "trans, X", "target_model.seed", "missing"),
        ({"adjust": [3]}, "trans, adjust=3", "adjust", "type"),
        ({"tasks": [{"pos": 5}]}, 'trans, tasks={"pos": 5}', "tasks.pos", "type"),
        ({f"{B}.q": [5]}, "trans, q=5", f"{B}.q", "type"),
        ({"transfer": [3]}, "trans, transfer=3", "transfer", "type"),
        ({"model": ["bert"]}, "trans, bert", "pretrain", "conflict"),
        ({"pretrain.base": ["no.yaml"]}, "trans, no", "pretrain.base", None),
    ],
)
def test_axes_that_make_no_cells(axes, cell, keys, code):
    found = refused_in(lambda: cells_of(product=LANGUAGES | axes))
    assert found == (cell, keys, code or found[2])


def test_messages_name_the_axis_that_sets_the_wrong_value():
    """By its name where it is not called by the key; the names that sections had first are the user's."""
    axes: dict[str, Any] = {"o": {"X": {"pretrain.objective.knd": 5}}}
    message = str(refusal(lambda: cells_of(product=LANGUAGES | axes)))
    assert message.startswith("tiny cell trans, X: pretrain.objective.knd: unknown key; did you mean kind? allowed: ")
    assert message.endswith("; correct the axis 'o', which sets pretrain.objective.knd")
    assert "axis" not in str(refusal(lambda: cells_of(product=LANGUAGES | {"pretrain.stepz": [5]})))
    message = str(refusal(lambda: cells_of(product=LANGUAGES | {"o": {"X": {"second.seed": 1}}})))
    assert message.endswith(
        "target_model.seed: this cell has no section target_model; add this section to the study, or exclude this "
        "cell; correct the axis 'o', which sets second.seed"
    )
    common: dict[str, Any] = {"o": {"X": {"transfer.length": 1}}}
    message = str(refusal(lambda: graph_of(changed(FULL, grid={"product": common}))))
    assert "tasks.pos.length: 1 must be" in message and message.endswith("the axis 'o', which sets transfer.length")


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"include": [LANG | {A: 4}, LANG | {A: 3}]}, ("grid.include.1", "duplicate")),
        ({"exclude": [{A: 3}]}, ("grid.exclude", "empty")),
    ],
)
def test_entries_that_make_no_cells(values, place):
    assert refused(lambda: cells_of(product=LANGUAGES | {A: [3]}, **values)) == place


@pytest.mark.parametrize(
    ("root", "keys", "code"),
    [
        ("transfer", "transfer", "type"),
        ("pretrain.base", "pretrain.base", None),
        ("pretrain", "pretrain", "conflict"),
        ("source", "pretrain.source", None),
    ],
)
def test_null_for_a_part(root, keys, code):
    found = refused_in(lambda: cells_of(product=LANGUAGES | {"x": {"yes": {}, "no": {root: None}}}))
    assert found == ("trans, no", keys, code or found[2])


@pytest.mark.parametrize("root", ["init_from", "probes.p"])
def test_null_for_a_part_that_the_study_does_not_have(root):
    assert refused(lambda: cells_of(product=LANGUAGES | {"x": {"yes": {}, "no": {root: None}}})) == SAME


@pytest.mark.parametrize(
    ("root", "name"),
    [("tasks", "a/b"), ("tasks", "x.y"), ("probes", "a b"), ("probes", ALIGNMENT), ("probes", PRETRAIN)],
)
def test_names_are_checked_wherever_they_stand(root, name):
    section = {"task": "pos"} if root == "tasks" else CKA
    assert refused(lambda: study_of(**{root: {name: section}}))[0] == root
    assert refused_in(lambda: cells_of(product=LANGUAGES | {root: [{name: section}]}))[1] == root
    if "." not in name:
        axes = {f"{root}.{name}": [section]}
        assert refused_in(lambda: cells_of(product=LANGUAGES | axes))[1] == f"{root}.{name}"


# --- studies ---


@pytest.mark.parametrize(
    ("values", "keys", "code"),
    [
        ({"seeds": []}, "seeds", "range"),
        ({"seeds": [0, 2**63]}, "seeds.1", "range"),
        ({"seeds": [1, 2, 1]}, "seeds.2", "duplicate"),
        ({"pretrain__checkpoints": {"every": 4, "archive": 6}}, "pretrain.checkpoints.archive", None),
        ({"name": "a/b"}, "name", None),
        ({"learned": {"sup": {"pos": 1, "poz": 80}}}, "learned.sup.poz", "unknown"),
        ({"tasks": {"ner": {"lenght": 3}}}, "tasks.ner.lenght", "unknown"),
        ({"target_model": {"seed": 1}}, "target_model.language", None),
        ({"adjust": {"model": "x", "pairs": {}}}, "adjust.model", "conflict"),
        ({"tasks": {"poz": {}}}, "tasks.poz.task", "missing"),
    ],
)
def test_settings_of_a_study(values, keys, code):
    found = refused_in(lambda: expand(study_of(**values)))
    assert found[1:] == (keys, code or found[2])


@pytest.mark.parametrize(
    ("values", "keys", "code"),
    [
        ({"pretrain__start__model": "bert"}, "pretrain.start.model", "conflict"),
        ({"grid": {"product": {"pretrain.start.model": ["a"]}}}, "pretrain.start.model", "conflict"),
        ({"grid": {"product": {"pretrain.start": [{"model": "a"}]}}}, "pretrain.start.model", "conflict"),
        ({"pretrain": None, "model": "bert"}, "init_from", "no_effect"),
        ({"pretrain__vocabulary": {"size": 400}}, "pretrain.vocabulary", "no_effect"),
    ],
)
def test_settings_of_an_initial_model(values, keys, code):
    base = {**STARTED, "pretrain": {**OWN, "start": {**OWN["start"]}}}
    found = refused_in(lambda: graph_of(changed(base, **values)))
    assert found[1:] == (keys, code or found[2])


@pytest.mark.parametrize(
    ("values", "keys", "code"),
    [
        ({"probes": {}, "tasks": {"pos": {}}}, "finetuned", "no_effect"),
        ({"target_model": {**FULL["pretrain"], "seed": 7}}, "finetuned", "conflict"),
        ({"finetuned": {"seed": "one"}}, "finetuned.seed", "type"),
        ({"grid": {"product": {"finetuned.test_items": [5, 6]}}}, *SAME),
        ({"grid": {"product": {"finetuned.fine_tune.epoch": [5]}}}, "finetuned.fine_tune.epoch", "unknown"),
    ],
)
def test_settings_of_a_fine_tuning_for_probes(values, keys, code):
    assert refused_in(lambda: graph_of(changed(BASE, **values)))[1:] == (keys, code)


def test_sections_by_the_names_that_they_had_first():
    """Each is a warning; of two names for one section there is no telling which counts."""
    base = {key: value for key, value in BASE.items() if key != "finetuned"}
    with pytest.warns(FutureWarning, match="finetuned"):
        study = parse(StudyConfig, {**base, "tuned": BASE["finetuned"]})
    assert expand(study) == graph_of(BASE)[1]
    assert refused(parse, StudyConfig, {**BASE, "tuned": {}}) == ("tuned", "duplicate")
    grid = {"product": {"tuned.seed": [0, 5]}}
    cells = graph_of({**BASE, "grid": grid})[1]
    assert [(cell.finetuned_seed, cell.labels) for cell in cells] == [
        (0, {"tuned.seed": "0"}),
        (5, {"tuned.seed": "5"}),
    ]


def test_what_is_set_for_all_tasks_reaches_all_or_is_refused(tmp_path):
    (tmp_path / "own.yaml").write_text("task: pos\ntrain_items: 70\nfine_tune: {epochs: 3}\n")

    def read(*assignments, **tasks):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(changed(FULL, tasks=tasks, transfer={})))
        return load_study(tmp_path / "study.yaml", [*assignments])[1][0].tasks

    tasks = read("transfer.train_items=30", "transfer.fine_tune.epochs=2", pos={}, ner={})
    assert {(task.train_items, task.fine_tune.epochs) for task in tasks.values()} == {(30, 2)}
    overridden: dict[str, Any] = {"ner": {}, "mine": {"base": "own.yaml"}}
    for assignment, keys in (
        ("transfer.train_items=30", "transfer.train_items"),
        ("transfer.fine_tune.epochs=2", "transfer.fine_tune.epochs"),
        ("transfer.fine_tune={epochs: 2, clip: 0.5}", "transfer.fine_tune.epochs"),
        ("transfer.fine_tune=null", "transfer.fine_tune"),
    ):
        assert refused_in(partial(read, assignment, **overridden)) == ("full", keys, "no_effect")
    # equal to its own, of another key, and set for the task as well
    read("transfer.train_items=70", **overridden)
    read("transfer.test_items=20", **overridden)
    tasks = read("transfer.train_items=30", "tasks.mine.train_items=30", **overridden)
    assert {task.train_items for task in tasks.values()} == {30}


def test_what_a_study_sets_for_all_tasks_is_not_overridden_by_the_base_of_one(tmp_path):
    (tmp_path / "own.yaml").write_text("task: pos\ntrain_items: 70\nfine_tune: {epochs: 3}\n")

    def read(transfer, grid=None, **mine):
        tasks = {"ner": {}, "mine": {"base": "own.yaml", **mine}}
        study = changed(FULL, tasks=tasks, transfer=transfer) | ({} if grid is None else {"grid": {"product": grid}})
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
        return load_study(tmp_path / "study.yaml", [])[1][0].tasks

    for transfer, keys in (
        ({"train_items": 100}, "transfer.train_items"),
        ({"fine_tune": {"epochs": 2, "clip": 0.5}}, "transfer.fine_tune.epochs"),
    ):
        assert refused_in(partial(read, transfer)) == ("full", keys, "no_effect")
    wrong = partial(read, {}, {"transfer.train_items": [30]})
    assert refused_in(wrong)[1:] == ("transfer.train_items", "no_effect")
    # equal, of another key, and where the task itself has it
    for transfer in ({"train_items": 70}, {"test_items": 20}):
        assert read(transfer)["mine"].train_items == 70
    assert read({"train_items": 100}, train_items=50)["mine"].train_items == 50
