"""Write an array to a .npy file part by part, in memory that does not grow with the array."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray


class NpyWriter:
    """Writer of a one-dimensional array of int64, with the bytes that ``numpy.save`` writes for the whole array.

    A writer is used as a context manager. The header has the same length for every number of items, and is written
    again with the final number when the block ends without an error. An existing file is replaced.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._items = 0
        self._write_header()

    def append(self, values: NDArray[np.integer]) -> None:
        """Append integers [n] to the array. They are converted to int64."""
        self._items += len(values)
        self._file.write(values.astype("<i8", copy=False).tobytes())

    def __len__(self) -> int:
        return self._items

    def __enter__(self) -> NpyWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.seek(0)
                self._write_header()

    def _write_header(self) -> None:
        about = {"descr": "<i8", "fortran_order": False, "shape": (self._items,)}
        npy.write_array_header_1_0(self._file, about)
