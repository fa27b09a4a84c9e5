"""Means and differences over what all sides have: conditions, seeds and values that are left out are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from probes.study.judged.correlated import RESAMPLED, clustered
from probes.study.judged.verdicts import judge
from tests.judged import ACROSS_LAYERS, claim, interval, less, measured, observed, result


def scores(models=3, seeds=1, **of):
    """Δ of each objective and task, a little more for each model and seed: of(A={"pos": 3.0})."""
    random = np.random.default_rng(5)
    return [
        result({"objective": objective}, model, seed, task=task, delta=value + random.normal(0, 0.1))
        for objective, tasks in of.items()
        for task, value in tasks.items()
        for model in range(models)
        for seed in range(seeds)
    ]


def test_what_only_one_side_has_is_told():
    """B was measured in POS only: NER and NLI of A decide nothing, and the text says so."""
    held = scores(A={"pos": 9.0, "ner": 1.0, "nli": 1.0}, B={"pos": 5.0})
    found = judge(less(), observed(held))
    assert found.verdict == "agrees in sign" and interval(found).mean == pytest.approx(-4, abs=0.3)
    assert "n = 3 models; over pos; left out, not in all that is compared: ner, nli" in found.text
    whole = judge(less(), observed(scores(A={"pos": 9.0, "ner": 8.0}, B={"pos": 5.0, "ner": 5.0})))
    assert "over pos, ner" in whole.text and "left out" not in whole.text


def test_nothing_in_common_is_not_run_and_why():
    found = judge(less(), observed(scores(A={"pos": 9.0}, B={"ner": 5.0})))
    assert found.verdict == "not run" and found.ours is None
    assert found.text.endswith("not run, no condition is common to all that is compared: ner against pos")
    assert "nothing was measured" in judge(less(), observed(scores(A={"pos": 9.0}))).text


def test_seeds_that_not_all_conditions_have_are_told():
    held = [row for row in scores(1, 5, A={"pos": 9.0, "nli": 8.0}, B={"pos": 5.0, "nli": 4.0})
            if not ("B" in row["labels"] and row["task"] == "pos" and row["seed"] > 1)]  # fmt: skip
    found = judge(less(), observed(held))
    assert (found.n, found.unit) == (2, "fine-tuning seeds")
    assert "left out, not on both sides or in all conditions: seeds 2, 3, 4 of pretraining 0" in found.text
    apart = [row for row in held if not ("B" in row["labels"] and row["task"] == "nli" and row["seed"] < 2)]
    none = judge(less(), observed(apart))
    assert none.verdict == "not run" and "no seed is in all conditions of one side: pos, nli" in none.text


def test_an_order_rests_on_one_set():
    """Adjacent pairs share pos and ner, or pos and nli; all three share pos alone."""
    of = {"A": {"pos": 1.0, "ner": 90.0}, "B": {"pos": 5.0, "ner": 1.0, "nli": 90.0}, "C": {"pos": 9.0, "nli": 1.0}}
    along = [{"objective": name} for name in of]
    asked = claim(order=[{"measure": "delta", "along": along, "direction": "rising"}])
    found = judge(asked, observed(scores(**of)))
    assert found.verdict == "agrees in order" and found.text.count("over pos; left out") == 2
    assert [part.ours and part.ours.interval.mean for part in found.parts] == pytest.approx([4, 4], abs=0.3)
    of["C"] = {"nli": 1.0}
    assert judge(asked, observed(scores(**of))).verdict == "not run"


def test_all_comparisons_of_a_claim_rest_on_one_set():
    part = {"measure": "delta", "left": {"where": {"objective": "B"}}, "relation": "less"}
    two = claim(compare=[{**part, "right": {"where": {"objective": name}}} for name in "AC"])
    of = {"A": {"pos": 9.0}, "B": {"pos": 5.0, "ner": 50.0}, "C": {"pos": 9.0, "ner": 1.0}}
    found = judge(two, observed(scores(**of)))
    assert found.verdict == "agrees in sign" and found.text.count("over pos; left out") == 2
    assert judge(two, observed(scores(**of | {"A": {"pos": 9.0, "ner": 60.0}}))).verdict == "differs"
    against_value = claim(compare=[{**part, "value": 20.0}, {**part, "right": {"where": {"objective": "A"}}}])
    assert judge(against_value, observed(scores(**of))).text.count("over pos; left out") == 2
    apart = {"A": {"pos": 9.0}, "B": {"pos": 5.0, "ner": 5.0}, "C": {"ner": 9.0}}
    assert judge(two, observed(scores(**apart))).verdict == "not run"


def test_labels_of_an_axis_that_one_side_names_are_averaged_over_the_same_seeds():
    held = [result({"objective": "A", "size": s}, m, delta=v + m * v / 50) for s, v in (("1", 10.0), ("2", 20.0))
            for m in range(4) if (s, m) != ("2", 3)]  # fmt: skip
    held += [result({"objective": "B", "size": "1"}, m, delta=1.0 + m) for m in range(4)]
    found = judge(less(left={"where": {"objective": "B", "size": "1"}}), observed(held))
    assert found.n == 3 and "seed 0 of pretraining 3" in found.text
    assert interval(found).mean == pytest.approx(2 - 15 * (1 + 1 / 50))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_told_and_left_out(value):
    held = scores(1, 4, A={"pos": 9.0}, B={"pos": 5.0})
    held[1]["delta"] = value
    found = judge(less(), observed(held))
    assert found.n == 3 and interval(found).mean == pytest.approx(-4, abs=0.3)
    assert "left out, not a number: seed 1 of pretraining 0" in found.text
    none = judge(less(), observed([row | {"delta": value} for row in held]))
    assert none.verdict == "not run" and "no seed with numbers" in none.text


def test_the_mark_of_one_model():
    one = judge(less(), observed(scores(1, 4, A={"pos": 9.0}, B={"pos": 5.0})))
    several = judge(less(), observed(scores(3, 4, A={"pos": 9.0}, B={"pos": 5.0})))
    assert one.verdict == several.verdict == "agrees in sign"
    assert (one.one_model, one.unit, several.one_model, several.unit) == (True, "fine-tuning seeds", False, "models")
    held = [result({"objective": o, "adjust.seed": str(n)}, 0, delta=v + n / 9 + n * (o == "A")) for n in range(4)
            for o, v in (("A", 9.0), ("B", 5.0))]  # fmt: skip
    adjusted = judge(less(), observed(held))
    assert (adjusted.one_model, adjusted.n, adjusted.unit) == (True, 4, "adjustments")
    nested = [result({"objective": o, "adjust.seed": str(n)}, m, delta=v + n / 9 + m * v / 9) for n in range(4)
              for m in range(3) for o, v in (("A", 9.0), ("B", 5.0))]  # fmt: skip
    assert (judge(less(), observed(nested)).n, judge(less(), observed(nested)).unit) == (3, "models")
    uneven = scores(3, 4, A={"pos": 9.0}, B={}) + scores(1, 4, A={}, B={"pos": 5.0})
    assert judge(less(), observed(uneven)).one_model  # of B another pretraining is not known


OVER = {"x": {"measure": "alignment_all"}, "y": {"where": {"task": "pos"}, "measure": "delta"}, "over": ["cell"]}


@pytest.mark.parametrize("count", [5, 6, 12, RESAMPLED + 1])
def test_a_perfect_correlation_is_decided_by_its_p(count):
    held = [
        result({"cell": f"c{i}"}, 0, s, delta=-float(i), alignment_all=float(i)) for i in range(count) for s in (0, 1)
    ]
    found = judge(claim(correlate={**OVER, "expect": "negative"}), observed(held))
    assert found.verdict == "agrees in sign" and interval(found).mean == pytest.approx(-1)
    assert (found.n, found.unit, found.one_model) == (count, "conditions", False)
    assert judge(claim(correlate={**OVER, "expect": "positive"}), observed(held)).verdict == "differs"
    four = [row for row in held if row["labels"] in {f'{{"cell": "c{i}"}}' for i in range(4)}]
    assert judge(claim(correlate={**OVER, "expect": "negative"}), observed(four)).verdict == "too small to tell"
    same = [row | {"delta": 1.0} for row in held]
    assert judge(claim(correlate={**OVER, "expect": "negative"}), observed(same)).verdict == "too small to tell"


def test_a_perfect_correlation_of_layers_is_of_one_model():
    held = [measured({"pair": "en-fr"}, 0, name, float(n), layer=n) for n in range(6) for name in "xy"]
    found = judge(claim(correlate={**ACROSS_LAYERS, "expect": "positive"}), observed([], held))
    assert found.verdict == "agrees in sign" and found.one_model


def test_a_pair_that_is_no_number_is_counted():
    held = [result({"cell": str(i)}, 0, delta=math.nan if i == 3 else -(i % 5) * i, alignment_all=i) for i in range(9)]
    found = judge(claim(correlate={**OVER, "expect": "negative"}), observed(held))
    known = [i for i in range(9) if i != 3]
    assert found.n == 8 and "1 pair left out, not a number" in found.text
    assert interval(found).mean == pytest.approx(stats.spearmanr(known, [-(i % 5) * i for i in known]).statistic)


def test_many_conditions_of_several_models_are_no_surer_than_their_number():
    """Twenty times the same models: resampling clusters and Fisher's interval of clusters are as wide as before."""
    random = np.random.default_rng(1)
    x = random.normal(size=RESAMPLED + 1)
    y = x + 2 * random.normal(size=len(x))
    pairs, names = list(zip(x, y, strict=True)), [str(i) for i in range(len(x))]
    once, often = clustered(pairs, names), clustered(pairs * 20, names * 20)
    assert once.clusters == often.clusters and (once.low, once.p) == pytest.approx((often.low, often.p))
    few, fewer = clustered(pairs[:30], names[:30]), clustered(pairs[:30] * 3, names[:30] * 3)
    assert fewer.p == pytest.approx(few.p, abs=0.02) and fewer.low == pytest.approx(few.low, abs=0.1)
    turned = clustered(pairs[:30][::-1], [f"other {name}" for name in names[:30][::-1]])
    assert turned == few
    expected = stats.spearmanr(x, y)
    assert once.r == pytest.approx(expected.statistic) and once.p == pytest.approx(expected.pvalue)
