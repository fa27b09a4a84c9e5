"""Studies that share runs under labels of their own: each is judged as if alone, whatever the order of the folders."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from probes.study.judged.papers import Quantity
from probes.study.report.data import read_study
from probes.study.report.folder import write_joined_report, write_report
from probes.study.report.pools import results_of
from tests.report_study import change, make_grid, read_rows, write_measures, write_rows

SEEDS = {"pretrain.seed": ["0", "1", "2"]}
CLAIMS = """claims:
- {id: whole, claim: Of the whole., source: x, compare: [{where: {transform: trans}, measure: delta,
   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]}
- {id: probe, claim: Of its probe., source: x, compare: [{where: {transform: trans},
   measure: "probe:cka.same_layer.debiased", left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}},
   relation: less}]}
- {id: other, claim: Of the other., source: x, compare: [{where: {transform: trans}, measure: delta,
   left: {where: {objective: ALIGN-MLM, parallel: 0%}}, right: {where: {objective: TLM, parallel: 1%}},
   relation: less}]}
- {id: mean, claim: Of both., source: x, compare: [{where: {objective: ALIGN-MLM}, measure: delta, relation: greater,
   left: {where: {}}, value: 0}]}
- {id: aligned, claim: Of the alignment., source: x, compare: [{where: {objective: ALIGN-MLM}, measure: alignment_all,
   relation: greater, left: {where: {}}, value: 0}]}
- {id: probed, claim: Of all probes., source: x, compare: [{where: {objective: ALIGN-MLM},
   measure: "probe:cka.same_layer.debiased", relation: greater, left: {where: {}}, value: 0}]}
- {id: layers, claim: Of layers., source: x, correlate: {where: {objective: ALIGN-MLM, transform: trans}, layer: each,
   x: {measure: "probe:cka.same_layer.debiased"}, y: {measure: "probe:cka.same_layer.debiased"}, over: [layer],
   expect: positive}}
"""


def probed(folder: Path) -> None:
    """Each cell has a probe and an alignment of its own run."""
    cells = json.loads((folder / "study.json").read_text())["cells"]
    for cell in cells:
        cell["stages"]["probe cka"] = cell["stages"]["pretrain"][::-1]
    change(folder, cells=cells)
    write_rows(folder, [row | {"probe": row["pretrain"][::-1]} for row in read_rows(folder)])


def with_runs_of(folder: Path, whole: Path, more: dict[str, str]) -> None:
    """Add the ALIGN-MLM runs of ``whole``, with ``more`` labels."""
    mine, theirs = (json.loads((one / "study.json").read_text())["cells"] for one in (folder, whole))
    named = {}
    for cell in theirs:
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
    kept, added = (list(csv.reader((one / "measures.csv").read_text().splitlines()))[1:] for one in (folder, whole))
    write_measures(folder, [*kept, *([*named[row[0]], *row[2:]] for row in added if row[0] in named)])


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """Two objectives on two languages; and another objective, beside one of these with a label more."""
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    config: dict[str, Any] = {"claims": [str(tmp_path / "claims.yaml")], "scale": "tiny", "paper": "align_mlm/table3"}
    axes = {"objective": ["ALIGN-MLM", "MLM"], "transform": ["trans", "trans+inv"], **SEEDS}
    whole = make_grid(tmp_path / "whole", axes, layers=5, jitter=0.1, name="whole", fingerprint="w" * 16, config=config)
    axes = {"objective": ["TLM"], "transform": ["trans"], "parallel": ["1%"], **SEEDS}
    other = make_grid(tmp_path / "other", axes, layers=5, jitter=0.3, name="other", fingerprint="o" * 16, config=config)
    for folder in (whole, other):
        probed(folder)
    with_runs_of(other, whole, {"parallel": "0%"})
    return whole, other


def claims(tables: Path) -> dict[str, tuple[str, ...]]:
    """Claim → verdict, ours and n, of those that were run."""
    with (tables / "claims.csv").open() as handle:
        return {line.pop("Claim"): tuple(line.values()) for line in csv.DictReader(handle)}


def test_each_study_is_judged_as_it_is_alone(both: tuple[Path, Path], tmp_path: Path) -> None:
    alone = [write_report(folder).tables for folder in both]
    whole, other = map(claims, alone)
    assert "Of the other. x" not in whole and "Of the whole. x" not in other, "each has a claim of its own"
    paper = "paper-1-align-mlm-table3.csv"
    for number, order in enumerate((both, both[::-1])):
        tables = write_joined_report(order, tmp_path / f"out{number}").tables
        assert claims(tables) == other | whole
        assert (tables / paper).read_bytes() == (alone[0] / paper).read_bytes()


def test_a_run_under_two_label_sets_is_one_condition(both: tuple[Path, Path], tmp_path: Path) -> None:
    """The mean is over the two languages; with trans+inv in one of the studies only it would be over three."""
    _, other = both
    rows = [dict(row) for row in read_rows(other) if json.loads(row["labels"])["transform"] == "trans"]
    write_rows(other, rows)
    for order in (both, both[::-1]):
        text = write_joined_report(order, tmp_path / "out").markdown.read_text()
        line = next(line for line in text.splitlines() if line.startswith("| mean"))
        assert line.count("over trans, trans+inv") == 1 and "left out" not in line and "0%" not in line


def test_the_label_set_of_more_seeds_stands_for_both(both: tuple[Path, Path], tmp_path: Path) -> None:
    whole, other = both
    mine = [dict(row) for row in read_rows(other) if json.loads(row["labels"])["pretrain.seed"] != "2"]
    write_rows(other, mine)
    for order in (both, both[::-1]):
        tables = write_joined_report(order, tmp_path / "out").tables
        assert claims(tables)["Of both. x"] == claims(write_report(whole).tables)["Of both. x"]


def test_a_run_that_one_study_lists_twice_stays_two_conditions(both: tuple[Path, Path], tmp_path: Path) -> None:
    """As alone: an axis that a run does not depend on is one of the author of the grid."""
    whole, other = both
    with_runs_of(other, whole, {"parallel": "25%"})
    write_rows(whole, [dict(row) for row in read_rows(whole) if "ALIGN" not in row["labels"]])
    text = write_joined_report(both, tmp_path / "out").markdown.read_text()
    line = next(line for line in text.splitlines() if line.startswith("| mean"))
    assert "over 0% trans, 0% trans+inv, 25% trans, 25% trans+inv" in line


def test_an_alignment_that_the_first_study_lacks_is_taken_from_the_other(both: tuple[Path, Path]) -> None:
    _, other = both
    write_rows(other, [row | {"alignment_all": "", "probe": ""} for row in read_rows(other)])
    write_measures(other, [])
    first, second = (results_of([read_study(folder) for folder in order]) for order in (both, both[::-1]))
    for measure in ("alignment_all", "probe:cka.same_layer.debiased"):
        wanted = Quantity({"objective": "ALIGN-MLM", "transform": "trans"}, measure)
        assert first.series(wanted) == second.series(wanted) != {}
