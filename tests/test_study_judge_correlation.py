"""Verdicts on correlations: what decides them, what counts as one condition, and how many models there are."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probes.statistics import Interval
from probes.study.judged.correlated import RESAMPLED, clustered, connected_groups, outcome_of_correlation
from probes.study.judged.verdicts import judge
from tests.judged import claim, interval, observed, result


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
        assert outcome == ("open" if p > 0.05 else "holds" if rho > 0 else "fails")
        decided += outcome != "open"
        apart += not found.low <= 0 <= found.high
    assert apart == 16 and decided == 2 <= 0.05 * len(rhos)


@pytest.mark.parametrize(
    ("r", "low", "high", "p", "outcome"),
    [
        (0.9, 0.3, 1.0, 0.05, "holds"),
        (0.9, 0.3, 1.0, 0.051, "open"),
        (0.9, 0.0, 1.0, 0.001, "open"),
        (-0.9, -1.0, -0.3, 0.05, "fails"),
        (0.9, 0.3, 1.0, None, "holds"),  # nothing can change places: there is the interval alone
        (1.0, 1.0, 1.0, None, "open"),
        (1.0, 1.0, 1.0, 0.02, "holds"),
        (1.0, None, None, 0.01, "open"),
    ],
)
def test_the_interval_and_p_decide_together(
    r: float, low: float | None, high: float | None, p: float | None, outcome: str
) -> None:
    assert outcome_of_correlation(Interval(r, low, high, 5, 0.95), p, "greater") == outcome
    assert outcome_of_correlation(None, p, "greater") == "open"


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=3), max_size=12))
def test_conditions_that_share_measurements_are_one(models):
    """Against joining any two that share one, until no more do."""
    groups = [({number}, set(held)) for number, held in enumerate(models)]
    while pair := next(((a, b) for a, b in combinations(groups, 2) if a[1] & b[1]), None):
        groups = [group for group in groups if group not in pair] + [(pair[0][0] | pair[1][0], pair[0][1] | pair[1][1])]
    first = {number: min(numbers) for numbers, _ in groups for number in numbers}
    assert connected_groups(models) == [first[number] for number in range(len(models))]


def test_points_of_a_correlation_are_means_over_the_same_conditions():
    """In each language Δ rises with alignment; where the harder one is not finished its points are left out of all."""
    grid = [(o, lang) for o in range(8) for lang in ("easy", "hard")]
    every = [
        result({"objective": f"o{o}", "language": lang}, m, delta=5.0 * o + (60 if lang == "hard" else 0) + m / 9,
               alignment_all=10.0 * o + m / 7)
        for o, lang in grid for m in range(3)
    ]  # fmt: skip
    about = claim(
        correlate={
            "over": ["objective"],
            "x": {"measure": "alignment_all"},
            "y": {"measure": "delta"},
            "expect": "positive",
        }
    )
    whole = judge(about, observed(every))
    assert whole.verdict == "agrees in sign" and "left out" not in whole.text
    part = [row for row in every if "hard" not in row["labels"] or any(f'"o{o}"' in row["labels"] for o in range(4))]
    found = judge(about, observed(part))
    assert (found.verdict, found.n) == ("agrees in sign", 8) and interval(found).mean == interval(whole).mean
    assert found.text.endswith("; 4 conditions left out, which not all points have")
    apart = [row for row in every if ("hard" in row["labels"]) == any(f'"o{o}"' in row["labels"] for o in range(4))]
    assert judge(about, observed(apart)).n == 8, "a language that goes with the objective is no mean"


def test_correlation():
    random = np.random.default_rng(4)
    x = random.normal(size=12)
    over = {"x": {"measure": "alignment_all"}, "y": {"where": {"task": "pos"}, "measure": "delta"}, "over": ["cell"]}
    expect = {sign: claim(correlate={**over, "expect": sign}) for sign in ("positive", "negative")}

    def of(y, models=1, count=12):
        return observed(
            result(
                {"cell": str(i), "pretrain.seed": str(m)}, m, seed, delta=float(y[i]) + seed, alignment_all=float(x[i])
            )
            for i in range(count)
            for m in range(models)
            for seed in range(2)
        )

    y = -x + random.normal(0, 0.2, 12)
    found = judge(expect["negative"], of(y))
    assert found.verdict == "agrees in sign" and found.n == 12
    assert interval(found).mean == pytest.approx(stats.spearmanr(x, y).statistic)
    assert judge(expect["positive"], of(y)).verdict == "differs"
    assert interval(judge(expect["negative"], of(y, models=2))).mean == pytest.approx(interval(found).mean)
    assert judge(expect["negative"], of(y, models=2)).n == 12  # models of a cell are no more conditions
    assert judge(expect["negative"], of(random.normal(size=12))).verdict == "too small to tell"
    assert judge(expect["negative"], of(y, count=4)).verdict == "too small to tell"
    assert judge(expect["negative"], of(y, count=0)).verdict == "not run"
    some = claim(correlate={**over, "expect": "negative", "among": {"cell": [str(i) for i in range(3, 12)]}})
    assert judge(some, of(y)).n == 9 and interval(judge(some, of(y))).mean == stats.spearmanr(x[3:], y[3:]).statistic
