"""The number of models to plan, against simulated confirmations and against SciPy's Benjamini–Yekutieli."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probes.claims.comparisons import against_region, decided, region
from probes.claims.estimates import EstimateOrWhy, estimate
from probes.claims.verdicts import Verdict
from probes.report.planning import SHRUNK, level_of, models_to_plan, shrunk
from tests.test_claims_power import of, replicates

ROUNDS = 3_000


@pytest.mark.parametrize("claims", [1, 2, 5])
def test_all_planned_claims_are_decided_at_the_level(claims):
    level = level_of(claims)
    for p, expected in ((0.999 * level, True), (1.001 * level, False)):
        family = [p] * claims + [1.0] * claims
        assert (stats.false_discovery_control(family, method="by")[:claims] <= 0.05).all() == expected


@pytest.mark.parametrize(
    ("relation", "margin", "mean", "left"),
    [
        ("greater", 0.0, 3.0, 1.5),
        ("less", 30.0, -50.0, -40.0),
        ("equivalent", 2.0, 0.5, 1.25),
        ("greater", 0, -2.0, -1.0),
    ],
)
def test_half_of_the_way_to_the_nearest_end_is_left(relation, margin, mean, left):
    assert SHRUNK == 0.5
    assert shrunk(of(mean, 1.0, 5), region(relation, margin)).mean == pytest.approx(left)


def verdict(means, spread=1.0, relation="greater"):
    """The verdict on comparisons with these means of five models."""
    parts = [against_region("", EstimateOrWhy(of(mean, spread, 5)), relation) for mean in means]
    return Verdict("inconclusive", None, 5, "", tuple(parts))


@pytest.mark.parametrize(("means", "for_all"), [([2.0], True), ([2.0, 1.6, 2.4], True), ([2.0, -1.8], False)])
def test_the_planned_number_decides_four_confirmations_of_five(means, for_all):
    level = 0.02
    needed = models_to_plan(verdict(means), level)
    assert needed is not None and needed.models is not None
    random, found = np.random.default_rng(3), 0
    for _ in range(ROUNDS):
        samples = [estimate(replicates(random.normal(SHRUNK * mean, 1.0, needed.models))) for mean in means]
        inside, outside = zip(*(region("greater").p_values(one) for one in samples if one is not None), strict=True)
        found += max(inside) <= level if for_all else min(outside) <= level / len(means)
    assert needed.power - 0.03 <= found / ROUNDS <= needed.power + 0.05  # the sum of risks is an upper bound


def test_fewer_models_than_planned_are_too_few():
    needed = models_to_plan(verdict([2.0]), 0.02)
    assert needed is not None and needed.models is not None
    power_before = stats.nct.sf(stats.t.ppf(0.99, needed.models - 2), needed.models - 2, (needed.models - 1) ** 0.5)
    assert power_before < 0.8 <= needed.power


def test_small_effects_cannot_be_planned_and_equal_values_have_no_power():
    small = models_to_plan(verdict([0.01]), 0.02)
    assert small is not None and small.models is None and small.power == pytest.approx(0.01, abs=0.02)
    assert models_to_plan(verdict([2.0], spread=0.0), 0.02) is None
    assert decided(*region("greater").p_values(of(2.0, 0.0, 5))) == "inconclusive"
