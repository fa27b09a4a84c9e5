"""Sections of curves: scores over doses, measures over layers and steps, words without context, curves of training."""

from __future__ import annotations

import csv
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from probes.figures.bars import accuracy_bars
from probes.figures.drawing import Drawing, draw, shorten, writable
from probes.figures.lines import Series, curve_figures, lines_over
from probes.figures.maps import Setting, settings_map
from probes.report import layers, maps
from probes.report.data import WITHOUT_CONTEXT, Study, read_study
from probes.report.judged import compared
from probes.report.layers import measure_curves
from probes.report.scores import scores_of
from probes.results.read import measurements
from probes.results.views import MEASURES as COLUMNS
from tests.claims import measured
from tests.report_study import (
    cells_of,
    joined,
    make_grid,
    read_rows,
    report,
    write_measures,
)


def of_scipy(values: Any) -> Any:
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return pytest.approx((float(np.mean(values)), float(low), float(high)), rel=1e-4, abs=2e-6)


def found(line: dict[str, str], name: str) -> tuple[float, ...]:
    return tuple(float(line[name + end]) for end in ("", " low", " high"))


# --- doses ---


def test_dose_response_has_every_point_with_the_interval_over_runs(tmp_path: Path) -> None:
    axes = {"transform": ["trans", "inv"], "strength": ["0", "0.50", "1"], "pretrain.seed": ["0", "1", "2"]}
    made = report(make_grid(tmp_path, axes, tasks=("pos", "ner")))
    lines = made.file("dose-1-strength")
    assert len(lines) == 2 * 2 * 3
    for line in lines:
        where = {"transform": line["Other settings"], "strength": line["strength"]}
        rows = [
            row
            for row in read_rows(tmp_path)
            if row["task"] == line["Task"] and where.items() <= json.loads(row["labels"]).items()
        ]
        for column, name in (("delta", "Δ"), ("zs", "ZS"), ("alignment_all", "Alignment, all types")):
            runs = [[float(r[column]) for r in rows if r["pretrain"] == p] for p in {r["pretrain"]: 0 for r in rows}]
            assert found(line, name) == of_scipy([float(np.mean(run)) for run in runs]) and line[f"{name} n"] == "3"
    drawn = {f"dose-1-strength-{n}-{t}-{kind}" for n, t in ((1, "pos"), (2, "ner")) for kind in ("delta", "scores")}
    assert drawn | {"dose-1-strength-alignment"} <= made.figures
    figure = (made.paths.figures / "dose-1-strength-1-pos-delta.svg").read_text()
    assert "pos: Δ over strength; at the end: from 17.5 (trans) to 26.5 (inv)." in figure
    numbers = {line["strength"] for line in made.table("transform", "strength", "Δ")}
    assert numbers == {line["strength"] for line in made.table("strength", "Other settings")} == {"0", "0.50", "1"}


def test_an_axis_of_words_or_of_one_number_has_no_dose_response(tmp_path: Path) -> None:
    made = report(make_grid(tmp_path, {"transform": ["trans", "inv"], "strength": ["1"], "steps": ["10", "many"]}))
    assert "Dose–response" not in made.text and "figures/scores.svg" in made.text


@pytest.mark.parametrize(
    ("doses", "log"),
    [([0.1, 1.0, 2.0], True), ([0.1, 1.0, 1.9], False), ([0.0, 1.0, 100.0], False), ([-1.0, 1.0, 50.0], False)],
)
def test_doses_that_span_much_have_a_log_axis(doses: list[float], log: bool) -> None:
    drawing = lines_over("d", "Δ", [Series("a", doses, [1.0, 2.0, 3.0])], ("alpha", "Δ"), "", {doses[0]: "first"})
    found: list[Any] = []

    def paint(canvas: Any) -> None:
        drawing.paint(canvas)
        axes = canvas.axes[0]
        found.extend([axes.get_xscale(), axes.get_xlabel(), [label.get_text() for label in axes.get_xticklabels()]])

    draw(4, 3, paint)
    assert found[:2] == (["log", "alpha (log scale)"] if log else ["linear", "alpha"])
    assert found[2] == ["first", *(f"{x:g}" for x in doses[1:])]


# --- maps ---


@pytest.fixture
def drawn_maps(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[tuple[str, str], float]]:
    """Name of each map → labels up and across → the number that is drawn."""
    found: dict[str, dict[tuple[str, str], float]] = {}

    def recorded(name: str, title: str, table: np.ndarray, up: Setting, across: Setting, *rest: Any) -> Drawing:
        found[name] = {(up.labels[i], across.labels[j]): value for (i, j), value in np.ndenumerate(table)}
        return settings_map(name, title, table, up, across, *rest)

    monkeypatch.setattr(maps, "settings_map", recorded)
    return found


def test_two_axes_of_numbers_have_a_map_of_the_means_over_models(
    tmp_path: Path, drawn_maps: dict[str, dict[tuple[str, str], float]]
) -> None:
    axes = {"objective": ["MLM", "XLM"], "steps": ["2000", "500"], "rate": ["0.01", "0.1", "0.02"]}
    made = report(make_grid(tmp_path, axes | {"pretrain.seed": ["0", "1"]}, jitter=1.3))
    rows = [(json.loads(row["labels"]), row) for row in read_rows(tmp_path)]
    assert {name for name in made.figures if name.startswith("map-")} == {
        *("map-1-alignment-mlm", "map-2-alignment-xlm", "map-3-pos-mlm", "map-4-pos-xlm")
    }
    for name, column, objective in (("1-alignment-mlm", "alignment_all", "MLM"), ("4-pos-xlm", "delta", "XLM")):
        drawn = drawn_maps[f"map-{name}"]
        assert list(drawn) == [(up, across) for up in ("500", "2000") for across in ("0.01", "0.02", "0.1")]
        for (steps, rate), value in drawn.items():
            where = {"objective": objective, "steps": steps, "rate": rate}.items()
            expected = np.mean([float(row[column]) for labels, row in rows if where <= labels.items()])
            assert value == pytest.approx(expected, abs=0.051)


def test_a_study_without_tasks_has_a_map_of_its_alignments(
    tmp_path: Path, drawn_maps: dict[str, dict[tuple[str, str], float]]
) -> None:
    folder = make_grid(tmp_path, {"steps": ["1", "2"], "rate": ["3", "4"]}, tasks=())
    perplexity, path = "pretrain.perplexity.parent", "alignment.scores.all.cosine.mean"
    cells = [(cell["name"], json.dumps(cell["labels"])) for cell in cells_of(folder)]
    measured = [(*cell, 0, "alignment", path, "", "", 7.0 * i) for i, cell in enumerate(cells)]
    write_measures(folder, [*measured, *((*cell, 0, "pretrain", perplexity, "", "", 9.0) for cell in cells)])
    report(folder)
    assert drawn_maps["map-1-alignment"] == {("1", "3"): 0.0, ("1", "4"): 7.0, ("2", "3"): 14.0, ("2", "4"): 21.0}


@pytest.mark.parametrize(
    "axes",
    [
        {"steps": ["1", "2"], "transform": ["trans", "inv"]},
        {"steps": ["1", "2"], "rate": ["3"]},
        {"steps": ["1", "2"], "pretrain.seed": ["0", "1"]},
    ],
)
def test_without_two_axes_of_numbers_there_is_no_map(tmp_path: Path, axes: dict[str, list[str]]) -> None:
    assert not any(name.startswith("map-") for name in report(make_grid(tmp_path, axes)).figures)


# --- layers and steps ---


def test_measures_by_layer_are_of_the_last_checkpoint_and_over_runs(tmp_path: Path) -> None:
    axes = {"transform": ["trans", "inv"], "pretrain.seed": ["0", "1", "2"]}
    made = report(make_grid(tmp_path, axes, layers=3, steps=(100, 200)))
    with (tmp_path / "measures.csv").open() as handle:
        raw = list(csv.DictReader(handle))
    by_layer, by_step = made.file("by-layer"), made.file("by-step")
    assert len(by_layer) == 2 * 3 and len(by_step) == 2 * 3 * 2
    rows = [(json.loads(r["labels"])["transform"], r["layer"], r["step"], float(r["value"])) for r in raw]
    for line in [*by_layer, *by_step]:
        wanted = (line["Condition"], line.get("Layer") or line["Measure"][-1], line.get("Step", "200"))
        assert found(line, "Value") == of_scipy([value for *where, value in rows if tuple(where) == wanted]), wanted
    kinds = [name.partition("-")[0] for name in made.figures]
    assert (kinds.count("layer"), kinds.count("step")) == (1, 3)


def test_a_condition_without_a_finite_value_is_left_out(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"]}, layers=2)
    values = {"cka.a": ("nan", "inf"), "cka.b": (0.5, "nan")}
    lines = [
        [cell["name"], json.dumps(cell["labels"]), 0, "cka", name, layer, "", of[number]]
        for name, of in values.items()
        for number, cell in enumerate(cells_of(folder))
        for layer in (0, 1)
    ]
    write_measures(folder, lines)
    found = {(line["Measure"], line["Condition"]) for line in report(folder).file("by-layer")}
    assert found == {("cka: cka.b", "MLM")}


def test_measures_that_claims_read_are_drawn_first(tmp_path: Path) -> None:
    names = ["maps.residual", "maps.loss", "maps.before.words.csls.mean.p@1"]
    rows = [
        measured({"a": a}, 0, name, 1.0, layer=i) | {"probe": "maps"} for name in names for i in (0, 1) for a in "xy"
    ]
    table = measurements(None, pa.Table.from_pylist(rows, pa.schema(list(COLUMNS.items()))))
    study = Study("s", measured=table.assign(failed=""))
    main_first = [curve.measure for curve in measure_curves(scores_of(study), "layer")]
    assert main_first == ["maps.before.words.csls.mean.p@1", "maps.residual", "maps.loss"]
    claimed = ["maps.nothing", "maps.loss", "maps.residual"]
    asked = [curve.measure for curve in measure_curves(scores_of(study, claimed), "layer")]
    assert asked == ["maps.loss", "maps.residual", "maps.before.words.csls.mean.p@1"]
    # what claims of a study read is what is asked for
    (tmp_path / "claims.yaml").write_text(
        "claims:\n- {id: c, claim: C, source: s, compare: [{measure: 'probe:cka.x', left: {}, right: {measure: "
        "'probe:maps.y', instead: 'probe:maps.z'}, relation: less}]}\n"
    )
    study = read_study(make_grid(tmp_path / "study", {"a": ["x", "y"]}))
    config = {**study.config, "claims": str(tmp_path / "claims.yaml")}
    assert compared([replace(study, config=config)]).measures == ("cka.x", "maps.y", "maps.z")


# --- words without context ---

PAIRS = {"pair": ["en-fr", "en-zh"], "seed": ["0", "1", "2"]}
EMBEDDINGS, STATIC, BEFORE = WITHOUT_CONTEXT


def with_words(folder: Path, probes: tuple[str, ...] = ("maps",), **more: Any) -> Path:
    """Cells whose probes found words: 40 % + 3 a cell + 1 a probe. The first pair has no static vectors."""
    make_grid(folder, PAIRS, **more)
    rows = []
    for number, cell in enumerate(cells_of(folder)):
        labels = json.dumps(cell["labels"])
        for place, probe in enumerate(probes):
            value = 40.0 + 3 * number + place
            values = {EMBEDDINGS: value, BEFORE: 1.5}
            values |= {STATIC: value - 20} if cell["labels"]["pair"] == "en-zh" else {}
            rows += [[cell["name"], labels, number, probe, name, "", "", value] for name, value in values.items()]
    write_measures(folder, rows)
    return folder


def test_words_of_a_condition_are_the_mean_over_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def kept(name: Any, title: Any, bars: Any, *texts: Any) -> Any:
        drawn.append(bars)
        return accuracy_bars(name, title, bars, *texts)

    monkeypatch.setattr(layers, "accuracy_bars", kept)
    made = report(with_words(tmp_path))
    ((*bars,),) = drawn
    rotated, static, before = "embeddings, rotated", "static vectors, rotated", "embeddings, no map"
    expected = {("en-fr", rotated): 43.0, ("en-fr", before): 1.5}
    expected |= {("en-zh", rotated): 52.0, ("en-zh", static): 32.0, ("en-zh", before): 1.5}
    assert {(bar.tag, bar.model): bar.accuracy.mean for bar in bars} == expected and bars[0].accuracy.low is not None
    first, second = made.file("words-alone-1-maps")
    name = next(name for name in first if name.startswith("static vectors"))
    assert (first["condition"], second["condition"], first[name], second[name]) == ("en-fr", "en-zh", "", "32")
    assert "Words without context" in made.html and "words-alone-1-maps" in made.figures
    monkeypatch.setattr(layers, "BARS", 1)
    assert "1 further condition not drawn" in report(tmp_path).html


def test_words_of_each_probe_and_of_joined_studies_stand_by_themselves(tmp_path: Path) -> None:
    """Also where the first study has none: each under the label of its study."""
    made = report(with_words(tmp_path / "a", ("first", "second")))
    one, two = (made.file(f"words-alone-{n}-{probe}")[0] for n, probe in ((1, "first"), (2, "second")))
    assert [float(row["embeddings rotated"]) for row in (one, two)] == [43, 44]
    none = make_grid(tmp_path / "none", PAIRS, name="none")
    assert "Words without context" not in report(none).html
    studies = [none, *(with_words(tmp_path / name, name=name) for name in "bc")]
    lines = joined(studies, tmp_path / "out").file("words-alone-1-maps")
    assert [line["condition"] for line in lines] == [f"{study}, {pair}" for study in "bc" for pair in PAIRS["pair"]]
    assert {line["embeddings rotated n"] for line in lines} == {"3"}


# --- training ---


def logged(folder: Path, lines: Any) -> Path:
    """Each cell's run has logged what ``lines`` says of it."""
    for cell in cells_of(folder):
        (folder / cell["run"]).mkdir(parents=True)
        text = "\n".join(json.dumps({"step": step, **lines(cell, step)}) for step in (1, 2, 3))
        (folder / cell["run"] / "metrics.jsonl").write_text(text)
    return folder


@pytest.mark.parametrize(("damaged", "told"), [(0, "3 lines"), (1, "2 lines"), (2, "1 line")])
def test_lines_of_a_log_that_were_not_read_are_told(tmp_path: Path, damaged: int, told: str) -> None:
    path = logged(make_grid(tmp_path, {"pretrain.seed": ["0"]}), lambda _, step: {"mlm": 5.0 - step})
    (log,) = path.glob("stages/*/metrics.jsonl")
    lines = log.read_text().split("\n")
    lines[damaged] = lines[damaged][:-3]
    log.write_text("\n".join([*lines, "", ""]))
    assert f": {told} of metrics.jsonl could not be read." in report(tmp_path).text


def test_a_run_of_each_condition_has_its_curves_first(tmp_path: Path) -> None:
    axes = {"objective": [f"o{i}" for i in range(5)], "transform": ["a", "b"], "pretrain.seed": ["0", "1"]}
    text = report(logged(make_grid(tmp_path, axes), lambda _, step: {"mlm": 5.0 - step / 10})).text
    curves = re.findall(r"\*\*(\S+, \S+), (\d): curves\*\*", text)
    assert curves == [(f"o{i}, {t}", "0") for i in range(4) for t in "ab"]
    named = "; ".join([f"o4, {t}" for t in "ab"] + [f"o{i}, {t}" for i in range(4) for t in "ab"])
    assert f"No curves are shown for 12 further runs: {named}." in text
    alone = make_grid(tmp_path / "alone", {"pretrain.seed": ["0", "1"]})
    text = report(logged(alone, lambda _, step: {"mlm": 5.0 - step})).text
    assert len(re.findall(r"\*\*\d: curves\*\*", text)) == 2 and "No curves" not in text, "there is room for both"


def test_the_terms_of_an_adjustment_are_no_losses_of_masked_tokens() -> None:
    log = {"pull": 30.0, "hold": 9.0, "sentence_pairs_per_second": 240.0, "lr": 1e-4, "related/es-en": 2.0}
    for more, kinds in (({}, ["adjustment", "distances"]), ({"mlm": 2.0}, ["loss", "adjustment", "distances"])):
        found = curve_figures("es", [{"step": step, **more, **log} for step in (1.0, 2.0)], 1)
        assert [figure.name.partition("-")[0] for figure in found] == kinds


# --- labels in figures ---

LABELS = ["日本語の条件", "한국어", "العربية", "हिन्दी"]


@pytest.mark.usefixtures("rendered")
def test_labels_that_the_font_cannot_write_are_text_for_the_readers_fonts(tmp_path: Path) -> None:
    folder = make_grid(tmp_path / "study", {"objective": [*LABELS, "MLM"], "pretrain.seed": ["0", "1"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = report(folder)
    for figure in ("scores", "alignment-1-pos"):
        svg = (made.paths.figures / f"{figure}.svg").read_text(encoding="utf-8")
        assert all(f">{label}</text>" in svg for label in LABELS), figure
        assert ">MLM</text>" not in svg, "what the font can write is drawn, the same everywhere"
    assert all(f">{label}</text>" in made.html for label in LABELS)


def test_a_wide_letter_counts_twice() -> None:
    assert shorten("日本語日本語", 12) == "日本語日本語" and shorten("日本語日本語", 11) == "日本語日本…"
    assert writable("naïve ß Δ") and not any(map(writable, LABELS))
