from __future__ import annotations

import io
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy import stats

from probes.study import measures, results
from probes.study.report.folder import terminal_table, write_report
from synthlang.errors import InputError
from tests.report_study import EVIL, Page, change, make_study, read_rows, write_rows


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_study(tmp_path)


def _page(folder: Path) -> Page:
    return Page(write_report(folder).html.read_text(encoding="utf-8"))


def _minus(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def test_means_and_intervals_equal_scipy(study: Path) -> None:
    table = _page(study).table("objective", "language", "Δ", "Alignment|held out")
    assert len(table) == 6
    for line in table:
        rows = [r for r in read_rows(study) if (r["objective"], r["language"]) == (line["objective"], line["language"])]
        assert len(rows) == 3 and line["Seeds"] == "1 model × 3 seeds"
        for shown, column in (("Parent", "parent"), ("SUP", "sup"), ("ZS", "zs"), ("Δ", "delta")):
            values = [float(row[column]) for row in rows]
            low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
            assert line[shown] == f"{_minus(float(np.mean(values)))}|{_minus(low)} to {_minus(high)}"
        assert line["Alignment|held out"] == _minus(float(rows[0]["alignment_held_out"]))


def test_every_seed_is_listed(study: Path) -> None:
    lines = _page(study).table("Cell", "Fine-tuning seed", "Δ")
    expected = [(r["cell"], r["seed"], _minus(float(r["delta"]), 2)) for r in read_rows(study)]
    assert [(line["Cell"], line["Fine-tuning seed"], line["Δ"]) for line in lines] == expected


def test_correlation_equals_scipy(study: Path) -> None:
    cells = {row["cell"]: row for row in read_rows(study)}
    deltas = [np.mean([float(r["delta"]) for r in read_rows(study) if r["cell"] == cell]) for cell in cells]
    rho = stats.spearmanr([float(row["alignment_all"]) for row in cells.values()], deltas).statistic
    line = _page(study).table("ρ", "p")[0]
    assert (line["n"], line["ρ"]) == ("6 conditions|6 models", _minus(rho, 2))
    assert line["p"].endswith("exact")


def test_the_summary_says_what_the_numbers_say(study: Path) -> None:
    text = write_report(study).markdown.read_text()
    lead = text.split("## Summary")[1].split("##")[0]
    assert "6 cells of 8 done, 1 failed, 1 pending" in lead
    assert "- Under trans+inv: alignment is highest for align_mlm (" in lead and "Δ is smallest for align_mlm (" in lead
    assert "one pretraining seed" in lead and "hint" in lead


def test_the_summary_admits_overlap(study: Path) -> None:
    rows: list[dict[str, Any]] = [row | {"delta": str(10 + 5 * int(row["seed"]))} for row in read_rows(study)]
    for row in rows:
        row["delta"] = float(row["delta"]) + (row["objective"] == "mlm")
    write_rows(study, rows)
    lead = write_report(study).markdown.read_text().split("## Summary")[1].split("##")[0]
    assert lead.count("a tie") == 2
    rows = [row | {"delta": row["delta"] + 0.1 * (row["objective"] == "dict_mlm")} for row in rows]
    write_rows(study, rows)
    lead = write_report(study).markdown.read_text().split("## Summary")[1].split("##")[0]
    assert lead.count("overlap: the order is not established") == 2


def test_several_pretraining_seeds_make_the_interval(tmp_path: Path) -> None:
    """A run is a cluster: the interval is over the means of runs, never over all seeds of all runs."""
    page = _page(make_study(tmp_path, replicates=3))
    table = page.table("objective", "language", "Seeds", "Δ")
    assert [line["Seeds"] for line in table] == ["3 models × 3 seeds"] * 6
    rows = [r for r in read_rows(tmp_path) if r["objective"] == "mlm" and r["language"] == "trans"]
    means = [np.mean([float(r["delta"]) for r in rows if r["pretrain"] == p]) for p in {r["pretrain"]: 0 for r in rows}]
    low, high = stats.t.interval(0.95, 2, np.mean(means), stats.sem(means))
    assert (table[0]["objective"], table[0]["language"]) == ("mlm", "trans")
    assert table[0]["Δ"] == f"{_minus(float(np.mean(means)))}|{_minus(low)} to {_minus(high)}"
    assert "one pretraining seed" not in (tmp_path / "report.md").read_text()


def test_conditions_of_one_objective_are_told_apart(study: Path) -> None:
    """mlm under two settings is two conditions, named by what differs."""
    rows: list[dict[str, Any]] = list(read_rows(study))
    for row in rows:
        row["labels"] = json.dumps(json.loads(row["labels"]) | {"alpha": "5"})
    again = [dict(row) for row in rows if row["cell"] == "mlm-trans"]
    for row in again:
        row |= {"cell": "again", "delta": "1", "labels": row["labels"].replace('"5"', '"10"')}
    write_rows(study, rows + again)
    table = _page(study).table("objective", "alpha", "Δ")
    assert [line["Δ"].split("|")[0] for line in table if line["alpha"] == "10"] == ["1.0"]
    assert "Under trans, alpha 10: only mlm has been scored" in (study / "report.md").read_text()


def test_everything_is_escaped_and_nothing_is_loaded(study: Path) -> None:
    labels = json.dumps({EVIL: EVIL, "axis": "$x$|" + EVIL})
    rows = [row | {"cell": EVIL, "task_name": EVIL, "labels": labels} for row in read_rows(study)]
    write_rows(study, [dict(row) for row in rows])
    change(
        study,
        title=EVIL,
        environment={EVIL: EVIL},
        config={"x": EVIL},
        axes=[EVIL],
        dropped={EVIL: {EVIL: {"least": 1, "most": 3, "stages": 1, "of": 1}}},
    )
    paths = write_report(study)
    html, markdown = paths.html.read_text(), paths.markdown.read_text()
    page = Page(html)
    assert "script" not in page.tags and EVIL not in re.sub(r"(?m)^    .*$", "", markdown), "but in code"
    assert "b" not in page.tags, "the error message of a failed cell"
    assert all(address.startswith("#") for address in page.addresses)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", html)
    for figure in paths.figures.iterdir():
        ElementTree.parse(figure)


def test_well_formed_with_unique_ids_and_text_alternatives(study: Path) -> None:
    paths = write_report(study)
    html = paths.html.read_text()
    page = Page(html)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    references = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert references and set(references) <= set(page.ids)
    assert page.tags.count("svg") == html.count('role="img" aria-label="') == len(list(paths.figures.iterdir()))
    links = re.findall(r"!\[[^]]*\]\((figures/[^)]*)\)", paths.markdown.read_text())
    assert sorted(links) == sorted(f"figures/{path.name}" for path in paths.figures.iterdir())


def test_equal_input_gives_equal_bytes(study: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "copy"
    shutil.copytree(study, other)
    contents = []
    for folder in (study, other, study):
        paths = write_report(folder)
        files = [paths.html, paths.markdown, *sorted(paths.figures.iterdir()), *sorted(paths.tables.iterdir())]
        contents.append({path.name: path.read_bytes() for path in files})
    assert contents[0] == contents[1] == contents[2]


def test_failed_cells_come_with_their_error(study: Path) -> None:
    assert _page(study).table("Cell", "Error") == [
        {"Cell": EVIL, "Error": "InputError: learning rate is NaN <b>at</b> step 12"}
    ]
    assert "Traceback (most recent call last)" in (study / "report.html").read_text()


@pytest.mark.parametrize(
    "missing", ["results", "metrics", "runs", "alignment", "seeds", "cells", "all but json", "delta"]
)
def test_missing_pieces_are_said_and_do_no_harm(tmp_path: Path, missing: str) -> None:
    folder = make_study(tmp_path, seeds=1 if missing == "seeds" else 3)
    expected = {
        "results": "results.parquet is missing",
        "metrics": "No metrics were logged: mlm-trans",
        "runs": "Run folders that are not here, so without curves: mlm-trans; align_mlm-trans",
        "alignment": "No cell has both an alignment and a Δ",
        "seeds": "without an interval for lack of seeds",
        "cells": "No pretraining run was recorded",
        "all but json": "results.parquet is missing",
        "delta": "No Δ to draw",
    }[missing]
    if missing in ("results", "all but json"):
        (folder / "results.parquet").unlink()
    if missing == "metrics":
        for path in folder.glob("stages/*/metrics.jsonl"):
            path.unlink()
    if missing in ("runs", "all but json"):
        shutil.rmtree(folder / "stages")
    if missing in ("alignment", "delta"):
        columns = ("delta",) if missing == "delta" else ("alignment_all", "alignment_dictionary", "alignment_held_out")
        write_rows(folder, [row | dict.fromkeys(columns, "") for row in read_rows(folder)])
    if missing == "cells":
        change(folder, cells=[])
    if missing == "all but json":
        (folder / "study.json").write_text('{"format": 2}')
    text = write_report(folder).html.read_text()
    assert expected in text
    assert Page(text).open == []
    assert not re.search(r"\bnan\b|\bNone\b", re.sub(r"<svg.*?</svg>|<style.*?</style>", "", text, flags=re.S))


def test_a_run_that_was_killed_keeps_its_curve(study: Path) -> None:
    path = study / "stages/pretrain-0000000000000000/metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 4020, "lo')
    text = write_report(study).markdown.read_text()
    assert "mlm-trans: 1 line of metrics.jsonl could not be read" in text
    assert "loss-1-mlm-trans.svg" in text


def test_curves_leave_out_what_is_no_loss(study: Path) -> None:
    names = {path.stem for path in write_report(study).figures.iterdir()}
    assert {"loss-1-mlm-trans", "perplexity-1-mlm-trans", "alignment-1-mlm-trans"} <= names
    assert "signed-loss-1-mlm-trans" not in names and "signed-loss-2-align-mlm-trans" in names


def test_a_figure_of_a_former_report_is_gone(study: Path) -> None:
    write_report(study)
    write_rows(study, [])
    paths = write_report(study)
    assert not list(paths.figures.glob("delta-*"))


def test_what_is_no_study_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        write_report(tmp_path)
    make_study(tmp_path)
    (tmp_path / "study.json").write_text('{"cells": []}')
    with pytest.raises(InputError, match=r"study.json: is of format 1, this version .* reads 2; run the study again"):
        write_report(tmp_path)


@pytest.mark.parametrize("name", ["results", "measures"])
def test_what_is_no_table_of_a_study_is_an_error(study: Path, name: str) -> None:
    path = study / f"{name}.parquet"
    held = pq.read_table(path) if path.exists() else pa.table({"labels": ["{}"], "value": [1.0]})
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=rf"{name}.parquet: not parquet: [^\n]+$"):
        write_report(study)
    pq.write_table(held.select([held.column_names[0]]), path)
    with pytest.raises(InputError, match=rf"{name}.parquet: columns missing: [^\n]+; run the study again"):
        write_report(study)
    pq.write_table(pa.table({"cell": ["a"], "labels": ["{,"], **_places(name)}), path)
    with pytest.raises(InputError, match=rf"{name}.parquet: [^\n]*labels must be a JSON object, not '{{,'"):
        write_report(study)
    pq.write_table(
        pa.table({"cell": ["a"], "labels": ["{}"], **_places(name), "delta": ["many"], "value": ["one"]}), path
    )
    with pytest.raises(InputError, match=rf"{name}.parquet: column (delta|value) must be of double: [^\n]+$"):
        write_report(study)


def _places(name: str) -> dict[str, Any]:
    """The other columns of a table of one row."""
    columns = (results if name == "results" else measures).COLUMNS
    held: dict[str, Any] = {key: pa.nulls(1, kind) for key, kind in columns.items() if key not in ("cell", "labels")}
    return held if name == "results" else held | {"layer": [1]}


def test_results_csv_is_an_export_that_is_not_read(study: Path) -> None:
    before = write_report(study).markdown.read_bytes()
    (study / "results.csv").write_text("cell\nother\n")
    assert write_report(study).markdown.read_bytes() == before


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_not_a_number_is_shown_and_counted(study: Path, value: str) -> None:
    rows: list[dict[str, Any]] = list(read_rows(study))
    assert (rows[0]["cell"], rows[0]["seed"]) == ("mlm-trans", "0")
    rows[0] |= {"zs": value, "delta": value}
    write_rows(study, rows)
    page = _page(study)
    line = next(x for x in page.table("objective", "Seeds", "Δ") if (x["objective"], x["language"]) == ("mlm", "trans"))
    assert line["Seeds"] == "1 model × 3 seeds, 2 of 3 with every score"
    rest = [float(row["delta"]) for row in rows[1:3]]
    low, high = stats.t.interval(0.95, 1, np.mean(rest), stats.sem(rest))
    assert line["Δ"] == f"{_minus(float(np.mean(rest)))}|{_minus(low)} to {_minus(high)}"
    shown = page.table("Cell", "Fine-tuning seed", "Δ")[0]["Δ"]
    assert shown == {"nan": "NaN", "inf": "inf"}[value]
    text = (study / "report.md").read_text()
    assert "2 values of results.parquet are not a number, left out of every mean" in text
    assert "mlm-trans, pos, fine-tuning seed 0: zs; mlm-trans, pos, fine-tuning seed 0: delta." in text
    write_rows(study, rows[1:])
    assert "not a number" not in write_report(study).markdown.read_text()


def test_several_tasks_have_figures_of_their_own(tmp_path: Path) -> None:
    names = {path.stem for path in write_report(make_study(tmp_path, tasks=("pos", "ner"))).figures.iterdir()}
    assert {"delta-1-pos", "delta-2-ner", "alignment-1-pos", "alignment-2-ner"} <= names


def test_terminal_table(study: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(terminal_table(pq.read_table(study / "results.parquet").to_pylist()))
    assert isinstance(console.file, io.StringIO)
    line = next(line for line in console.file.getvalue().splitlines() if "align_mlm-trans+inv" in line)
    delta = np.mean([float(r["delta"]) for r in read_rows(study) if r["cell"] == "align_mlm-trans+inv"])
    assert _minus(float(delta)) in line
