"""Rows of a matrix, block by block, as unit vectors: the input of the search for nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from synthlang.errors import InputError

CHECKED = 8192  # rows that are read at once to find their lengths

Matrix = Tensor | NDArray[Any]
"""[n, d] of any float type; a memory-mapped array is read block by block and never as a whole."""


class Rows:
    """Rows [n, d] that are given out in float32 with length 1; a row of zeros stays zero.

    Nothing is copied but the block asked for, and the scale of each row is kept. Rows are divided by their largest
    number before their length is taken: no under- or overflow of squares. A row with NaN or infinity is an
    InputError, which calls the rows ``name``.
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
        """Unit rows ``start`` to ``stop`` [rows, d]."""
        return self._unit(slice(start, stop))

    def take(self, rows: Tensor) -> Tensor:
        """Unit rows of these numbers [rows, d]."""
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
            raise InputError(f"row {row} of the {name} vectors holds NaN or infinity: the training run has diverged")
        self.zero[rows] = (largest == 0).flatten()
        self._largest[rows] = largest.where(largest > 0, 1)
        lengths = (values / self._largest[rows]).norm(dim=1, keepdim=True)
        self._lengths[rows] = lengths.where(lengths > 0, 1)


@contextmanager
def full_precision(device: str) -> Iterator[None]:
    """No gradients, no TF32 and no autocast: nearest neighbours differ by less than their rounding."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad(), torch.autocast(device, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
