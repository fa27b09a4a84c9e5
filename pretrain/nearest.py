"""Nearest neighbours between two sets of vectors, both ways, under the cosine and under CSLS, from one product.

With cos the cosine of x, a row of one set, and y, a row of the other, and k = 10 (Conneau et al. 2018, equation 4):

    cosine(x, y) = cos(x, y)
    csls(x, y)   = 2 cos(x, y) - r(x) - r(y)
    r(x)         = mean cosine of x to its k nearest rows of the other set, and r(y) likewise

The product X Yᵀ is computed once, by tiles; the largest cosines of its rows and columns serve all four searches. What
they leave open, and CSLS may leave something, is computed again for the queries and targets in question only
(nearest_exact.py), so that every result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.nearest_exact import Scores, Search
from pretrain.nearest_lists import TILE, Lists, Matrix, Rows, full_precision, largest_cosines
from synthlang.errors import InputError
from synthlang.progress import Report, silent

LISTED = 10  # the least number of cosines that are kept of each row


@dataclass(frozen=True)
class Found:
    """The nearest rows of the queries under one score.

    credit   [q] float64: 1/t where a pair's target is among the t nearest tied ones of its query, else 0. The mean
             over pairs is P@1, with ties broken at random in expectation; 0 if one of the two is a row of zeros
    indices  [r, top] the nearest targets of the rows asked for, best first; -1 for a row of zeros, which is near
             nothing, and where there are fewer candidates
    scores   [r, top] their scores
    """

    credit: Tensor
    indices: Tensor
    scores: Tensor


@dataclass(frozen=True)
class Direction:
    """One set asks, the other answers; ``density`` [n] is r of the queries, ``zeros`` how many are rows of zeros."""

    cosine: Found
    csls: Found
    density: Tensor
    zeros: int


@dataclass(frozen=True)
class Nearest:
    """``forward``: rows of x ask, rows of y are the candidates; ``backward``: the other way."""

    forward: Direction
    backward: Direction


def nearest(
    x: Matrix,
    y: Matrix,
    pairs: Tensor | None = None,
    *,
    top: int = 0,
    asking: tuple[Tensor | None, Tensor | None] = (None, None),
    barred: Tensor | None = None,
    k: int = 10,
    tile: int = TILE,
    report: Report = silent,
    names: tuple[str, str] = ("first", "second"),
) -> Nearest:
    """Search among ``x`` [n, d] and ``y`` [m, d], both directions.

    ``pairs`` [q, 2] (int64) are rows of x and y that should find each other; a row may be in several pairs or in none,
    and every row is a candidate of every row of the other set, but for those that ``barred`` [s, 2] names: rows of x
    and of y that are no candidates of each other, each once a side, such as one embedding that stands in both sets. For
    fewer candidates, give fewer rows: the densities are over candidates.
    ``top`` is how many nearest rows to list (at most as many as there are) for each of the rows ``asking``: their
    numbers in x and in y, None for all. A longer list costs more than a credit: few others rule a pair out, but under
    CSLS nearly all of a row's neighbours may have to be scored to list them.

    Tensors or NumPy arrays (memory maps too) of any float type; the work is float32 without TF32 on the device of x,
    one unit copy of ``tile`` rows at a time: memory is O(tile² + (n + m) · max(k, top)). ``k`` is cut to the number
    of rows. Scores closer than TIE are tied. A row of zeros has cosine 0 to everything. InputError: NaN, infinity; it
    calls the rows by their ``names``.

    >>> rows = torch.eye(3)
    >>> nearest(rows, rows[[0, 2, 1]], torch.tensor([[0, 0], [1, 1]])).forward.csls.credit
    tensor([1., 0.], dtype=torch.float64)
    """
    if k < 1 or tile < 1 or top < 0:
        raise InputError(f"k and tile must be at least 1 and top at least 0, not {k}, {tile} and {top}")
    device = x.device if isinstance(x, Tensor) else torch.device("cpu")
    with full_precision(device.type):
        left, right = Rows(x, device, names[0]), Rows(y, device, names[1])
        assert x.shape[1] == y.shape[1], f"vectors of one size, not {x.shape[1]} and {y.shape[1]}"
        asked = torch.zeros(0, 2, dtype=torch.long) if pairs is None else pairs
        assert asked.ndim == 2 and asked.shape[1] == 2, asked.shape
        asked = asked.to(device)
        barred = None if barred is None else barred.to(device)
        *lists, own = largest_cosines(left, right, max(k, 2 * top, LISTED), asked, tile, report, barred)
        density = [_density(side, k) for side in lists]
        there = Search(left, right, lists[0], _by_query(barred, 0, len(left)))
        back = Search(right, left, lists[1], _by_query(barred, 1, len(right)))
        listing = [
            torch.arange(len(side)) if some is None else some for side, some in zip((left, right), asking, strict=True)
        ]
        return Nearest(
            _direction(there, density, asked, own, (top, listing[0].to(device)), report),
            _direction(back, density[::-1], asked.flip(1), own, (top, listing[1].to(device)), report),
        )


def _density(lists: Lists, k: int) -> Tensor:
    """r [n]: mean cosine of each row to its k nearest; 0 if there is no candidate."""
    nearest = lists.values[:, :k]
    there = nearest.isfinite()  # what is barred is not
    return nearest.where(there, 0).sum(1) / there.sum(1).clamp(min=1)


def _by_query(barred: Tensor | None, side: int, rows: int) -> Tensor | None:
    """[rows] what is barred for each row of a side, -1 for nothing."""
    if barred is None:
        return None
    found = torch.full((rows,), -1, device=barred.device)
    found[barred[:, side]] = barred[:, 1 - side]
    return found


def _direction(
    search: Search, densities: list[Tensor], pairs: Tensor, own: Tensor, listing: tuple[int, Tensor], report: Report
) -> Direction:
    """Both scores of one direction; ``densities`` are those of the queries and of the targets."""
    top, asking = min(listing[0], len(search.targets)), listing[1]
    lost = search.queries.zero[pairs[:, 0]] | search.targets.zero[pairs[:, 1]]
    found = []
    for scores in (Scores(1.0, torch.zeros_like(densities[1])), Scores(2.0, densities[1])):
        credit = search.credit(scores, pairs, own, report) if len(pairs) else own.double()
        values, indices = search.top(scores, top, asking, report)
        if scores.weight == 2:  # left out in the search: it is the same for all targets of a query
            values = values - densities[0][asking].unsqueeze(1)
        indices = indices.masked_fill(search.queries.zero[asking].unsqueeze(1) | ~values.isfinite(), -1)
        found.append(Found(credit.masked_fill(lost, 0), indices, values))
    return Direction(found[0], found[1], densities[0], int(search.queries.zero.sum()))
