"""Nearest neighbours between two sets of vectors, both ways, under the cosine and under CSLS, from one product.

With cos the cosine of x, a row of one set, and y, a row of the other, and k = 10 (Conneau et al. 2018, equation 4):

    cosine(x, y) = cos(x, y)
    csls(x, y)   = 2 cos(x, y) - r(x) - r(y)
    r(x)         = mean cosine of x to its k nearest rows of the other set, and r(y) likewise

The product X Yᵀ is computed once, by tiles; the largest cosines of its rows and columns serve all four searches. What
they leave open, and CSLS may leave something, is computed again for the queries and targets in question only,
so that every result is exact.

With p(y) the penalty of a target (0 for the cosine, its density for CSLS) and a = 1 or 2, a query x scores
s(x, y) = a cos(x, y) - p(y). No target outside the list of x has a cosine above the list's last one, c. So one outside
reaches a score b only if p(y) <= a c - b: such targets come first when they are sorted by p, and mostly there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.nearest_lists import TILE, Lists, Matrix, Rows, full_precision, largest_cosines, largest_in_rows
from synthlang.errors import InputError
from synthlang.progress import Report, silent

LISTED = 10  # the least number of cosines that are kept of each row
TIE = 1e-6
"""Similarities closer than this are tied: float32 products differ by as much between kernels."""

BLOCK_SCORES = 1 << 26  # scores that are held at once: 256 MB
TAKEN = 4096  # targets that are read at once


@dataclass(frozen=True)
class Neighbours:
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

    cosine: Neighbours
    csls: Neighbours
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
    for scores in (NeighbourScores(1.0, torch.zeros_like(densities[1])), NeighbourScores(2.0, densities[1])):
        credit = search.credit(scores, pairs, own, report) if len(pairs) else own.double()
        values, indices = search.top(scores, top, asking, report)
        if scores.weight == 2:  # left out in the search: it is the same for all targets of a query
            values = values - densities[0][asking].unsqueeze(1)
        indices = indices.masked_fill(search.queries.zero[asking].unsqueeze(1) | ~values.isfinite(), -1)
        found.append(Neighbours(credit.masked_fill(lost, 0), indices, values))
    return Direction(found[0], found[1], densities[0], int(search.queries.zero.sum()))


@dataclass(frozen=True)
class NeighbourScores:
    """``weight`` · cosine - ``penalty``: that of a pair of rows, less what is the same for all targets of a query."""

    weight: float
    penalty: Tensor
    """[m]"""

    def of(self, cosines: Tensor, targets: Tensor) -> Tensor:
        """The scores of cosines with these targets, both [...]; a place without a target (-1) has -∞."""
        return self.weight * cosines - self.penalty[targets]


@dataclass(frozen=True)
class Search:
    """Queries [n, d], targets [m, d], and the queries' lists of largest cosines among the targets.

    ``barred`` [n]: the target that is no candidate of a query, -1 for none; the lists are without it. None: all are -1.
    """

    queries: Rows
    targets: Rows
    lists: Lists
    barred: Tensor | None = None

    def credit(self, scores: NeighbourScores, pairs: Tensor, cosines: Tensor, report: Report = silent) -> Tensor:
        """[q] float64: 1/t where the target of a pair (query, target) is among the t nearest tied ones, else 0.

        ``cosines`` [q] are those of the ``pairs`` [q, 2], out of the product that the lists are from. Queries whose
        list has something better than their target by more than TIE have missed, whatever else there is, and are not
        looked at again.
        """
        query, target = pairs.unbind(1)
        own = scores.of(cosines, target)
        listed = scores.of(self.lists.values, self.lists.indices)
        best = listed.amax(1).scatter_reduce(0, query, own, "amax")
        ties = (listed >= (best - TIE).unsqueeze(1)).sum(1)
        alive = torch.zeros_like(best, dtype=torch.bool)
        alive[query[own >= best[query] - TIE]] = True
        for block in self._again(scores, alive, best - TIE, report):
            block.set(query, target, own)
            best[block.rows] = block.found.amax(1)
            ties[block.rows] = (block.found >= (best[block.rows] - TIE).unsqueeze(1)).sum(1)
        hit = (own >= best[query] - TIE) & own.isfinite()
        return hit.double() / ties[query].clamp(min=1)

    def top(self, scores: NeighbourScores, size: int, asking: Tensor, report: Report = silent) -> tuple[Tensor, Tensor]:
        """Scores and numbers of the ``size`` nearest targets of the queries ``asking`` [r] (numbers): [r, size] each.

        Best first; ``size`` is at most the length of the lists.
        """
        listed = self.lists.indices[asking]
        best, places = scores.of(self.lists.values[asking], listed).topk(size, dim=1)
        indices = listed.gather(1, places)
        penalty = scores.penalty
        if not best.numel() or bool((penalty == penalty[0]).all()):  # then the lists have the order of the scores
            return best, indices
        wanted = best.new_full((len(self.lists.values),), torch.inf)
        wanted[asking] = best[:, -1]
        where = torch.full_like(wanted, -1, dtype=torch.long)
        where[asking] = torch.arange(len(asking), device=asking.device)
        for block in self._again(scores, where >= 0, wanted, report):
            here = where[block.rows]
            best[here], places = largest_in_rows(block.found, size)
            indices[here] = block.targets(places)
        return best, indices

    def _again(self, scores: NeighbourScores, queries: Tensor, wanted: Tensor, report: Report) -> Iterator[_Block]:
        """Those ``queries`` [n] (bool) whose lists may lack a target that scores ``wanted`` [n], block by block.

        A block's scores are overwritten by the next one's.
        """
        penalty, order = scores.penalty.sort()
        last = self.lists.last(len(self.targets))
        reach = torch.where(last.isfinite(), scores.weight * last - wanted + TIE, last)  # TIE: products round
        outside = torch.searchsorted(penalty, reach, right=True)  # [n] how many targets must be looked at
        rows = (queries & (outside > 0)).nonzero().flatten()
        rows = rows[outside[rows].argsort()]
        position = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        width, done = self.lists.indices.shape[1], 0
        sizes = outside[rows].cpu() + width
        most = max((len(block) * total for block, total in _blocks(rows, sizes)), default=0)
        memory = torch.empty(most, device=rows.device)
        for block, total in _blocks(rows, sizes):
            listed, size = self.lists.indices[block], total - width
            found = memory[: len(block) * total].view(len(block), total)
            self._score(scores, block, order[:size], found[:, :size])
            self._bar(block, position, found[:, :size])
            # what is listed keeps the number it had: two products differ in their rounding
            twice, own = position[listed], torch.arange(size, total, device=rows.device)
            found.scatter_(1, torch.where(twice < size, twice, own), -torch.inf)
            found[:, size:] = scores.of(self.lists.values[block], listed)
            yield _Block(block, found, order[:size], listed, position)
            done += len(block)
            report("nearest neighbours: exact scores", done, len(rows), "")

    def _bar(self, block: Tensor, position: Tensor, found: Tensor) -> None:
        """Take what is no candidate out of the scores ``found`` [queries, targets] of a block."""
        if self.barred is None:
            return
        target = self.barred[block]
        place = position[target]
        row = ((target >= 0) & (place < found.shape[1])).nonzero().flatten()
        found[row, place[row]] = -torch.inf

    def _score(self, scores: NeighbourScores, block: Tensor, targets: Tensor, out: Tensor) -> None:
        """The scores of a block of queries with ``targets``, into ``out`` [queries, targets]."""
        queries = self.queries.take(block)
        for start in range(0, len(targets), TAKEN):
            some = targets[start : start + TAKEN]
            here = out[:, start : start + len(some)]
            torch.mm(queries, self.targets.take(some).T, out=here)
            here.mul_(scores.weight).sub_(scores.penalty[some])


@dataclass(frozen=True)
class _Block:
    """Scores ``found`` [r, s + size] of the queries ``rows`` [r], in which nothing that scores enough is missing.

    They are those of the targets ``seen`` [s] and of the ``listed`` [r, size]. What is both has -∞ at the first place.
    ``position`` [m] is where a target would stand among all of the seen.
    """

    rows: Tensor
    found: Tensor
    seen: Tensor
    listed: Tensor
    position: Tensor

    def targets(self, places: Tensor) -> Tensor:
        of_lists = self.listed.gather(1, (places - len(self.seen)).clamp(min=0))
        return torch.where(places < len(self.seen), self.seen[places.clamp(max=len(self.seen) - 1)], of_lists)

    def set(self, query: Tensor, target: Tensor, scores: Tensor) -> None:
        """Put in the known scores of pairs [q] in place of those computed again."""
        where = torch.full((int(self.rows.max()) + 1,), -1, device=self.rows.device)
        where[self.rows] = torch.arange(len(self.rows), device=self.rows.device)
        row, place = where[query.clamp(max=len(where) - 1)], self.position[target]
        known = (query < len(where)) & (row >= 0) & (place < len(self.seen))
        row, place = row[known], place[known]
        listed = self.found[row, place].isinf()
        self.found[row[~listed], place[~listed]] = scores[known][~listed]


def _blocks(rows: Tensor, sizes: Tensor) -> Iterator[tuple[Tensor, int]]:
    """Cut rows, whose sizes grow, into blocks of at most BLOCK_SCORES; each with the size of its last row."""
    stop = len(rows)
    while stop:
        size = int(sizes[stop - 1])  # from the largest on, so that a block's size is known before its rows
        start = max(0, stop - max(1, BLOCK_SCORES // size))
        yield rows[start:stop], size
        stop = start
