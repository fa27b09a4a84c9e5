"""Summaries of a curve, which is a measure of one model over the steps of its pretraining.

Between two checkpoints, a curve is a straight line over the logarithm of the step. The summaries are

    final               the value at the last step
    area                the integral over the logarithm of the step, divided by the length of this range
    steps to a          the first step at which the line reaches the threshold. A curve that never reaches it is
    threshold           censored: its value is the last step, a lower bound

An area has the unit of the measure: it is the mean of the line over log step. With censored curves, the mean of steps
over models is a restricted mean (Royston & Parmar 2013), which is also a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import model_validator

from probes.statistics import Floats
from synthlang.config import StrictModel
from synthlang.errors import InputError


class Threshold(StrictModel):
    """A value that a curve reaches from below or from above, in the unit of the measure.

    Exactly one of ``at_least`` and ``at_most`` is given.
    """

    at_least: float | None = None
    """Value that the measure reaches or exceeds."""
    at_most: float | None = None
    """Value that the measure reaches or falls below."""

    @model_validator(mode="after")
    def _has_one(self) -> Threshold:
        if (self.at_least is None) == (self.at_most is None):
            code: Literal["missing", "conflict"] = "missing" if self.at_least is None else "conflict"
            raise InputError("needs exactly one of at_least and at_most", code=code)
        return self

    def __str__(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"

    def distance(self, values: Floats) -> Floats:
        """Return how far values [n] are beyond the threshold, or below 0 if they have not reached it."""
        if self.at_least is not None:
            return values - self.at_least
        assert self.at_most is not None, "a threshold has one of the two"
        return self.at_most - values


CurveSummary = Literal["area", "final"] | Threshold
"""The area, the final value, or the steps to a threshold."""


def named_summary(which: CurveSummary) -> str:
    """Return the name of a summary in texts and tables.

    >>> named_summary("final"), named_summary(Threshold(at_most=20))
    ('final', 'steps to ≤ 20')
    """
    return f"steps to {which}" if isinstance(which, Threshold) else which


@dataclass(frozen=True)
class Summary:
    """A summary of one curve.

    Attributes:
        value: The value, in the unit of the measure or in steps. It is NaN if a value of the curve is not finite.
        censored: True if the threshold was not reached, so that ``value`` is a lower bound.
    """

    value: float
    censored: bool = False


def summary(points: Iterable[tuple[int, float]], which: CurveSummary) -> Summary | None:
    """Summarise a curve, given by the step and the value of each point, in any order.

    The docstring of the module defines the summaries. Step 0 has no logarithm and is left out. The result is None for
    fewer than two other steps.
    """
    known = sorted((step, value) for step, value in points if step > 0)
    if len(known) < 2:
        return None
    steps, values = np.array(known, dtype=np.float64).T
    if not np.isfinite(values).all():
        return Summary(math.nan)
    if which == "final":
        return Summary(float(values[-1]))
    return Summary(_area(np.log(steps), values)) if which == "area" else _steps_to(steps, which.distance(values))


def _area(x: Floats, y: Floats) -> float:
    """Return the mean over x [n], in ascending order, of the piecewise linear function through y [n]."""
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) / (x[-1] - x[0]))


def _steps_to(steps: Floats, distance: Floats) -> Summary:
    """Return the first step at which ``distance`` [n], which is linear over log step, is at least 0.

    If there is no such step, the result is the last step, censored.
    """
    reached = np.flatnonzero(distance >= 0)
    if not len(reached):
        return Summary(float(steps[-1]), censored=True)
    after = int(reached[0])
    if not after:
        return Summary(float(steps[0]))
    before = after - 1
    share = -distance[before] / (distance[after] - distance[before])
    return Summary(float(steps[before] * (steps[after] / steps[before]) ** share))
