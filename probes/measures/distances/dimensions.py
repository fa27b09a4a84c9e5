"""Which few dimensions most of a distance comes from, and whether words are apart without them.

Source: "The Impact of Cross-Lingual Adjustment" (2022), section 5.4, after Timkey & van Schijndel 2021, "All Bark and
No Bite: Rogue Dimensions in Transformer Language Models Obscure Representational Quality", equations 3 and 4. Over
pairs of words x, y, dimension i contributes

    l2       mean of (x_i − y_i)²
    cosine   mean of x_i y_i / (|x| |y|), which may be negative; the sum over i is the mean cosine

Its share is |contribution| / Σ |contributions|: at least 0, and all sum to 1. The paper's share of the cosine divides
by Σ contributions instead; that is the same where none is negative, but has no bound where the mean cosine is near 0.
``of_sum`` gives it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from probes.measures.distances import DISTANCES, TOPS, Distance
from probes.measures.distances.pairs import BLOCK, Linked, PairBlock, pair_blocks
from probes.measures.distances.separation import ROWS, DistanceSums, Separation
from probes.statistics import Interval

Kind = Literal["related", "unrelated"]
KINDS: tuple[Kind, ...] = ("related", "unrelated")


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each dimension adds: ``values`` [d] at one layer to one distance, over pairs of one kind."""

    layer: int
    distance: Distance
    pairs: Kind
    values: Tensor

    @property
    def shares(self) -> Tensor:
        """[d] at least 0, the sum 1; all 0 where nothing contributes anything."""
        size = self.values.abs()
        total = size.sum()
        return size / total if total > 0 else size

    def largest(self, top: int) -> Tensor:
        """[top] the dimensions with the largest shares, largest first; of equals the first."""
        return torch.sort(self.shares, descending=True, stable=True).indices[:top]

    def of_sum(self, top: int) -> float | None:
        """What the ``top`` largest add to the sum of all, as a share of it; None where the sum is 0."""
        total = float(self.values.sum())
        return float(self.values[self.largest(top)].sum()) / total if total else None


class ContributionSums:
    """Sums of contributions over a stream of blocks, in float64: [distances, kinds, layers, d]."""

    def __init__(self) -> None:
        self._sums: Tensor | None = None
        self._counts = dict.fromkeys(KINDS, 0)

    def add(self, block: PairBlock) -> None:
        """Add the pairs of a block at every layer."""
        linked = block.linked
        layers, n, width = linked.left.shape
        if self._sums is None:
            self._sums = torch.zeros(len(DISTANCES), len(KINDS), layers, width, dtype=torch.float64)
        every = torch.arange(n)
        for kind, (one, other) in enumerate(((every, every), (block.query, block.other))):
            self._counts[KINDS[kind]] += len(one)
            for layer in range(layers):
                for rows in zip(torch.split(one, ROWS), torch.split(other, ROWS), strict=True):
                    x, y = linked.left[layer, rows[0]].double(), linked.right[layer, rows[1]].double()
                    self._sums[0, kind, layer] += (x - y).square_().sum(0)
                    size = torch.linalg.vector_norm(x, dim=1) * torch.linalg.vector_norm(y, dim=1)
                    # a vector of zeros has cosine 0 to everything
                    self._sums[1, kind, layer] += (1 / size.where(size > 0, 1)) @ x.mul_(y)

    def result(self, layers: Sequence[int]) -> list[Contributions]:
        """By layer, distance and kind of pairs."""
        assert self._sums is not None and len(layers) == self._sums.shape[2], layers
        return [
            Contributions(number, name, kind, self._sums[i, j, at] / max(1, self._counts[kind]))
            for at, number in enumerate(layers)
            for i, name in enumerate(DISTANCES)
            for j, kind in enumerate(KINDS)
        ]


@dataclass(frozen=True)
class Top:
    """The ``count`` largest dimensions over unrelated pairs, their share of both kinds, and the AUC without them."""

    count: int
    share: float
    of_sum: float | None
    related_share: float
    auc_without: Interval


@dataclass(frozen=True)
class Dominance:
    """The largest dimensions at one layer for one distance.

    mean         the mean squared L2 distance, or the mean cosine, of unrelated pairs: what is shared out
    dimensions   numbers of the ten largest        shares   of them
    auc          with all dimensions
    """

    layer: int
    distance: Distance
    mean: float
    dimensions: tuple[int, ...]
    shares: tuple[float, ...]
    auc: Interval
    tops: tuple[Top, ...]

    def to_json(self) -> dict[str, Any]:
        """Nested JSON values."""
        return asdict(self)


def separations_and_dominance(
    read: Callable[[], Iterable[Linked]],
    seed: int,
    layers: Sequence[int],
    *,
    tops: Sequence[int] = TOPS,
    block: int = BLOCK,
    level: float = 0.95,
) -> tuple[list[Separation], list[Dominance]]:
    """What ``separations`` finds with this seed and block, and the largest dimensions; both by layer and distance.

    ``read`` gives the same stream of linked words each time: it is read twice, since what is left out must be known
    before distances without it are measured. A top that would leave no dimension is left out; without any top it is
    read once.
    """
    sums, whole = ContributionSums(), DistanceSums()
    for found in pair_blocks(read(), seed, block):
        sums.add(found)
        whole.add(found)
    shared = {(c.layer, c.distance, c.pairs): c for c in sums.result(layers)}
    width = len(next(iter(shared.values())).values)
    tops = [top for top in tops if 0 < top < width]
    rest = {(name, top): _without(shared, layers, name, top) for name in DISTANCES for top in tops}
    for found in pair_blocks(read(), seed, block) if rest else ():
        for sums_without in rest.values():
            sums_without.add(found)
    without = {
        (s.layer, name, top): s.auc for (name, top), measured in rest.items() for s in measured.result(layers, level)
    }
    separate = whole.result(layers, level)
    return separate, [
        _dominance(s, shared[s.layer, s.distance, "unrelated"], shared[s.layer, s.distance, "related"], tops, without)
        for s in separate
    ]


def _dominance(
    whole: Separation,
    unrelated: Contributions,
    related: Contributions,
    tops: Sequence[int],
    without: dict[tuple[int, Distance, int], Interval],
) -> Dominance:
    shares, related_shares = unrelated.shares, related.shares
    found = []
    for top in tops:
        largest = unrelated.largest(top)
        of_both = float(shares[largest].sum()), unrelated.of_sum(top), float(related_shares[largest].sum())
        found.append(Top(top, *of_both, without[whole.layer, whole.distance, top]))
    ten = unrelated.largest(10)
    mean = float(unrelated.values.sum())
    sizes = tuple(float(share) for share in shares[ten])
    return Dominance(whole.layer, whole.distance, mean, tuple(ten.tolist()), sizes, whole.auc, tuple(found))


def _without(
    shared: dict[tuple[int, Distance, Kind], Contributions], layers: Sequence[int], name: Distance, top: int
) -> DistanceSums:
    """Measures one distance without the ``top`` largest dimensions of each layer."""
    kept = []
    for layer in layers:
        contributions = shared[layer, name, "unrelated"]
        mask = torch.ones(len(contributions.values), dtype=torch.bool)
        mask[contributions.largest(top)] = False
        kept.append(mask)
    return DistanceSums((name,), torch.stack(kept))
