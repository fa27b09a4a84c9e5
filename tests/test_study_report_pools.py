"""Studies of one report that are judged together: one scale, data and settings; never numbers of different data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.study.report.data import Study, read_study
from probes.study.report.folder import write_joined_report, write_report
from probes.study.report.pools import names_of_parts, pools
from probes.study.settings import DIFFERS
from synthlang.catalogue import load_yaml
from synthlang.files import read_json, write_json
from tests.report_study import Page, change, make_grid, read_rows, write_rows

AXES = {"objective": ["ALIGN-MLM", "MLM"], "transform": ["trans+inv"], "pretrain.seed": ["0", "1", "2"]}
CLAIM = """claims: [{id: better, claim: ALIGN-MLM is better., source: table 3, compare: [{where: {transform: trans+inv},
  measure: delta, left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]}]"""


def grid(folder: Path, source: str, *, falls: bool = False, **config: Any) -> Path:
    """Δ of ALIGN-MLM is smaller, or with ``falls`` larger, by some points."""
    axes = AXES | ({"objective": ["MLM", "ALIGN-MLM"]} if falls else {})
    make_grid(
        folder, axes, name=folder.name, fingerprint=folder.name * 3, jitter=0.1, config={"scale": "tiny", **config}
    )
    write_rows(folder, [row | {"source": source} for row in read_rows(folder)])
    return folder


def test_numbers_of_different_texts_are_judged_apart(tmp_path: Path) -> None:
    """One text agrees and the other differs; the mean of both would say something that neither does."""
    (tmp_path / "claims.yaml").write_text(CLAIM)
    config: dict[str, Any] = {"claims": [str(tmp_path / "claims.yaml")], "paper": "align_mlm/figure1"}
    folders = [
        grid(tmp_path / "mini", "builtin:mini-english", **config),
        grid(tmp_path / "wiki", "text:w", falls=True, **config),
    ]
    page = Page(write_joined_report(folders, tmp_path / "out").html.read_text())
    got = {(line["Scale"], line["Verdict"]) for line in page.table("Claim", "Scale", "Verdict")}
    assert got == {("tiny (mini)", "agrees in sign"), ("tiny (wiki)", "differs")}
    lines = page.table("Paper", "Ours|tiny (mini)", "Ours|tiny (wiki)")
    assert lines and all(x["Ours|tiny (mini)"] != x["Ours|tiny (wiki)"] for x in lines)
    assert {x["n|tiny (mini)"] for x in lines} == {"3 models"}


def test_studies_of_one_text_are_judged_together(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM)
    config: dict[str, Any] = {"claims": [str(tmp_path / "claims.yaml")]}
    folders = [grid(tmp_path / name, "builtin:mini-english", **config) for name in ("a", "b")]
    for folder, objective in zip(folders, AXES["objective"], strict=True):  # each ran one of the two
        write_rows(folder, [row for row in read_rows(folder) if f'"{objective}"' in row["labels"]])
    page = Page(write_joined_report(folders, tmp_path / "out").html.read_text())
    assert [line["Verdict"] for line in page.table("Claim", "Verdict", "Ours")] == ["agrees in sign"]


def test_numbers_of_other_runs_under_the_same_labels_are_judged_apart(tmp_path: Path) -> None:
    """As of a study that was run again with other settings, and another name."""
    (tmp_path / "claims.yaml").write_text(CLAIM)
    config: dict[str, Any] = {"claims": [str(tmp_path / "claims.yaml")]}
    folders = [
        grid(tmp_path / name, "builtin:mini-english", falls=name == "deep", **config) for name in ("plain", "deep")
    ]
    write_rows(folders[1], [row | {"transfer": "ef" * 8} for row in read_rows(folders[1])])
    page = Page(write_joined_report(folders, tmp_path / "out").html.read_text())
    got = {(line["Scale"], line["Verdict"]) for line in page.table("Claim", "Scale", "Verdict")}
    assert got == {("tiny (plain)", "agrees in sign"), ("tiny (deep)", "differs")}


def test_claims_that_cannot_be_read_are_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    folders = [grid(tmp_path / name, f"text:{name}", claims=[str(tmp_path / "gone.yaml")]) for name in ("a", "b")]
    said: list[str] = []
    write_report(folders[0], said.append)
    write_joined_report(folders, tmp_path / "out", said.append)
    assert len(said) == 2 and all(note.endswith("gone.yaml: no such file") for note in said)
    assert said[0] in (folders[0] / "report.md").read_text()


@pytest.mark.parametrize("what", ["transfer", "alignment", "probe"])
def test_what_is_another_run(what: str, tmp_path: Path) -> None:
    """Of a measurement under the same labels; labels of its own keep no study apart."""

    def made(name: str, run: str, label: str = "") -> Study:
        axes = AXES | ({"objective": [label]} if label else {})
        folder = make_grid(tmp_path / name, axes, layers=2, name="grid", fingerprint=name)
        cells = read_json(folder / "study.json")["cells"]
        stages = {"probe cka": run if what == "probe" else "ab" * 8}
        change(folder, cells=[cell | {"stages": {"pretrain": "cd" * 8, **stages}} for cell in cells])
        keys = {"transfer": "ab" * 8, "probe": "ab" * 8, "pretrain": "cd" * 8}
        keys |= {} if what == "probe" else {{"alignment": "probe"}.get(what, what): run}
        write_rows(folder, [row | keys for row in read_rows(folder)])
        return read_study(folder)

    one = made("a", "ab" * 8)
    assert [len(pools([one, two])) for two in (made("b", "ab" * 8), made("c", "ef" * 8))] == [1, 2]
    assert len(pools([one, made("d", "ef" * 8, "x")])) == 1


def test_two_studies_of_one_name_and_scale_stay_two_conditions(tmp_path: Path) -> None:
    folders = [grid(tmp_path / name, source) for name, source in (("a", "text:a"), ("b", "text:b"))]
    for folder in folders:
        held = read_study(folder)
        write_json(folder / "study.json", {**read_json(folder / "study.json"), "name": "tiny-x"})
        assert held.scale == "tiny"
    lab = grid(tmp_path / "c", "text:c")
    write_json(lab / "study.json", {**read_json(lab / "study.json"), "name": "lab-x", "config": {"scale": "lab"}})
    page = Page(write_joined_report([*folders, lab], tmp_path / "out").html.read_text())
    assert len(page.table("study", "scale", "Δ")) == 3 * 2


SAME = {"source": "text:data/en", "tasks": {"pos": {"train": "data/ud/en", "train_items": 9}, "ner": None}}


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ({"source": "text:./data//en/"}, True),
        ({"source": "text:data/fr"}, False),
        ({"source": None}, False),
        ({"source": None, "pretrain": {"languages": [{"name": "en", "source": "text:data/en"}, {"name": "fr"}]}}, True),
        ({"source": None, "pretrain": {"languages": [{"name": "en", "source": "text:data/de"}]}}, False),
        ({"source": None, "model": "some/model"}, False),
        ({"name": "other", "title": "T", "seeds": [4], "pretrain": {"base": ["x.yaml"], "steps": 5}}, True),
        ({"tasks": {"pos": {"base": "y.yaml", "train": "data/ud/en", "train_items": 50}}}, True),
        ({"tasks": {"pos": {"train": "data/ud/de"}}}, False),
        ({"tasks": {"pos": {"train": "data/ud/en", "test": "data/ud/de"}}}, False),
        ({"tasks": {"nli": {"train": "data/nli"}}}, True),
        ({"tasks": {}}, True),
        ({"tasks": {"pos": {}}, "transfer": {"train": "data/ud/en"}}, True),
        ({"adjust": {"pairs": {"es-en": {"left": "a", "right": "b"}}}}, True),
    ],
    ids=str,
)
def test_what_makes_data_the_same(other: dict[str, Any], together: bool, tmp_path: Path) -> None:
    make_grid(tmp_path / "a", AXES)
    held = read_study(tmp_path / "a")
    studies = [_study(held, "a", SAME), _study(held, "b", {**SAME, **other})]
    assert len(pools(studies)) == (1 if together else 2)
    assert list(pools(studies)) == (["lab"] if together else ["lab (a)", "lab (b)"])


BASE = {"source": "text:en", "tasks": {"pos": {"base": "a.yaml"}}}


@pytest.mark.parametrize(
    ("one", "two", "together"),
    [
        ({"tasks": {"pos": {"train": "ud/en", "dev": None}}}, {"tasks": {"pos": {"train": "./ud/en"}}}, True),
        ({"tasks": {"pos": {"train": "ud/en"}}}, {"tasks": {"pos": {"train": "ud/de"}}}, False),
        ({"tasks": {"pos": {"target": {"test": "ud/a"}}}}, {"tasks": {"pos": {"target": {"test": "ud/b"}}}}, False),
        ({"tasks": {"pos": {"train": "ud/en"}, "ner": {"train": "x"}}}, {"tasks": {"ner": {"train": "y"}}}, False),
        ({"adjust": {"pairs": {"p": {"left": "a"}}}}, {"adjust": {"pairs": {"p": {"left": "b"}}}}, False),
        ({"tuned": {"train": "a"}}, {"tuned": {"train": "b"}}, False),
        ({"tasks": {"pos": {"train": "ud/en"}}}, {}, True),
        ({"tasks": {"pos": {"test": DIFFERS}}}, {"tasks": {"pos": {"test": "ud/de"}}}, True),
        ({"tasks": {"pos": DIFFERS}}, {"tasks": {"pos": {"test": "ud/de"}}}, True),
    ],
    ids=str,
)
def test_data_of_base_files_counts(one: dict[str, Any], two: dict[str, Any], together: bool, tmp_path: Path) -> None:
    """What is written is the same in all of these; what is not recorded, or differs among cells, is as written."""
    make_grid(tmp_path / "a", AXES)
    held = read_study(tmp_path / "a")
    studies = [replace(_study(held, name, BASE), settings=settings) for name, settings in (("a", one), ("b", two))]
    assert len(pools(studies)) == (1 if together else 2)


def _study(held: Study, name: str, config: dict[str, Any]) -> Study:
    return replace(held, name=name, fingerprint=name, scale="lab", config=config, table=held.table.iloc[:0])


@pytest.mark.parametrize(
    ("size", "names"),
    [
        ("tiny", ["align_mlm-table2", "align_mlm-table3", "align_mlm-table5", "align_mlm-figure2"]),
        ("lab", ["align_mlm-table2", "align_mlm-table3", "align_mlm-table5", "align_mlm-trans+inv"]),
        ("tiny", ["emerging-figure6", "emerging-figure7"]),
        ("lab", ["emerging-figure6", "emerging-figure7"]),
        ("lab", ["cao2020-table2", "cao2020-figure2", "cao2020-table3"]),
    ],
    ids=str,
)
def test_studies_that_one_claim_needs_are_one_pool(size: str, names: list[str], tmp_path: Path) -> None:
    make_grid(tmp_path / "a", {"x": ["1"]})
    held = read_study(tmp_path / "a")
    studies = [_study(held, name, load_yaml(f"{name}/{size}", "studies")) for name in names]
    assert list(pools(studies)) == ["lab"]


def test_real_text_and_mini_english_of_one_size_are_two_pools(tmp_path: Path) -> None:
    make_grid(tmp_path / "a", {"x": ["1"]})
    held = read_study(tmp_path / "a")
    names = ["align_mlm-table3", "align_mlm-grid-text", "align_mlm-grid-treebank"]
    studies = [_study(held, name, load_yaml(f"{name}/tiny", "studies")) for name in names]
    assert len(pools(studies)) == 3


OBJECTIVES = ["MLM", "XLM", "DICT-MLM", "ALIGN-MLM"]
SETTINGS: dict[str, Any] = {
    "pretrain": {"steps": 1000, "seed": 0, "log_every": 10, "objective": {"kind": DIFFERS}},
    "tasks": {"pos": {"fine_tune": {"epochs": 2}, "train_items": 50}},
    "probes": {"cka": {"layers": [1, 2], "seed": 0}},
}
"""That cells have in common."""


def part(folder: Path, name: str, seeds: str, **more: Any) -> Path:
    """A study of some pretraining seeds; Δ depends on objective and seed, whatever the study."""
    axes = {"objective": OBJECTIVES, "pretrain.seed": list(seeds)}
    make_grid(folder / name, axes, name=name, fingerprint=name * 3, **more)
    rows = []
    for row in read_rows(folder / name):
        objective, seed = row["cell"].split(", ")
        number = OBJECTIVES.index(objective)
        delta = 10.0 + 3 * number + 0.5 * int(seed) * (-1) ** number
        run = f"{number:08x}{int(seed):08x}"
        rows.append(
            row | {"pretrain": run, "transfer": run, "delta": delta, "zs": 90 - delta, "alignment_all": 50 - number}
        )
    write_rows(folder / name, rows)
    return folder / name


def study(tmp_path: Path, name: str, seeds: str, config: dict[str, Any], settings: dict[str, Any]) -> Study:
    held = read_study(part(tmp_path, name, seeds))
    return replace(held, config=config, settings=settings, scale="tiny")


@pytest.mark.parametrize(
    ("change", "together"),
    [
        ({}, True),
        ({"pretrain": {**SETTINGS["pretrain"], "seed": 9, "log_every": 50}}, True),
        ({"pretrain": {**SETTINGS["pretrain"], "steps": 9000}}, False),
        ({"pretrain": {**SETTINGS["pretrain"], "objective": {"kind": "mlm"}}}, True),
        ({"pretrain": {**SETTINGS["pretrain"], "dictionary": {"coverage": 0.5}}}, True),
        ({"adjust": {"loss": "l2"}}, False),
        ({"second": {"steps": 5}}, False),
        ({"model": "some/model"}, False),
        ({"tasks": {"pos": {"fine_tune": {"epochs": 3}, "train_items": 50}}}, False),
        ({"tasks": {"ner": {"fine_tune": {"epochs": 3}}}}, True),
        ({"probes": {"cka": {"layers": [1], "seed": 0}}}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("full", [True, False], ids=["in full", "as written"])
def test_other_settings_are_apart(change: dict[str, Any], together: bool, full: bool, tmp_path: Path) -> None:
    """A part that only one has numbers of keeps none apart; neither does what does not change the numbers."""
    config = {"source": "text:en", "tasks": {"pos": {}}}
    both = SETTINGS, {**SETTINGS, **change}
    studies = [
        study(tmp_path, name, seeds, config if full else {**config, **held}, held if full else {})
        for name, seeds, held in zip("ab", ("012", "345"), both, strict=True)
    ]
    assert len(pools(studies)) == (1 if together else 2)
    assert names_of_parts(studies) == (["a + b"] * 2 if together else ["a", "b"])
    apart = [studies[0], _elsewhere(studies[1])]
    assert names_of_parts(apart) == ["a", "b"]
    assert "model" in change or len(pools(apart)) == 1, "labels of its own"


def _elsewhere(held: Study) -> Study:
    """With other labels."""
    return replace(
        held,
        table=held.table.assign(labels=held.table["labels"].map(lambda text: text[:-1] + ', "size": "big"}')),
        cells=tuple(replace(cell, labels={**cell.labels, "size": "big"}) for cell in held.cells),
    )


@pytest.mark.parametrize(("layers", "together"), [([1, 2], True), ([1], False)])
def test_settings_of_a_probe_count_where_both_have_it(layers: list[int], together: bool, tmp_path: Path) -> None:
    studies = []
    for name, seeds, held in (("a", "012", [1, 2]), ("b", "345", layers)):
        folder = part(tmp_path, name, seeds, layers=2)
        studies.append(replace(read_study(folder), settings={"probes": {"cka": {"layers": held}}}, scale="tiny"))
        assert set(studies[-1].table["probe"].unique()) == {"", "cka"}
    assert len(pools(studies)) == (1 if together else 2)


def test_changes_of_cells_count(tmp_path: Path) -> None:
    """The same label for another size of the model."""
    one, two = (
        replace(held, cells=tuple(replace(cell, overrides={"pretrain.model.hidden": hidden}) for cell in held.cells))
        for held, hidden in ((study(tmp_path, "a", "01", {}, {}), 64), (study(tmp_path, "b", "23", {}, {}), 128))
    )
    assert len(pools([one, two])) == 2
    alike = replace(
        two, cells=tuple(replace(c, overrides={"pretrain.model.hidden": 64, "pretrain.seed": 3}) for c in two.cells)
    )
    assert len(pools([one, alike])) == 1


def test_a_study_run_in_two_parts_is_read_like_the_whole(tmp_path: Path) -> None:
    whole = write_report(part(tmp_path, "w", "0123"))
    parts = [part(tmp_path, "a", "02"), part(tmp_path, "b", "123")]  # one seed is in both
    paths = [write_joined_report(held, tmp_path / out) for held, out in ((parts, "out"), (parts[::-1], "turned"))]
    both, other = (Page(path.html.read_text()) for path in paths)
    columns = "objective", "Seeds", "Δ"
    assert both.table(*columns) == other.table(*columns) == Page(whole.html.read_text()).table(*columns)
    assert {line["Seeds"] for line in both.table(*columns)} == {"4 models × 2 seeds"}
    for path in paths:
        assert "over n = 4 conditions of 16 models" in path.html.with_suffix(".md").read_text()
