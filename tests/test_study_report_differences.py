"""Differences between conditions in the report of a study: pairs of the same seeds, beside SciPy."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes.report.data import read_study
from probes.report.differences import Difference, differences
from probes.report.scores import scores_of
from probes.statistics import corrected
from tests.report_study import (
    change,
    change_rows,
    make_grid,
    read_rows,
    report,
    write_rows,
)

OBJECTIVES, SEEDS = ["MLM", "XLM", "ALIGN-MLM"], [str(seed) for seed in range(5)]
AXES = {"objective": OBJECTIVES, "transform": ["trans", "inv"], "pretrain.seed": SEEDS}
NOISE = np.random.default_rng(3).normal(0, 8, len(SEEDS))
"""What a seed adds to every model of it."""
EFFECTS = {"MLM": 0.0, "XLM": 0.2, "ALIGN-MLM": -4.0}


def delta(cell: str, fine_tuning: int) -> float:
    objective, transform, seed = cell.split(", ")
    own = np.random.default_rng([OBJECTIVES.index(objective), len(transform), int(seed), fine_tuning]).normal(0, 0.7)
    return float(40 + EFFECTS[objective] + NOISE[int(seed)] + own)


def study(folder: Path, **more: Any) -> Path:
    make_grid(folder, AXES, seeds=2, **more)
    change_rows(folder, lambda row, _: {"delta": delta(row["cell"], int(row["seed"]))})
    return folder


def found(folder: Path) -> dict[tuple[str, str], Difference]:
    read = read_study(folder)
    return {(one.name, one.group): one for one in differences(scores_of(read))}


def models(objective: str, transform: str, seeds: list[str] = SEEDS) -> list[float]:
    return [float(np.mean([delta(f"{objective}, {transform}, {seed}", s) for s in (0, 1)])) for seed in seeds]


def test_models_of_the_same_seed_are_paired_and_p_values_corrected_together(tmp_path: Path) -> None:
    ours = found(study(tmp_path))
    keys = list(itertools.product(OBJECTIVES[1:], AXES["transform"]))
    tests = {(o, t): stats.ttest_rel(models(o, t), models("MLM", t)) for o, t in keys}
    holm = dict(zip(keys, corrected([float(tests[key].pvalue) for key in keys]), strict=True))
    assert set(ours) == set(keys)
    for key, test in tests.items():
        interval, bounds = ours[key].ours.interval, test.confidence_interval(0.95)
        assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))
        assert ours[key].p == pytest.approx(holm[key]) and ours[key].ours.n == 5
        apart = stats.ttest_ind(models(key[0], key[1]), models("MLM", key[1])).pvalue
        assert apart > 0.3, "intervals overlap: the seeds differ more than the objectives"
    assert [ours["ALIGN-MLM", t].outcome for t in AXES["transform"]] == ["lower"] * 2
    assert [ours["XLM", t].outcome for t in AXES["transform"]] == ["undecided"] * 2
    made = report(tmp_path)
    assert "XLM against MLM, Δ in 2 comparisons: not shown to differ in 2." in made.lead
    assert "ALIGN-MLM against MLM, Δ in 2 comparisons: lower in 2 (trans: pos; inv: pos)." in made.lead
    line = made.table("Compared", "Under", "p")[2]
    assert line["Compared"] == "XLM − MLM" and line["n"] == "5 pairs|of models"
    assert "corrected for 4 tests by Holm's method" in made.text


def test_seeds_that_one_side_lacks_are_in_no_pair(tmp_path: Path) -> None:
    rows = [dict(row) for row in read_rows(study(tmp_path))]
    write_rows(tmp_path, [row for row in rows if row["cell"] not in ("MLM, inv, 0", "ALIGN-MLM, inv, 4")])
    one = found(tmp_path)["ALIGN-MLM", "inv"]
    left = models("ALIGN-MLM", "inv", SEEDS[1:4])
    assert one.ours.n == 3 and one.ours.mean == pytest.approx(np.mean(left) - np.mean(models("MLM", "inv", SEEDS[1:4])))


def test_without_a_second_pair_nothing_is_tested(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"], "pretrain.seed": ["0"]}, seeds=1)
    one = found(folder)["XLM", ""]
    assert (one.ours.mean, one.p, one.outcome) == (1.0, None, "not tested")
    made = report(folder)
    assert "XLM against MLM, Δ in 1 comparison: no test is possible in 1 (pos 1.0, n = 1)." in made.lead
    assert made.table("Compared", "p")[0]["p"] == "–"


def test_several_axes_are_compared_each_with_the_others_fixed(tmp_path: Path) -> None:
    axes = {"alpha": ["1", "2"], "layers": ["2", "4"], "transform": ["trans", "inv"]}
    folder = make_grid(tmp_path, axes, seeds=1)
    settings = ("alpha 1", "alpha 2"), ("layers 2", "layers 4")
    expected = [("layers 4", f"{a}, {t}") for a in settings[0] for t in axes["transform"]]
    expected += [("alpha 2", f"{one}, {t}") for one in settings[1] for t in axes["transform"]]
    assert list(found(folder)) == expected
    rows = [dict(row) for row in read_rows(folder)]
    write_rows(folder, [row for row in rows if row["cell"].split(", ")[:2] in (["1", "2"], ["2", "4"])])
    assert list(found(folder)) == [("alpha 2, layers 4", "trans"), ("alpha 2, layers 4", "inv")], (
        "axes that go together"
    )


def test_where_one_condition_has_no_delta_all_are_shown_by_their_zero_shot_scores(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["MLM", "XLM"], "pretrain.seed": ["0", "1", "2"]}, jitter=0.3)
    change_rows(folder, lambda _, of: {"sup": "", "delta": ""} if of["objective"] == "XLM" else {})
    lead = report(folder).lead
    assert "| condition | ZS | SUP |" in lead and "*ZS: higher is better.*" in lead
    assert all(f"(pos, {name})" in lead for name in ("MLM", "XLM")), "both are drawn"
    assert all(re.search(rf"^\| {name} \| [\d.]+ \|", lead, re.MULTILINE) for name in ("MLM", "XLM"))
    assert "XLM against MLM, ZS in 1 comparison" in lead


# --- comparisons that a study names ---

COMPARE = [
    {"objective": ["ALIGN-MLM", "XLM"], "transform": "inv"},
    {"objective": ["XLM", "MLM"], "transform": ["trans", "inv"]},
    [{"objective": "ALIGN-MLM", "transform": "trans"}, {"objective": "MLM", "transform": "inv"}],
]


def test_chosen_pairs_and_the_interaction_are_tested_alone(tmp_path: Path) -> None:
    folder = study(tmp_path)
    change(folder, config={"compare": COMPARE})
    pair, crossed, diagonal = differences(scores_of(read_study(folder)))
    gap = [np.subtract(models("XLM", t), models("MLM", t)) for t in ("trans", "inv")]
    sides = [
        (models("ALIGN-MLM", "inv"), models("XLM", "inv")),
        (gap[0], gap[1]),
        (models("ALIGN-MLM", "trans"), models("MLM", "inv")),
    ]
    tests = [stats.ttest_rel(*of) for of in sides]
    for one, test, p in zip((pair, crossed, diagonal), tests, corrected([t.pvalue for t in tests]), strict=True):
        interval, bounds = one.ours.interval, test.confidence_interval(0.95)
        assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))
        assert one.p == pytest.approx(p) and one.ours.n == 5
    names = [(one.compared, one.group) for one in (pair, crossed, diagonal)]
    assert names == [
        ("ALIGN-MLM − XLM", "inv"),
        ("(XLM − MLM under trans) − (XLM − MLM under inv)", ""),
        ("ALIGN-MLM, trans − MLM, inv", ""),
    ]
    made = report(tmp_path)
    line = r"ALIGN-MLM against XLM \(inv: pos\): Δ −\S+ \(−\S+ to −\S+\), p &lt; \.001, n = 5 pairs of models\."
    assert re.search(line, made.lead)
    assert "XLM − MLM under trans against XLM − MLM under inv (pos): Δ " in made.lead
    assert "corrected for 3 tests" in made.text and "An interaction is a difference of two" in made.text


def test_other_axes_and_tasks_are_compared_one_by_one_and_one_seed_is_shown(tmp_path: Path) -> None:
    axes = {"order": ["fixed", "free"], "marking": ["none", "case"], "size": ["2", "4"]}
    folder = make_grid(tmp_path, axes, ("pos", "ner"), seeds=1)
    crossed: dict[str, Any] = {"marking": ["case", "none"], "order": ["free", "fixed"]}
    change(folder, config={"compare": [crossed, {**crossed, "size": "8"}]})
    found = differences(scores_of(read_study(folder)))
    assert [(one.group, one.task) for one in found] == [(f"size {n}", t) for t in ("pos", "ner") for n in "24"]
    line = "case − none under free against case − none under fixed (size 2: pos): Δ 0.0, no test is possible, n = 1"
    lead = report(folder).lead
    assert line in lead and "1 of 2 comparisons of the study could not be made, because" in lead
