"""Unit rows of two matrices, block by block, and the largest cosines of each row and column of their product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from synthlang.errors import InputError
from synthlang.progress import Report, silent

TILE = 8192  # rows and columns of the product that are in memory at once: 256 MB
GROUP = 16  # entries of a group, which is first represented by its largest entry
CHECKED = 8192  # rows that are read at once to compute their lengths

Matrix = Tensor | NDArray[Any]
"""Array [n, d] of any float type. A memory-mapped array is read block by block."""


class Rows:
    """Rows [n, d] as unit vectors in float32, which are computed block by block. A row of zeros stays zero.

    Rows are divided by their largest absolute number before their length is computed, so that squares do not under- or
    overflow. ``zero`` [n] is True for rows of zeros. Errors use the ``name`` of the rows.

    Raises:
        InputError: A row has NaN or infinity.
    """

    def __init__(self, data: Matrix, device: torch.device, name: str) -> None:
        assert data.ndim == 2, f"rows of vectors, not {tuple(data.shape)}"
        self._data, self.device = data, device
        self._largest = torch.ones(len(data), 1, device=device)
        self._lengths = torch.ones(len(data), 1, device=device)
        self.zero = torch.zeros(len(data), dtype=torch.bool, device=device)
        for start in range(0, len(data) if data.shape[1] else 0, CHECKED):
            self._measure(slice(start, start + CHECKED), name)
        if not data.shape[1]:
            self.zero[:] = True

    def __len__(self) -> int:
        return len(self._data)

    def block(self, start: int, stop: int) -> Tensor:
        """Return the unit rows start … stop − 1, [stop − start, d] float32."""
        return self._unit(slice(start, stop))

    def take(self, rows: Tensor) -> Tensor:
        """Return the unit rows with the numbers ``rows`` [r], [r, d] float32."""
        return self._unit(rows)

    def _unit(self, rows: slice | Tensor) -> Tensor:
        unit = self._read(rows) / self._largest[rows]
        return unit.div_(self._lengths[rows])

    def _read(self, rows: slice | Tensor) -> Tensor:
        if isinstance(self._data, Tensor):
            here = rows.to(self._data.device) if isinstance(rows, Tensor) else rows
            return self._data[here].to(self.device, torch.float32)
        where: Any = rows.cpu().numpy() if isinstance(rows, Tensor) else rows
        return torch.from_numpy(np.asarray(self._data[where], dtype=np.float32).copy()).to(self.device)

    def _measure(self, rows: slice, name: str) -> None:
        values = self._read(rows)
        largest = values.abs().amax(1, keepdim=True)  # NaN and infinity pass through the maximum
        if not bool(largest.isfinite().all()):
            row = rows.start + int((~largest.isfinite()).flatten().nonzero()[0])
            reason = f"row {row} of the {name} vectors has NaN or infinity"
            hint = "use other vectors, or a model that was trained with a lower learning rate"
            raise InputError(reason, hint=hint, code="damaged")
        self.zero[rows] = (largest == 0).flatten()
        self._largest[rows] = largest.where(largest > 0, 1)
        lengths = (values / self._largest[rows]).norm(dim=1, keepdim=True)
        self._lengths[rows] = lengths.where(lengths > 0, 1)


@contextmanager
def full_precision(device: str) -> Iterator[None]:
    """Switch off gradients, TF32 and autocast during the block, for the type of device ``device``, such as ``cuda``.

    The rounding of TF32 and autocast would change nearest neighbours.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad(), torch.autocast(device, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@dataclass(frozen=True)
class Lists:
    """The largest cosines of each row.

    ``values`` [n, size] are in descending order, and ``indices`` [n, size] are their columns. ``size`` is at most the
    number of rows of the other side. A barred entry has the value −∞.
    """

    values: Tensor
    indices: Tensor

    def last(self, others: int) -> Tensor:
        """Return an upper bound of the cosines outside each list, [n], or −∞ if all ``others`` are in the list."""
        size = self.values.shape[1]
        return self.values[:, -1] if 0 < size < others else self.values.new_full((len(self.values),), -torch.inf)


def largest_cosines(
    x: Rows, y: Rows, size: int, pairs: Tensor, tile: int = TILE, report: Report = silent, barred: Tensor | None = None
) -> tuple[Lists, Lists, Tensor]:
    """Return the ``size`` largest entries of each row and column of X Yᵀ [n, m], and the entries at ``pairs`` [q, 2].

    Memory is O(tile² + (n + m) · size), and each entry is computed once.

    Args:
        x: Unit rows of X, [n, d].
        y: Unit rows of Y, [m, d].
        size: Length of the lists, limited to m for rows and to n for columns.
        pairs: Row and column of further entries to return, [q, 2].
        tile: Number of rows and columns of a tile.
        report: Function that shows progress.
        barred: Row and column of entries that count as −∞, [s, 2].
    """
    forward = _empty(len(x), min(size, len(y)), x.device)
    backward = _empty(len(y), min(size, len(x)), x.device)
    rows, columns = min(tile, len(x)), min(tile, len(y))
    memory = torch.empty(rows * columns, device=x.device)
    own = torch.zeros(len(pairs), device=x.device)
    total = -(-len(x) // tile) * -(-len(y) // tile)
    done = 0
    for top in range(0, len(x), tile):
        left = x.block(top, top + tile)
        for start in range(0, len(y), tile):
            right = y.block(start, start + tile)
            product = memory[: len(left) * len(right)].view(len(left), len(right))
            torch.mm(left, right.T, out=product)
            if barred is not None:
                row, column, here = _places(product, barred, top, start)
                product[row[here], column[here]] = -torch.inf
            _merge(forward, top, start, *largest_in_rows(product, forward.values.shape[1]))
            _merge(backward, start, top, *_largest_in_columns(product, backward.values.shape[1]))
            row, column, here = _places(product, pairs, top, start)
            own[here] = product[row[here], column[here]]
            done += 1
            report("nearest neighbours", done, total, "")
    return forward, backward, own


def largest_in_rows(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the largest entries of each row in descending order, [n, min(size, m)], and their columns.

    The method is exact and faster than topk over whole rows, because these entries lie in the ``size`` groups with the
    largest maxima, or among the few entries after the last whole group. The entries of a group are ``groups`` columns
    apart, so that the maxima of neighbouring groups are found together.
    """
    groups = matrix.shape[1] // GROUP
    if groups <= size:
        values, columns = matrix.topk(min(size, matrix.shape[1]), dim=1)
        return values, columns
    whole = groups * GROUP
    maxima = matrix[:, :whole].view(-1, GROUP, groups).amax(1)
    chosen = maxima.topk(size, dim=1, sorted=False).indices  # [n, size]
    places = (chosen.unsqueeze(2) + torch.arange(0, whole, groups, device=matrix.device)).flatten(1)
    if whole < matrix.shape[1]:
        rest = torch.arange(whole, matrix.shape[1], device=matrix.device).expand(len(matrix), -1)
        places = torch.cat([places, rest], 1)
    values, found = matrix.gather(1, places).topk(size, dim=1)
    return values, places.gather(1, found)


def _largest_in_columns(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return ``largest_in_rows`` of the transposed matrix without copying a large matrix."""
    groups = len(matrix) // GROUP
    if groups <= size:
        return largest_in_rows(matrix.T.contiguous(), size)
    whole = groups * GROUP
    maxima = matrix[:whole].view(GROUP, groups, -1).amax(0).T.contiguous()  # [m, groups]
    chosen = maxima.topk(size, dim=1, sorted=False).indices.T  # [size, m]
    places = (chosen.unsqueeze(1) + torch.arange(0, whole, groups, device=matrix.device)[:, None]).flatten(0, 1)
    if whole < len(matrix):
        rest = torch.arange(whole, len(matrix), device=matrix.device)[:, None].expand(-1, matrix.shape[1])
        places = torch.cat([places, rest])
    values, found = matrix.gather(0, places).T.contiguous().topk(size, dim=1)
    return values, places.T.gather(1, found)


def _places(product: Tensor, pairs: Tensor, top: int, start: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the row and column of each pair in the tile at (top, start), and flags of pairs in the tile, [q] each."""
    row, column = (pairs - torch.tensor([top, start], device=pairs.device)).unbind(1)
    here = (row >= 0) & (row < len(product)) & (column >= 0) & (column < product.shape[1])
    return row, column, here


def _empty(rows: int, size: int, device: torch.device) -> Lists:
    values = torch.full((rows, size), -torch.inf, device=device)
    return Lists(values, torch.full((rows, size), -1, device=device))


def _merge(lists: Lists, row: int, offset: int, values: Tensor, indices: Tensor) -> None:
    """Merge entries into the lists of the rows from ``row`` on. Indices count from ``offset``."""
    here = slice(row, row + len(values))
    every = torch.cat([lists.values[here], values], 1)
    kept, places = every.topk(lists.values.shape[1], dim=1)
    lists.values[here] = kept
    lists.indices[here] = torch.cat([lists.indices[here], indices + offset], 1).gather(1, places)
