"""The correlation of alignment and Δ in the summary, in its table and as claims: one number, one n, the same models."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes.statistics import Interval
from probes.study.judged.correlated import RESAMPLED
from probes.study.judged.verdicts import Verdict, judge
from probes.study.report.data import read_study
from probes.study.report.folder import write_report
from probes.study.report.pools import results_of
from probes.study.report.scores import scores_of
from probes.study.report.summary import correlate
from tests.judged import claim
from tests.report_study import make_grid, read_rows, write_measures, write_rows

GRID = {"transform": ["trans", "inv"], "strength": ["0", "0.5", "1"], "pretrain.seed": ["0", "1", "2"]}
LANGUAGES = ["bg", "de", "el", "es", "fr"]
GIVEN = {"pretrain": "", "pretrain_seed": "", "objective": "", "source": ""}


def _table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open() as handle:
        return list(csv.DictReader(handle))


def _change(folder: Path, change: Any) -> None:
    """Each row of results with what ``change`` says of its labels and its seed of fine-tuning."""
    rows = read_rows(folder)
    write_rows(folder, [row | change(json.loads(row["labels"]), int(row["seed"])) for row in rows])


def _judged(folder: Path, *over: str) -> Verdict:
    """The claim, after the report was found to have the same number of the same models."""
    about = {"x": {"measure": "alignment_all"}, "y": {"measure": "delta"}, "expect": "negative"}
    study = read_study(folder)
    found = judge(claim(correlate={**about, "over": over}), results_of([study]))
    shown = correlate(scores_of(study).conditions, "alignment_all")
    assert found.n == shown.found.clusters and found.one_model == shown.one_model
    assert f"n = {shown.text}" in found.text
    assert found.ours is not None and shown.found.r is not None
    assert (found.ours.mean, found.ours.low) == (shown.found.r, shown.found.low)
    return found


def test_correlation_of_many_conditions_agrees_with_resampling(tmp_path: Path) -> None:
    """Both ways of an interval on the same kind of data, one condition more than are resampled."""
    make_grid(tmp_path, {"number": [str(i) for i in range(RESAMPLED + 1)]}, seeds=1)
    random = np.random.default_rng(1)
    rows = read_rows(tmp_path)
    for row in rows:
        row["delta"] = str(-float(row["alignment_all"]) + 25 * random.normal())
    write_rows(tmp_path, rows)
    held = scores_of(read_study(tmp_path)).conditions
    found, fewer = correlate(held, "alignment_all").found, correlate(held[:-1], "alignment_all").found
    x, y = [float(r["alignment_all"]) for r in rows], [float(r["delta"]) for r in rows]
    expected = stats.spearmanr(x, y)
    assert (found.n, found.clusters, fewer.clusters) == (RESAMPLED + 1, RESAMPLED + 1, RESAMPLED)
    assert found.r == pytest.approx(expected.statistic) and found.p == pytest.approx(expected.pvalue)
    assert None not in (found.low, found.high, fewer.low, fewer.high)
    assert [found.low, found.high] == pytest.approx([fewer.low, fewer.high], abs=0.08)


def test_conditions_of_the_same_measurements_are_one_cluster_of_a_correlation(tmp_path: Path) -> None:
    """As where cells differ in their fine-tuning: an alignment counts once for each model."""
    make_grid(tmp_path, {"number": list("abcdefg"), "items": ["20", "150"]}, seeds=1)
    rows = read_rows(tmp_path)
    for row in rows:
        labels = json.loads(row["labels"])
        row |= {"pretrain": f"{ord(labels['number']):016x}", "alignment_all": str(ord(labels["number"]))}
    write_rows(tmp_path, rows)
    text = write_report(tmp_path).markdown.read_text()
    assert "over n = 7 conditions that share no measurement (" in text
    assert _table(tmp_path, "correlations")[0]["n"] == "7 conditions that share no measurement 14 pairs of 7 models"
    study = read_study(tmp_path)
    about = {"measure": "alignment_all"}, {"measure": "delta"}
    asked = [
        claim(correlate={"over": over, "x": about[0], "y": about[1], "expect": "positive"})
        for over in (["number"], ["number", "items"])
    ]
    one, two = (judge(one, results_of([study])) for one in asked)
    assert (one.n, two.n) == (7, 7) and "7 conditions that share no measurement, 14 pairs of 7 models" in two.text
    assert "share no" not in one.text


def test_a_seed_without_a_number_is_left_out_of_every_correlation(tmp_path: Path) -> None:
    make_grid(tmp_path, {"number": list("abcdefg")}, seeds=2, jitter=3.0)
    rows = read_rows(tmp_path)
    rows[4]["delta"] = "nan"
    write_rows(tmp_path, rows)
    study = read_study(tmp_path)
    asked = claim(correlate={"over": ["number"], "x": {"measure": "alignment_all"}, "y": {"measure": "delta"},
                             "expect": "positive"})  # fmt: skip
    found = correlate(scores_of(study).conditions, "alignment_all").found
    assert found.r is not None
    assert judge(asked, results_of([study])).ours == Interval(found.r, found.low, found.high, 7, 0.95)


def test_one_correlation_in_summary_table_and_claims(tmp_path: Path) -> None:
    """Models of a condition are one cluster everywhere: 6 conditions of 3 models, not 18 cells."""
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "claims: [{id: c, claim: C., source: S, correlate: {x: {measure: alignment_all}, over: [transform, strength],"
        " y: {where: {task: pos}, measure: delta}, expect: negative}}]"
    )
    folder = make_grid(tmp_path / "study", GRID, config={"claims": [str(claims)]})
    random = np.random.default_rng(3)
    rows = read_rows(folder)
    for row in rows:
        row["delta"] = str(float(row["delta"]) + 4 * random.normal())
    write_rows(folder, rows)
    write_report(folder)
    text = (folder / "report.md").read_text()
    line = _table(folder, "correlations")[0]
    cells = {row["cell"]: row["alignment_all"] for row in rows}
    deltas = [np.mean([float(row["delta"]) for row in rows if row["cell"] == cell]) for cell in cells]
    rho = stats.spearmanr([float(value) for value in cells.values()], deltas).statistic
    assert line["n"] == "6 conditions 18 models" and line["ρ"] == f"−{abs(rho):.2f}"
    p, (low, high) = line["p"].removesuffix(" exact"), line["95 % interval"].replace("−", "-").split(" to ")
    assert f"over n = 6 conditions of 18 models (exact p = {float(p):.3f}, bootstrap interval" in text
    bounds = re.search(r"delta: -[\d.]+ \((-[\d.]+) … (-[\d.]+)\), p = ([\d.e-]+), n = 6 conditions, 18 models", text)
    assert bounds is not None and bounds.group(1, 2) == (low, high)
    assert float(bounds[3]) == pytest.approx(float(p), abs=1e-3)
    assert f"interval {line['95 % interval']}" in text


def test_languages_of_the_same_models_are_conditions(tmp_path: Path) -> None:
    """Three multilingual pretrainings, each with an alignment and a Δ in each of five languages."""
    make_grid(tmp_path, {"language": LANGUAGES, "pretrain.seed": ["0", "1", "2"]}, jitter=3.0)
    _change(tmp_path, lambda labels, _: {"pretrain": labels["pretrain.seed"] * 16})
    found = _judged(tmp_path, "language")
    assert found.n == 5 and not found.one_model and found.text.endswith("n = 5 conditions, 15 pairs of 3 models")
    text = write_report(tmp_path).markdown.read_text()
    assert "over n = 5 conditions of 3 models (" in text
    assert _table(tmp_path, "correlations")[0]["n"] == "5 conditions 15 pairs of 3 models"


def test_languages_of_one_pretraining_are_of_one_model(tmp_path: Path) -> None:
    make_grid(tmp_path, {"language": LANGUAGES}, jitter=3.0)
    assert not _judged(tmp_path, "language").one_model, "each has a pretraining of its own"
    _change(tmp_path, lambda labels, seed: {"pretrain": "ab" * 8})
    found = _judged(tmp_path, "language")
    assert found.one_model and found.text.endswith("n = 5 conditions, 5 pairs of 1 model")


def test_a_given_model_is_one_model(tmp_path: Path) -> None:
    """It has no fingerprint; its alignment counts once, however it is fine-tuned, with any number of seeds."""
    make_grid(tmp_path, {"language": LANGUAGES, "items": ["20", "150"]}, seeds=3, jitter=3.0)
    _change(tmp_path, lambda labels, seed: GIVEN | {"alignment_all": f"{LANGUAGES.index(labels['language'])}.1"})
    rows = read_rows(tmp_path)
    rows = [row for row in rows if row["seed"] != "2" or '"150"' not in row["labels"]]
    assert (0.1 + 0.1 + 0.1) / 3 != (0.1 + 0.1) / 2, "which must tell nothing apart"
    write_rows(tmp_path, rows)
    found = _judged(tmp_path, "language", "items")
    assert found.n == 5 and found.one_model
    assert found.text.endswith("n = 5 conditions that share no measurement, 10 pairs of 1 model")
    assert "over n = 5 conditions that share no measurement of 1 model (" in write_report(tmp_path).markdown.read_text()


@pytest.mark.parametrize("given", [True, False])
def test_adjustments_are_models_of_one_pretraining(tmp_path: Path, given: bool) -> None:
    """Told apart by their fingerprints; another pretraining could still say something else."""
    make_grid(tmp_path, {"method": ["none", "align"], "language": LANGUAGES}, jitter=3.0)
    of = GIVEN if given else {"pretrain": "ab" * 8}
    _change(tmp_path, lambda labels, _: of | {"adjust": "cd" * 8 if labels["method"] == "align" else ""})
    found = _judged(tmp_path, "method", "language")
    assert found.n == 10 and found.one_model and found.text.endswith("n = 10 conditions, 10 pairs of 2 models")


def test_adjustments_of_several_pretrainings_are_pairs_everywhere(tmp_path: Path) -> None:
    seeds = {"pretrain.seed": ["0", "1"], "adjust.seed": ["0", "1"]}
    make_grid(tmp_path, {"language": LANGUAGES, **seeds}, jitter=3.0)

    def models(labels: dict[str, str], _: int) -> dict[str, str]:
        return {"pretrain": labels["pretrain.seed"] * 16, "adjust": labels["pretrain.seed"] + labels["adjust.seed"] * 9}

    _change(tmp_path, models)
    assert _judged(tmp_path, "language").text.endswith("n = 5 conditions, 20 pairs of 4 models")


def test_models_that_are_not_known_are_not_counted(tmp_path: Path) -> None:
    make_grid(tmp_path, {"language": LANGUAGES, "pretrain.seed": ["0", "1", "2"]}, jitter=3.0)
    _change(tmp_path, lambda labels, _: {"pretrain": ""})
    found = _judged(tmp_path, "language")
    assert found.n == 5 and not found.one_model and found.text.endswith("n = 5 conditions, 15 pairs")
    text = write_report(tmp_path).markdown.read_text()
    assert "over n = 5 conditions (" in text
    assert _table(tmp_path, "correlations")[0]["n"] == "5 conditions 15 pairs"


@pytest.mark.parametrize("given", [True, False])
def test_measures_of_languages_are_conditions(tmp_path: Path, given: bool) -> None:
    """x is a measure of a probe, whose models are known by the scores alone; with two measures only a given one is."""
    axes = {"language": LANGUAGES} if given else {"language": LANGUAGES, "pretrain.seed": ["0", "1", "2"]}
    make_grid(tmp_path, axes, jitter=3.0)
    rows = read_rows(tmp_path)
    cells = {row["cell"]: (row["labels"], "" if given else row["pretrain_seed"]) for row in rows}
    values = [(cell, *of, number % 7 + number / 100) for number, (cell, of) in enumerate(cells.items())]
    write_measures(
        tmp_path, [[*of, "words", name, "", "", value] for *of, value in values for name in ("found", "heard")]
    )
    _change(tmp_path, lambda labels, _: GIVEN if given else {"pretrain": labels["pretrain.seed"] * 16})
    for y, models in (("delta", "5 pairs of 1 model" if given else "15 pairs of 3 models"), ("probe:heard", "")):
        about = {"over": ["language"], "x": {"measure": "probe:found"}, "y": {"measure": y}, "expect": "positive"}
        found = judge(claim(correlate=about), results_of([read_study(tmp_path)]))
        assert found.n == 5 and found.one_model == given
        assert found.text.endswith(f"n = 5 conditions, {models}" if models else "conditions" if given else ", 15 pairs")
