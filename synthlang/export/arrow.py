"""Arrays of Arrow from those of NumPy, without a copy.

``pyarrow.array`` would import pandas, 35 MB in each process, just to learn that it is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True)
class Strings:
    """Strings as UTF-8: string i is ``data[offsets[i] : offsets[i + 1]]``."""

    offsets: NDArray[np.int32]
    data: bytes

    @staticmethod
    def of(strings: Sequence[str]) -> Strings:
        """Encode strings."""
        joined = "".join(strings)
        data = joined.encode("utf-8")
        lengths = map(len, strings) if len(data) == len(joined) else (len(s.encode("utf-8")) for s in strings)
        offsets = np.zeros(len(strings) + 1, np.int32)
        np.cumsum(np.fromiter(lengths, np.int32, len(strings)), out=offsets[1:])
        return Strings(offsets, data)

    @property
    def array(self) -> Any:
        """As an array of strings."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.string(), len(self.offsets) - 1, buffers)


def numbers(values: NDArray[Any]) -> Any:
    """Integers of 32 or 64 bits as an array."""
    kinds = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kinds[values.dtype], len(values), [None, pa.py_buffer(values)])


def values_of(array: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """The values of an array of integers without nulls."""
    start = array.offset
    return np.frombuffer(array.buffers()[1], dtype)[start : start + len(array)] if len(array) else np.zeros(0, dtype)


def lists(offsets: NDArray[np.int64], values: Any) -> Any:
    """A list for each sentence; ``offsets`` [sentences + 1] into ``values``."""
    assert offsets[-1] < 2**31, "a batch has fewer than 2 billion words"
    return pa.ListArray.from_arrays(numbers(offsets.astype(np.int32)), values)


def coded(codes: NDArray[np.int32], names: Any) -> Any:
    """Codes into an array of names."""
    return pa.DictionaryArray.from_arrays(numbers(codes.astype(np.int32, copy=False)), names)
