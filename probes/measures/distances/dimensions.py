"""The dimensions that contribute most to a distance, and the AUC without them.

Source: "The Impact of Cross-Lingual Adjustment" (2022), section 5.4, after Timkey & van Schijndel 2021, "All Bark and
No Bite: Rogue Dimensions in Transformer Language Models Obscure Representational Quality", equations 3 and 4. Over
pairs of words x, y, dimension i contributes

    l2       mean of (x_i − y_i)²
    cosine   mean of x_i y_i / (|x| |y|), which may be negative and sums to the mean cosine

The share of a dimension is |contribution| / Σ |contributions|, so that shares are at least 0 and sum to 1. The paper
divides by Σ contributions, which gives the same shares if no contribution is negative. For a mean cosine near 0, the
shares of the paper are unbounded. ``Top.of_sum`` has the value of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.measures.distances import DISTANCES, TOPS, Distance
from probes.measures.distances.pairs import BLOCK, Linked, PairBlock, pair_blocks
from probes.measures.distances.separation import DistanceSums, Separation
from probes.statistics import Interval

RELATED, UNRELATED = 0, 1


def shares(contributions: Tensor) -> Tensor:
    """Return the share |cᵢ| / Σⱼ |cⱼ| of each of the ``contributions`` c [d], [d].

    If every contribution is 0, all shares are 0. The shares follow Timkey & van Schijndel 2021, equation 4, but with
    absolute values (see the top of this file).
    """
    size = contributions.abs()
    return size / size.sum() if size.any() else size


def largest(contributions: Tensor, top: int) -> Tensor:
    """Return the indices [top] of the dimensions with the largest shares of ``contributions`` [d], largest first.

    Ties go to the lower index. If ``top`` exceeds d, all d indices are returned.
    """
    return torch.sort(shares(contributions), descending=True, stable=True).indices[:top]


class ContributionSums:
    """Sums of the contributions of each dimension over a stream of blocks, [distances, kinds, layers, d] float64."""

    def __init__(self) -> None:
        self._sums: Tensor | None = None
        self._counts = torch.zeros(2, dtype=torch.float64)

    def add(self, block: PairBlock) -> None:
        """Add the pairs of a block at every layer."""
        linked = block.linked
        layers, _, width = linked.left.shape
        if self._sums is None:
            self._sums = torch.zeros(len(DISTANCES), 2, layers, width, dtype=torch.float64)
        for related, one, other in block.rows():
            kind = RELATED if related else UNRELATED
            self._counts[kind] += len(one)
            for layer in range(layers):
                x, y = linked.left[layer, one].double(), linked.right[layer, other].double()
                self._sums[0, kind, layer] += (x - y).square_().sum(0)
                size = torch.linalg.vector_norm(x, dim=1) * torch.linalg.vector_norm(y, dim=1)
                # a zero vector has cosine 0 with every vector
                self._sums[1, kind, layer] += (1 / size.where(size > 0, 1)) @ x.mul_(y)

    def means(self) -> Tensor:
        """Return the mean contribution of each dimension, [distances, kinds, layers, d] float64.

        The distances are l2 and cosine, and the kinds are related and unrelated pairs. The equations are at the top of
        this file. At least one block must have been added.
        """
        assert self._sums is not None, "no pairs yet"
        return self._sums / self._counts.clamp(min=1)[:, None, None]


@dataclass(frozen=True)
class Top:
    """The ``count`` dimensions with the largest shares over unrelated pairs, taken together.

    Attributes:
        count: Number of the dimensions.
        share: Sum of the shares of these dimensions over unrelated pairs, from 0 to 1.
        of_sum: The sum of the contributions of these dimensions over unrelated pairs, divided by the sum over all
            dimensions. It is None if the sum over all dimensions is 0.
        related_share: Sum of the shares of these dimensions over related pairs, from 0 to 1.
        auc_without: The AUC without these dimensions.
    """

    count: int
    share: float
    of_sum: float | None
    related_share: float
    auc_without: Interval


@dataclass(frozen=True)
class Dominance:
    """The largest dimensions at one layer for one distance.

    Attributes:
        layer: The number of the layer.
        distance: The kind of distance: l2 or cosine.
        mean: The mean squared L2 distance, or the mean cosine, of unrelated pairs.
        dimensions: The indices of the ten dimensions with the largest shares over unrelated pairs, largest first, or of
            all dimensions if there are fewer.
        shares: The shares of these dimensions.
        auc: The AUC with all dimensions.
        tops: The largest dimensions taken together, for each count in the settings.
    """

    layer: int
    distance: Distance
    mean: float
    dimensions: tuple[int, ...]
    shares: tuple[float, ...]
    auc: Interval
    tops: tuple[Top, ...]


def separations_and_dominance(
    read: Callable[[], Iterable[Linked]],
    seed: int,
    layers: Sequence[int],
    *,
    tops: Sequence[int] = TOPS,
    block: int = BLOCK,
) -> tuple[list[Separation], list[Dominance]]:
    """Return the distances and the largest dimensions, both by layer and then by distance.

    Args:
        read: A function that returns the same stream of aligned words in each call. The stream is read a second time to
            measure distances without the largest dimensions, unless ``tops`` has no usable count.
        seed: The seed of the draw of unrelated pairs.
        layers: The numbers of the layers of the stream.
        tops: Counts of largest dimensions to leave out. Counts that would leave no dimension are skipped.
        block: Number of word pairs in a block.

    Raises:
        InputError: The stream cannot be used (see `pair_blocks`), or there are no unrelated pairs.
    """
    sums, whole = ContributionSums(), DistanceSums()
    for found in pair_blocks(read(), seed, block, layers):
        sums.add(found)
        whole.add(found)
    means, separate = sums.means(), whole.result(layers)
    tops = [top for top in tops if 0 < top < means.shape[-1]]
    rest = {(name, top): DistanceSums((name,), _without(of[UNRELATED], top))
            for name, of in zip(DISTANCES, means, strict=True) for top in tops}  # fmt: skip
    for found in pair_blocks(read(), seed, block) if rest else ():
        for sums_without in rest.values():
            sums_without.add(found)
    without = {(s.layer, *key): s.auc for key, measured in rest.items() for s in measured.result(layers)}
    by_layer = means.permute(2, 0, 1, 3).flatten(0, 1)  # [layers · distances, kinds, d], as ``separate`` is
    return separate, [_dominance(s, of, tops, without) for s, of in zip(separate, by_layer, strict=True)]


def _dominance(
    whole: Separation, means: Tensor, tops: Sequence[int], without: dict[tuple[int, Distance, int], Interval]
) -> Dominance:
    unrelated, total = means[UNRELATED], float(means[UNRELATED].sum())
    related_shares, own_shares = shares(means[RELATED]), shares(unrelated)
    found = []
    for top in tops:
        some = largest(unrelated, top)
        of_sum = float(unrelated[some].sum()) / total if total else None
        both = float(own_shares[some].sum()), of_sum, float(related_shares[some].sum())
        found.append(Top(top, *both, without[whole.layer, whole.distance, top]))
    ten = largest(unrelated, 10)
    sizes = tuple(own_shares[ten].tolist())
    return Dominance(whole.layer, whole.distance, total, tuple(ten.tolist()), sizes, whole.auc, tuple(found))


def _without(unrelated: Tensor, top: int) -> Tensor:
    """Return the mask [layers, d] of all dimensions except the ``top`` largest of each layer."""
    kept = torch.ones(unrelated.shape, dtype=torch.bool)
    for layer, contributions in zip(kept, unrelated, strict=True):
        layer[largest(contributions, top)] = False
    return kept
