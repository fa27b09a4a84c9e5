"""Rates of verdicts by chance alone and for a clear effect, with three and with five seeds.

Seeds are drawn from a normal distribution, thousands of times. ``Drawn`` stands for the results of a study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from probes.claims.comparisons import outcome_of, region
from probes.claims.estimates import Estimate, difference, estimate
from probes.claims.observed import ModelSeeds, Replicates, Results, Series
from probes.claims.spec import Claim, Quantity
from probes.claims.verdicts import judge
from tests.claims import claim

MARGIN = 2.0


def above(share: float, rounds: int) -> float:
    """Three standard errors of a share of so many draws."""
    return 3 * float(np.sqrt(share * (1 - share) / rounds))


ROUNDS = 1_000
CHANCE = 0.05 + above(0.05, ROUNDS)
ENDS = {
    "greater": [MARGIN],
    "less": [-MARGIN],
    "non_inferior": [-MARGIN],
    "non_superior": [MARGIN],
    "equivalent": [-MARGIN, MARGIN],
}
"""Where the region of each relation ends."""


def replicates(values: Iterable[float], first: int = 0) -> Replicates:
    return {(ModelSeeds(str(first + number), ""), 0): float(value) for number, value in enumerate(values)}


@cache
def estimates(spread: float, seeds: int, paired: bool) -> list[Estimate]:
    """Estimates of differences around 0."""
    draws = np.random.default_rng([seeds, paired, int(100 * spread)]).normal(0, spread / 2**0.5, (ROUNDS, 2, seeds))
    if paired:
        found = [estimate(replicates(left - right)) for left, right in draws]
    else:
        found = [difference(replicates(left), replicates(right, seeds)) for left, right in draws]
    return cast(list[Estimate], found)


def outcomes(
    relation: Any, truth: float, spread: float, seeds: int, paired: bool = True, rounds: int = ROUNDS
) -> Counter[str]:
    """The share of each outcome, of differences around ``truth``."""
    some, expected = estimates(spread, seeds, paired)[:rounds], region(relation, MARGIN)
    found = Counter(outcome_of(replace(ours, mean=ours.mean + truth), expected) for ours in some)
    return Counter({outcome: count / rounds for outcome, count in found.items()})


@pytest.mark.parametrize("paired", [True, False], ids=["paired", "Welch"])
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("relation", ENDS)
def test_chance_decides_one_comparison_in_twenty_at_most_to_either_side(relation, seeds, paired):
    """The truth lies at an end of the region, where both verdicts are hardest to earn."""
    for end in ENDS[relation]:
        found = outcomes(relation, end, 1.0, seeds, paired)
        assert found["holds"] <= CHANCE and found["fails"] <= CHANCE
        if paired and relation != "equivalent":  # and no more careful than the level says
            level = 0.025 if relation in ("greater", "less") else 0.05
            assert found["holds"] == pytest.approx(level, abs=above(level, ROUNDS))
            assert found["fails"] == pytest.approx(level, abs=above(level, ROUNDS))


@pytest.mark.parametrize(
    ("relation", "truth", "outcome"),
    [
        ("greater", 9, "holds"),
        ("less", 9, "fails"),
        ("non_inferior", 0, "holds"),
        ("non_inferior", 9, "holds"),  # better does as well
        ("non_inferior", -9, "fails"),
        ("non_superior", -9, "holds"),
        ("equivalent", 0, "holds"),
        ("equivalent", 9, "fails"),
        ("equivalent", -9, "fails"),
    ],
)
@pytest.mark.parametrize(("seeds", "spread"), [(3, 0.5), (5, 1.0)])
def test_a_clear_effect_is_found(relation, truth, outcome, seeds, spread):
    """Seeds differ by a point, or half of one with three seeds: what is alike is alike within two points."""
    assert outcomes(relation, truth, spread, seeds, rounds=200)[outcome] >= 0.9


# --- several comparisons of one claim ---


class Drawn:
    """Seeds of each label of an axis, or of all labels where none is named."""

    def __init__(self, values: Any) -> None:
        """values [labels, seeds]"""
        self.values = {str(number): replicates(of) for number, of in enumerate(values)}

    def series(self, quantity: Quantity, _: object = ()) -> Series:
        if "task" in quantity.where:
            return {(): {(): self.values[quantity.where["task"]]}}
        return {(("task", name),): {(): of} for name, of in self.values.items()}


def verdicts(
    asked: Claim, truths: Iterable[float], seeds: int, spread: float = 1.0, shared: float = 0.0, rounds: int = 100
) -> Counter[str]:
    """The share of each verdict, of differences around the truth of each label. ``shared``: how much of the variance
    is of the seed, whatever the label."""
    random, means = np.random.default_rng(seeds), np.array([*truths])[:, None]
    found: Counter[str] = Counter()
    own, common = (1 - shared) ** 0.5, shared**0.5
    for noise in random.normal(0, spread, (rounds, len(means) + 1, seeds)):
        values = means + own * noise[1:] + common * noise[:1]
        found[judge(asked, cast(Results, Drawn(values))).verdict] += 1
    return Counter({verdict: count / rounds for verdict, count in found.items()})


OFTEN = 200
"""Draws for a verdict that chance alone may give at most in one case of twenty."""
FEW = 0.05 + above(0.05, OFTEN)
TASKS = [str(number) for number in range(12)]


def in_every_task(relation: str, margin: float) -> Claim:
    asked = {"measure": "zs", "left": {}, "value": 0, "relation": relation, "margin": margin}
    return claim(compare=[{**asked, "for_each": {"task": TASKS}}])


@pytest.mark.parametrize(
    ("relation", "margin", "end", "seeds", "shared"),
    [("greater", 0, 0, 3, 0.5), ("greater", 0, 0, 5, 0.0), ("non_superior", 2, 2, 3, 0.5), ("equivalent", 2, 2, 5, 0)],
)
def test_chance_decides_a_claim_of_many_comparisons_in_one_case_of_twenty_at_most(relation, margin, end, seeds, shared):
    """All at the end of the region: if any one of twelve would do, 26 to 46 % would differ. One alone at the end, the
    others well inside: it alone has to hold, and nothing is to be corrected."""
    asked = in_every_task(relation, margin)
    at_end = verdicts(asked, [end] * 12, seeds, shared=shared, rounds=OFTEN)
    assert at_end["does not replicate"] <= FEW and at_end["replicates"] <= FEW
    inside = {"greater": 50, "non_superior": -50, "equivalent": 0}[relation]
    one = verdicts(asked, [end] + [inside] * 11, seeds, 0.2, shared, OFTEN)
    assert one["replicates"] <= FEW and one["does not replicate"] <= FEW


@pytest.mark.parametrize(("seeds", "spread"), [(3, 0.5), (5, 1.0)])
def test_clear_effects_decide_a_claim_of_many_comparisons(seeds, spread):
    for relation, margin, truth in (("greater", 0, 9), ("non_superior", 2, -9)):
        asked = in_every_task(relation, margin)
        assert verdicts(asked, [truth] * 12, seeds, spread, rounds=40)["replicates"] >= 0.9
        against = verdicts(asked, [truth] * 11 + [-2 * truth], seeds, spread, rounds=40)
        assert against["does not replicate"] >= 0.9


@pytest.mark.parametrize("relation", ["greater", "less", "non_superior"])
def test_the_p_values_of_a_claim_are_those_of_scipy(relation):
    """The largest p of all comparisons is for the claim, the smallest p of the opposite times their number against."""
    values = np.random.default_rng(6).normal(1, 2, (12, 5))
    found = judge(in_every_task(relation, 1.5), cast(Results, Drawn(values))).p
    end = -1.5 if relation == "less" else 1.5
    above, below = (
        np.asarray(stats.ttest_1samp(values, end, axis=1, alternative=side).pvalue) for side in ("greater", "less")
    )
    for_it, against = (above, below) if relation == "greater" else (below, above)
    sides = 1 if relation == "non_superior" else 2
    assert found.replicates == pytest.approx(min(1, sides * for_it.max()))
    assert found.opposite == pytest.approx(min(1, 12 * min(1, sides * against.min())))


@pytest.mark.parametrize("seeds", [3, 5])
def test_chance_decides_an_order_in_one_case_of_twenty_at_most(seeds):
    """Of four equal conditions, one that is above the previous one is likely to be above the next one."""
    along = [{"task": task} for task in TASKS[:4]]
    asked = claim(order=[{"measure": "zs", "along": along, "direction": "rising"}])
    alike = verdicts(asked, [0.0] * 4, seeds, rounds=OFTEN)
    assert alike["does not replicate"] <= FEW and alike["replicates"] <= FEW
    assert verdicts(asked, [0, 20, 40, 60], seeds, rounds=40)["replicates"] >= 0.9


@pytest.mark.parametrize("seeds", [3, 5])
def test_a_gain_in_all_tasks_is_judged_by_its_mean_and_by_what_is_against_it(seeds):
    """As centring of rotations, 0.9 points over 17 tasks and languages, which can never be shown one by one."""
    together = claim(compare=[{"measure": "zs", "left": {}, "value": 0, "relation": "greater", "none_against": True}])
    alone = claim(
        compare=[{"measure": "zs", "left": {}, "value": 0, "relation": "greater", "for_each": {"task": TASKS}}]
    )
    assert verdicts(together, [0.9] * 17, seeds)["replicates"] >= 0.8
    assert verdicts(alone, [0.9] * 17, seeds, rounds=20)["replicates"] == 0
    nothing = verdicts(together, [0.0] * 17, seeds, rounds=OFTEN)
    assert nothing["replicates"] <= FEW and nothing["does not replicate"] <= FEW
    against = verdicts(together, [5.0] * 16 + [-25.0], seeds, 0.5, rounds=40)
    assert against["does not replicate"] >= 0.9, "one that is clearly against it"
