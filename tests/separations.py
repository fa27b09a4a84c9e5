"""Distances of a stream of linked words, without looking at dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probes.measures.distances.pairs import Linked, pair_blocks
from probes.measures.distances.separation import DistanceSums, Separation


def separations(batches: Iterable[Linked], seed: int, layers: Sequence[int] | None = None) -> list[Separation]:
    """Both distances at every layer, by layer and then by distance."""
    sums = DistanceSums()
    for block in pair_blocks(batches, seed):
        sums.add(block)
    return sums.result(layers)
