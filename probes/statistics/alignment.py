"""A bootstrap interval of an alignment error rate over sentence pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from probes.statistics import bootstrap_metric
from synthlang.parallel.error_rates import error_rate
from synthlang.rng import key_of


def alignment_interval(sums: NDArray[np.int64]) -> tuple[float, float] | None:
    """95 % percentile bounds of the rate, 0 … 1, with sentence pairs drawn anew; ``sums`` [pairs, 4].

    None for one pair, and where some draw has neither a link nor a sure gold link.
    """
    found = bootstrap_metric(sums[None], error_rate, key_of("alignment error rate"))
    if found.low is None or found.high is None or not math.isfinite(found.low + found.high):
        return None
    return found.low, found.high
