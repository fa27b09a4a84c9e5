"""Verdicts on claims: data made to reach each, intervals beside SciPy's, results that say what the papers say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probes.statistics import Interval
from probes.study.judged.claims import read_claims
from probes.study.judged.estimates import difference, estimate, outcome_of
from probes.study.judged.observed import Model, Replicates
from probes.study.judged.verdicts import WORDS, judge
from tests.judged import claim, echo, interval, less, measured, observed, result, rows


def test_each_verdict_of_a_comparison():
    low, high = [1.0, 2.0, 3.0], [21.0, 23.0, 22.0]
    assert judge(less(), observed(rows(high, low))).verdict == "agrees in sign"
    assert judge(less(), observed(rows(low, high))).verdict == "differs"
    assert judge(less(), observed(rows([1.0, 9.0, 5.0], [2.0, 7.0, 5.5]))).verdict == "too small to tell"
    assert (
        judge(less(), observed(rows(high[:1], low[:1]))).verdict == "too small to tell"
    )  # one seed, however far apart
    assert judge(less(), observed(rows(high, []))).verdict == "not run"
    assert judge(less(), observed()).verdict == "not run"
    assert judge(less(margin=30), observed(rows(high, low))).verdict == "differs"  # 20 less, not 30
    assert judge(less(margin=-30), observed(rows(low, high))).verdict == "agrees in sign"  # at most 30 more
    assert judge(less(relation="greater"), observed(rows(high, low))).verdict == "differs"
    assert {"agrees in sign", "differs", "too small to tell", "not run", "agrees in order"} == set(WORDS)


def test_the_text_says_what_is_asked():
    asked = {"greater": "> 3", "less": "< -3", "near": "within ±3"}
    for relation, said in asked.items():
        text = judge(less(relation=relation, margin=3), observed(rows([1.0, 2.0], [9.0, 8.5]))).text
        assert f"delta, B − A (asked {said}): " in text
    assert "(asked < 0): " in judge(less(), observed(rows([1.0, 2.0], [9.0, 8.5]))).text


def test_near():
    near = {"relation": "near", "margin": 2.0}
    assert judge(less(**near), observed(rows([1.0, 2.0, 3.0], [1.5, 2.4, 3.3]))).verdict == "agrees in sign"
    assert judge(less(**near), observed(rows([1.0, 2.0, 3.0], [9.0, 10.1, 11.2]))).verdict == "differs"
    assert judge(less(**near), observed(rows([1.0, 2.0, 3.0], [3.0, 4.5, 4.4]))).verdict == "too small to tell"
    value = claim(compare=[{"measure": "delta", "left": {"where": {"objective": "A"}}, "value": 5.0, **near}])
    found = judge(value, observed(rows([5.1, 5.3, 4.9], [])))
    assert found.verdict == "agrees in sign" and interval(found).mean == pytest.approx(0.1)


def test_outcomes_at_the_margin():
    assert outcome_of(Interval(1, 0.0, 2, 3, 0.95), "greater") == "open"
    assert outcome_of(Interval(1, 0.1, 2, 3, 0.95), "greater") == "holds"
    assert outcome_of(Interval(1, 0.1, 2, 3, 0.95), "less") == "fails"
    assert outcome_of(Interval(1, -2.0, 2, 3, 0.95), "near", 2) == "open"
    assert outcome_of(Interval(1, None, None, 1, 0.95), "greater") == "open"
    assert judge(less(), observed(rows([50.0] * 3, [33.3] * 3))).verdict == "too small to tell"  # no seed did anything


def test_paired_interval_is_that_of_scipy():
    random = np.random.default_rng(1)
    a, b = random.normal(30, 8, 6), random.normal(20, 1, 6) + np.arange(6)
    found = judge(less(), observed(rows(a, b)))
    expected = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert (interval(found).low, interval(found).high) == pytest.approx((expected.low, expected.high))
    assert interval(found).mean == pytest.approx(float((b - a).mean())) and found.n == interval(found).n == 6
    fine = [result({"objective": name}, 0, seed, delta=value) for name, held in (("A", a), ("B", b))
            for seed, value in enumerate(held)]  # fmt: skip
    of_seeds = judge(less(), observed(fine))
    assert of_seeds.ours == found.ours and "n = 6 fine-tuning seeds" in of_seeds.text and "n = 6 models" in found.text
    assert of_seeds.one_model and of_seeds.unit == "fine-tuning seeds" and not found.one_model


def test_models_are_the_units_where_there_are_several():
    """Seeds of fine-tuning of one model are averaged first: three models of four seeds each are three draws."""
    random = np.random.default_rng(2)
    effect = random.normal(0, 5, (2, 3, 1)) + random.normal(0, 1, (2, 3, 4))
    held = [
        result({"objective": name}, model, seed, delta=float(effect[i, model, seed]))
        for i, name in enumerate("AB")
        for model in range(3)
        for seed in range(4)
    ]
    found = judge(less(), observed(held))
    means = effect.mean(axis=2)
    expected = stats.ttest_rel(means[1], means[0]).confidence_interval(0.95)
    assert (interval(found).low, interval(found).high) == pytest.approx((expected.low, expected.high))
    assert found.n == 3
    fewer = [row for row in held if not (row["pretrain_seed"] == 2 and "B" in row["labels"])]
    both = judge(less(), observed(fewer))  # only models that both have
    assert (
        both.n == 2
        and "left out, not on both sides or in all conditions: seeds 0, 1, 2, 3 of pretraining 2" in both.text
    )


def test_a_given_model_against_several_is_not_paired():
    random = np.random.default_rng(3)
    base, adjusted = random.normal(60, 1, 5), random.normal(66, 2, 4)
    held = [result({"objective": "A"}, None, seed, delta=value) for seed, value in enumerate(base)]
    held += [result({"objective": "B", "adjust.seed": str(n)}, None, delta=value) for n, value in enumerate(adjusted)]
    found = judge(less(), observed(held))
    expected = stats.ttest_ind(adjusted, base, equal_var=False).confidence_interval(0.95)
    assert (interval(found).low, interval(found).high) == pytest.approx((expected.low, expected.high))
    assert found.verdict == "differs" and (found.n, found.unit) == (4, "adjustments")
    assert found.one_model  # of one given model: another one may say something else


def test_estimates():
    one: Replicates = {(Model("0", ""), seed): value for seed, value in enumerate([1.0, 2.0, 4.0])}
    expected = stats.t.interval(0.95, 2, np.mean([1, 2, 4]), stats.sem([1, 2, 4]))
    found = estimate(one)
    assert found is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(expected) and found.unit == "fine-tuning seeds"
    assert estimate({}) is None and difference(one, {}) is None
    none = difference(one, one)
    assert none is not None and none.interval == Interval(0.0, 0.0, 0.0, 3, 0.95)
    a, b = Model("a", ""), Model("b", "")
    same = difference({(a, 0): 1.0, (a, 1): 1.0}, {(b, 0): 3.0, (b, 1): 3.0})
    assert same is not None  # no spread, other models: no warning, no NaN
    assert same.interval == Interval(-2.0, -2.0, -2.0, 2, 0.95)


def test_other_axes_are_paired_and_averaged():
    """Only conditions that both have count: a task that one side lacks does not move the difference."""
    held = []
    for model in range(3):
        held += [
            result({"objective": "A"}, model, task=task, delta=10 + add + model)
            for task, add in (("pos", 0), ("ner", 30))
        ]
        held += [result({"objective": "B"}, model, task="pos", delta=8.0 + model + 0.1 * model)]
    found = judge(less(), observed(held))
    assert interval(found).mean == pytest.approx(-1.9) and found.n == 3
    held += [result({"objective": "B"}, model, task="ner", delta=50.0 + model) for model in range(3)]
    assert interval(judge(less(), observed(held))).mean == pytest.approx((-1.9 + 10) / 2)


def test_an_axis_that_one_side_names_tells_nothing_apart():
    held = [result({"objective": "A", "parallel": "0%"}, m, delta=3.0 + m / 9) for m in range(3)]
    held += [
        result({"objective": "B", "parallel": p}, m, delta=v + m) for m in range(3) for p, v in (("1%", 1), ("9%", 40))
    ]
    found = judge(less(left={"where": {"objective": "B", "parallel": "9%"}}), observed(held))
    assert found.verdict == "differs" and interval(found).mean == pytest.approx(37 + 1 - 1 / 9)


def test_several_comparisons():
    parts = [{"where": {"task": task}, "measure": "delta", "left": {"where": {"objective": "B"}},
              "right": {"where": {"objective": "A"}}, "relation": "less"} for task in ("pos", "ner")]  # fmt: skip
    both = claim(compare=parts)

    def of(ner):
        held = [result({"objective": o}, m, delta=v + m * v / 40) for o, v in (("A", 9), ("B", 1)) for m in range(3)]
        return observed(
            held + [result({"objective": o}, m, task="ner", delta=v) for o, vs in ner for m, v in enumerate(vs)]
        )

    found = judge(both, of([]))
    assert found.verdict == "agrees in sign" and found.text.startswith("1 of 2 comparisons were run")
    pos, ner = (f"{task} delta, B − A" for task in ("pos", "ner"))
    assert found.tally == f"1 of 1 hold, 1 of 2 not run; ours is {pos}"
    assert judge(claim(compare=parts[:1]), of([])).tally == "", "of one comparison the verdict says all"
    for ner_of, verdict, tally, outcomes in (
        ([("A", [9, 8, 9]), ("B", [1, 1, 2])], "agrees in sign", f"2 of 2 hold; ours is {pos}", ("holds", "holds")),
        ([("A", [1, 2, 2]), ("B", [9, 9, 8])], "differs", f"1 of 2 hold, 1 against; ours is {ner}", ("holds", "fails")),
        ([("A", [9, 1, 5]), ("B", [5, 3, 7])], "too small to tell", f"1 of 2 hold, 1 open; ours is {ner}",
         ("holds", "open")),
    ):  # fmt: skip
        found = judge(both, of(ner_of))
        assert (found.verdict, found.tally) == (verdict, tally)
        assert tuple(said.rpartition(": ")[2] for said in found.text.split("; ")) == outcomes
        assert interval(found) == next(p.ours.interval for p in found.parts if p.what in tally and p.ours)


def gap_of(**more):
    """B gains more on task pos than on task ner, over A."""
    sides = {
        side: {"where": {"task": task, "objective": "B"}, "minus": {"where": {"objective": "A"}}}
        for side, task in (("left", "pos"), ("right", "ner"))
    }
    return claim(compare=[{"measure": "zs", "relation": "greater", **sides, **more}])


def test_gap_of_gaps():
    """B − A is 5, 6, 8 in pos and 1, 1, 2 in ner; models are far apart, their gaps are not."""
    random = np.random.default_rng(1)
    base, pos, ner = random.normal(50, 20, 3), np.array([5.0, 6.0, 8.0]), np.array([1.0, 1.0, 2.0])
    held = [
        result({"objective": name}, model, task=task, zs=float(base[model] + (name == "B") * gains[model]))
        for task, gains in (("pos", pos), ("ner", ner))
        for name in "AB"
        for model in range(3)
    ]
    found = judge(gap_of(), observed(held))
    expected = stats.t.interval(0.95, 2, np.mean(pos - ner), stats.sem(pos - ner))
    assert (interval(found).low, interval(found).high) == pytest.approx(expected)
    assert found.verdict == "agrees in sign" and (found.n, found.unit) == (3, "models")
    assert found.text.startswith("(pos zs, B − A) − (ner zs, B − A) (asked > 0): 5.0")
    assert judge(gap_of(relation="less"), observed(held)).verdict == "differs"
    assert judge(gap_of(margin=4.5), observed(held)).verdict == "too small to tell"
    lost = [row for row in held if (row["task"], row["pretrain_seed"]) != ("ner", 2)]
    found = judge(gap_of(), observed(lost))
    assert found.n == 2 and "seed 0 of pretraining 2" in found.text
    assert judge(gap_of(), observed(row for row in held if row["task"] == "pos")).verdict == "not run"


def test_gap_of_a_given_model_and_several_adjustments_of_it():
    """What is adjusted is paired with itself, and so is the given model; both differences are Welch's."""
    left, base = np.array([8.0, 9.0, 9.5]), np.array([2.0, 2.5, 3.0])
    right, off = np.array([4.0, 4.5, 5.5]), np.array([1.0, 2.0, 1.5])
    held = [result({"objective": "B", "adjust.seed": str(i)}, None, 0, task, zs=float(value))
            for task, values in (("pos", left), ("ner", right)) for i, value in enumerate(values)]  # fmt: skip
    held += [result({"objective": "A"}, None, i, task, zs=float(value))
             for task, values in (("pos", base), ("ner", off)) for i, value in enumerate(values)]  # fmt: skip
    found = judge(gap_of(), observed(held))
    expected = stats.ttest_ind(left - right, base - off, equal_var=False).confidence_interval()
    assert (interval(found).low, interval(found).high) == pytest.approx((expected.low, expected.high))
    others = [row if row["task"] == "pos" else row | {"pretrain_seed": 7} for row in held]
    found = judge(gap_of(), observed(others))
    assert found.verdict == "not run" and "no difference of them is paired" in found.text


def test_gap_of_models_that_are_others_here_and_there():
    """Each side is paired with what is taken off it."""
    gains = {"pos": np.array([5.0, 6.0, 8.0]), "ner": np.array([1.0, 1.0, 2.0])}
    held = [result({"objective": name}, model + (3 if task == "ner" else 0), task=task, zs=9.0 + (name == "B") * gain)
            for task, added in gains.items() for name in "AB" for model, gain in enumerate(added)]  # fmt: skip
    found = judge(gap_of(), observed(held))
    expected = stats.ttest_ind(gains["pos"], gains["ner"], equal_var=False).confidence_interval()
    assert (interval(found).low, interval(found).high) == pytest.approx((expected.low, expected.high))


def test_a_measure_instead_of_another():
    """The first is read where anything was measured of it, else the other; the text says which."""
    asked = claim(compare=[{"measure": "probe:x", "instead": "probe:y", "left": {"where": {"objective": "B"}},
                            "right": {"where": {"objective": "A"}}, "relation": "greater"}])  # fmt: skip
    y = [measured({"objective": o}, m, "y", v + m * v) for o, v in (("A", 1.0), ("B", 5.0)) for m in range(3)]
    x = [measured({"objective": o}, m, "x", v + m * v) for o, v in (("A", 5.0), ("B", 1.0)) for m in range(3)]
    assert interval(judge(asked, observed([], y))).mean == 8 and judge(asked, observed([], y)).text.startswith(
        "y, B − A"
    )
    assert interval(judge(asked, observed([], x + y))).mean == -8
    assert judge(asked, observed([], x + y)).text.startswith("x, B − A")
    own = claim(compare=[{"measure": "probe:x", "instead": "probe:y", "left": {"measure": "probe:z"}, "value": 0,
                          "relation": "greater"}])  # fmt: skip
    assert judge(own, observed([], y)).verdict == "not run", "instead goes with its measure"


def test_a_whole_claim():
    """A part of its comparisons shows nothing."""
    parts = [{"where": {"task": task}, "measure": "zs", "left": {"where": {"objective": "B"}}, "value": 0,
              "relation": "greater"} for task in ("pos", "ner")]  # fmt: skip
    held = {task: [result({"objective": "B"}, m, task=task, zs=5.0 + m) for m in range(3)] for task in ("pos", "ner")}
    whole = claim(compare=parts, whole=True)
    assert judge(claim(compare=parts), observed(held["pos"])).verdict == "agrees in sign"
    found = judge(whole, observed(held["pos"]))
    assert found.verdict == "not run" and found.text.startswith("a part shows nothing of it: 1 of 2 comparisons")
    assert judge(whole, observed(held["pos"] + held["ner"])).verdict == "agrees in sign"


def test_order():
    along = [{"size": "1"}, {"size": "2"}, {"size": "3"}]
    rising = claim(order=[{"measure": "zs", "along": along, "direction": "rising"}])

    def of(**values):
        return observed(
            [result({"size": k[1:]}, m, zs=v + m + (m == 1) * 0.1 * v) for k, v in values.items() for m in range(3)]
        )

    assert judge(rising, of(s1=1, s2=5, s3=9)).verdict == "agrees in order"
    assert judge(rising, of(s1=1, s2=9, s3=5)).verdict == "differs"
    assert judge(rising, of(s1=1, s2=5, s3=5)).verdict == "too small to tell"
    assert judge(rising, of(s1=1, s3=9)).verdict == "agrees in order"
    assert judge(rising, of(s1=1, s3=9)).text.startswith("1 of 2 comparisons were run")
    assert judge(rising, of(s1=1)).verdict == judge(rising, of()).verdict == "not run"
    falling = claim(order=[{"measure": "zs", "along": along, "direction": "falling"}])
    assert judge(falling, of(s1=9, s2=5, s3=1)).verdict == "agrees in order"


NOT_PRINTED = {
    *("monolingual-models-are-alike", "bilingual-models-are-more-alike", "lower-layers-are-more-alike"),
    *("similar-languages-are-more-alike", "one-model-helps-distant-pairs-less", "cka-tells-sentence-retrieval"),
    *("sentences-align-best-in-lower-layers", "words-align-best-in-upper-layers"),
    *("a-rotation-aligns-monolingual-models", "mapped-transfer-is-below-bilingual", "mapping-loses-more-in-ner"),
    *("middle-layers-transfer-best", "rotation-helps-bilingual-parsing-only"),
    *("rotation-helps-bilingual-parsing-in-french-most", "adjustment-separates-words", "unlike-frequency-aligns-worse"),
    *("tuning-draws-words-together", "tuning-forgets-separation", "tuned-words-overlap"),
    *("adjusted-stays-better-separated", "continual-keeps-separation", "separation-is-no-transfer"),
    *("embeddings-align-like-static-vectors", "averaged-contexts-align-below-static-vectors"),
    *("parallel-does-not-improve-alignment", "align-aligns-better-than-xlm-with-any-parallel"),
}
"""Claims whose measures are not printed."""


@pytest.mark.parametrize("name", ["align_mlm", "cao2020", "emerging", "impact", "kulshreshtha2020"])
def test_the_papers_numbers_agree_with_their_claims(name):
    results = echo(name)
    for held in read_claims(name):
        found = judge(held, results)
        if held.id in NOT_PRINTED:
            assert found.verdict == "not run", held.id
        else:
            assert found.verdict.startswith("agrees"), (held.id, found.text)
            assert "comparisons were run" not in found.text, (held.id, found.text)
