"""Cells of a study: bases, tasks, probes and changes become checked configs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pretrain.config import PretrainConfig
from probes.models.names import CellModel
from probes.results.measures import ALIGNMENT
from probes.study.cell import Cell
from probes.study.cells import expand, load_study, selected
from probes.study.config import StudyConfig
from synthlang.config import parse
from synthlang.errors import InputError
from tests.refusals import refused
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


def test_tasks_are_changes_to_what_they_have_in_common():
    cell = one(
        transfer={"length": 32, "fine_tune": {"epochs": 3, "rows": 8}},
        tasks={"pos": {}, "ner": {"fine_tune": {"epochs": 5}}, "words": {"task": "pos", "length": 16}, "qa": None},
    )
    found = [(name, task.task, task.fine_tune.epochs, task.length) for name, task in cell.tasks.items()]
    assert found == [("pos", "pos", 3, 32), ("ner", "ner", 5, 32), ("words", "pos", 3, 16)]
    assert cell.tasks["ner"].fine_tune.rows == 8
    assert list(one(tasks={ALIGNMENT: {"task": "pos"}}).tasks) == [ALIGNMENT]


def test_no_task_and_the_usual_one():
    assert one(tasks={}).tasks == {}
    assert list(one(transfer={"task": "ner", "length": 48}).tasks) == ["ner"]
    for axis, tasks in (
        ({"transfer.task": ["pos", "ner"]}, [["pos"], ["ner"]]),
        ({"x": {"yes": {}, "no": {"tasks": {}}}}, [["pos"], []]),
    ):
        assert [list(cell.tasks) for cell in cells_of(product=LANGUAGES | axis)] == tasks


def test_axes_change_tasks_probes_and_whole_sections():
    pair = {"x": {"kind": "derived", "source": STUDY["source"], "left": "trans"}}
    axes = {
        "pretrain.language": ["trans"],
        "tasks.ner": [None, {"length": 20}],
        "probes.p.cka.sentences": [50, 60],
        "adjust": [None, {"pairs": pair}],
    }
    cells = expand(study_of(tasks={"pos": {}, "ner": {}}, probes={"p": {"probes": ["cka"]}}, grid={"product": axes}))
    assert [list(cell.tasks) for cell in cells[::4]] == [["pos"], ["pos", "ner"]]
    assert cells[4].tasks["ner"].length == 20
    assert [cell.probes["p"].cka.sentences for cell in cells[:3]] == [50, 50, 60]
    assert [cell.adjust and cell.adjust.model for cell in cells[:2]] == [None, CellModel.ORIGINAL]


def test_a_model_by_its_name():
    cell = one(source="", pretrain=None, model="bert-base-multilingual-cased", transfer={"language": "trans"})
    assert (cell.pretrain, cell.model) == (None, "bert-base-multilingual-cased")
    axes = {"m": {"own": {}, "theirs": {"pretrain": None, "source": None, "model": "bert"}}}
    data = changed(STUDY, grid={"product": axes}, pretrain__language="trans")
    assert [cell.model for cell in expand(parse(StudyConfig, data))] == [None, "bert"]


def test_names_that_values_alone_do_not_tell_apart():
    start = {"pretrain.language": "trans"}
    cells = cells_of(include=[start | {A: 1}, start | {"x": {"pretrain seed=1": {A: 2}}}])
    names = ["pretrain.language=trans, pretrain.seed=1", "pretrain.language=trans, x=pretrain seed=1"]
    assert [cell.name for cell in cells] == names
    full = "pretrain.language=trans, pretrain.seed=1"
    named = [{"x": {label: {**start, A: seed}}} for label, seed in (("trans, pretrain seed=1", 2), (full, 3))]
    names = [cell.name for cell in cells_of(include=[{**start, A: 1}, *named])]
    assert names == [f"{full} (1)", "x=trans, pretrain seed=1", f"{full} (2)"]


# --- cells that results would take for replicates ---


def test_two_entries_that_give_one_label_to_different_settings_are_refused():
    entries = [{"variant": {"x": {"pretrain.language": "trans", A: seed}}} for seed in (1, 2)]
    with pytest.raises(InputError, match="two cells have the same labels, variant=x, so their results cannot be"):
        cells_of(include=entries)
    apart = [{**entry, "pretrain.steps": 5 + number} for number, entry in enumerate(entries)]
    assert [cell.name for cell in cells_of(include=apart)] == ["x, steps=5", "x, steps=6"]
    # the later key wins, so the order counts; labels do not tell it
    whole, part = ("pretrain.objective", {"kind": "mlm"}), ("pretrain.objective.kind", "align_mlm")
    with pytest.raises(InputError, match=r"two cells have the same labels, .*, so their results cannot be"):
        cells_of(include=[{"pretrain.language": "trans", **dict(order)} for order in ([whole, part], [part, whole])])


def test_cells_that_differ_in_seeds_only_have_the_same_settings():
    """A label may mean something else beside another label."""
    x, other = ({"variant": {"x": {"pretrain.language": "trans", "pretrain.steps": n}}} for n in (5, 6))
    with pytest.raises(
        InputError, match="the label 'x' of variant has different settings in two cells, variant=x and variant=x, "
    ):
        cells_of(product=x, include=[{**other, "pretrain.seed": 7}])
    with pytest.raises(InputError, match=r"seed=1 and variant=x, pretrain\.seed=2, so they cannot be replicates"):
        cells_of(include=[{**x, "pretrain.seed": 1}, {**other, "pretrain.seed": 2}])
    same = cells_of(product=x, include=[{**x, "pretrain.seed": 7}])
    assert [cell.labels["variant"] for cell in same] == ["x", "x"]
    assert len(cells_of(product=x, include=[{**other, "pretrain.seed": 7, "pretrain.objective.kind": "xlm"}])) == 2
    chains = [[{"kind": "transliterate"}], [{"kind": "transliterate"}, {"kind": "invert"}]]
    cells = cells_of(product={"pretrain.language": [{"name": "x", "transforms": one} for one in chains]})
    assert len({tuple(cell.labels.items()) for cell in cells}) == 2, "two languages of one name"


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
    found = [(name, task.task, task.length, task.fine_tune.epochs) for name, task in cell.tasks.items()]
    assert found == [("pos", "pos", 24, 2), ("entities", "ner", 20, 2)]
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


def test_the_fingerprint_is_of_what_the_cells_are(tmp_path):
    def prints(*assignments, **values):
        path = write(tmp_path, **{**BASES, **values}, studies__s=BASED)
        return load_study(path, list(assignments))[0].fingerprint

    first, size = prints(), {**BASES["runs__size"], "batch": {"rows": 4, "length": 41}}
    shown = "title=other", "paper=align_mlm/table3", "keep=final", "claims=[align_mlm]", "scale=tiny", "pool=x"
    assert prints(*shown) == first
    others = [prints(changes) for changes in ("seeds=[1]", "name=other", "pretrain.seed=6")]
    assert len({first, *others, prints(runs__size=size)}) == 5
    assert prints(runs__align={"steps": 3}) == first  # a file that no cell reads


# --- --set ---


def test_set_reaches_every_key(tmp_path):
    (cell,) = based(
        tmp_path, "pretrain.steps=60", "tasks.entities.length=12", "probes.p.cka.sentences=20", "tasks.pos=null"
    )
    assert (cell.pretrain.steps, list(cell.tasks), cell.tasks["entities"].length) == (60, ["entities"], 12)
    assert cell.probes["p"].cka.sentences == 20
    (cell,) = based(tmp_path, "pretrain.base=../runs/mlm.yaml", "source=builtin:mini-english")
    assert (cell.pretrain.steps, cell.pretrain.source) == (9, "builtin:mini-english")
    with pytest.raises(InputError, match="stepz: unknown key; did you mean steps"):
        based(tmp_path, "pretrain.stepz=9")


def test_set_reaches_the_grid(tmp_path):
    grid = {"product": {A: [0, 1], "row": {"x": {B: 20}, "y": {B: 30}}}, "exclude": [{A: 0, "row": "x"}]}

    def found(*assignments):
        return [(cell.name, cell.pretrain.steps) for cell in based(tmp_path, *assignments, grid=grid)]

    def names(*assignments):
        return [name for name, _ in found(*assignments)]

    assert names() == ["pretrain seed=0, y", "pretrain seed=1, x", "pretrain seed=1, y"]
    assert names("grid.product.pretrain.seed=[1, 7]", "grid.exclude=[]")[-1] == "pretrain seed=7, y"
    assert names("grid.product.pretrain.seed=null", "grid.exclude=[]") == ["x", "y"]
    assert names("grid.product.row.x=null", "grid.exclude=[]") == ["pretrain seed=0, y", "pretrain seed=1, y"]
    assert refused(names, "grid.product.row.z=null") == ("--set grid.product.row", "unknown")
    assert refused(names, "grid.product.rows.x=null") == ("--set grid.product.rows", "unknown")
    assert names("grid.exclude.0.pretrain.seed=1") == ["pretrain seed=0, x", "pretrain seed=0, y", "pretrain seed=1, y"]
    changes = ["grid.product.row.y.pretrain.steps=77", "grid.product.row.z={pretrain.steps: 5}"]
    cells = found(*changes, "pretrain.optimizer.warmup_steps=1")
    assert cells[1:4] == [("pretrain seed=0, z", 5), ("pretrain seed=1, x", 20), ("pretrain seed=1, y", 77)]
    with pytest.raises(InputError, match=r"--set grid\.product\.pretrain\.seed"):
        names("grid.product.pretrain.seed")
    assert refused(names, "grid.product.pretrain.seed=3")[1] == "type"


def test_set_reaches_labels_with_dots(tmp_path):
    """If several labels begin alike, the longest existing one is used."""
    labels = {"0.25": {B: 20}, "0": {B: 25}, "0.5.x": {B: 30}, "Adjust.+more": {B: 35}, "0.75": {B: 39}}
    assignments = [
        *("0.25.pretrain.steps=21", "0.pretrain.seed=7", "0.5.x.pretrain.steps=31"),
        *("Adjust.+more.pretrain.seed=3", "0.75={pretrain.steps: 40}"),
    ]
    changes = [*(f"grid.product.dose.{one}" for one in assignments), "pretrain.optimizer.warmup_steps=1"]
    cells = based(tmp_path, *changes, grid={"product": {"dose": labels}})
    got = [(cell.labels["dose"], cell.pretrain.steps, cell.pretrain.seed) for cell in cells]
    seed = cells[0].pretrain.seed
    assert got == [("0.25", 21, seed), ("0", 25, 7), ("0.5.x", 31, seed), ("Adjust.+more", 35, 3), ("0.75", 40, seed)]


def test_a_key_that_an_axis_sets_everywhere_is_no_key_to_set(tmp_path):
    size = {"small": {"pretrain.model": {"hidden": 16, "heads": 2, "layers": 1}}, "base": {}}
    product = {"pretrain.language": ["trans"], "pretrain.seed": [0, 1], "size": size}
    path = write(tmp_path, studies__s=changed(STUDY, seeds=[0], grid={"product": product}))
    said = "has no effect, because the grid sets pretrain.seed in every cell; change the axis 'pretrain.seed' instead"
    with pytest.raises(InputError, match=said):
        load_study(path, ["pretrain.seed=9"])
    _, cells = load_study(path, ["grid.product.pretrain.seed=[9]", "pretrain.model.hidden=8"])
    assert {run_of(cell).seed for cell in cells} == {9}
    sizes = {cell.labels["size"]: run_of(cell).model.hidden for cell in cells}
    assert sizes == {"small": 16, "base": 8}, "one label of the axis leaves it"
    with pytest.raises(InputError, match=r"pretrain.model.hidden: has no effect, .*change the axis 'size' instead"):
        load_study(path, ["pretrain.model.hidden=8", "grid.product.size.base.pretrain.model={hidden: 32, heads: 2}"])
    load_study(path, ["pretrain.model={layers: 1}"])


# --- which cells ---


def cells_with(**axes: list[Any]) -> list[Cell]:
    data = changed(STUDY, pretrain__language="trans", pretrain__objective__kind="align_mlm", grid={"product": axes})
    return expand(parse(StudyConfig, data))


DOSES: dict[str, Any] = {"dose": {"0.5": {"pretrain.steps": 5}, "50%": {"pretrain.steps": 6}}}
ALPHA: dict[str, Any] = {"pretrain.objective.alpha": [1.0, 10.0, 100.0]}
SEEDS: dict[str, Any] = {"pretrain.seed": list(range(12))}


@pytest.mark.parametrize(
    ("axes", "text", "chosen"),
    [
        (ALPHA, "alpha=10", {"alpha=10.0"}),
        (ALPHA, "alpha=1e2", {"alpha=100.0"}),
        (ALPHA, "alpha=1", {"alpha=1.0"}),
        (ALPHA, "pretrain.objective.alpha=10.0", {"alpha=10.0"}),
        (DOSES, "dose=0.50", {"0.5"}),
        (SEEDS, "pretrain seed=1", {"pretrain seed=1"}),
        (SEEDS, "pretrain.seed=1", {"pretrain seed=1"}),
        (SEEDS, "seed=1", {"pretrain seed=1"}),
        (SEEDS, "=1", {"pretrain seed=1", "pretrain seed=10", "pretrain seed=11"}),
        (DOSES | ALPHA, "alpha=10, 50%", {"50%, alpha=10.0"}),
        (DOSES | ALPHA, "50%,alpha=1e1", {"50%, alpha=10.0"}),
    ],
)
def test_what_only_chooses(axes, text, chosen):
    cells = cells_with(**axes)
    assert selected(cells, (text,)) == chosen
    assert selected(cells, (text, cells[0].name)) == chosen | {cells[0].name}
    for cell in cells:  # the whole name of a cell stands for it
        assert selected(cells, (cell.name,)) == {cell.name}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "xlm",
            "matches no cell; choose AXIS=LABEL from language: trans; objective: mlm, align_mlm",
        ),
        ("", "--only : matches no cell"),
        ("kind=xlm", "choose AXIS=LABEL from objective: mlm, align_mlm"),
    ],
)
def test_only_what_is_not_there(text, message):
    with pytest.raises(InputError) as raised:
        selected(expand(parse(StudyConfig, STUDY), Path("study.yaml")), (text,))
    assert message in str(raised.value)
