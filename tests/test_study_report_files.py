"""Files of a report: LaTeX and CSV tables, several studies joined, claims and papers beside."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes.report.latex import CHARACTERS, csv_table, escaped, latex_table
from probes.report.numbers import Badge, Entry
from probes.report.page import Table
from probes.statistics import Interval
from probes.study.report.folder import write_joined_report, write_report
from synthlang.errors import InputError
from tests.report_study import Page, change, make_grid, make_study, read_rows, write_measures, write_rows

AXES = {"objective": ["ALIGN-MLM", "MLM"], "transform": ["trans", "trans+inv"], "pretrain.seed": ["0", "1", "2"]}
CLAIMS = """claims:
- {id: better, claim: ALIGN-MLM is better., source: table 3, paper: 3.0 against 38.5,
   compare: [{where: {transform: trans}, measure: delta, left: {where: {objective: ALIGN-MLM}},
   right: {where: {objective: MLM}}, relation: less}]}
- {id: worse, claim: MLM is better., source: nowhere, compare: [{where: {transform: trans}, measure: delta,
   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: greater}]}
- {id: other, claim: Not run., source: nowhere, compare: [{where: {transform: perm}, measure: delta,
   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]}
- {id: probe, claim: CKA rises with the number of the cell., source: nowhere, compare: [{where: {transform: trans},
   measure: "probe:cka.same_layer.debiased", left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}},
   relation: less}]}
"""


def _body(tex: str) -> list[list[str]]:
    inside = tex.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0]
    return [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in inside.splitlines()]


def test_latex_has_every_cell_escaped() -> None:
    rows: list[list[Entry]] = [
        ["50% & $x_i$", Interval(1.25, -0.5, 3.0, 3, 0.95), 7],
        ["[a]\\{b}~^#", None, Badge("differs", "bad")],
    ]
    tex = latex_table(Table("A & B. 95 %", ["Name", "Δ\nall types", "n_1"], rows, name="t-1", digits=2))
    assert _body(tex) == [
        [r"50\% \& \$x\_i\$", r"1.25 {\footnotesize ($-$0.50 to 3.00)}", "7"],
        [r"{[}a{]}\textbackslash{}\{b\}\textasciitilde{}\textasciicircum{}\#", "--", "differs"],
    ]
    assert r"Name & $\Delta$ {\footnotesize (all types)} & n\_1 \\" in tex
    assert r"\caption{A \& B. 95 \%}" in tex and r"\label{tab:t-1}" in tex and r"\begin{tabular}{lrr}" in tex
    assert tex.count("{") == tex.count("}") and [tex.count(r"\begin{"), tex.count(r"\end{")] == [2, 2]


def test_latex_cuts_long_tables_and_wraps_long_texts() -> None:
    rows: list[list[Entry]] = [[f"a text of more than thirty characters {i}", float(i)] for i in range(9)]
    tex = latex_table(Table("Long.", ["Text", "x"], rows, name="long", limit=4))
    assert len(_body(tex)) == 4 and "The first 4 of 9 rows; all are in tables/long.csv." in tex
    assert re.search(r"\\begin\{tabular\}\{>\{\\raggedright\\arraybackslash\}p\{\d+pt\}r\}", tex)


def _wide(rows: int, columns: int, long: int) -> Table:
    """Rows of intervals behind two columns of text, and as many columns of long text."""
    key = "transfer.fine_tune.learning_rate=0.0125, 0123456789abcdef"
    body = [
        [f"MLM, trans+inv {i}", "agrees in order", *[key] * long]
        + [Interval(-12.34 * i, -99.0, 12.0, 3, 0.95) for _ in range(columns)]
        for i in range(rows)
    ]
    header = ["Condition", "Verdict", *["Settings of the cell"] * long, *["Alignment\nheld out"] * columns]
    return Table("A caption. " * 9, header, body, 2 + long, f"t-{rows}-{columns}-{long}")


SHAPES = [(3, 1, 0), (90, 2, 0), (5, 4, 0), (5, 6, 1), (40, 14, 0), (30, 1, 2), (12, 0, 9)]


def test_latex_tables_are_set_to_fit() -> None:
    short, tall, _, _, many, _, texts = (latex_table(_wide(*shape)) for shape in SHAPES)
    assert r"\begin{table}" in short and "landscape" not in short and "longtable}{" not in short
    assert r"\begin{longtable}" in tall and r"\endhead" in tall and r"\begin{table}" not in tall
    assert many.count(r"\begin{landscape}") == many.count("Condition &") / 2 == many.count(r"\label{tab:t-40-14-0") > 1
    assert many.count("MLM, trans+inv 39 & agrees in order &") == many.count(r"\begin{landscape}")
    assert many.count("A caption.") == 9 * many.count(r"\begin{landscape}") and "Part 2 of" in many
    assert many.count(r"{\scriptsize ($-$99.0 to 12.0)}") == 40 * 14, "no number is lost"
    assert texts.count(r"0123456789abcdef") == 0 and texts.count(r"01234567\allowbreak{}89abcdef") == 12 * 9


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_has_nothing_too_wide_or_too_tall(tmp_path: Path) -> None:
    packages = r"\usepackage{array,booktabs,longtable,pdflscape}"
    body = "\n\\clearpage\n".join(latex_table(_wide(*shape)) for shape in SHAPES)
    (tmp_path / "a.tex").write_text(f"\\documentclass{{article}}{packages}\\begin{{document}}{body}\\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-800:]
    assert not re.findall(rb"Overfull .hbox[^\n]*|[^\n]*too large[^\n]*", done.stdout)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_sets_every_sign_that_is_escaped(tmp_path: Path) -> None:
    body = latex_table(Table("".join(CHARACTERS), ["s"], [[f"a{s}b [c]"] for s in CHARACTERS], name="signs"))
    packages = r"\usepackage{array,booktabs,longtable,pdflscape}"
    text = f"\\documentclass{{article}}{packages}\\begin{{document}}{body}\\end{{document}}"
    (tmp_path / "a.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-800:]
    assert b"Missing character" not in done.stdout


def test_escaped_text_is_one_line() -> None:
    assert escaped("a\n  b\\c") == r"a b\textbackslash{}c"


def test_csv_has_all_rows_and_bounds_in_columns() -> None:
    rows: list[list[Entry]] = [
        ["a, b", Interval(1 / 3, 0.25, 1.0, 3, 0.95), 1.5],
        ["c\nd", Interval(2.0, None, None, 1, 0.95), None],
    ]
    table = Table("T.", ["Name", "Δ\nall", "x"], rows, limit=1)
    read = list(csv.reader(io.StringIO(csv_table(table))))
    assert read[0] == ["Name", "Δ all", "Δ all low", "Δ all high", "Δ all n", "x"]
    assert read[1:] == [["a, b", "0.333333", "0.25", "1", "3", "1.5"], ["c d", "2", "", "", "1", ""]]
    assert "The first 1 of 2 rows." in table.shown().caption


def test_parts_of_one_study_are_put_together(tmp_path: Path) -> None:
    """Two folders, each with half of the cells done, give the tables of the whole study."""
    whole = make_grid(tmp_path / "whole", AXES, layers=2)
    write_report(whole)
    for number, name in enumerate(("one", "two")):
        part = tmp_path / name
        part.mkdir()
        raw = json.loads((whole / "study.json").read_text())
        mine = {cell["name"] for i, cell in enumerate(raw["cells"]) if i % 2 == number}
        for cell in raw["cells"]:
            if cell["name"] not in mine:
                cell |= {"status": "pending", "stages": {}, "run": None}
        (part / "study.json").write_text(json.dumps(raw))
        write_rows(part, [row for row in read_rows(whole) if row["cell"] in mine])
        lines = (whole / "measures.csv").read_text().splitlines()
        write_measures(part, [row for row in csv.reader(lines[1:]) if row[0] in mine])
    write_joined_report([tmp_path / "one", tmp_path / "two"], tmp_path / "joined")
    for name in ("scores-1-pos", "seeds", "cells", "by-layer", "correlations"):
        held = [(folder / "tables" / f"{name}.csv").read_bytes() for folder in (whole, tmp_path / "joined")]
        assert held[0] == held[1], name
    assert "12 cells of 12 done" in (tmp_path / "joined/report.md").read_text()


def test_studies_of_two_scales_stand_side_by_side(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, scale in zip(folders, ("tiny", "lab"), strict=True):
        make_grid(folder, AXES, name=f"{scale}-table", fingerprint=scale * 4, config={"scale": scale})
    make_grid(tmp_path / "c", {"anchors": ["Default", "No anchors"]}, name="anchors", fingerprint="c", config={})
    paths = write_joined_report(folders, tmp_path / "out")
    table = Page(paths.html.read_text()).table("scale", "objective", "transform", "Δ")
    assert [line["scale"] for line in table] == ["tiny"] * 4 + ["lab"] * 4
    paths = write_joined_report([*folders, tmp_path / "c"], tmp_path / "out")
    table = Page(paths.html.read_text()).table("study", "scale", "anchors", "Δ")
    assert {line["study"] for line in table} == {"tiny-table", "lab-table", "anchors"} and len(table) == 10
    assert {line["anchors"] for line in table} == {"–", "Default", "No anchors"}


def test_a_cell_that_failed_here_and_is_done_there_is_done(tmp_path: Path) -> None:
    for name, status in (("a", "failed"), ("b", "done")):
        make_grid(tmp_path / name, {"transform": ["trans"]})
        cell = json.loads((tmp_path / name / "study.json").read_text())["cells"][0]
        change(tmp_path / name, cells=[cell | {"status": status, "error": "killed" if status == "failed" else None}])
    write_rows(tmp_path / "a", [])
    paths = write_joined_report([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    text = paths.markdown.read_text()
    assert "1 cell of 1 done" in text and "killed" not in text and "10.5" in text


def test_runs_that_two_studies_share_count_once(tmp_path: Path) -> None:
    """The second study has the runs of the first and one objective more; claims and counts are those of all runs."""
    claims = tmp_path / "claims.yaml"
    claims.write_text(CLAIMS)
    config = {"claims": [str(claims)], "scale": "tiny"}
    whole = make_grid(tmp_path / "b", {**AXES, "objective": ["ALIGN-MLM", "MLM", "XLM"]}, layers=2, jitter=0.1,
                      fingerprint="b" * 16, config=config)  # fmt: skip
    part = tmp_path / "a"
    part.mkdir()
    raw = json.loads((whole / "study.json").read_text())
    raw |= {"name": "first", "fingerprint": "a" * 16, "cells": raw["cells"][:12]}
    mine = {cell["name"] for cell in raw["cells"]}
    (part / "study.json").write_text(json.dumps(raw))
    write_rows(part, [row for row in read_rows(whole) if row["cell"] in mine])
    for folder in (whole, part):  # a probe of each cell, so that its measures are known to be the same
        change(folder, cells=[
            cell | {"stages": cell["stages"] | {"probe cka": f"{int(cell['stages']['pretrain'], 16) + 1:016x}"}}
            for cell in json.loads((folder / "study.json").read_text())["cells"]
        ])  # fmt: skip
    lines = (whole / "measures.csv").read_text().splitlines()
    write_measures(part, [row for row in csv.reader(lines[1:]) if row[0] in mine])
    write_report(whole)
    paths = write_joined_report([part, whole], tmp_path / "both")
    text = paths.markdown.read_text()
    assert "18 cells of 18 done" in text
    assert "grid: 24 of 36 rows of results are the same runs as in first (equal fingerprints" in text
    for name in ("claims", "correlations"):
        assert (paths.tables / f"{name}.csv").read_bytes() == (whole / "tables" / f"{name}.csv").read_bytes(), name
    assert len((paths.tables / "seeds.csv").read_text().splitlines()) == 1 + 36
    assert len((paths.tables / "by-layer.csv").read_text().splitlines()) == 1 + 6 * 2
    other = [{**row, "transfer": ""} for row in read_rows(whole)]
    write_rows(whole, [dict(row) for row in other])
    text = write_joined_report([part, whole], tmp_path / "both").markdown.read_text()
    assert "the same runs" not in text, "without fingerprints nothing is known to be the same"


def test_what_cannot_be_joined_is_an_error(tmp_path: Path) -> None:
    make_grid(tmp_path / "a", {"transform": ["trans"]})
    with pytest.raises(InputError, match="at least one"):
        write_joined_report([], tmp_path / "out")
    with pytest.raises(InputError, match="one of the studies"):
        write_joined_report([tmp_path / "a"], tmp_path / "a")
    (tmp_path / "a/study.json").write_text("[]")
    with pytest.raises(InputError, match="not a study"):
        write_joined_report([tmp_path / "a"], tmp_path / "out")


def test_claims_are_judged_and_tables_of_papers_are_beside(tmp_path: Path) -> None:
    claims = tmp_path / "claims.yaml"
    claims.write_text(CLAIMS)
    config: dict[str, Any] = {"claims": [str(claims), "missing"], "paper": "align_mlm/table3", "scale": "tiny"}
    folder = make_grid(tmp_path / "study", AXES, tasks=("pos",), layers=2, jitter=0.1, config=config)
    page = Page(write_report(folder).html.read_text())
    table = page.table("Claim", "Verdict", "Ours", "n")
    assert [line["Verdict"] for line in table] == ["agrees in sign", "differs", "agrees in sign"]
    assert table[0] | {"Ours": ""} == {"Claim": "ALIGN-MLM is better.|table 3", "Verdict": "agrees in sign",
                                       "Paper": "3.0 against 38.5", "Ours": "", "n": "3 models"}  # fmt: skip
    assert table[0]["Ours"].startswith("−6.")
    assert "1 claim not run here" in (folder / "report.md").read_text()
    other = (folder / "tables/claims-not-run.csv").read_text().splitlines()
    assert len(other) == 2 and other[1].startswith("Not run. nowhere,not run,")
    assert "claims missing: " in (folder / "report.md").read_text()
    beside = page.table("score", "Paper", "Ours", "Verdict")
    line = next(x for x in beside if (x["objective, transform"], x["score"]) == ("MLM, trans+inv", "pos Δ"))
    rows = [r for r in read_rows(folder) if json.loads(r["labels"])["objective"] == "MLM"]
    rows = [r for r in rows if json.loads(r["labels"])["transform"] == "trans+inv"]
    runs = [np.mean([float(r["delta"]) for r in rows if r["pretrain"] == p]) for p in {r["pretrain"]: 0 for r in rows}]
    low, high = stats.t.interval(0.95, 2, np.mean(runs), stats.sem(runs))
    assert line["Paper"] == "38.5" and line["Ours"] == f"{np.mean(runs):.1f}|{low:.1f} to {high:.1f}"
    assert {x["score"].split()[0] for x in beside} == {"pos"}, "of what was not measured nothing stands here"
    with (folder / "tables/paper-1-align-mlm-table3.csv").open() as handle:
        whole = list(csv.DictReader(handle))
    assert len(whole) == 108 and {x["Verdict"] for x in whole if x["score"].startswith("nli")} == {"not run"}
    assert [x["Paper"] for x in whole if (x["objective, transform"], x["score"]) == ("MLM, trans+inv", "pos Δ")] == [
        "38.5"
    ]


def test_scales_are_judged_apart(tmp_path: Path) -> None:
    """The lab study shows the opposite of the tiny one; together they would say nothing."""
    claims = tmp_path / "claims.yaml"
    claims.write_text(CLAIMS)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, scale in zip(folders, ("tiny", "lab"), strict=True):
        axes = AXES if scale == "tiny" else AXES | {"objective": ["MLM", "ALIGN-MLM"]}
        held = {"scale": scale, "claims": [str(claims)]}
        make_grid(folder, axes, name=scale, fingerprint=scale * 4, jitter=0.1, config=held)
    paths = write_joined_report(folders, tmp_path / "out")
    table = Page(paths.html.read_text()).table("Claim", "Scale", "Verdict")
    got = {(line["Claim"].split("|")[0], line["Scale"]): line["Verdict"] for line in table}
    assert (
        got[("ALIGN-MLM is better.", "tiny")] == "agrees in sign" and got[("ALIGN-MLM is better.", "lab")] == "differs"
    )


def test_a_report_is_the_same_when_written_again_or_joined_alone(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "a", curves="")
    one = {path.name: path.read_bytes() for path in write_report(folder).tables.iterdir()}
    two = {path.name: path.read_bytes() for path in write_joined_report([folder], tmp_path / "out").tables.iterdir()}
    assert one == two and len(one) > 8
