"""The number of models that would decide a comparison, against simulation and against trying all numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from probes.claims.comparisons import Comparison, decided, region
from probes.claims.estimates import Estimate, difference, estimate
from probes.claims.observed import ModelSeeds, Replicates
from probes.claims.power import EFFECT_LEVEL, MOST, POWER, Needed, models_needed, needed, power
from probes.claims.verdicts import Verdict, judge
from tests.claims import claim, less, observed, result

ROUNDS = 4_000
NEAR = 3 * (POWER * (1 - POWER) / ROUNDS) ** 0.5
"""Three standard errors of a share of ROUNDS draws."""


def replicates(values: Any, first: int = 0) -> Replicates:
    return {(ModelSeeds(str(first + number), ""), 0): float(value) for number, value in enumerate(values)}


def of(mean: float, spread: float, models: int) -> Estimate:
    """An estimate of models that have this mean and standard deviation exactly."""
    values = np.linspace(-1, 1, models)
    values = mean + spread * values / values.std(ddof=1)
    found = estimate(replicates(values))
    assert found is not None
    return found


CASES = [
    ("greater", 0.0, 1.0, 1.5),
    ("greater", 0.0, -1.0, 2.5),  # to be shown to be below
    ("less", 2.0, -3.0, 1.0),
    ("non_inferior", 2.0, 0.3, 2.0),
    ("non_superior", 0.5, 2.0, 2.0),
    ("equivalent", 2.0, 0.0, 1.5),
    ("equivalent", 2.0, 0.8, 1.0),
    ("equivalent", 2.0, -4.0, 3.0),
]


@pytest.mark.parametrize(("relation", "margin", "mean", "spread"), CASES)
def test_as_many_models_decide_four_samples_of_five(relation, margin, mean, spread):
    asked = region(relation, margin)
    needed = models_needed(of(mean, spread, 4), asked)
    assert 2 < needed < 60
    draws, one, found = (
        np.random.default_rng(7).normal(mean, spread, (ROUNDS, int(needed))),
        of(mean, spread, int(needed)),
        0,
    )
    errors = draws.std(axis=1, ddof=1) / int(needed) ** 0.5
    for value, error in zip(draws.mean(axis=1).tolist(), errors.tolist(), strict=True):
        ours = replace(one, mean=value, standard_error=error)
        found += decided(*asked.p_values(ours)) != "inconclusive"
    # the risks of two ends are added up, and the last model may bring more than is asked for
    assert POWER - NEAR <= found / ROUNDS <= power(of(mean, spread, 4), asked, int(needed)) + 0.02 + NEAR


@pytest.mark.parametrize(("relation", "margin", "mean", "spread"), CASES)
@pytest.mark.parametrize("tests", [1, 12])
def test_it_is_the_first_number_that_is_enough(relation, margin, mean, spread, tests):
    ours, asked = of(mean, spread, 5), region(relation, margin)
    first = next(models for models in range(2, 300) if power(ours, asked, models, tests) >= POWER)
    assert models_needed(ours, asked, tests) == first


def test_the_power_of_one_end_is_that_of_noncentral_t():
    ours, asked = of(1.0, 1.5, 5), region("greater")
    by_scipy = 1 - stats.nct.cdf(stats.t.ppf(0.975, 19), 19, 1.0 / (1.5 / 20**0.5))
    assert power(ours, asked, 20) == pytest.approx(by_scipy, abs=1e-9)
    assert power(of(-1.0, 1.5, 5), asked, 20, tests=5) == pytest.approx(
        1 - stats.nct.cdf(stats.t.ppf(1 - 0.025 / 5, 19), 19, 1.0 / (1.5 / 20**0.5)), abs=1e-9
    )


def test_sides_that_are_not_paired_need_more():
    left, right = replicates([3.0, 5.0, 4.0]), replicates([2.0, 4.5, 1.5], 3)
    welch, paired = difference(left, right), difference(left, replicates([2.0, 4.5, 1.5]))
    assert welch is not None and paired is not None
    few, many = models_needed(paired, region("greater")), models_needed(welch, region("greater"))
    assert few < many < MOST


def test_what_cannot_be_decided_or_is_not_known():
    assert models_needed(of(0.0, 1.0, 5), region("greater")) == math.inf  # the truth would be at the end
    assert models_needed(of(1.0, 100.0, 5), region("greater")) == math.inf
    assert needed(replace(of(1.0, 1.0, 5), standard_error=0.0), region("greater")) is None
    assert needed(replace(of(1.0, 1.0, 5), standard_error=None), region("greater")) is None


@pytest.mark.parametrize(("relation", "margin", "mean", "spread"), [case for case in CASES if case[2]])
def test_the_ends_belong_to_the_interval_of_the_effect_size(relation, margin, mean, spread):
    """Under the effect at either end, the observed effect or more has a probability of 10 or 90 %, by SciPy."""
    ours, asked = of(mean, spread, 6), region(relation, margin)
    end = min((one for one in (asked.low, asked.high) if math.isfinite(one)), key=lambda one: abs(mean - one))
    t = abs(mean - end) * 6**0.5 / spread
    low, high = (brentq(lambda nc, of: stats.nct.cdf(t, 5, nc) - of, -9, 15, args=(share,)) for share in (0.9, 0.1))
    assert EFFECT_LEVEL == 0.8
    found = needed(ours, asked)
    assert found is not None
    for number, delta in ((found.fewest, high), (found.most, low)):
        moved = end + math.copysign(delta * spread / 6**0.5, mean - end)
        if relation == "equivalent" and abs(mean) < margin:
            moved = math.copysign(max(0.0, math.copysign(1, mean) * moved), mean)  # not beyond the centre
        assert number == (models_needed(of(moved, spread, 6), asked) if delta > 0 else math.inf)
    assert found.fewest <= models_needed(ours, asked) <= found.most


# --- of a claim ---


def part(mean: float, spread: float = 2.0, outcome: str = "inconclusive") -> Comparison:
    ours, asked = of(mean, spread, 4), region("greater")
    inside, outside = asked.p_values(ours)
    found = Comparison("w", ours.interval, decided(inside, outside), tested_by=(ours, asked))
    assert found.outcome == outcome
    return replace(found, p=ours.p, inside=inside, outside=outside)


def verdict(*parts: Comparison) -> Verdict:
    return Verdict("inconclusive", parts[0].interval, 4, "", parts)


def alone(mean: float, tests: int) -> Needed:
    found = needed(of(mean, 2.0, 4), region("greater"), tests)
    assert found is not None
    return found


def test_all_that_is_open_has_to_hold_or_one_to_be_against_it():
    sure = part(9.0, outcome="holds")
    assert verdict(part(1.0), part(2.0), sure).needed == alone(1.0, 3) != alone(2.0, 3)
    assert verdict(part(1.0), part(-0.7), part(-2.0), sure).needed == alone(-2.0, 4) != alone(-2.0, 1)
    correlation = Comparison("r", part(1.0).interval, "inconclusive")
    assert verdict(part(1.0), correlation).needed is None  # of which nothing is said
    assert verdict(part(-2.0), correlation).needed == alone(-2.0, 1)
    assert replace(verdict(part(1.0)), verdict="does not replicate").needed is None


def test_results_say_it():
    def rows(objective: str, values: list[float]) -> list[dict[str, Any]]:
        return [result({"objective": objective}, seed, delta=value) for seed, value in enumerate(values)]

    found = judge(less(), observed(rows("A", [5.0, 6.0, 9.0]) + rows("B", [3.0, 6.5, 5.0])))
    ours = estimate(replicates([-2.0, 0.5, -4.0]))
    assert found.verdict == "inconclusive" and ours is not None
    assert found.needed == needed(ours, region("less"))
    assert found.still_needed == "needs 6 to over 1,000 models"
    by_mean = claim(compare=[{"measure": "delta", "left": {}, "value": 0, "relation": "greater"}])
    assert judge(by_mean, observed(rows("A", [50.0, 51.0, 52.0]))).still_needed == ""
