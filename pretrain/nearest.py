"""Nearest neighbours between two sets of vectors, in both directions, under the cosine and under CSLS.

With cos the cosine of x, a row of one set, and y, a row of the other, and k = 10 (Conneau et al. 2018, equation 4):

    cosine(x, y) = cos(x, y)
    csls(x, y)   = 2 cos(x, y) - r(x) - r(y)
    r(x)         = mean cosine of x to its k nearest rows of the other set, and r(y) likewise

The product X Yᵀ is computed once, in tiles. The lists of largest cosines of its rows and columns serve all four
searches. If a list does not decide a search, which happens under CSLS, the scores of possible targets are computed
again, so that every result is exact.

A query x scores s(x, y) = a cos(x, y) - p(y), where p(y) is the penalty of a target (0 for the cosine, its density for
CSLS) and a is 1 or 2. A target outside the list of x has at most the last cosine c of the list. It reaches a score b
only if p(y) <= a c - b. Such targets come first in the order of p, and usually there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.nearest_lists import TILE, Lists, Matrix, Rows, full_precision, largest_cosines, largest_in_rows
from synthlang.errors import InputError
from synthlang.progress import Report, silent

LISTED = 10  # smallest number of cosines that are kept of each row
TIE = 1e-6
"""Similarities closer than this are tied, since float32 products differ by as much between kernels."""

BLOCK_SCORES = 1 << 26  # scores that are in memory at once: 256 MB
TAKEN = 4096  # targets that are read at once


@dataclass(frozen=True)
class Neighbours:
    """The nearest rows of the queries under one score.

    Attributes:
        credit: 1/t if the target of a pair is one of t rows that tie as nearest to its query, else 0, [q] float64. The
            mean over pairs is the expected P@1 with random ties. Rows of zeros have the credit 0.
        indices: The nearest targets of the query rows, the best first, [r, top] int64, where ``top`` is at most the
            number of targets. A row of zeros has -1 in all columns, and a column without a candidate has -1.
        scores: Scores of the targets in ``indices``, [r, top] float32, or −∞ for a column without a candidate.
    """

    credit: Tensor
    indices: Tensor
    scores: Tensor


@dataclass(frozen=True)
class Direction:
    """Results with one set as queries and the other as candidates.

    Attributes:
        cosine: Results under the cosine.
        csls: Results under CSLS.
        density: Mean cosine of each row of the set of queries to its k nearest candidates, [n] float32.
        zeros: Number of rows of zeros in the set of queries.
    """

    cosine: Neighbours
    csls: Neighbours
    density: Tensor
    zeros: int


@dataclass(frozen=True)
class Nearest:
    """Results of both directions. In ``forward`` the rows of x are the queries, in ``backward`` the rows of y."""

    forward: Direction
    backward: Direction


def nearest(
    x: Matrix,
    y: Matrix,
    pairs: Tensor | None = None,
    *,
    top: int = 0,
    queries: tuple[Tensor | None, Tensor | None] = (None, None),
    barred: Tensor | None = None,
    k: int = 10,
    tile: int = TILE,
    report: Report = silent,
    names: tuple[str, str] = ("first", "second"),
) -> Nearest:
    """Return the nearest neighbours of ``x`` [n, d] in ``y`` [m, d] and of ``y`` in ``x``.

    The work is float32 without TF32 on the device of x. Memory is O(tile² + (n + m) · max(k, top)). Scores closer than
    TIE are tied. A row of zeros has the cosine 0 to every row.

    Args:
        x: A tensor or NumPy array (also a memory map) of any float type, [n, d].
        y: The other set, [m, d].
        pairs: Rows of x and y that should find each other, [q, 2] int64. A row may be in several pairs or in none.
            All rows are candidates.
        top: Number of nearest rows to list for each query. Under CSLS, lists take more time than credits.
        queries: Numbers of the rows of x and of y to list, [r] int64 each (None: all rows). Credits do not depend on
            these rows.
        barred: Rows of x and of y that are not candidates of each other, [s, 2] int64, such as an embedding that is in
            both sets. A row occurs at most once on a side.
        k: Number of neighbours for the densities, limited to the number of rows.
        tile: Number of rows and columns of a tile.
        report: Function that shows progress.
        names: Names of the two sets in errors.

    Raises:
        InputError: A row has NaN or infinity, ``k`` or ``tile`` is less than 1, or ``top`` is negative.

    >>> rows = torch.eye(3)
    >>> nearest(rows, rows[[0, 2, 1]], torch.tensor([[0, 0], [1, 1]])).forward.csls.credit
    tensor([1., 0.], dtype=torch.float64)
    """
    if k < 1 or tile < 1 or top < 0:
        reason = f"k and tile must be at least 1 and top at least 0, not {k}, {tile} and {top}"
        raise InputError(reason, code="range")
    device = x.device if isinstance(x, Tensor) else torch.device("cpu")
    with full_precision(device.type):
        left, right = Rows(x, device, names[0]), Rows(y, device, names[1])
        assert x.shape[1] == y.shape[1], f"vectors of one size, not {x.shape[1]} and {y.shape[1]}"
        wanted = torch.zeros(0, 2, dtype=torch.long) if pairs is None else pairs
        assert wanted.ndim == 2 and wanted.shape[1] == 2, wanted.shape
        wanted = wanted.to(device)
        barred = None if barred is None else barred.to(device)
        *lists, own = largest_cosines(left, right, max(k, 2 * top, LISTED), wanted, tile, report, barred)
        density = [_density(side, k) for side in lists]
        there = Search(left, right, lists[0], _by_query(barred, 0, len(left)))
        back = Search(right, left, lists[1], _by_query(barred, 1, len(right)))
        listing = [
            torch.arange(len(side)) if some is None else some for side, some in zip((left, right), queries, strict=True)
        ]
        return Nearest(
            _direction(there, density, wanted, own, (top, listing[0].to(device)), report),
            _direction(back, density[::-1], wanted.flip(1), own, (top, listing[1].to(device)), report),
        )


def _density(lists: Lists, k: int) -> Tensor:
    """Return the mean cosine of each row to its k nearest candidates, or 0 without candidates, [n]."""
    nearest = lists.values[:, :k]
    there = nearest.isfinite()  # barred entries are not finite
    return nearest.where(there, 0).sum(1) / there.sum(1).clamp(min=1)


def _by_query(barred: Tensor | None, side: int, rows: int) -> Tensor | None:
    """Return the barred target of each row of one side, or -1, [rows]."""
    if barred is None:
        return None
    found = torch.full((rows,), -1, device=barred.device)
    found[barred[:, side]] = barred[:, 1 - side]
    return found


def _direction(
    search: Search, densities: list[Tensor], pairs: Tensor, own: Tensor, listing: tuple[int, Tensor], report: Report
) -> Direction:
    """Search one direction under both scores. ``densities`` has one tensor for queries and one for targets."""
    top, queries = min(listing[0], len(search.targets)), listing[1]
    lost = search.queries.zero[pairs[:, 0]] | search.targets.zero[pairs[:, 1]]
    found = []
    for scores in (NeighbourScores(1.0, torch.zeros_like(densities[1])), NeighbourScores(2.0, densities[1])):
        credit = search.credit(scores, pairs, own, report) if len(pairs) else own.double()
        values, indices = search.top(scores, top, queries, report)
        if scores.weight == 2:  # the search leaves this term out, since it is the same for all targets of a query
            values = values - densities[0][queries].unsqueeze(1)
        indices = indices.masked_fill(search.queries.zero[queries].unsqueeze(1) | ~values.isfinite(), -1)
        found.append(Neighbours(credit.masked_fill(lost, 0), indices, values))
    return Direction(found[0], found[1], densities[0], int(search.queries.zero.sum()))


@dataclass(frozen=True)
class NeighbourScores:
    """The score ``weight`` · cosine - ``penalty`` [m], without the term that is equal for all targets of a query."""

    weight: float
    penalty: Tensor

    def of(self, cosines: Tensor, targets: Tensor) -> Tensor:
        """Return the scores of targets with the given cosines, [...] each. A cosine of -∞ has the score -∞."""
        return self.weight * cosines - self.penalty[targets]


@dataclass(frozen=True)
class Search:
    """Queries [n, d], targets [m, d], and the lists of the queries' largest cosines among the targets.

    ``barred`` [n] is the target that is not a candidate of a query and is not in its list, or -1 (None: all are -1).
    """

    queries: Rows
    targets: Rows
    lists: Lists
    barred: Tensor | None = None

    def credit(self, scores: NeighbourScores, pairs: Tensor, cosines: Tensor, report: Report = silent) -> Tensor:
        """Return 1/t if the target of a pair (query, target) is among the t tied nearest ones, else 0, [q] float64.

        Nearest targets have the highest ``scores``. ``cosines`` [q] belong to the ``pairs`` [q, 2] and come from the
        same product as the lists. A query whose list has a better entry than its target, by more than TIE, is a miss
        and is not computed again.
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

    def top(
        self, scores: NeighbourScores, size: int, queries: Tensor, report: Report = silent
    ) -> tuple[Tensor, Tensor]:
        """Return scores and numbers of the ``size`` nearest targets of the queries [r], the best first, [r, size] each.

        ``size`` is at most the length of the lists.
        """
        listed = self.lists.indices[queries]
        best, places = scores.of(self.lists.values[queries], listed).topk(size, dim=1)
        indices = listed.gather(1, places)
        penalty = scores.penalty
        if not best.numel() or bool((penalty == penalty[0]).all()):  # the lists are in the order of the scores
            return best, indices
        wanted = best.new_full((len(self.lists.values),), torch.inf)
        wanted[queries] = best[:, -1]
        where = torch.full_like(wanted, -1, dtype=torch.long)
        where[queries] = torch.arange(len(queries), device=queries.device)
        for block in self._again(scores, where >= 0, wanted, report):
            here = where[block.rows]
            best[here], places = largest_in_rows(block.found, size)
            indices[here] = block.targets(places)
        return best, indices

    def _again(self, scores: NeighbourScores, queries: Tensor, wanted: Tensor, report: Report) -> Iterator[_Block]:
        """Yield blocks of exact scores for queries whose lists may lack a target that scores ``wanted`` or more.

        Read the scores of a block before the next one, which reuses its memory.

        Args:
            scores: The scores to compute.
            queries: Mask of the queries to check, [n].
            wanted: Smallest score that matters to each query, [n].
            report: Function that shows progress.
        """
        penalty, order = scores.penalty.sort()
        last = self.lists.last(len(self.targets))
        reach = torch.where(last.isfinite(), scores.weight * last - wanted + TIE, last)  # TIE covers rounding
        outside = torch.searchsorted(penalty, reach, right=True)  # number of targets that must be scored, [n]
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
            # Listed entries keep their values, since the rounding of two products differs.
            twice, own = position[listed], torch.arange(size, total, device=rows.device)
            found.scatter_(1, torch.where(twice < size, twice, own), -torch.inf)
            found[:, size:] = scores.of(self.lists.values[block], listed)
            yield _Block(block, found, order[:size], listed, position)
            done += len(block)
            report("nearest neighbours: exact scores", done, len(rows), "")

    def _bar(self, block: Tensor, position: Tensor, found: Tensor) -> None:
        """Set the scores of barred targets in ``found`` [queries, targets] to -∞."""
        if self.barred is None:
            return
        target = self.barred[block]
        place = position[target]
        row = ((target >= 0) & (place < found.shape[1])).nonzero().flatten()
        found[row, place[row]] = -torch.inf

    def _score(self, scores: NeighbourScores, block: Tensor, targets: Tensor, out: Tensor) -> None:
        """Write the scores of a block of queries with ``targets`` to ``out`` [queries, targets]."""
        queries = self.queries.take(block)
        for start in range(0, len(targets), TAKEN):
            some = targets[start : start + TAKEN]
            here = out[:, start : start + len(some)]
            torch.mm(queries, self.targets.take(some).T, out=here)
            here.mul_(scores.weight).sub_(scores.penalty[some])


@dataclass(frozen=True)
class _Block:
    """Scores of some queries with all targets that may score enough.

    Attributes:
        rows: The queries, [r].
        found: Scores with ``seen``, then with ``listed``, [r, s + size]. A target in both has -∞ in the first part.
        seen: The s targets with the smallest penalties, [s].
        listed: Targets in the lists of the queries, [r, size].
        position: Rank of each target by its penalty, [m].
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
        """Replace recomputed scores with the known scores of pairs, [q] each."""
        where = torch.full((int(self.rows.max()) + 1,), -1, device=self.rows.device)
        where[self.rows] = torch.arange(len(self.rows), device=self.rows.device)
        row, place = where[query.clamp(max=len(where) - 1)], self.position[target]
        known = (query < len(where)) & (row >= 0) & (place < len(self.seen))
        row, place = row[known], place[known]
        listed = self.found[row, place].isinf()
        self.found[row[~listed], place[~listed]] = scores[known][~listed]


def _blocks(rows: Tensor, sizes: Tensor) -> Iterator[tuple[Tensor, int]]:
    """Yield blocks of at most BLOCK_SCORES scores, each with its largest size. ``rows`` are sorted by size."""
    stop = len(rows)
    while stop:
        size = int(sizes[stop - 1])  # from the largest on, so that a block's size is known before its rows
        start = max(0, stop - max(1, BLOCK_SCORES // size))
        yield rows[start:stop], size
        stop = start
