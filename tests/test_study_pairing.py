"""What is paired with what: models, pretrainings whose adjustments only one side has, or nothing, which is told."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import stats

from probes.study.judged.estimates import UNPAIRED, difference
from probes.study.judged.observed import Model, Replicates
from probes.study.judged.verdicts import judge
from tests.judged import claim, interval, less, observed, result

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
