"""A cache on disk for the vectors of several layers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np
import torch
from torch import Tensor

from pretrain.nearest_lists import Matrix
from synthlang.errors import InputError

ROWS = 1024
"""Rows per block. With this many, the work on a block takes longer than reading it."""
LOADED = 1 << 29
"""Size up to which a layer is loaded as a whole, in bytes. On the CPU, a larger layer is memory-mapped."""


class LayerCache:
    """Rows [n, width] of each layer, in one temporary file per layer.

    Numbers are stored in the type of the first rows, but at least in float32. On POSIX systems the files have no name,
    so they disappear when the process ends. Blocks are read with ``fromfile``, because the pages of a memory map would
    count as memory of the process.

    Args:
        layers: Number of layers.
        width: Number of dimensions of a row.

    Attributes:
        layers: Number of layers.
        width: Number of dimensions of a row.
        count: Number of rows of each layer that have been written.
        dtype: Type of the stored numbers.
    """

    def __init__(self, layers: int, width: int) -> None:
        self._files: list[IO[bytes]] = [tempfile.TemporaryFile(buffering=0) for _ in range(layers)]  # noqa: SIM115
        self.layers, self.width, self.count = layers, width, 0
        self.dtype = torch.float32

    def write(self, rows: Tensor) -> None:
        """Append n rows to each layer, given as [layers, n, width].

        Raises:
            InputError: The files cannot be written, as on a full disk.
        """
        assert rows.ndim == 3 and rows.shape == (self.layers, rows.shape[1], self.width), (rows.shape, self.width)
        if not self.count:
            self.dtype = torch.promote_types(rows.dtype, torch.float32)
        try:
            for file, layer in zip(self._files, rows.detach().to("cpu", self.dtype), strict=True):
                file.seek(0, 2)
                rest = memoryview(layer.numpy().tobytes())
                while rest:  # a write to an almost full disk may store only a part
                    rest = rest[file.write(rest) :]
        except OSError as error:
            raise InputError(
                f"the vectors of all layers cannot be stored: {error.strerror}",
                tempfile.gettempdir(),
                hint="set the variable TMPDIR to another folder, or use fewer layers or sentences",
                code="resources",
            ) from error
        self.count += rows.shape[1]

    def blocks(self, layer: int) -> Iterator[Tensor]:
        """Yield all rows of a layer in blocks of ROWS rows, [rows, width] on the CPU."""
        return (self._read(layer, start, ROWS) for start in range(0, self.count, ROWS))

    def layer(self, layer: int, device: torch.device) -> Matrix:
        """Return a layer [n, width] as a tensor on the device, or a large layer on the CPU as a memory map."""
        if self.count * self.width * self.dtype.itemsize > LOADED and device.type == "cpu":
            mapped: Matrix = np.memmap(self._files[layer], self._numpy_type, "r", shape=(self.count, self.width))
            return mapped
        return self._read(layer, 0, self.count).to(device)

    def _read(self, layer: int, start: int, size: int) -> Tensor:
        file = self._files[layer]
        file.seek(start * self.width * self.dtype.itemsize)
        rows = np.fromfile(file, self._numpy_type, min(size, self.count - start) * self.width)
        return torch.from_numpy(rows.reshape(-1, self.width))

    @property
    def _numpy_type(self) -> str:
        return str(self.dtype).removeprefix("torch.")
