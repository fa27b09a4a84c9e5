"""Two sets of distances of the same pairs side by side: what changed, and histograms with common bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.distances.auc import clustered_interval
from probes.distances.separation import Distance, Separation
from probes.statistics import Interval
from probes.statistics.base import Floats
from synthlang.errors import InputError

BINS = 40


@dataclass(frozen=True)
class Change:
    """After − before, paired: each pair is its own control, and the intervals are over sentences (auc.py).

    auc                  difference of the AUC, −1 to 1; positive: related and unrelated words are farther apart
    related, unrelated   differences of the mean distance, in its unit
    """

    layer: int
    distance: Distance
    auc: Interval
    related: Interval
    unrelated: Interval

    def to_json(self) -> dict[str, Any]:
        """Nested JSON values."""
        return asdict(self)


def compare(before: Separation, after: Separation, level: float = 0.95) -> Change:
    """What changed from one model to the other, or from one layer to the other.

    InputError if they are not of the same distance and the same pairs: the same linked words of the same sentences in
    the same order, drawn with the same seed and block. A difference of 0 on every pair has the interval [0, 0].
    """
    if before.distance != after.distance:
        raise InputError(f"distances {before.distance} and {after.distance} cannot be compared")
    if not before.pairs.matches(after.pairs):
        raise InputError(
            "the two models were measured on different pairs of words; use one text, links, seed and block for both"
        )
    found = [
        clustered_interval(after.influence(what).minus(before.influence(what)), level)
        for what in ("auc", "related", "unrelated")
    ]
    return Change(after.layer, after.distance, *found)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts [bins] of related and unrelated pairs between ``edges`` [bins + 1]; the last bin has its upper edge."""

    edges: Floats
    related: NDArray[np.int64]
    unrelated: NDArray[np.int64]

    def to_json(self) -> dict[str, Any]:
        """Lists of numbers."""
        edges = [float(f"{edge:.6g}") for edge in self.edges]
        return {"edges": edges, "related": self.related.tolist(), "unrelated": self.unrelated.tolist()}


def histograms(found: Sequence[Separation], bins: int = BINS, edges: Floats | None = None) -> list[Histogram]:
    """A histogram of each of ``found``, all with the same bins, so that they can be laid side by side.

    Bins of equal width from 0 to the largest distance of all of them, or ``edges`` [bins + 1], rising; then distances
    outside count in the first and in the last bin, so that the counts always sum to the number of pairs.
    """
    if edges is None:
        assert bins >= 1 and found, bins
        if len({one.distance for one in found}) > 1:
            raise InputError("histograms of different distances have no common bins")
        top = max(float(values.max()) for one in found for values in (one.related, one.unrelated))
        edges = np.linspace(0.0, top if top > 0 else 1.0, bins + 1)
    assert len(edges) >= 2 and (np.diff(edges) > 0).all(), "edges must rise"

    def counts(values: Floats) -> NDArray[np.int64]:
        return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].astype(np.int64)

    return [Histogram(edges, counts(one.related), counts(one.unrelated)) for one in found]
