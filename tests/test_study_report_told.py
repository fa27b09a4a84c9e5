"""What a report says of a study, and what it leaves out: comparisons, bounds, curves, settings, columns, names."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from probes.figures.drawing import draw
from probes.figures.lines import Series, curve_figures, dose_response
from probes.report.numbers import entry_text
from probes.statistics import Interval
from probes.study.cells import expand
from probes.study.config import StudyConfig
from probes.study.labels import is_of_languages, layout, short_key
from probes.study.report.folder import write_report
from probes.study.report.scores import interval_within
from probes.study.resolved import DIFFERS, common_settings
from synthlang.config import parse
from tests.report_study import Page, change, make_grid, make_study, read_rows, write_rows
from tests.tiny import STUDY, changed


def _lead(folder: Path) -> list[str]:
    text = write_report(folder).markdown.read_text().split("## Summary")[1].split("\n## ")[0]
    return [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]


def _rescored(folder: Path, score: Any) -> None:
    """Δ and alignment of each row by its labels and its seed."""
    rows: list[dict[str, Any]] = list(read_rows(folder))
    for row in rows:
        delta, alignment = score(json.loads(row["labels"]), int(row["seed"]))
        row |= {"delta": delta, "zs": 90 - delta, "alignment_all": alignment}
    write_rows(folder, rows)


# --- comparisons in words ---


def test_an_ablation_is_compared_under_each_language(tmp_path: Path) -> None:
    axes = {"pretrain.objective.alpha": ["0.1", "1.0", "10.0"], "transform": ["trans", "trans+inv"]}
    folder = make_grid(tmp_path, axes)
    best = {"trans": "1.0", "trans+inv": "10.0"}
    _rescored(
        folder,
        lambda of, seed: (5.0 + seed if of["pretrain.objective.alpha"] == best[of["transform"]] else 30.0 + seed, 40.0),
    )
    lines = _lead(folder)
    assert [line.partition(":")[0] for line in lines] == ["Under trans", "Under trans+inv"]
    assert "Δ is smallest for alpha 1.0 (5.5 points; next alpha" in lines[0]
    assert "Δ is smallest for alpha 10.0 (5.5 points; next alpha" in lines[1]
    assert all("alignment is 40.0 % for all of them" in line for line in lines), "one value is no order"


def test_several_axes_are_compared_each_with_the_others_held(tmp_path: Path) -> None:
    axes = {"alpha": ["1", "2"], "layers": ["2", "4"], "transform": ["trans", "inv"]}
    lines = _lead(make_grid(tmp_path / "few", axes))
    under = [line.partition(":")[0].removeprefix("Under ") for line in lines]
    held = ("alpha 1", "alpha 2", "layers 2", "layers 4")
    assert under == [f"{one}, {language}" for one in held for language in ("trans", "inv")]
    assert [("for layers" in line, "for alpha" in line) for line in lines] == [(True, False)] * 4 + [(False, True)] * 4
    many = axes | {"heads": ["1", "2", "4"], "width": ["8", "16"]}
    lines = _lead(make_grid(tmp_path / "many", many))
    assert len(lines) == 14 and all("for width" in line for line in lines[:12])
    assert lines[12] == "12 further groups are compared in the tables below."
    assert lines[13].startswith("For alpha and layers and heads see the tables below")


def test_axes_that_go_together_are_compared_as_one(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"alpha": ["1", "2"], "rate": ["3", "4"], "transform": ["trans", "inv"]})
    rows = [row for row in read_rows(folder) if row["cell"].split(", ")[:2] in (["1", "3"], ["2", "4"])]
    write_rows(folder, [dict(row) for row in rows])
    lines = _lead(folder)
    assert [line.partition(":")[0] for line in lines] == ["Under trans", "Under inv"]
    assert "Δ is smallest for alpha 1, rate 3 (" in lines[0]


def test_what_is_one_number_is_not_ranked(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"], "transform": ["trans"]})
    _rescored(folder, lambda of, seed: (7.0 + seed, 3.0))
    (line,) = _lead(folder)
    assert line == "Alignment is 3.0 % for all of them; Δ is 7.5 points for all of them, so there is no order."


def test_which_axis_is_of_languages() -> None:
    held = layout(["speech", "alpha"], [{"speech": s, "alpha": a} for s in "ab" for a in "12"], "s", {"speech"})
    assert (held.main, held.compared) == ("alpha", ("alpha",))
    named = layout(["transform", "strength"], [{"transform": t, "strength": s} for t in "ab" for s in "12"], "s")
    assert (named.main, named.compared) == ("strength", ("strength",))
    alone = layout(["transform"], [{"transform": t} for t in "ab"], "s")
    assert (alone.main, alone.compared) == ("transform", ("transform",)), "there is nothing else"
    assert is_of_languages("pretrain.language") and is_of_languages("pretrain.languages.1.source")
    assert not is_of_languages("pretrain.languages.1.transforms.0.strength")


def test_an_axis_that_sets_languages_is_known_whatever_its_name(tmp_path: Path) -> None:
    product = {"alpha": [1, 2], "speech": {label: {"pretrain.language": label} for label in ("trans", "inv")}}
    axes = {"alpha": ["1", "2"], "speech": ["trans", "inv"]}
    lines = _lead(make_grid(tmp_path, axes, config={"grid": {"product": product, "zip": {}}}))
    assert [line.partition(":")[0] for line in lines] == ["Under trans", "Under inv"]


# --- doses ---


@pytest.mark.parametrize(
    ("doses", "log"),
    [([0.1, 1.0, 2.0], True), ([0.1, 1.0, 1.9], False), ([0.0, 1.0, 100.0], False), ([-1.0, 1.0, 50.0], False)],
)
def test_doses_that_span_much_have_a_log_axis(doses: list[float], log: bool) -> None:
    drawing = dose_response("d", "Δ", [Series("a", doses, [1.0, 2.0, 3.0])], "alpha", "Δ", "", {doses[0]: "first"})
    scales: list[Any] = []

    def paint(canvas: Any) -> None:
        drawing.paint(canvas)
        axes = canvas.axes[0]
        ticks = [label.get_text() for label in axes.get_xticklabels()]
        scales.append((axes.get_xscale(), axes.get_xlabel(), ticks))

    draw(4, 3, paint)
    scale, label, ticks = scales[0]
    assert (scale, label) == (("log", "alpha (log scale)") if log else ("linear", "alpha"))
    assert ticks == ["first", *(f"{x:g}" for x in doses[1:])]


def test_a_number_is_written_as_its_label_everywhere(tmp_path: Path) -> None:
    paths = write_report(make_grid(tmp_path, {"transform": ["a", "b"], "alpha": ["0.10", "1.0", "50"]}))
    page = Page(paths.html.read_text())
    assert {line["alpha"] for line in page.table("transform", "alpha", "Δ")} == {"0.10", "1.0", "50"}
    assert {line["alpha"] for line in page.table("alpha", "Other settings")} == {"0.10", "1.0", "50"}


# --- bounds ---


def test_bounds_end_where_a_score_does_and_files_have_them_whole(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"]})
    _rescored(folder, lambda of, seed: (70.0 + 20 * seed, 99.0))
    paths = write_report(folder)
    line = Page(paths.html.read_text()).table("objective", "Δ")[0]
    whole = interval_within([70.0, 90.0], "delta")
    assert whole.low is not None and whole.high is not None and whole.low < -40 and whole.high > 200
    assert line["Δ"] == f"80.0|{whole.low:.1f} to 100.0".replace("-", "−")
    assert line["ZS"] == "10.0|0.0 to 100.0"
    with (paths.tables / "scores-1-pos.csv").open() as handle:
        held = next(csv.DictReader(handle))
    assert float(held["Δ high"]) == pytest.approx(whole.high, rel=1e-5) and float(held["ZS low"]) < -100
    text = paths.markdown.read_text()
    assert text.count("Intervals are shown as far as a score can go") == 1
    beyond = re.findall(r"\(?−?\d+\.\d to (1\d\d\.[1-9]|[2-9]\d\d\.\d)", text)
    assert beyond == []


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [("delta", -100, 100), ("zs", 0, 100), ("alignment_held_out", 0, 100), ("a.csls.mean", 0, 100), ("x.auc", 0, 1)],
)
def test_shown_bounds_hold_the_mean_and_change_no_overlap(column: str, low: float, high: float) -> None:
    edges = [interval_within([low, low, high], column), interval_within([low, low, low + 1e-3], column)]
    for one in edges:
        shown = one.shown
        assert one.low is not None and shown.low is not None and shown.high is not None
        assert one.low < low and low <= shown.low <= one.mean <= shown.high <= high
    assert edges[0].overlaps(edges[1]) == edges[0].shown.overlaps(edges[1].shown)
    assert interval_within([5.0, -5.0], "loss").shown == interval_within([5.0, -5.0], "loss"), "no range is known"
    assert entry_text(Interval(50.0, None, None, 1, 0.95, (0.0, 100.0))) == "50.0"


# --- curves, settings, columns ---


def test_the_terms_of_an_adjustment_are_no_losses_of_masked_tokens() -> None:
    log = {"pull": 30.0, "hold": 9.0, "sentence_pairs_per_second": 240.0, "lr": 1e-4, "related/es-en": 2.0}
    for more, kinds in (({}, ["adjustment", "distances"]), ({"mlm": 2.0}, ["loss", "adjustment", "distances"])):
        found = curve_figures("es", [{"step": step, **more, **log} for step in (1.0, 2.0)], 1)
        assert [figure.name.partition("-")[0] for figure in found] == kinds


def test_a_run_of_each_condition_has_its_curves_first(tmp_path: Path) -> None:
    axes = {"objective": [f"o{i}" for i in range(5)], "transform": ["a", "b"], "pretrain.seed": ["0", "1"]}
    folder = make_grid(tmp_path, axes)
    for cell in json.loads((folder / "study.json").read_text())["cells"]:
        (folder / cell["run"]).mkdir(parents=True)
        lines = [json.dumps({"step": step, "mlm": 5.0 - step / 10}) for step in (1, 2, 3)]
        (folder / cell["run"] / "metrics.jsonl").write_text("\n".join(lines))
    text = write_report(folder).markdown.read_text()
    found = re.findall(r"\*\*(\S+, \S+), (\d): curves\*\*", text)
    assert [name for name, _ in found] == [f"o{i}, {t}" for i in range(4) for t in "ab"]
    assert {seed for _, seed in found} == {"0"}
    assert (
        "Without curves of their own here: 8 runs of the conditions above (other seeds) and 4 runs of 2 conditions "
        "(o4, a; o4, b)." in text
    )
    alone = make_grid(tmp_path / "alone", {"pretrain.seed": ["0", "1"]})
    for cell in json.loads((alone / "study.json").read_text())["cells"]:
        (alone / cell["run"]).mkdir(parents=True)
        (alone / cell["run"] / "metrics.jsonl").write_text('{"step": 1, "mlm": 2}\n{"step": 2, "mlm": 1}')
    text = write_report(alone).markdown.read_text()
    assert len(re.findall(r"\*\*\d: curves\*\*", text)) == 2 and "Without curves" not in text, "there is room for both"


def test_alignment_over_training_has_the_languages_of_all_conditions(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"transform": ["trans", "inv"]})
    for cell in json.loads((folder / "study.json").read_text())["cells"]:
        (folder / cell["run"]).mkdir(parents=True)
        lines = [json.dumps({"step": step, f"alignment/{cell['name']}": 10.0 * step}) for step in (1, 2)]
        (folder / cell["run"] / "metrics.jsonl").write_text("\n".join(lines))
    svg = (write_report(folder).figures / "training.svg").read_text()
    assert "trans: from 10 to 20; inv: from 10 to 20" in svg


def test_what_cells_have_in_common_is_what_each_of_them_says() -> None:
    grid = {"product": {"pretrain.objective.kind": ["mlm", "align_mlm"], "pretrain.seed": [0, 1], "half": {
        "yes": {}, "no": {"tasks.ner": {}}}}}  # fmt: skip
    cells = expand(parse(StudyConfig, changed(STUDY, pretrain__language="trans", grid=grid, tasks={"pos": {}})))
    found = common_settings(cells)
    runs = [cell.pretrain.model_dump(mode="json", round_trip=True) for cell in cells if cell.pretrain is not None]
    for key, value in found["pretrain"].items():
        held = [run[key] for run in runs]
        assert all(one == value for one in held) or isinstance(value, dict) or value == DIFFERS, key
    assert found["pretrain"]["seed"] == DIFFERS == found["pretrain"]["objective"]["kind"]
    assert found["pretrain"]["objective"]["mask_rate"] == runs[0]["objective"]["mask_rate"]
    assert found["pretrain"]["steps"] == runs[0]["steps"] != DIFFERS
    assert found["tasks"]["ner"] == DIFFERS and found["tasks"]["pos"]["task"] == "pos"
    assert found.keys() == {"pretrain", "tasks"}


def test_settings_in_full_and_fingerprints_are_folded(tmp_path: Path) -> None:
    settings = {"pretrain": {"steps": 12345, "seed": DIFFERS}}
    folder = make_grid(tmp_path, {"transform": ["trans", "inv"]}, settings=settings)
    paths = write_report(folder)
    html, markdown = paths.html.read_text(), paths.markdown.read_text()
    aside = re.findall(r'<details class="aside"><summary>(.*?)</summary>(.*?)</details>', html, re.S)
    assert [summary for summary, _ in aside] == ["Fingerprints of 2 cells, stage by stage", "Every setting in full"]
    assert "pretrain fingerprint" in aside[0][1] and "steps: 12345" in aside[1][1]
    block = markdown.split("**Every setting in full**")[1]
    shown = "\n".join(line.removeprefix("    ") for line in block.splitlines() if line.startswith("    "))
    assert yaml.safe_load(shown) == settings and "\n## " not in block, "at the end"
    assert "details:not(.aside)" in html, "on paper the others are open"
    change(folder, settings=None)
    assert "Settings in full were not recorded" in write_report(folder).markdown.read_text()


def test_a_column_of_one_number_is_a_sentence(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"transform": ["a", "b"], "strength": ["0", "1"], "pretrain.seed": ["0", "1"]})
    rows: list[dict[str, Any]] = list(read_rows(folder))
    for row in rows:
        row |= {"alignment_dictionary": 100.0, "alignment_held_out": 7.0 + (row["cell"] == "a, 0, 0")}
    write_rows(folder, rows)
    paths = write_report(folder)
    header = list(Page(paths.html.read_text()).table("transform", "Δ")[0])
    assert "Alignment|in dictionary" not in header and {"Alignment|held out", "Alignment|all types", "Δ"} < set(header)
    told = "left out here, not of the CSV file: SUP 90.0, Parent 95.0, Alignment (in dictionary) 100.0."
    assert told in paths.markdown.read_text()
    with (paths.tables / "scores-1-pos.csv").open() as handle:
        assert {line["Alignment in dictionary"] for line in csv.DictReader(handle)} == {"100"}
    assert "100.0" not in (paths.tables / "scores-1-pos.tex").read_text().split("\\midrule")[1]
    one = write_report(make_grid(tmp_path / "one", {"transform": ["a"]}))
    assert "The same in every row" not in one.markdown.read_text(), "one row is no column"


# --- names of seeds ---


def test_seeds_are_told_apart(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"], "pretrain.seed": ["0", "1"]}, layers=2)
    raw = (folder / "study.json").read_text()
    for old in ("MLM, 0", "MLM, 1", "XLM, 0", "XLM, 1"):
        raw = raw.replace(f'"{old}"', f'"{old[:-1]}pretrain seed={old[-1]}"')
    (folder / "study.json").write_text(raw)
    write_rows(folder, [{**row, "cell": row["cell"].replace(", ", ", pretrain seed=")} for row in read_rows(folder)])
    paths = write_report(folder)
    names = {line["Cell"] for line in Page(paths.html.read_text()).table("Cell", "Fine-tuning seed", "Δ")}
    assert names == {f"{o}, pretrain seed={s}" for o in ("MLM", "XLM") for s in "01"}
    text = paths.markdown.read_text()
    assert "4 cells of 4 done" in text and not re.search(r"(?<!pretrain )(?<!\.)seed=\d|\| Seed \|", text)
    assert "transfer pos, fine-tuning seed 0 fingerprint" in text


def test_the_name_of_a_seed() -> None:
    assert [short_key(key) for key in ("pretrain.seed", "adjust.seed", "seed", "a.steps")] == [
        "pretrain seed", "adjust seed", "seed", "steps"
    ]  # fmt: skip


def test_a_made_up_study_still_reads(tmp_path: Path) -> None:
    assert "align_mlm-trans+inv" in write_report(make_study(tmp_path, curves="")).markdown.read_text()
