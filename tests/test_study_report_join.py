"""Several studies in one report: what is put together, what counts once, what is judged together and what apart."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from probes.claims.spec import Quantity
from probes.report.data import Study, read_study
from probes.report.folder import write_joined_report, write_report
from probes.report.join import names_of_parts, pools, results_of
from tests.report_study import (
    Report,
    cells_of,
    change,
    change_rows,
    joined,
    make_grid,
    make_study,
    read_rows,
    report,
    write_measures,
    write_rows,
)

SEEDS = {"pretrain.seed": ["0", "1", "2"]}
AXES = {"objective": ["ALIGN-MLM", "MLM"], "transform": ["trans", "trans+inv"], **SEEDS}
SIDES = "left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}"
PROBE = '"probe:cka.same_layer.debiased"'


def compared(name: str, sentence: str, where: str, measure: str, rest: str) -> str:
    """A claim of one comparison."""
    compare = f"compare: [{{where: {{{where}}}, measure: {measure}, {rest}}}]"
    return f"- {{id: {name}, claim: {sentence}, source: x, {compare}}}\n"


ABOVE = "relation: greater, left: {where: {}}, value: 0"
CLAIMS = "claims:\n" + "".join([
    compared("whole", "Of the whole.", "transform: trans", "delta", f"{SIDES}, relation: less"),
    compared("worse", "MLM is better.", "transform: trans", "delta", f"{SIDES}, relation: greater"),
    compared("gone", "Not run.", "transform: perm", "delta", f"{SIDES}, relation: less"),
    compared("probe", "Of its probe.", "transform: trans", PROBE, f"{SIDES}, relation: less"),
    compared("other", "Of the other.", "transform: trans", "delta", "relation: less, left: {where: {objective: "
             "ALIGN-MLM, parallel: 0%}}, right: {where: {objective: TLM, parallel: 1%}}"),
    compared("mean", "Of both.", "objective: ALIGN-MLM", "delta", ABOVE),
    compared("aligned", "Of the alignment.", "objective: ALIGN-MLM", "alignment_all", ABOVE),
    compared("probed", "Of all probes.", "objective: ALIGN-MLM", PROBE, ABOVE),
    "- {id: layers, claim: Of layers., source: x, correlate: {where: {objective: ALIGN-MLM, transform: trans}, "
    f"layer: each, x: {{measure: {PROBE}}}, y: {{measure: {PROBE}}}, over: [layer], expect: positive}}}}\n",
])  # fmt: skip


@pytest.fixture
def claims(tmp_path: Path) -> str:
    """The path of the claims, as a study names it."""
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    return str(tmp_path / "claims.yaml")


def verdicts(made: Report) -> dict[str, tuple[str, ...]]:
    """Claim → verdict, ours and n, of those that were run."""
    return {line.pop("Claim"): tuple(line.values()) for line in made.file("claims")}


def probed(folder: Path) -> None:
    """Each cell has a probe and an alignment of its own run."""
    cells = cells_of(folder)
    for cell in cells:
        cell["stages"]["probe cka"] = cell["stages"]["pretrain"][::-1]
    change(folder, cells=cells)
    change_rows(folder, lambda row, _: {"probe": row["pretrain"][::-1]})


def measures_of(folder: Path) -> list[list[str]]:
    return list(csv.reader((folder / "measures.csv").read_text().splitlines()))[1:]


def with_runs_of(folder: Path, whole: Path, more: dict[str, str]) -> None:
    """Add the ALIGN-MLM runs of ``whole``, with ``more`` labels."""
    mine, named = cells_of(folder), {}
    for cell in cells_of(whole):
        if cell["labels"]["objective"] == "ALIGN-MLM":
            labels, name = cell["labels"] | more, ", ".join([cell["name"], *more.values()])
            mine.append(cell | {"labels": labels, "name": name})
            named[cell["name"]] = name, json.dumps(labels)
    change(folder, cells=mine)
    rows: list[dict[str, Any]] = [*read_rows(folder)]
    for row in read_rows(whole):
        if row["cell"] in named:
            rows.append({**row, **dict(zip(("cell", "labels"), named[row["cell"]], strict=True))})
    write_rows(folder, rows)
    added = [[*named[row[0]], *row[2:]] for row in measures_of(whole) if row[0] in named]
    write_measures(folder, [*measures_of(folder), *added])


def keep(folder: Path, where: Any) -> None:
    """Only the rows of these labels."""
    write_rows(folder, [dict(row) for row in read_rows(folder) if where(json.loads(row["labels"]))])


# --- put together ---


def part_of(whole: Path, folder: Path, cells: list[dict[str, Any]], **values: Any) -> Path:
    """A folder with these cells of a study, their rows and their measures."""
    folder.mkdir()
    record = json.loads((whole / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(record | {"cells": cells} | values))
    mine = {cell["name"] for cell in cells if cell["status"] == "done"}
    write_rows(folder, [dict(row) for row in read_rows(whole) if row["cell"] in mine])
    write_measures(folder, [row for row in measures_of(whole) if row[0] in mine])
    return folder


def test_parts_of_one_study_are_put_together(tmp_path: Path) -> None:
    """Two folders, each with half of the cells done, give the tables of the whole study."""
    whole = make_grid(tmp_path / "whole", AXES, layers=2)
    gone: dict[str, Any] = {"status": "pending", "stages": {}, "run": None}
    parts = [
        part_of(whole, tmp_path / f"part{n}", [c if i % 2 == n else c | gone for i, c in enumerate(cells_of(whole))])
        for n in range(2)
    ]
    one, both = report(whole), joined(parts, tmp_path / "joined")
    for name in ("scores-1-pos", "seeds", "cells", "by-layer", "correlations"):
        assert one.file(name) == both.file(name), name
    assert "12 cells; objective" in both.text


def test_a_report_is_the_same_when_joined_alone(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "a", curves="")
    paths = write_report(folder), write_joined_report([folder], tmp_path / "out")
    one, two = ({path.name: path.read_bytes() for path in report.tables.iterdir()} for report in paths)
    assert one == two and len(one) > 8


def test_a_cell_that_failed_here_and_is_done_there_is_done(tmp_path: Path) -> None:
    for name, status in (("a", "failed"), ("b", "done")):
        (cell,) = cells_of(make_grid(tmp_path / name, {"transform": ["trans"]}))
        change(tmp_path / name, cells=[cell | {"status": status, "error": "killed" if status == "failed" else None}])
    write_rows(tmp_path / "a", [])
    text = joined([tmp_path / "a", tmp_path / "b"], tmp_path / "out").text
    assert "1 cell; " in text and "killed" not in text and "10.5" in text


def test_studies_of_two_scales_stand_side_by_side(tmp_path: Path) -> None:
    folders = [
        make_grid(
            tmp_path / scale,
            AXES,
            name=f"{scale}-table",
            fingerprint=scale * 4,
            config={"scale": scale, "pool": "table"},
        )
        for scale in ("tiny", "lab")
    ]
    table = joined(folders, tmp_path / "out").table("scale", "objective", "transform", "Δ")
    assert [line["scale"] for line in table] == ["tiny"] * 4 + ["lab"] * 4
    other = make_grid(tmp_path / "c", {"anchors": ["Default", "No anchors"]}, name="anchors", fingerprint="c")
    table = joined([*folders, other], tmp_path / "out").table("study", "scale", "anchors", "Δ")
    assert {line["study"] for line in table} == {"table", "anchors"} and len(table) == 10
    assert {line["anchors"] for line in table} == {"–", "Default", "No anchors"}


def test_runs_that_two_studies_share_count_once(tmp_path: Path, claims: str) -> None:
    """The second study has the runs of the first and one objective more; claims and counts are those of all runs."""
    axes = {**AXES, "objective": ["ALIGN-MLM", "MLM", "XLM"]}
    config = {"claims": [claims], "scale": "tiny", "pool": "both"}
    whole = make_grid(tmp_path / "b", axes, layers=2, jitter=0.1, fingerprint="b" * 16, config=config)
    probed(whole)  # so that its measures are known to be the same
    part = part_of(whole, tmp_path / "a", cells_of(whole)[:12], name="first", fingerprint="a" * 16)
    alone, both = report(whole), joined([part, whole], tmp_path / "both")
    assert "18 cells; " in both.text
    assert "grid: 24 of 36 rows of results are the same runs as in first (equal fingerprints" in both.text
    for name in ("claims", "correlations"):
        assert both.file(name) == alone.file(name), name
    assert len(both.file("seeds")) == 36 and len(both.file("by-layer")) == 6 * 2
    change_rows(whole, lambda *_: {"transfer": ""})
    text = joined([part, whole], tmp_path / "both").text
    assert "the same runs" not in text, "without fingerprints nothing is known to be the same"


# --- claims and papers ---


def grid(folder: Path, *, scale: str = "tiny", falls: bool = False, **more: Any) -> Path:
    """Δ of ALIGN-MLM is smaller, or with ``falls`` larger, by some points."""
    axes = AXES | ({"objective": ["MLM", "ALIGN-MLM"]} if falls else {})
    columns: dict[str, Any] = {name: more.pop(name) for name in ("source", "transfer") if name in more}
    config = {"scale": scale, "pool": "both", **more}
    make_grid(folder, axes, name=folder.name, fingerprint=folder.name * 3, jitter=0.1, config=config)
    change_rows(folder, lambda *_: columns)
    return folder


@pytest.mark.parametrize(
    ("one", "two", "names"),
    [
        ({"pool": "one"}, {"pool": "two"}, ("tiny (one)", "tiny (two)")),
        ({"pool": ""}, {"pool": ""}, ("tiny (a)", "tiny (b)")),
        ({}, {"scale": "lab"}, ("tiny", "lab")),
    ],
    ids=["other pools", "no pool", "other scales"],
)
def test_numbers_of_other_pools_and_scales_are_judged_apart(
    one: dict[str, Any], two: dict[str, Any], names: tuple[str, str], tmp_path: Path, claims: str
) -> None:
    """One agrees and the other differs; the mean of both would say something that neither does."""
    config: dict[str, Any] = {"claims": [claims], "paper": "align_mlm/figure1"}
    folders = [grid(tmp_path / "a", **one, **config), grid(tmp_path / "b", falls=True, **two, **config)]
    made = joined(folders, tmp_path / "out")
    table = made.table("Claim", "Scale", "Verdict")
    got = {line["Scale"]: line["Verdict"] for line in table if line["Claim"].startswith("Of the whole.")}
    assert got == dict(zip(names, ("replicates", "does not replicate"), strict=True))
    lines = made.table("Paper", *(f"Ours|{name}" for name in names))
    assert lines and all(len({line[f"Ours|{name}"] for name in names}) == 2 for line in lines)
    assert {line[f"n|{name}"] for line in lines for name in names} == {"3 models"}


def test_studies_of_one_pool_are_judged_together(tmp_path: Path, claims: str) -> None:
    folders = [grid(tmp_path / name, source="builtin:mini-english", claims=[claims]) for name in ("a", "b")]
    for folder, objective in zip(folders, AXES["objective"], strict=True):  # each ran one of the two
        keep(folder, lambda labels, own=objective: labels["objective"] == own)
    assert verdicts(joined(folders, tmp_path / "out"))["Of the whole. x"][0] == "replicates"


def test_two_studies_of_one_name_and_scale_stay_two_conditions(tmp_path: Path) -> None:
    folders = [grid(tmp_path / name, pool="") for name in ("a", "b")]
    folders.append(grid(tmp_path / "c", pool="", scale="lab"))
    for folder, name in zip(folders, ("tiny-x", "tiny-x", "lab-x"), strict=True):
        change(folder, name=name)
    assert len(joined(folders, tmp_path / "out").table("study", "scale", "Δ")) == 3 * 4


# --- runs that two studies have under labels of their own ---


@pytest.fixture
def both(tmp_path: Path, claims: str) -> tuple[Path, Path]:
    """Two objectives on two languages; and another objective, beside one of these with a label more."""
    config: dict[str, Any] = {"claims": [claims], "scale": "tiny", "pool": "both", "paper": "align_mlm/table3"}
    whole = make_grid(tmp_path / "whole", AXES, layers=5, jitter=0.1, name="whole", fingerprint="w" * 16, config=config)
    axes = {"objective": ["TLM"], "transform": ["trans"], "parallel": ["1%"], **SEEDS}
    other = make_grid(tmp_path / "other", axes, layers=5, jitter=0.3, name="other", fingerprint="o" * 16, config=config)
    for folder in (whole, other):
        probed(folder)
    with_runs_of(other, whole, {"parallel": "0%"})
    return whole, other


def test_each_study_is_judged_as_it_is_alone(both: tuple[Path, Path], tmp_path: Path) -> None:
    alone = [report(folder) for folder in both]
    whole, other = map(verdicts, alone)
    assert "Of the other. x" not in whole and "Of the whole. x" not in other, "each has a claim of its own"
    for order in (both, both[::-1]):
        made = joined(order, tmp_path / "out")
        assert verdicts(made) == other | whole
        assert made.file("paper-1-align-mlm-table3") == alone[0].file("paper-1-align-mlm-table3")


def test_the_label_set_of_more_seeds_stands_for_both(both: tuple[Path, Path], tmp_path: Path) -> None:
    whole, other = both
    keep(other, lambda labels: labels["pretrain.seed"] != "2")
    alone = verdicts(report(whole))["Of both. x"]
    for order in (both, both[::-1]):
        assert verdicts(joined(order, tmp_path / "out"))["Of both. x"] == alone


def test_a_run_under_two_label_sets_is_one_condition(both: tuple[Path, Path], tmp_path: Path) -> None:
    """The mean is over the two languages; with trans+inv in one of the studies only it would be over three."""
    keep(both[1], lambda labels: labels["transform"] == "trans")
    for order in (both, both[::-1]):
        text = joined(order, tmp_path / "out").text
        line = next(line for line in text.splitlines() if line.startswith("| mean"))
        assert line.count("over trans, trans+inv") == 1 and "left out" not in line and "0%" not in line


def test_a_run_that_one_study_lists_twice_is_one_condition(both: tuple[Path, Path], tmp_path: Path) -> None:
    """The rule is the same within a study and across studies."""
    whole, other = both
    with_runs_of(other, whole, {"parallel": "25%"})
    keep(whole, lambda labels: labels["objective"] != "ALIGN-MLM")
    text = joined(both, tmp_path / "out").text
    line = next(line for line in text.splitlines() if line.startswith("| mean"))
    assert "over trans, trans+inv" in line


def test_an_alignment_that_the_first_study_lacks_is_taken_from_the_other(both: tuple[Path, Path]) -> None:
    change_rows(both[1], lambda *_: {"alignment_all": "", "probe": ""})
    write_measures(both[1], [])
    first, second = (results_of([read_study(folder) for folder in order]) for order in (both, both[::-1]))
    for measure in ("alignment_all", "probe:cka.same_layer.debiased"):
        wanted = Quantity({"objective": "ALIGN-MLM", "transform": "trans"}, measure)
        assert first.series(wanted) == second.series(wanted) != {}


# --- pools ---


def pool_of(folder: Path, name: str, **config: str) -> Study:
    return read_study(make_grid(folder / name / config.get("pool", ""), {"x": ["1"]}, name=name, config=config))


def test_a_pool_is_named_by_its_scale_and_if_needed_by_its_key(tmp_path: Path) -> None:
    one, two = pool_of(tmp_path, "a", scale="lab", pool="p"), pool_of(tmp_path, "b", scale="lab", pool="p")
    alone, tiny = pool_of(tmp_path, "c", scale="lab"), pool_of(tmp_path, "d", scale="tiny", pool="p")
    assert pools([one, two]) == {"lab": [one, two]}
    assert pools([one, alone, two, tiny]) == {"lab (p)": [one, two], "lab (c)": [alone], "tiny": [tiny]}
    assert names_of_parts([one, two, alone]) == ["p", "p", "c"] and names_of_parts([one, alone]) == ["a", "c"]


OBJECTIVES = ["MLM", "XLM", "DICT-MLM", "ALIGN-MLM"]


def part(folder: Path, name: str, seeds: str, **more: Any) -> Path:
    """A study of some pretraining seeds; Δ depends on objective and seed, whatever the study."""
    axes = {"objective": OBJECTIVES, "pretrain.seed": list(seeds)}
    make_grid(folder / name, axes, name=name, fingerprint=name * 3, config={"pool": "w"}, **more)

    def scored(row: dict[str, str], labels: dict[str, str]) -> dict[str, Any]:
        number, seed = OBJECTIVES.index(labels["objective"]), int(labels["pretrain.seed"])
        delta, run = 10.0 + 3 * number + 0.5 * seed * (-1) ** number, f"{number:08x}{seed:08x}"
        return {"pretrain": run, "transfer": run, "delta": delta, "zs": 90 - delta, "alignment_all": 50 - number}

    change_rows(folder / name, scored)
    return folder / name


def test_a_study_run_in_two_parts_is_read_like_the_whole(tmp_path: Path) -> None:
    whole = report(part(tmp_path, "w", "0123"))
    parts = [part(tmp_path, "a", "02"), part(tmp_path, "b", "123")]  # one seed is in both
    columns = "objective", "Seeds", "Δ"
    for order in (parts, parts[::-1]):
        made = joined(order, tmp_path / "out")
        assert made.table(*columns) == whole.table(*columns)
        assert {line["Seeds"] for line in made.table(*columns)} == {"4 models × 2 seeds"}
        assert "over n = 4 conditions of 16 models" in made.text
