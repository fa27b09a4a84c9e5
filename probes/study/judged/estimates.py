"""Means and differences over seeds, with 95 % intervals of Student's t, and what an interval says of a comparison.

The **difference** of two quantities is averaged over the conditions that both have (the same labels on all axes that
neither names) and then taken over seeds:

    paired by models    both have two or more models with the same seeds: one difference a model, the mean over its
                        seeds of fine-tuning that both have; n is the number of models
    paired by seeds     both have one model of the same seeds: one difference a seed of fine-tuning; n is their number,
                        and nothing is said of another pretraining
    not paired          anything else, as a given model against several adjustments of it: Welch's interval between the
                        models of each side (of one model: its seeds of fine-tuning); n is that of the smaller side

A **comparison** holds where the whole interval is on the side of the margin that it says (``near``: inside both
margins), fails where the whole interval is on the other side, and is open else, with n < 2, and where all replicates
have the same value, which says nothing of their spread (collapsed models do that). There is no correction for the
number of comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from probes.statistics import Interval, mean_interval
from probes.study.judged.claims import Relation
from probes.study.judged.observed import Condition, Replicates, mean_over

Outcome = Literal["holds", "fails", "open", "not run"]
LEVEL = 0.95
SAME = 1e-9  # in points: an interval no wider is of equal values, but for rounding


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference with its interval (n in it); ``unit``: what was counted."""

    interval: Interval
    unit: Literal["models", "seeds of fine-tuning"]

    def text(self, digits: int = 1) -> str:
        """As 3.1 (1.0 … 5.2), n = 3 models."""
        held = self.interval
        bounds = "" if held.low is None or held.high is None else f" ({held.low:.{digits}f} … {held.high:.{digits}f})"
        unit = self.unit if held.n > 1 else self.unit.replace("models", "model").replace("seeds", "seed")
        return f"{held.mean:.{digits}f}{bounds}, n = {held.n} {unit}"


def estimate(replicates: Replicates) -> Estimate | None:
    """The mean of one quantity, over models or, of one model, over its seeds of fine-tuning; None of nothing."""
    if not replicates:
        return None
    values, several = _units(replicates)
    return Estimate(mean_interval(values, LEVEL), "models" if several else "seeds of fine-tuning")


def difference(left: Replicates, right: Replicates) -> Estimate | None:
    """left − right by the rule of this module; None where a side is empty."""
    if not left or not right:
        return None
    shared = {one: left[one] - right[one] for one in left if one in right}
    models = [{model for model, _ in side} for side in (left, right, shared)]
    if len(models[2]) > 1 or models[0] == models[1] == models[2]:
        return estimate(shared)
    (a, several), (b, also) = _units(left), _units(right)
    unit: Literal["models", "seeds of fine-tuning"] = "models" if several or also else "seeds of fine-tuning"
    mean, n = float(np.mean(a) - np.mean(b)), min(len(a), len(b))
    if n < 2:
        return Estimate(Interval(mean, None, None, n, LEVEL), unit)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Estimate(Interval(mean, mean, mean, n, LEVEL), unit)
    bounds = stats.ttest_ind(a, b, equal_var=False).confidence_interval(LEVEL)
    return Estimate(Interval(mean, float(bounds.low), float(bounds.high), n, LEVEL), unit)


def between(left: Mapping[Condition, Replicates], right: Mapping[Condition, Replicates]) -> Estimate | None:
    """The difference over the conditions that both have, or None."""
    shared = [condition for condition in left if condition in right]
    if not shared:
        return None
    return difference(mean_over([left[one] for one in shared]), mean_over([right[one] for one in shared]))


def outcome_of(interval: Interval, relation: Relation, margin: float = 0.0) -> Outcome:
    """Whether a difference with this interval holds, fails or is open."""
    low, high = interval.low, interval.high
    if low is None or high is None or high - low <= SAME:
        return "open"
    if relation == "near":
        return "holds" if -margin < low and high < margin else "fails" if low > margin or high < -margin else "open"
    if relation == "less":
        low, high = -high, -low
    return "holds" if low > margin else "fails" if high < margin else "open"


def _units(replicates: Replicates) -> tuple[list[float], bool]:
    """The mean of each model, or the values of the one model there is; and whether there are several models."""
    of_model: dict[str, list[float]] = {}
    for (model, _), value in replicates.items():
        of_model.setdefault(model, []).append(value)
    if len(of_model) == 1:
        values = list(replicates.values())
        return values, all(seed is None for _, seed in replicates)
    return [sum(values) / len(values) for values in of_model.values()], True
