"""p values of many comparisons, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats

from probes.statistics.base import Floats

Correction = Literal["holm", "bh", "none"]


def corrected(p_values: Sequence[float | None], method: Correction = "holm") -> list[float | None]:
    """The p values in the same order, each at most 1; None, of a test that could not be made, counts as no comparison.

    holm   the chance of any false finding stays below the level (Holm 1979)
    bh     the expected share of false ones among the findings does (Benjamini & Hochberg 1995)
    none   as they are
    """
    assert method in ("holm", "bh", "none"), method
    known = np.array([p for p in p_values if p is not None], np.float64)
    assert ((known >= 0) & (known <= 1)).all(), known
    if method == "none" or not len(known):
        return list(p_values)
    found = _holm(known) if method == "holm" else np.asarray(stats.false_discovery_control(known), np.float64)
    rest = iter(found.tolist())
    return [None if p is None else next(rest) for p in p_values]


def _holm(p: Floats) -> Floats:
    """The i-th smallest of m times m − i + 1, no smaller than the one before it."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(steps, 1.0)
    return result
