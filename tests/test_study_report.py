"""Sections of a study's report that need several seeds, numbers, layers, papers: against plain computation."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from probes.figures.drawing import COLOURS
from probes.study.labels import axis_titles, is_seed, layout, numbers_of
from probes.study.measures import COLUMNS
from probes.study.report.data import FIGURES_OF_MANY, read_study
from probes.study.report.folder import write_report
from probes.study.report.judged import compared
from probes.study.report.layers import curves
from probes.study.report.scores import scores_of
from probes.study.table import measurements
from synthlang.files import read_json, write_json
from tests.judged import measured
from tests.report_study import Page, change, make_grid, read_rows, write_rows

GRID = {"transform": ["trans", "inv"], "strength": ["0", "0.5", "1"], "pretrain.seed": ["0", "1", "2"]}


def _table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open() as handle:
        return list(csv.DictReader(handle))


def _interval(values: list[float]) -> tuple[float, float, float]:
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return float(np.mean(values)), float(low), float(high)


def test_dose_response_has_every_point_with_the_interval_over_runs(tmp_path: Path) -> None:
    paths = write_report(make_grid(tmp_path, GRID, tasks=("pos", "ner")))
    lines = _table(tmp_path, "dose-1-strength")
    assert len(lines) == 2 * 2 * 3
    for line in lines:
        rows = [
            row
            for row in read_rows(tmp_path)
            if row["task"] == line["Task"]
            and json.loads(row["labels"])["transform"] == line["Other settings"]
            and json.loads(row["labels"])["strength"] == line["strength"]
        ]
        for column, shown in (("delta", "Δ"), ("zs", "ZS"), ("alignment_all", "Alignment, all types")):
            runs = [[float(r[column]) for r in rows if r["pretrain"] == p] for p in {r["pretrain"]: 0 for r in rows}]
            expected = _interval([float(np.mean(run)) for run in runs])
            got = [float(line[shown + end]) for end in ("", " low", " high")]
            assert got == pytest.approx(expected, rel=1e-4) and line[f"{shown} n"] == "3"
    names = {path.stem for path in paths.figures.iterdir()}
    drawn = {f"dose-1-strength-{n}-{t}-{kind}" for n, t in ((1, "pos"), (2, "ner")) for kind in ("delta", "scores")}
    assert drawn | {"dose-1-strength-alignment"} <= names
    figure = (paths.figures / "dose-1-strength-1-pos-delta.svg").read_text()
    assert "trans: from 11.5 to 17.5" in figure and "inv: from 20.5 to 26.5" in figure


def test_an_axis_of_words_or_of_one_number_has_no_dose_response(tmp_path: Path) -> None:
    write_report(make_grid(tmp_path, {"transform": ["trans", "inv"], "strength": ["1"], "steps": ["10", "many"]}))
    text = (tmp_path / "report.md").read_text()
    assert "Dose–response" not in text and "Zero-shot transfer" in text


def test_measures_by_layer_are_of_the_last_checkpoint_and_over_runs(tmp_path: Path) -> None:
    axes = {"transform": ["trans", "inv"], "pretrain.seed": ["0", "1", "2"]}
    paths = write_report(make_grid(tmp_path, axes, layers=3, steps=(100, 200)))
    with (tmp_path / "measures.csv").open() as handle:
        raw = list(csv.DictReader(handle))
    by_layer, by_step = _table(tmp_path, "by-layer"), _table(tmp_path, "by-step")
    assert len(by_layer) == 2 * 3 and len(by_step) == 2 * 3 * 2
    for line in [*by_layer, *by_step]:
        layer = line.get("Layer") or line["Measure"][-1]
        wanted = (line["Condition"], layer, line.get("Step", "200"))
        held = [(json.loads(r["labels"])["transform"], r["layer"], r["step"], float(r["value"])) for r in raw]
        expected = _interval([value for *where, value in held if tuple(where) == wanted])
        got = [float(line[f"Value{end}"]) for end in ("", " low", " high")]
        assert got == pytest.approx(expected, abs=2e-6), wanted
    names = sorted(path.stem for path in paths.figures.iterdir())
    assert (
        sum(name.startswith("layer-") for name in names) == 1 and sum(name.startswith("step-") for name in names) == 3
    )


def test_many_cells_have_few_figures_and_short_tables_and_every_number_in_files(tmp_path: Path) -> None:
    axes = {"transform": ["a", "b", "c"], "strength": [str(i / 20) for i in range(20)]}
    axes |= {"objective": ["MLM", "XLM"], "pretrain.seed": ["0", "1"]}
    paths = write_report(make_grid(tmp_path, axes, tasks=("pos", "ner"), layers=3, steps=(1, 2)))
    assert 3 <= len(list(paths.figures.iterdir())) <= FIGURES_OF_MANY
    page = Page(paths.html.read_text())
    assert len(page.table("transform", "strength", "Δ")) == 120 == len(_table(tmp_path, "scores-1-pos"))
    assert len(page.table("Cell", "Fine-tuning seed", "Δ")) == 300 and len(_table(tmp_path, "seeds")) == 240 * 2 * 2
    assert "The first 300 of 960 rows; all are in tables/seeds.csv" in paths.markdown.read_text()
    assert len(_table(tmp_path, "cells")) == 240
    assert len(paths.html.read_bytes()) < 3_000_000


def test_intervals_of_two_points_have_their_own_colours(tmp_path: Path) -> None:
    paths = write_report(make_grid(tmp_path, {"transform": ["trans", "inv"]}, seeds=3))
    svg = (paths.figures / "alignment-1-pos.svg").read_text()
    intervals = svg[svg.index('id="LineCollection_1"') :].partition("</g>")[0]
    assert [intervals.count(colour) for colour in COLOURS[:2]] == [1, 1]


def test_dropped_is_listed(tmp_path: Path) -> None:
    too_long = {"too long": {"least": 0, "most": 1200, "stages": 2, "of": 3}}
    make_grid(tmp_path, {"transform": ["trans"]}, dropped={"pretrain": {"trans train": too_long, "trans dev": {}}})
    write_report(tmp_path)
    line = {"Data": "trans train", "What": "too long", "Least": "0", "Most": "1200", "In stages": "2 of 3"}
    assert _table(tmp_path, "dropped") == [{"Stage": "pretrain", **line}]
    change(tmp_path, dropped={"mine": {"pretrain": {"trans train": too_long}}})  # two studies joined
    write_report(tmp_path)
    assert _table(tmp_path, "dropped") == [{"Stage": "mine › pretrain", **line}]
    change(tmp_path, dropped={"pretrain": {"trans train": {}}})
    write_report(tmp_path)
    assert "Nothing was dropped." in (tmp_path / "report.md").read_text()


def test_an_exact_tie_of_alignments_is_told(tmp_path: Path) -> None:
    make_grid(tmp_path, {"number": list("abc")})
    rows = read_rows(tmp_path)
    for row in rows:
        row["alignment_all"] = {"a": "45.5224", "b": "45.5224", "c": "40"}[row["cell"]]
        row["delta"] = {"a": "10.04", "b": "10.01", "c": "30"}[row["cell"]]
    write_rows(tmp_path, rows)
    text = write_report(tmp_path).markdown.read_text()
    assert "lignment is highest for a (45.5 %; next b, 45.5 %; a tie)" in text
    assert "Δ is smallest for b (10.0 points; next a, 10.0; a tie)" in text, "a reader sees one number"


def test_adjustments_of_one_pretraining_are_no_models(tmp_path: Path) -> None:
    """Two pretrainings, of each three adjustments: what is measured by layer has the interval of two models."""
    axes = {"method": ["Adjusted"], "pretrain.seed": ["0", "1"], "adjust.seed": ["0", "1", "2"]}
    make_grid(tmp_path, axes, seeds=1, layers=2)
    record = read_json(tmp_path / "study.json")
    run_of = {cell["name"]: f"{int(cell['labels']['pretrain.seed']) + 1:016x}" for cell in record["cells"]}
    for cell in record["cells"]:
        cell["stages"] = {**cell["stages"], "pretrain": run_of[cell["name"]]}
    write_json(tmp_path / "study.json", record)
    rows = read_rows(tmp_path)
    write_rows(tmp_path, [row | {"pretrain": run_of[row["cell"]], "adjust": row["cell"]} for row in rows])
    write_report(tmp_path)
    rows_of = read_study(tmp_path).measures
    name = rows_of["measure"].iloc[0]
    first = rows_of[(rows_of["measure"] == name) & (rows_of["layer"] == 0)]
    held = [first.loc[first["pretrain"] == run, "value"].tolist() for run in set(run_of.values())]
    assert [len(values) for values in held] == [3, 3]
    means = [np.mean(values) for values in held]
    low, high = stats.t.interval(0.95, 1, np.mean(means), stats.sem(means))
    line = next(x for x in _table(tmp_path, "by-layer") if x["Layer"] == "0" and name in x["Measure"])
    assert line["Value n"] == "2"
    assert [float(line[f"Value {end}"]) for end in ("low", "high")] == pytest.approx([low, high], rel=1e-4)
    assert scores_of(read_study(tmp_path)).conditions[0].seeds == "2 models × 3 adjustments × 1 seed"
    one = [row | {"pretrain": "ab" * 8} for row in read_rows(tmp_path)]
    write_rows(tmp_path, one)
    said = write_report(tmp_path).markdown.read_text()
    assert "Every condition rests on one pretraining seed: intervals of Δ there cover what was done to it since" in said


def test_a_model_without_a_pretraining_has_its_seeds_and_no_caveat(tmp_path: Path) -> None:
    make_grid(tmp_path, {"adjust.steps": ["0", "9"], "adjust.seed": ["0", "1", "2"]}, seeds=2)
    rows = [row | {"pretrain": "", "pretrain_seed": "", "objective": "", "source": ""} for row in read_rows(tmp_path)]
    write_rows(tmp_path, rows)
    found = scores_of(read_study(tmp_path)).conditions
    assert [(c.seeds, c.runs) for c in found] == [("3 adjustments × 2 seeds", 3)] * 2, (
        "cells that differ in adjust.seed are the runs"
    )
    write_report(tmp_path)
    assert "one pretraining seed" not in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0", ".25", "1"], {"0": 0.0, ".25": 0.25, "1": 1.0}),
        (["25%", "100 %"], {"25%": 25.0, "100 %": 100.0}),
        (["-1", "+2e3"], {"-1": -1.0, "+2e3": 2000.0}),
        (["1", "one"], None),
        (["nan", "1"], None),
        (["inf"], None),
        (["1.2.3"], None),
        ([""], None),
        ([], None),
    ],
)
def test_numbers_of_labels(labels: list[str], expected: dict[str, float] | None) -> None:
    assert numbers_of(labels) == expected


def test_the_main_axis_and_names() -> None:
    labels = [{"objective": o, "strength": s, "pretrain.seed": "1"} for o in ("MLM", "XLM") for s in ("0", "1")]
    held = layout(["objective", "strength", "pretrain.seed"], labels, "study")
    assert (held.main, list(held.axes)) == ("objective", ["objective", "strength"])
    assert held.group(labels[1]) == "strength 1" and held.name(labels[1]) == "MLM"
    assert layout(["seed"], [{"seed": "1"}, {"seed": "2"}], "study").whole({"seed": "1"}) == "study"
    assert is_seed("adjust.seed") and is_seed("fit_seed") and not is_seed("seedling")
    assert axis_titles(["a.steps", "b.steps", "x.rate"]) == {
        "a.steps": "a.steps",
        "b.steps": "b.steps",
        "x.rate": "rate",
    }


def test_a_single_condition_is_called_by_its_labels_not_by_the_study() -> None:
    labels = [{"alpha": a, "script": s, "pretrain.seed": "0"} for a in ("1", "2") for s in ("trans", "none")]
    held = layout(["alpha", "script", "pretrain.seed"], labels[2:3], "study", grid=labels)
    assert held.fixed == {"alpha": "2", "script": "trans"} and not held.axes
    assert held.name(labels[2]) == held.whole(labels[2]) == held.all_fixed == "alpha 2, trans"
    some = layout(["alpha", "script", "pretrain.seed"], labels[2:], "study", grid=labels)
    assert some.fixed == {"alpha": "2"} and some.whole(labels[2]) == "trans"
    assert layout(["alpha"], [], "study", grid=labels).alone == "study"


def test_the_report_of_a_study_begun_says_which_labels_all_scores_have(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"transform": ["trans", "inv"], "objective": ["MLM", "XLM"]})
    write_rows(folder, read_rows(folder)[:2])
    page = write_report(folder).markdown.read_text()
    assert "; all with trans, MLM; scored on" in page and "Only trans, MLM has been scored" in page


def test_intervals_of_one_value_have_no_bounds_in_tables(tmp_path: Path) -> None:
    write_report(make_grid(tmp_path, {"transform": ["trans"]}, seeds=1))
    line = _table(tmp_path, "scores-1-pos")[0]
    assert (line["Δ"], line["Δ low"], line["Δ high"], line["Δ n"]) == ("10", "", "", "1")


def test_measures_that_claims_read_are_drawn_first(tmp_path: Path) -> None:
    held = layout(["a"], [{"a": "x"}, {"a": "y"}], "one")
    names = ["maps.before.words.csls.mean", "maps.n", "maps.residual", "maps.loss"]
    rows = [measured({"a": "x"}, 0, name, 1.0, layer=layer) | {"probe": "maps"} for name in names for layer in (0, 1)]
    found = measurements(None, pa.Table.from_pylist(rows, pa.schema(list(COLUMNS.items()))))
    telling = [curve.measure for curve in curves(found, held, "layer")]
    assert telling == ["maps.before.words.csls.mean", "maps.residual", "maps.loss"]
    asked = [curve.measure for curve in curves(found, held, "layer", ["maps.nothing", "maps.loss", "maps.residual"])]
    assert asked == ["maps.loss", "maps.residual", "maps.before.words.csls.mean"]
    # what claims of a study read is what is asked for
    (tmp_path / "claims.yaml").write_text(
        "claims:\n- {id: c, claim: C, source: s, compare: [{measure: 'probe:cka.x', left: {}, right: {measure: "
        "'probe:maps.y', instead: 'probe:maps.z'}, relation: less}]}\n"
    )
    make_grid(tmp_path / "study", {"a": ["x", "y"]})
    study = read_study(tmp_path / "study")
    config = {**study.config, "claims": str(tmp_path / "claims.yaml")}
    assert compared([replace(study, config=config)]).measures == ("cka.x", "maps.y", "maps.z")
