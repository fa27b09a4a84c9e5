"""The report of a study: scores and words beside plain computation, what is missing, what is escaped, its settings."""

from __future__ import annotations

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
import yaml
from scipy import stats

from probes.figures.drawing import COLOURS
from probes.report.data import read_study
from probes.report.figures import FIGURES_OF_MANY
from probes.report.folder import write_report
from probes.report.numbers import entry_text
from probes.report.scores import scores_of
from probes.results.labels import axis_titles, is_of_languages, is_seed, layout_of, numbers_of, short_key
from probes.results.measures import interval_within
from probes.results.views import MEASURES, RESULTS
from probes.statistics import Interval
from probes.study.cells import expand
from probes.study.common_settings import DIFFERS, common_settings
from probes.study.config import StudyConfig
from synthlang.config import parse
from tests.refusals import refused
from tests.report_study import (
    EVIL,
    Page,
    Report,
    cells_of,
    change,
    change_rows,
    make_grid,
    make_study,
    read_rows,
    report,
    write_rows,
)
from tests.tiny import STUDY, changed


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_study(tmp_path / "study", curves="")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """A study and its report, figures and all, that no test changes."""
    folder = make_study(tmp_path_factory.mktemp("report") / "study")
    return folder, report(folder)


def shown(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def of_scipy(values: Any, digits: int = 1) -> str:
    """A mean and its t interval as the page has them."""
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return f"{shown(float(np.mean(values)), digits)}|{shown(low, digits)} to {shown(high, digits)}"


# --- numbers ---


def test_means_intervals_seeds_and_correlation_equal_scipy(written) -> None:
    folder, made = written
    table = made.table("objective", "language", "Δ", "Alignment|held out")
    assert len(table) == 6
    for line in table:
        rows = [
            r for r in read_rows(folder) if (r["objective"], r["language"]) == (line["objective"], line["language"])
        ]
        assert len(rows) == 3 and line["Seeds"] == "1 model × 3 seeds"
        for name, column in (("Source", "parent"), ("SUP", "sup"), ("ZS", "zs"), ("Δ", "delta")):
            assert line[name] == of_scipy([float(row[column]) for row in rows])
        assert line["Alignment|held out"] == shown(float(rows[0]["alignment_held_out"]))
    seeds = [(x["Cell"], x["Fine-tuning seed"], x["Δ"]) for x in made.table("Cell", "Fine-tuning seed", "Δ")]
    assert seeds == [(r["cell"], r["seed"], shown(float(r["delta"]), 2)) for r in read_rows(folder)]
    cells = {row["cell"]: row for row in read_rows(folder)}
    deltas = [np.mean([float(r["delta"]) for r in read_rows(folder) if r["cell"] == cell]) for cell in cells]
    rho = stats.spearmanr([float(row["alignment_all"]) for row in cells.values()], deltas).statistic
    line = made.table("ρ", "p")[0]
    assert (line["n"], line["ρ"]) == ("6 conditions|6 models", shown(rho, 2)) and line["p"].endswith("exact")
    names = {"scores", "alignment-1-pos", "loss-1-mlm-trans", "perplexity-1-mlm-trans", "alignment-1-mlm-trans"}
    assert names < made.figures
    assert "signed-loss-1-mlm-trans" not in made.figures and "signed-loss-2-align-mlm-trans" in made.figures


def test_several_pretraining_seeds_make_the_interval(tmp_path: Path) -> None:
    """A run is a cluster: the interval is over the means of runs, never over all seeds of all runs."""
    made = report(make_study(tmp_path, replicates=3, curves=""))
    table = made.table("objective", "language", "Seeds", "Δ")
    assert [line["Seeds"] for line in table] == ["3 models × 3 seeds"] * 6
    rows = [r for r in read_rows(tmp_path) if r["objective"] == "mlm" and r["language"] == "trans"]
    means = [np.mean([float(r["delta"]) for r in rows if r["pretrain"] == p]) for p in {r["pretrain"]: 0 for r in rows}]
    assert (table[0]["objective"], table[0]["language"], table[0]["Δ"]) == ("mlm", "trans", of_scipy(means))
    assert "one pretraining seed" not in made.text


def test_adjustments_of_one_pretraining_are_no_models(tmp_path: Path) -> None:
    """Two pretrainings, of each three adjustments: what is measured by layer has the interval of two models."""
    axes = {"method": ["Adjusted"], "pretrain.seed": ["0", "1"], "adjust.seed": ["0", "1", "2"]}
    make_grid(tmp_path, axes, seeds=1, layers=2)
    cells = cells_of(tmp_path)
    for cell in cells:
        cell["stages"]["pretrain"] = f"{int(cell['labels']['pretrain.seed']) + 1:016x}"
    change(tmp_path, cells=cells)
    of_cell = {cell["name"]: cell["stages"]["pretrain"] for cell in cells}
    change_rows(tmp_path, lambda row, _: {"pretrain": of_cell[row["cell"]], "adjust": row["cell"]})
    made = report(tmp_path)
    measures = read_study(tmp_path).table
    means = measures[measures["layer"] == 0].groupby("pretrain", observed=True)["value"].agg(["mean", "size"])
    assert means["size"].tolist() == [3, 3]
    low, high = stats.t.interval(0.95, 1, means["mean"].mean(), stats.sem(means["mean"]))
    line = next(x for x in made.file("by-layer") if x["Layer"] == "0")
    assert line["Value n"] == "2"
    assert [float(line[f"Value {end}"]) for end in ("low", "high")] == pytest.approx([low, high], rel=1e-4)
    assert scores_of(read_study(tmp_path)).conditions[0].seeds == "2 models × 3 adjustments × 1 seed"
    change_rows(tmp_path, lambda row, _: {"pretrain": "ab" * 8})
    said = "Every condition rests on one pretraining seed. Intervals there cover what was done to the model after"
    assert said in report(tmp_path).text


def test_a_model_without_a_pretraining_has_its_seeds_and_no_caveat(tmp_path: Path) -> None:
    make_grid(tmp_path, {"adjust.steps": ["0", "9"], "adjust.seed": ["0", "1", "2"]}, seeds=2)
    change_rows(tmp_path, lambda *_: {"pretrain": "", "pretrain_seed": "", "objective": "", "source": ""})
    found = scores_of(read_study(tmp_path)).conditions
    assert [(c.seeds, c.runs) for c in found] == [("3 adjustments × 2 seeds", 3)] * 2
    assert "one pretraining seed" not in report(tmp_path).text


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_not_a_number_is_shown_and_counted(study: Path, value: str) -> None:
    rows = read_rows(study)
    rows[0] |= {"zs": value, "delta": value}
    write_rows(study, [dict(row) for row in rows])
    made = report(study)
    line = made.table("objective", "Seeds", "Δ")[0]
    assert line["Seeds"] == "1 model × 3 seeds, 2 of 3 with every score"
    assert line["Δ"] == of_scipy([float(row["delta"]) for row in rows[1:3]])
    assert made.table("Cell", "Fine-tuning seed", "Δ")[0]["Δ"] == {"nan": "NaN", "inf": "inf"}[value]
    assert "2 values of results.parquet are not a number. Means leave them out" in made.text
    assert "mlm-trans, pos, fine-tuning seed 0: zs; mlm-trans, pos, fine-tuning seed 0: delta." in made.text
    write_rows(study, [dict(row) for row in rows[1:]])
    assert "not a number" not in report(study).text


def test_bounds_end_where_a_score_does_and_files_have_them_whole(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"]})
    change_rows(folder, lambda row, _: scored(70.0 + 20 * int(row["seed"]), 99.0))
    made = report(folder)
    whole = interval_within([70.0, 90.0], "delta")
    assert whole.low is not None and whole.high is not None and whole.low < -40 and whole.high > 200
    line, written = made.table("objective", "Δ")[0], made.file("scores-1-pos")[0]
    assert line["Δ"] == f"80.0|{shown(whole.low)} to 100.0" and line["ZS"] == "10.0|0.0 to 100.0"
    assert float(written["Δ high"]) == pytest.approx(whole.high, rel=1e-5) and float(written["ZS low"]) < -100
    assert made.text.count("If an interval exceeds the range of possible scores") == 1
    assert re.findall(r"\(?−?\d+\.\d to (1\d\d\.[1-9]|[2-9]\d\d\.\d)", made.text) == []


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        *(("delta", -100, 100), ("zs", 0, 100), ("alignment_held_out", 0, 100)),
        *(("words.scores.all.csls.mean", 0, 100), ("distances.models.model.layers.l2.auc.mean", 0, 1)),
    ],
)
def test_shown_bounds_hold_the_mean(column: str, low: float, high: float) -> None:
    edges = [interval_within([low, low, high], column), interval_within([low, low, low + 1e-3], column)]
    for one in edges:
        clipped = one.shown
        assert one.low is not None and clipped.low is not None and clipped.high is not None
        assert one.low < low and low <= clipped.low <= one.mean <= clipped.high <= high
    assert interval_within([5.0, -5.0], "loss").shown == interval_within([5.0, -5.0], "loss"), "no range is known"
    assert entry_text(Interval(50.0, None, None, 1, 0.95, (0.0, 100.0))) == "50.0"


def test_a_column_of_one_number_is_a_sentence(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"transform": ["a", "b"], "strength": ["0", "1"], "pretrain.seed": ["0", "1"]})
    same = {"alignment_dictionary": 100.0}
    change_rows(folder, lambda row, _: same | {"alignment_held_out": 7.0 + (row["cell"] == "a, 0, 0")})
    made = report(folder)
    header = list(made.table("transform", "Δ")[0])
    assert "Alignment|in dictionary" not in header and {"Alignment|held out", "Alignment|all types", "Δ"} < set(header)
    told = "one value in all rows: SUP 90.0, Source 95.0, Alignment (in dictionary) 100.0."
    assert told in made.text
    assert {line["Alignment in dictionary"] for line in made.file("scores-1-pos")} == {"100"}
    assert "100.0" not in (made.paths.tables / "scores-1-pos.tex").read_text().split("\\midrule")[-1]
    one = report(make_grid(tmp_path / "one", {"transform": ["a"]}, seeds=1))
    assert "one value in all rows" not in one.text, "one row is no column"
    line = one.file("scores-1-pos")[0]
    assert (line["Δ"], line["Δ low"], line["Δ high"], line["Δ n"]) == ("10", "", "", "1"), "one value has no bounds"


def test_many_cells_have_few_figures_and_short_tables_and_every_number_in_files(tmp_path: Path) -> None:
    axes = {"transform": ["a", "b", "c"], "strength": [str(i / 20) for i in range(20)]}
    axes |= {"objective": ["MLM", "XLM"], "pretrain.seed": ["0", "1"]}
    made = report(make_grid(tmp_path, axes, tasks=("pos", "ner"), layers=3, steps=(1, 2)))
    assert 3 <= len(made.figures) <= FIGURES_OF_MANY
    assert len(made.table("transform", "strength", "Δ")) == 120 == len(made.file("scores-1-pos"))
    assert len(made.table("Cell", "Fine-tuning seed", "Δ")) == 300 and len(made.file("seeds")) == 240 * 2 * 2
    assert "The page has the first 300 of 960 rows, and tables/seeds.csv has all" in made.text
    assert len(made.file("cells")) == 240 and len(made.html) < 3_000_000


# --- words ---


def scored(delta: float, alignment: float) -> dict[str, Any]:
    return {"delta": delta, "zs": 90 - delta, "alignment_all": alignment}


def test_the_first_screen_has_the_alignment_that_the_paper_prints(tmp_path: Path) -> None:
    """Table 8 has it from the original to the derived language; results without it have the mean of both."""
    axes = {"objective": ["MLM", "ALIGN-MLM"], "transform": ["trans+inv"], "pretrain.seed": ["0", "1"]}
    folder = make_grid(tmp_path, axes, config={"paper": ["align_mlm/table3", "align_mlm/table8"]})
    assert report(folder).table("condition", "Δ", "SUP")[0]["Alignment"] == "49.5"
    change_rows(folder, lambda row, labels: {"alignment_forward": 60.0 + int(labels["pretrain.seed"])})
    assert [line["Alignment"] for line in report(folder).table("condition", "Δ", "SUP")] == [
        "60.5|paper 0.3",
        "60.5|paper 95.2",
    ]


def test_the_majority_baseline_stands_beside_sup_where_there_is_any(tmp_path: Path) -> None:
    axes = {"method": ["Original", "Adjusted"], "pretrain.seed": ["0", "1"]}
    folder = make_grid(tmp_path, axes, tasks=("nli", "ner", "qa"))

    def fewer(row: dict[str, str], labels: dict[str, str]) -> dict[str, Any]:
        """SUP of NLI and NER for one condition, of QA for none; the baseline of the other is that of the parent."""
        has = labels["method"] == "Original" and row["task"] != "qa"
        majority = 33.3 if row["task"] == "nli" else 17.7 if has else 7.2
        return {"majority": majority} | ({} if has else {"sup": "", "delta": ""})

    change_rows(folder, fewer)
    lines = report(folder).table("condition", "ZS|nli", "SUP|nli, majority 33.3", "SUP|ner, majority 17.7")
    assert [line["SUP|ner, majority 17.7"] for line in lines] == ["90.0", "–"]
    assert [line["majority baseline|qa"] for line in lines] == ["7.2", "7.2"]


def test_the_main_figure_of_an_axis_of_numbers_is_its_curve(tmp_path: Path) -> None:
    made = report(make_grid(tmp_path, {"alpha": ["1", "2", "3"], "objective": ["MLM", "XLM"]}))
    assert "figures/dose-1-alpha-1-pos-delta.svg" in made.lead and "scores" not in made.figures
    assert made.text.count("figures/dose-1-alpha-1-pos-delta.svg") == 1, "a figure is shown once"


def test_a_sentence_of_each_language_is_shown(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"transform": ["inv", "trans"]})
    texts = {"parent": "A sailor saw John .", "inversion": "John saw sailor A ."}
    change(folder, examples=[{"language": name, "cell": "inv", "text": text} for name, text in texts.items()])
    part = report(folder).text.split("## Languages")[1].split("## ")[0]
    assert "**parent**\n\n- A sailor saw John ." in part and "**inv (inversion)**\n\n- John saw sailor A ." in part


# --- labels ---


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0", ".25", "1"], {"0": 0.0, ".25": 0.25, "1": 1.0}),
        (["25%", "100 %"], {"25%": 25.0, "100 %": 100.0}),
        (["-1", "+2e3"], {"-1": -1.0, "+2e3": 2000.0}),
        *((labels, None) for labels in (["1", "one"], ["nan", "1"], ["inf"], ["1.2.3"], [""], [])),
    ],
)
def test_numbers_of_labels(labels: list[str], expected: dict[str, float] | None) -> None:
    assert numbers_of(labels) == expected


def test_the_main_axis_and_names() -> None:
    labels = [{"objective": o, "strength": s, "pretrain.seed": "1"} for o in ("MLM", "XLM") for s in ("0", "1")]
    layout = layout_of(["objective", "strength", "pretrain.seed"], labels, "study")
    assert (layout.main, list(layout.axes)) == ("objective", ["objective", "strength"])
    assert layout.group(labels[1]) == "strength 1" and layout.name(labels[1]) == "MLM"
    assert layout_of(["seed"], [{"seed": "1"}, {"seed": "2"}], "study").full_name({"seed": "1"}) == "study"
    assert is_seed("adjust.seed") and is_seed("fit_seed") and not is_seed("seedling")
    assert axis_titles(["a.steps", "b.steps", "x.rate"]) == {
        "a.steps": "a.steps",
        "b.steps": "b.steps",
        "x.rate": "rate",
    }
    seeds = {"pretrain.seed": "pretrain seed", "adjust.seed": "adjust seed", "seed": "seed", "a.steps": "steps"}
    assert {key: short_key(key) for key in seeds} == seeds


def test_a_single_condition_is_called_by_its_labels_not_by_the_study() -> None:
    labels = [{"alpha": a, "script": s, "pretrain.seed": "0"} for a in ("1", "2") for s in ("trans", "none")]
    layout = layout_of(["alpha", "script", "pretrain.seed"], labels[2:3], "study", grid=labels)
    assert layout.fixed == {"alpha": "2", "script": "trans"} and not layout.axes
    assert layout.name(labels[2]) == layout.full_name(labels[2]) == layout.all_fixed == "alpha 2, trans"
    some = layout_of(["alpha", "script", "pretrain.seed"], labels[2:], "study", grid=labels)
    assert some.fixed == {"alpha": "2"} and some.full_name(labels[2]) == "trans"
    assert layout_of(["alpha"], [], "study", grid=labels).alone == "study"


def test_which_axis_is_of_languages() -> None:
    layout = layout_of(["speech", "alpha"], [{"speech": s, "alpha": a} for s in "ab" for a in "12"], "s", {"speech"})
    assert (layout.main, layout.compared) == ("alpha", ("alpha",))
    named = layout_of(["transform", "strength"], [{"transform": t, "strength": s} for t in "ab" for s in "12"], "s")
    assert (named.main, named.compared) == ("strength", ("strength",))
    alone = layout_of(["transform"], [{"transform": t} for t in "ab"], "s")
    assert (alone.main, alone.compared) == ("transform", ("transform",)), "there is nothing else"
    assert is_of_languages("pretrain.language") and is_of_languages("pretrain.languages.1.source")
    assert not is_of_languages("pretrain.languages.1.transforms.0.strength")


# --- the page ---


def test_everything_is_escaped_and_nothing_is_loaded(study: Path) -> None:
    labels = json.dumps({EVIL: EVIL, "axis": "$x$|" + EVIL})
    change_rows(study, lambda *_: {"cell": EVIL, "task_name": EVIL, "labels": labels})
    dropped = {EVIL: {EVIL: {"least": 1, "most": 3, "stages": 1, "of": 1}}}
    change(study, title=EVIL, environment={EVIL: EVIL}, config={"x": EVIL}, axes=[EVIL], dropped=dropped)
    made = report(study)
    page = Page(made.html)
    assert "script" not in page.tags and EVIL not in re.sub(r"(?m)^    .*$", "", made.text), "but in code"
    assert "b" not in page.tags, "the error message of a failed cell"
    assert all(address.startswith("#") for address in page.addresses)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", made.html)
    for figure in made.paths.figures.iterdir():
        ElementTree.parse(figure)


@pytest.mark.usefixtures("rendered")
def test_well_formed_with_unique_ids_text_alternatives_and_equal_bytes(study: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "copy"
    shutil.copytree(study, other)
    contents = []
    for folder in (study, other, study):
        made = report(folder)
        files = sorted(path for path in folder.rglob("*") if "stages" not in str(path))
        contents.append({path.name: path.read_bytes() for path in files if path.is_file()})
        (folder / "results.csv").write_text("cell\nother\n")  # an export that is not read
    assert all(content | contents[0] | {"results.csv": b""} == content | {"results.csv": b""} for content in contents)
    page = Page(made.html)
    assert page.open == [] and len(set(page.ids)) == len(page.ids)
    references = re.findall(r'(?:href="#|url\(#)([^")]+)', made.html)
    assert references and set(references) <= set(page.ids)
    assert page.tags.count("svg") == made.html.count('role="img" aria-label="') == len(made.figures)
    links = re.findall(r"!\[[^]]*\]\(figures/([^)]*)\.svg\)", made.text)
    assert sorted(links) == sorted(made.figures)
    svg = (made.paths.figures / "alignment-1-pos.svg").read_text()
    intervals = svg[svg.index('id="LineCollection_1"') :].partition("</g>")[0]
    assert intervals.count(COLOURS[0]), "intervals have the colours of their points"


MISSING = {
    "results": "results.parquet is missing",
    "metrics": "No metrics were logged: mlm-trans",
    "runs": "There are no curves where the run folder is missing: mlm-trans; align_mlm-trans",
    "alignment": "No cell has both an alignment and a Δ",
    "seeds": "no test is possible in",
    "cells": "No pretraining run was recorded",
    "all but json": "results.parquet is missing",
    "delta": "No cell has both an alignment and a Δ",
}


@pytest.mark.parametrize("missing", MISSING)
def test_missing_pieces_are_said_and_do_no_harm(tmp_path: Path, missing: str) -> None:
    folder = make_study(
        tmp_path, seeds=1 if missing == "seeds" else 3, curves="trans" if missing in ("metrics", "runs") else ""
    )
    if missing in ("results", "all but json"):
        (folder / "results.parquet").unlink()
    if missing == "metrics":
        for path in folder.glob("stages/*/metrics.jsonl"):
            path.unlink()
    if missing == "runs":
        shutil.rmtree(folder / "stages")
    if missing in ("alignment", "delta"):
        columns = ("delta",) if missing == "delta" else ("alignment_all", "alignment_dictionary", "alignment_held_out")
        change_rows(folder, lambda *_: dict.fromkeys(columns, ""))
    if missing == "cells":
        change(folder, cells=[])
    if missing == "all but json":
        (folder / "study.json").write_text('{"format": 2}')
    text = report(folder).html
    assert MISSING[missing] in text and Page(text).open == []
    assert not re.search(r"\bnan\b|\bNone\b", re.sub(r"<svg.*?</svg>|<style.*?</style>", "", text, flags=re.S))


NO_STUDIES = [
    (None, "study.json", "missing"),
    ("[]", "study.json", "format"),
    ('{"format": 2, "cells": [{"name": 1}]}', "study.json cells.0.name", "type"),
    ('{"format": 2, "title": 1, "cells": [{"name": 1}]}', "study.json title", "type"),
    ('{"format": 2, "cells": "abc"}', "study.json", "format"),
    ('{"format": 2, "cells": [{"name": "a", "like": "b"}]}', "study.json", "format"),
    ('{"cells": []}', "study.json", "format"),
]


@pytest.mark.parametrize(("record", "place", "code"), NO_STUDIES)
def test_what_is_no_study_is_refused(tmp_path: Path, record: str | None, place: str, code: str) -> None:
    if record is not None:
        (tmp_path / "study.json").write_text(record)
    assert refused(write_report, tmp_path) == (place, code)


@pytest.mark.parametrize("name", ["results", "measures"])
def test_what_is_no_table_of_a_study_is_an_error(study: Path, name: str) -> None:
    columns = RESULTS if name == "results" else MEASURES
    table: dict[str, Any] = {key: pa.nulls(1, kind) for key, kind in columns.items()} | {
        "cell": ["a"],
        "labels": ["{}"],
    }
    table |= {"layer": [1]} if name == "measures" else {}
    numbers = {key: [text] for key, text in (("delta", "many"), ("value", "one")) if key in columns}
    path = study / f"{name}.parquet"
    for changes, place, code in (
        (None, path.name, "format"),
        ({"cell": ["a"]}, path.name, "missing"),
        (table | {"labels": ["{,"]}, f"{path.name} row 1.labels", "format"),
        *([(table | {"mixed": ["[1]"]}, f"{path.name} row 1.mixed", "format")] if name == "results" else []),
        *([(table | {"mixed": ['{"a": "x"}']}, f"{path.name} row 1.mixed.a", "type")] if name == "results" else []),
        (table | numbers, f"{path.name} {next(iter(numbers))}", "type"),
    ):
        if changes is None:
            path.write_bytes(b"PAR1 no")
        else:
            pq.write_table(pa.table(changes), path)
        assert refused(write_report, study) == (place, code)


def test_dropped_is_listed(tmp_path: Path) -> None:
    too_long = {"too long": {"least": 0, "most": 1200, "stages": 2, "of": 3}}
    make_grid(tmp_path, {"transform": ["trans"]})
    line = {"Data": "trans train", "What": "too long", "Least": "0", "Most": "1200", "In stages": "2 of 3"}
    of_stage = {"pretrain": {"trans train": too_long, "trans dev": {}}}
    for dropped, stage in ((of_stage, "pretrain"), ({"mine": of_stage}, "mine › pretrain")):  # of two studies joined
        change(tmp_path, dropped=dropped)
        assert report(tmp_path).file("dropped") == [{"Stage": stage, **line}]
    change(tmp_path, dropped={"pretrain": {"trans train": {}}})
    assert "Nothing was left out." in report(tmp_path).text


def test_what_cells_have_in_common_is_what_each_of_them_says() -> None:
    grid = {"product": {"pretrain.objective.kind": ["mlm", "align_mlm"], "pretrain.seed": [0, 1], "half": {
        "yes": {}, "no": {"tasks.ner": {}}}}}  # fmt: skip
    cells = expand(parse(StudyConfig, changed(STUDY, pretrain__language="trans", grid=grid, tasks={"pos": {}})))
    found = common_settings(cells)
    runs = [cell.pretrain.model_dump(mode="json", round_trip=True) for cell in cells if cell.pretrain is not None]
    for key, value in found["pretrain"].items():
        values = [run[key] for run in runs]
        assert all(one == value for one in values) or isinstance(value, dict) or value == DIFFERS, key
    assert found["pretrain"]["seed"] == DIFFERS == found["pretrain"]["objective"]["kind"]
    assert found["pretrain"]["objective"]["mask_rate"] == runs[0]["objective"]["mask_rate"]
    assert found["pretrain"]["steps"] == runs[0]["steps"] != DIFFERS
    assert found["tasks"]["ner"] == DIFFERS and found["tasks"]["pos"]["task"] == "pos"
    assert found.keys() == {"pretrain", "tasks"}


def test_settings_in_full_and_fingerprints_are_folded(tmp_path: Path) -> None:
    settings = {"pretrain": {"steps": 12345, "seed": DIFFERS}}
    folder = make_grid(tmp_path, {"transform": ["trans", "inv"]}, settings=settings)
    made = report(folder)
    aside = re.findall(r'<details class="aside"><summary>(.*?)</summary>(.*?)</details>', made.html, re.S)
    assert [summary for summary, _ in aside] == ["Fingerprints of 2 cells, stage by stage", "All settings"]
    assert "pretrain fingerprint" in aside[0][1] and "steps: 12345" in aside[1][1]
    block = made.text.split("**All settings**")[1]
    code = "\n".join(line.removeprefix("    ") for line in block.splitlines() if line.startswith("    "))
    assert yaml.safe_load(code) == settings and "\n## " not in block, "at the end"
    assert "details:not(.aside)" in made.html, "on paper the others are open"
    change(folder, settings=None)
    assert "The combined settings are not recorded" in report(folder).text
