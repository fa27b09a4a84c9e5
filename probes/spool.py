"""Blocks of rows in a temporary file, to be read as often as needed."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from synthlang.errors import InputError


class Spool:
    """Blocks of two tensors [n, …], written one after another.

    The file has no name on POSIX systems, so nothing is left of it however the process ends. Plain reads, not a memory
    map, whose pages would count as memory of the process.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed with the object
        self._folder = folder or Path(tempfile.gettempdir())
        self._blocks: list[list[tuple[torch.Size, torch.dtype]]] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def write(self, left: Tensor, right: Tensor) -> None:
        """Add a block; InputError if the disk is full."""
        self._file.seek(0, 2)
        try:
            for part in (left, right):
                self._file.write(part.contiguous().numpy().data)
            self._file.flush()
        except OSError as error:
            size = self._file.tell() / 2**20
            fault = f"cannot keep the states of both models, {size:.0f} MB so far: {error.strerror}"
            raise InputError(f"{fault}; choose another folder, or more memory", self._folder) from error
        self._blocks.append([(part.shape, part.dtype) for part in (left, right)])

    def read(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All blocks, from the first one."""
        self._file.seek(0)
        for left, right in self._blocks:
            yield self._next(*left), self._next(*right)

    def _next(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        rows = torch.empty(shape, dtype=dtype)
        got = self._file.readinto(rows.numpy().data)
        assert got == math.prod(shape) * rows.element_size(), (got, shape)
        return rows
