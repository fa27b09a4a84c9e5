"""Correlations over conditions, of claims and of reports: what is one condition, what is left out, what is decided."""

from __future__ import annotations

import json
import math
import re
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probes.claims.correlation import RESAMPLED, _one_measurement, clustered, outcome_of_correlation
from probes.claims.verdicts import Verdict, judge
from probes.report.data import read_study
from probes.report.join import results_of
from probes.report.scores import scores_of
from probes.report.summary import correlate
from probes.statistics import Interval
from tests.claims import ACROSS_LAYERS, claim, interval, measured, observed, result
from tests.report_study import (
    change_rows,
    make_grid,
    read_rows,
    report,
    write_measures,
    write_rows,
)

# --- the numbers ---


@pytest.mark.parametrize("slope", [0.0, 0.5, -2.0])
def test_pearsons_interval_of_many_conditions_is_that_of_scipy(slope: float) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=RESAMPLED + 40)
    y = slope * x + random.normal(size=len(x))
    found = clustered(list(zip(x, y, strict=True)), [str(number) for number in range(len(x))], "pearson")
    expected = stats.pearsonr(x, y)
    bounds = expected.confidence_interval()
    assert (found.r, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))


def test_many_conditions_of_several_models_are_no_surer_than_their_number() -> None:
    """Twenty times the same models: resampling clusters and Fisher's interval of clusters are as wide as before."""
    random = np.random.default_rng(1)
    x = random.normal(size=RESAMPLED + 1)
    y = x + 2 * random.normal(size=len(x))
    pairs, names = list(zip(x, y, strict=True)), [str(i) for i in range(len(x))]
    once, often = clustered(pairs, names), clustered(pairs * 20, names * 20)
    assert once.clusters == often.clusters and (once.low, once.p) == pytest.approx((often.low, often.p))
    few, fewer = clustered(pairs[:30], names[:30]), clustered(pairs[:30] * 3, names[:30] * 3)
    assert fewer.p == pytest.approx(few.p, abs=0.02) and fewer.low == pytest.approx(few.low, abs=0.1)
    assert clustered(pairs[:30][::-1], [f"other {name}" for name in names[:30][::-1]]) == few
    expected = stats.spearmanr(x, y)
    assert once.r == pytest.approx(expected.statistic) and once.p == pytest.approx(expected.pvalue)


def test_chance_decides_a_correlation_of_five_conditions_in_one_order_of_twenty_at_most() -> None:
    """All 120 orders, with the exact p counted here; the intervals of as many as 16 have no 0 inside."""
    rhos = [float(stats.spearmanr(range(5), order).statistic) for order in permutations(range(5))]
    decided, apart = 0, 0
    for order, rho in zip(permutations(range(5)), rhos, strict=True):
        found = clustered(list(zip(range(5), order, strict=True)), list("abcde"))
        assert found.r is not None and found.low is not None and found.high is not None
        p = sum(abs(one) > abs(rho) - 1e-9 for one in rhos) / len(rhos)
        assert (found.r, found.p) == pytest.approx((rho, p))
        ours = Interval(found.r, found.low, found.high, 5, 0.95)
        outcome = outcome_of_correlation(ours, found.p, "greater")
        assert outcome == ("inconclusive" if p > 0.05 else "holds" if rho > 0 else "fails")
        decided += outcome != "inconclusive"
        apart += not found.low <= 0 <= found.high
    assert apart == 16 and decided == 2 <= 0.05 * len(rhos)


@pytest.mark.parametrize(
    ("r", "low", "high", "p", "outcome"),
    [
        (0.9, 0.3, 1.0, 0.05, "holds"),
        (0.9, 0.3, 1.0, 0.051, "inconclusive"),
        (0.9, 0.0, 1.0, 0.001, "inconclusive"),
        (-0.9, -1.0, -0.3, 0.05, "fails"),
        (0.9, 0.3, 1.0, None, "holds"),  # nothing can change places: there is the interval alone
        (1.0, 1.0, 1.0, None, "inconclusive"),
        (1.0, 1.0, 1.0, 0.02, "holds"),
        (1.0, None, None, 0.01, "inconclusive"),
    ],
)
def test_the_interval_and_p_decide_together(r: float, low: Any, high: Any, p: float | None, outcome: str) -> None:
    assert outcome_of_correlation(Interval(r, low, high, 5, 0.95), p, "greater") == outcome
    assert outcome_of_correlation(None, p, "greater") == "inconclusive"


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=3), max_size=12))
def test_conditions_that_share_measurements_are_one(models):
    """Against joining any two that share one, until no more do."""
    groups = [({number}, set(models_of_one)) for number, models_of_one in enumerate(models)]
    while pair := next(((a, b) for a, b in combinations(groups, 2) if a[1] & b[1]), None):
        groups = [group for group in groups if group not in pair] + [(pair[0][0] | pair[1][0], pair[0][1] | pair[1][1])]
    first = {number: min(numbers) for numbers, _ in groups for number in numbers}
    found = _one_measurement([dict.fromkeys(of, (1.0, 2.0)) for of in models])
    assert [found.index(cluster) for cluster in found] == [first[number] for number in range(len(models))]


# --- claims ---

DIFFERS = "does not replicate"

OVER = {"x": {"measure": "alignment_all"}, "y": {"where": {"task": "pos"}, "measure": "delta"}, "over": ["cell"]}


def over_cells(rows, expect="negative", **more):
    return judge(claim(correlate={**OVER, **more, "expect": expect}), observed(rows))


def of_cells(x, y, models=1):
    """Δ of each cell and its alignment, of some models and two seeds."""
    return [
        result({"cell": str(i), "pretrain.seed": str(m)}, m, seed, delta=float(y[i]) + seed, alignment_all=float(x[i]))
        for i in range(len(x))
        for m in range(models)
        for seed in range(2)
    ]


def test_correlation() -> None:
    random = np.random.default_rng(4)
    x = random.normal(size=12)
    y = -x + random.normal(0, 0.2, 12)
    found, twice = over_cells(of_cells(x, y)), over_cells(of_cells(x, y, models=2))
    assert found.verdict == "replicates" and found.n == twice.n == 12, "models of a cell are no more conditions"
    assert interval(found).mean == pytest.approx(stats.spearmanr(x, y).statistic)
    assert interval(twice).mean == pytest.approx(interval(found).mean)
    assert over_cells(of_cells(x, y), "positive").verdict == "does not replicate"
    assert over_cells(of_cells(x, random.normal(size=12))).verdict == "inconclusive"
    few = over_cells(of_cells(x[:4], y))
    assert few.verdict == "not run" and "4 conditions, and with fewer than 5 nothing is decided" in few.text
    assert over_cells([]).verdict == "not run"
    some = over_cells(of_cells(x, y), restrict_to={"cell": [str(i) for i in range(3, 12)]})
    assert some.n == 9 and interval(some).mean == stats.spearmanr(x[3:], y[3:]).statistic
    rows = [row | ({"delta": math.nan} if '"3"' in row["labels"] else {}) for row in of_cells(x, y)]
    lost, known = over_cells(rows), [i for i in range(12) if i != 3]
    assert lost.n == 11 and "1 pair left out, not a number" in lost.text
    assert interval(lost).mean == pytest.approx(stats.spearmanr(x[known], y[known]).statistic)


@pytest.mark.parametrize("count", [5, 6, 12, RESAMPLED + 1])
def test_a_perfect_correlation_is_decided_by_its_p(count: int) -> None:
    rows = of_cells(np.arange(count), -np.arange(count))
    found = over_cells(rows)
    assert found.verdict == "replicates"
    assert interval(found).mean == pytest.approx(-1)
    assert (found.n, found.unit, found.one_model) == (count, "conditions", False)
    assert over_cells(rows, "positive").verdict == "does not replicate"
    assert over_cells([row | {"delta": 1.0} for row in rows]).verdict == "inconclusive"


def of_layers(models: int, slope: float, layers: int = 6) -> list[dict[str, Any]]:
    """Two measures at each layer of two pairs of languages, which follow each other within a pair only."""
    random = np.random.default_rng(2)
    rows = []
    for model, pair, layer in product(range(models), (0, 1), range(layers)):
        x = layer + random.normal(0, 1.5)
        for name, value in (("x", x - 50 * pair), ("y", slope * x + random.normal(0, 1.5) + 50 * pair)):
            rows.append(measured({"pair": f"en-{pair}"}, model, name, float(value), layer=layer))
    return rows


def test_a_correlation_over_layers_is_a_mean_over_models() -> None:
    """Layers of a model depend on each other: n is the number of models, by Fisher's z of each."""
    rows = of_layers(4, 1.0)
    found = judge(claim(correlate={**ACROSS_LAYERS, "expect": "positive"}), observed([], rows))
    values = np.array([row["value"] for row in rows]).reshape(4, 2, 6, 2)  # models, pairs, layers, x and y
    ranks = stats.rankdata(values, axis=2) - 3.5
    z = [np.arctanh(np.corrcoef(of[..., 0].ravel(), of[..., 1].ravel())[0, 1]) for of in ranks]
    expected = stats.ttest_1samp(z, 0)
    assert (found.verdict, found.n, found.unit) == ("replicates", 4, "models")
    assert found.p.replicates == pytest.approx(expected.pvalue)
    bounds = expected.confidence_interval(0.95)
    ours = interval(found)
    assert (ours.mean, ours.low, ours.high) == pytest.approx(tuple(np.tanh([np.mean(z), bounds.low, bounds.high])))
    assert judge(claim(correlate={**ACROSS_LAYERS, "expect": "negative"}), observed([], rows)).verdict == DIFFERS


@pytest.mark.parametrize(("models", "layers", "verdict"), [(1, 6, "inconclusive"), (3, 4, "not run")])
def test_many_layers_of_one_model_decide_nothing(models: int, layers: int, verdict: str) -> None:
    found = judge(
        claim(correlate={**ACROSS_LAYERS, "expect": "positive"}), observed([], of_layers(models, 1.0, layers))
    )
    assert found.verdict == verdict


def test_points_of_a_correlation_are_means_over_the_same_conditions() -> None:
    """In each language Δ rises with alignment; where the harder one is not finished its points are left out of all."""
    every = [
        result({"objective": f"o{o}", "language": lang}, m, delta=5.0 * o + (60 if lang == "hard" else 0) + m / 9,
               alignment_all=10.0 * o + m / 7)
        for o in range(8) for lang in ("easy", "hard") for m in range(3)
    ]  # fmt: skip
    about = {"over": ["objective"], "y": {"measure": "delta"}}
    whole = over_cells(every, "positive", **about)
    assert whole.verdict == "replicates" and "left out" not in whole.text
    part = [row for row in every if "hard" not in row["labels"] or any(f'"o{o}"' in row["labels"] for o in range(4))]
    found = over_cells(part, "positive", **about)
    assert (found.verdict, found.n) == ("replicates", 8) and interval(found).mean == interval(whole).mean
    assert found.text.endswith("; 4 conditions left out, which not all points have")
    apart = [row for row in every if ("hard" in row["labels"]) == any(f'"o{o}"' in row["labels"] for o in range(4))]
    assert over_cells(apart, "positive", **about).n == 8, "a language that goes with the objective is no mean"


# --- reports and claims of one study ---

LANGUAGES = ["bg", "de", "el", "es", "fr"]
GIVEN = {"pretrain": "", "pretrain_seed": "", "objective": "", "source": ""}


def _judged(folder: Path, *over: str) -> Verdict:
    """The claim, after the report was found to have the same number of the same models."""
    about = {"x": {"measure": "alignment_all"}, "y": {"measure": "delta"}, "expect": "negative"}
    study = read_study(folder)
    found = judge(claim(correlate={**about, "over": over}), results_of([study]))
    shown = correlate(scores_of(study).conditions, "alignment_all")
    assert found.n == shown.found.clusters and found.one_model == shown.one_model
    assert shown.numbers[shown.numbers.index("n = ") :] in found.text
    assert found.ours is not None and shown.found.r is not None
    assert (found.ours.mean, found.ours.low) == (shown.found.r, shown.found.low)
    return found


def test_correlation_of_many_conditions_agrees_with_resampling(tmp_path: Path) -> None:
    """Both ways of an interval on the same kind of data, one condition more than are resampled."""
    make_grid(tmp_path, {"number": [str(i) for i in range(RESAMPLED + 1)]}, seeds=1)
    random = np.random.default_rng(1)
    change_rows(tmp_path, lambda row, _: {"delta": -float(row["alignment_all"]) + 25 * random.normal()})
    conditions = scores_of(read_study(tmp_path)).conditions
    found, fewer = correlate(conditions, "alignment_all").found, correlate(conditions[:-1], "alignment_all").found
    rows = read_rows(tmp_path)
    expected = stats.spearmanr([float(row["alignment_all"]) for row in rows], [float(row["delta"]) for row in rows])
    assert (found.n, found.clusters, fewer.clusters) == (RESAMPLED + 1, RESAMPLED + 1, RESAMPLED)
    assert found.r == pytest.approx(expected.statistic) and found.p == pytest.approx(expected.pvalue)
    assert None not in (found.low, found.high, fewer.low, fewer.high)
    assert [found.low, found.high] == pytest.approx([fewer.low, fewer.high], abs=0.08)


def test_conditions_of_the_same_measurements_are_one_cluster_of_a_correlation(tmp_path: Path) -> None:
    """As where cells differ in their fine-tuning: an alignment counts once for each model."""
    make_grid(tmp_path, {"number": list("abcdefg"), "items": ["20", "150"]}, seeds=1)
    change_rows(tmp_path, lambda _, of: {"pretrain": f"{ord(of['number']):016x}", "alignment_all": ord(of["number"])})
    made = report(tmp_path)
    assert "over n = 7 conditions that share no measurement (" in made.text
    assert made.file("correlations")[0]["n"] == "7 conditions that share no measurement 14 pairs of 7 models"
    results = results_of([read_study(tmp_path)])
    about = {"x": {"measure": "alignment_all"}, "y": {"measure": "delta"}, "expect": "positive"}
    one, two = (judge(claim(correlate={**about, "over": over}), results) for over in (["number"], ["number", "items"]))
    assert (one.n, two.n) == (7, 7) and "7 conditions that share no measurement, 14 pairs of 7 models" in two.text
    assert "share no" not in one.text


def test_a_seed_without_a_number_is_left_out_of_every_correlation(tmp_path: Path) -> None:
    make_grid(tmp_path, {"number": list("abcdefg")}, seeds=2, jitter=3.0)
    change_rows(tmp_path, lambda row, _: {"delta": "nan"} if (row["cell"], row["seed"]) == ("c", "0") else {})
    assert _judged(tmp_path, "number").n == 7


def test_one_correlation_in_summary_table_and_claims(tmp_path: Path) -> None:
    """Models of a condition are one cluster everywhere: 6 conditions of 3 models, not 18 cells."""
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "claims: [{id: c, claim: C., source: S, correlate: {x: {measure: alignment_all}, over: [transform, strength],"
        " y: {where: {task: pos}, measure: delta}, expect: negative}}]"
    )
    axes = {"transform": ["trans", "inv"], "strength": ["0", "0.5", "1"], "pretrain.seed": ["0", "1", "2"]}
    folder, random = make_grid(tmp_path / "study", axes, config={"claims": [str(claims)]}), np.random.default_rng(3)
    change_rows(folder, lambda row, _: {"delta": float(row["delta"]) + 4 * random.normal()})
    made = report(folder)
    rows, line = read_rows(folder), made.file("correlations")[0]
    names = {
        row["cell"]: tuple(label for a, label in json.loads(row["labels"]).items() if "seed" not in a) for row in rows
    }
    of_conditions = [[row for row in rows if names[row["cell"]] == one] for one in dict.fromkeys(names.values())]
    x, y = ([np.mean([float(row[c]) for row in of]) for of in of_conditions] for c in ("alignment_all", "delta"))
    rho = stats.spearmanr(x, y).statistic
    assert line["n"] == "6 conditions 18 models" and line["ρ"] == f"−{abs(rho):.2f}"
    p, (low, high) = line["p"].removesuffix(" exact"), line["95 % interval"].replace("−", "-").split(" to ")
    assert f"over n = 6 conditions of 18 models (exact p = {float(p):.3f}, bootstrap interval" in made.text
    found = r"delta: -[\d.]+ \((-[\d.]+) … (-[\d.]+)\), p = ([\d.e-]+), n = 6 conditions, 18 models"
    bounds = re.search(found, made.text)
    assert bounds is not None and bounds.group(1, 2) == (low, high)
    assert float(bounds[3]) == pytest.approx(float(p), abs=1e-3) and f"interval {line['95 % interval']}" in made.text


SEEDS = {"pretrain.seed": ["0", "1", "2"]}
ADJUSTED = {"pretrain.seed": ["0", "1"], "adjust.seed": ["0", "1"]}
METHODS = {"method": ["none", "align"]}


@pytest.mark.parametrize(
    ("axes", "of", "one_model", "text"),
    [
        (SEEDS, lambda of: {"pretrain": of["pretrain.seed"] * 16}, False, "5 conditions, 15 pairs of 3 models"),
        ({}, lambda _: {}, False, "5 conditions, 5 models"),
        ({}, lambda _: {"pretrain": "ab" * 8}, True, "5 conditions, 5 pairs of 1 model"),
        (SEEDS, lambda _: {"pretrain": ""}, False, "5 conditions, 15 pairs"),
        (
            ADJUSTED,
            lambda of: {"pretrain": of["pretrain.seed"] * 16, "adjust": of["pretrain.seed"] + of["adjust.seed"] * 9},
            False,
            "5 conditions, 20 pairs of 4 models",
        ),
        *(
            (METHODS, lambda of, run=run: run | {"adjust": "cd" * 8 if of["method"] == "align" else ""}, True,
             "10 conditions, 10 pairs of 2 models")
            for run in (GIVEN, {"pretrain": "ab" * 8})
        ),
    ],
    ids=["several", "one each", "one", "not known", "adjustments of several", "of a given one", "of one pretraining"],
)  # fmt: skip
def test_languages_of_the_same_models_are_conditions(axes, of, one_model, text, tmp_path: Path) -> None:
    """Each pretraining has an alignment and a Δ in each of five languages; models are told apart by fingerprints."""
    make_grid(tmp_path, {"language": LANGUAGES, **axes}, jitter=3.0)
    change_rows(tmp_path, lambda _, labels: of(labels))
    found = _judged(tmp_path, *(axis for axis in ("method", "language") if axis in {"language": 0, **axes}))
    assert found.one_model == one_model and found.text.endswith(
        f"n = {text.replace('5 conditions, 5 models', '5 conditions')}"
    )
    if axes is SEEDS:
        made = report(tmp_path)
        assert f"over n = 5 conditions{' of 3 models' if 'of 3' in text else ''} (" in made.text
        assert made.file("correlations")[0]["n"] == text.replace(",", "")


def test_a_given_model_is_one_model(tmp_path: Path) -> None:
    """It has no fingerprint; its alignment counts once, however it is fine-tuned, with any number of seeds."""
    make_grid(tmp_path, {"language": LANGUAGES, "items": ["20", "150"]}, seeds=3, jitter=3.0)
    change_rows(tmp_path, lambda _, labels: GIVEN | {"alignment_all": f"{LANGUAGES.index(labels['language'])}.1"})
    rows = [row for row in read_rows(tmp_path) if row["seed"] != "2" or '"150"' not in row["labels"]]
    assert (0.1 + 0.1 + 0.1) / 3 != (0.1 + 0.1) / 2, "which must tell nothing apart"
    write_rows(tmp_path, [dict(row) for row in rows])
    found = _judged(tmp_path, "language", "items")
    assert found.n == 5 and found.one_model
    assert found.text.endswith("n = 5 conditions that share no measurement, 10 pairs of 1 model")
    assert "over n = 5 conditions that share no measurement of 1 model (" in report(tmp_path).text


@pytest.mark.parametrize("given", [True, False])
def test_measures_of_languages_are_conditions(tmp_path: Path, given: bool) -> None:
    """x is a measure of a probe, whose models are known by the scores alone; with two measures only a given one is."""
    make_grid(tmp_path, {"language": LANGUAGES} if given else {"language": LANGUAGES, **SEEDS}, jitter=3.0)
    cells = {row["cell"]: (row["labels"], "" if given else row["pretrain_seed"]) for row in read_rows(tmp_path)}
    values = [(cell, *of, number % 7 + number / 100) for number, (cell, of) in enumerate(cells.items())]
    write_measures(
        tmp_path, [[*of, "words", name, "", "", value] for *of, value in values for name in ("found", "heard")]
    )
    change_rows(tmp_path, lambda _, labels: GIVEN if given else {"pretrain": labels["pretrain.seed"] * 16})
    results = results_of([read_study(tmp_path)])
    for y, models in (("delta", "5 pairs of 1 model" if given else "15 pairs of 3 models"), ("probe:heard", "")):
        about = {"over": ["language"], "x": {"measure": "probe:found"}, "y": {"measure": y}, "expect": "positive"}
        found = judge(claim(correlate=about), results)
        assert found.n == 5 and found.one_model == given
        assert found.text.endswith(f"n = 5 conditions, {models}" if models else "conditions" if given else ", 15 pairs")
