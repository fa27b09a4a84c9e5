"""What values a score or a measure can have: Student's interval of few seeds goes beyond, what is shown does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from probes.statistics import Interval, mean_interval

Range = tuple[float, float]

RETRIEVAL = r"(.*\.)?(cosine|csls)\.(mean|forward|backward)(\.p@\d+)?"
PERCENT: Range = (0.0, 100.0)
DIFFERENCE: Range = (-100.0, 100.0)
SHARE: Range = (0.0, 1.0)
CLIPPED = (
    "Intervals are shown as far as a score can go (0 to 100, Δ −100 to 100); Student's t goes on, and the files "
    "tables/*.csv have it whole."
)


def range_of(column: str) -> Range | None:
    """Of a column of results (``zs``), or a measure of a probe by its path; None where it is not known.

    >>> range_of("delta"), range_of("probe:words.scores.all.csls.mean"), range_of("words.types")
    ((-100.0, 100.0), (0.0, 100.0), None)
    """
    if column == "delta":
        return DIFFERENCE
    if re.fullmatch(RETRIEVAL, column) or re.fullmatch(r"parent|sup|zs|mixed.*|alignment[^.]*", column):
        return PERCENT
    return SHARE if re.fullmatch(r"(.*\.)?auc", column) else None


def interval_within(values: Sequence[float], column: str) -> Interval:
    """The 95 % t interval of values of a column or measure, with what it can be."""
    return replace(mean_interval(values), within=range_of(column))
