"""Means and differences over conditions and seeds: which replicates are a pair, and what is left out and told."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from probes.study.judged.correlated import RESAMPLED, clustered
from probes.study.judged.estimates import UNPAIRED, difference
from probes.study.judged.observed import Model, Replicates
from probes.study.judged.verdicts import judge
from tests.judged import ACROSS_LAYERS, claim, interval, less, measured, observed, result

BASE = np.array([[60.0, 60.3], [70.1, 69.9], [81.0, 80.2]])
"""Of each pretraining and seed of fine-tuning: pretrainings are far apart."""
GAIN = np.array([[[2.9, 3.3], [3.6, 3.1]], [[2.2, 2.8], [3.9, 3.0]], [[3.4, 2.5], [2.6, 3.7]]])
"""Of each pretraining, adjustment and seed of fine-tuning."""


def adjusted(task="pos", gain=GAIN, **labels):
    return [
        result({"objective": "B", "adjust.seed": str(a), **labels}, p, s, task, zs=BASE[p, s] + value)
        for (p, a, s), value in np.ndenumerate(gain)
    ]


def original(task="pos", base=BASE):
    return [result({"objective": "A"}, p, s, task, zs=value) for (p, s), value in np.ndenumerate(base)]


def more(rows):
    """Whether B has more than A."""
    return judge(less(measure="zs", relation="greater"), observed(rows))


def of_scipy(differences):
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    return pytest.approx((expected.low, expected.high))


def bounds(found):
    return interval(found).low, interval(found).high


def left_out(found):
    """The models some seeds of which are said to be left out."""
    said = found.text.partition("left out, not on both sides or in all conditions: ")[2].partition(": holds")[0]
    return [one.partition(" of pretraining ")[2] for one in said.split("; ")]


@pytest.mark.parametrize("adjustments", [1, 2])
def test_adjusted_and_original_are_paired_by_their_pretraining(adjustments):
    """With one seed of adjustment the numbers are those of a study that does not name it."""
    gain = GAIN[:, :adjustments]
    found = more(original() + adjusted(gain=gain))
    assert bounds(found) == of_scipy(gain.mean(axis=(1, 2)))
    assert (found.verdict, found.n, found.unit, found.one_model) == ("agrees in sign", 3, "models", False)
    assert UNPAIRED not in found.text and "left out" not in found.text
    plain = [row | {"labels": json.dumps({"objective": "B"})} for row in adjusted(gain=gain[:, :1])]
    if adjustments == 1:
        assert bounds(more(original() + plain)) == pytest.approx(bounds(found))


def test_other_adjustments_here_and_there_are_paired_by_their_pretraining():
    """One pretraining has an adjustment in common: that alone would be one pair."""
    left = [
        result({"objective": "B", "adjust.seed": str(a)}, p, zs=BASE[p, 0] + p / 9) for p, a in enumerate((0, 1, 2))
    ]
    right = [result({"objective": "A", "adjust.seed": "0"}, p, zs=BASE[p, 0] + 5) for p in range(3)]
    assert bounds(more(left + right)) == of_scipy(np.arange(3) / 9 - 5)
    two = [result({"objective": o, "adjust.seed": str(5 + a)}, 0, zs=BASE[0, 0] + a) for o in "AB" for a in range(2)]
    both = more(left + right + two)
    assert (both.n, both.unit, both.one_model) == (3, "models", False), "not two adjustments of one pretraining"


def test_what_has_no_pair_of_its_pretraining_is_told():
    rows = original()[:-1] + [row for row in adjusted() if row["pretrain_seed"] != 1]
    found = more(rows)
    assert bounds(found) == of_scipy([GAIN[0].mean(), GAIN[2, :, 0].mean()])
    assert left_out(found) == ["1", "2 adjust.seed 0", "2 adjust.seed 1"]
    assert "seeds 0, 1 of pretraining 1; seed 1 of pretraining 2 adjust.seed 0" in found.text


def test_one_pretraining_in_common_is_no_pair():
    """A given model against adjustments of it, and sides that have other pretrainings but for one: Welch's interval."""
    given = [row | {"pretrain_seed": None} for row in original() + adjusted() if row["pretrain_seed"] == 0]
    found = more(given)
    of_adjustments = (BASE[0] + GAIN[0]).mean(axis=1)
    expected = stats.ttest_ind(of_adjustments, BASE[0], equal_var=False).confidence_interval(0.95)
    assert bounds(found) == pytest.approx((expected.low, expected.high)) and UNPAIRED in found.text
    rows = original()[:4] + [row | {"pretrain_seed": row["pretrain_seed"] + 1} for row in adjusted()]
    apart = more(rows)
    means = (BASE[:, None] + GAIN).mean(axis=(1, 2)), BASE[:2].mean(axis=1)
    expected = stats.ttest_ind(*means, equal_var=False).confidence_interval(0.95)
    assert (
        bounds(apart) == pytest.approx((expected.low, expected.high))
        and "n = 2 models; the sides are not paired" in apart.text
    )


GAP = {
    "measure": "zs",
    "relation": "greater",
    **{
        side: {"where": {"task": task, "objective": "B"}, "minus": {"where": {"objective": "A"}}}
        for side, task in (("left", "pos"), ("right", "ner"))
    },
}


def test_a_gap_of_gaps_is_paired_by_pretraining():
    """B − A in pos less B − A in ner: B is adjusted twice, A is not."""
    of_ner, far = GAIN[::-1] / 3, BASE[::-1] - 20
    ner = [row | {"zs": row["zs"] - BASE[row["pretrain_seed"], row["seed"]] + far[row["pretrain_seed"], row["seed"]]}
           for row in adjusted("ner", of_ner)]  # fmt: skip
    rows = original() + adjusted() + original("ner", far) + ner
    found = judge(claim(compare=[GAP]), observed(rows))
    assert bounds(found) == of_scipy((GAIN - of_ner).mean(axis=(1, 2)))
    assert (found.n, found.unit) == (3, "models") and UNPAIRED not in found.text and "left out" not in found.text
    lost = [row for row in rows if not (row["pretrain_seed"] == 2 and row["task"] == "ner" and "A" in row["labels"])]
    found = judge(claim(compare=[GAP]), observed(lost))
    assert bounds(found) == of_scipy((GAIN - of_ner).mean(axis=(1, 2))[:2])
    assert left_out(found) == ["2", "2 adjust.seed 0", "2 adjust.seed 1"], "of A in pos, and of B"


def test_the_halves_of_a_gap_that_are_not_paired_are_told():
    gains = {"pos": [5.0, 6.0, 8.0], "ner": [1.0, 1.0, 2.0]}
    rows = [result({"objective": o}, model + 3 * (task == "ner"), task=task, zs=9.0 + (o == "B") * gain)
            for task, added in gains.items() for o in "AB" for model, gain in enumerate(added)]  # fmt: skip
    assert UNPAIRED in judge(claim(compare=[GAP]), observed(rows)).text


def test_sides_that_are_constant_but_for_rounding_decide_nothing():
    """Welch's test of them has p = 1e-32 and an interval of no width."""
    a: Replicates = {(Model("a", ""), seed): value for seed, value in enumerate([0.1 + 0.2, 0.3, 0.3])}
    b: Replicates = {(Model("b", ""), seed): 0.6 for seed in range(3)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = difference(a, b)
    assert found is not None and found.p is None
    assert (found.interval.low, found.interval.high) == (found.interval.mean,) * 2
    spread: Replicates = {one: value + seed for (one, value), seed in zip(b.items(), range(3), strict=True)}
    other = difference(spread, {one: 0.1 * seed for seed, one in enumerate(a)})
    expected = stats.ttest_ind([0.6, 1.6, 2.6], [0, 0.1, 0.2], equal_var=False)
    assert other is not None and other.p == pytest.approx(expected.pvalue)


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
