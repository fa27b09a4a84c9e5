"""Intervals of measured values, with the range of possible values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probes.results.measures import range_of
from probes.statistics import Interval, mean_interval


def interval_within(values: Sequence[float], name: str) -> Interval:
    """Return the 95 % t interval of some values [n], with the range of the score or measure ``name``.

    The interval is that of ``mean_interval``. Without a known range, ``within`` is None.

    Raises:
        InputError: There are no values, or NaN or infinity is among them.
    """
    return replace(mean_interval(values), within=range_of(name))
