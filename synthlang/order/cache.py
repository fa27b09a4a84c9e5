"""Distributions of bags of items that were seen before, up to a number of bytes; the oldest go first."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from synthlang.order.items import Item

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_ITEMS_CACHED = 6  # 5.8 KB a bag; of seven items 40 KB, and such bags seldom come again
MOST_BYTES = 32_000_000  # for each class of nodes
ENTRY_BYTES = 320  # what Python needs for an entry besides its numbers
MOST_ITEM_TYPES = 65_536


class BagCache:
    """Cumulated probabilities of bags by their items and the temperature, not by the batch they came in."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._rows: OrderedDict[bytes, Floats] = OrderedDict()
        self._numbers: dict[Item, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self, types: Ints, names: tuple[Item, ...], temperature: float) -> list[bytes]:
        """The key of each row of ``types`` [bags, n]; they are indices into ``names``."""
        if len(self._numbers) > MOST_ITEM_TYPES:
            self.clear()
        numbers = self._numbers
        own = np.asarray([numbers.setdefault(item, len(numbers)) for item in names], np.int32)
        end = np.float64(temperature).tobytes()
        return [row.tobytes() + end for row in own[types]]

    def get(self, key: bytes) -> Floats | None:
        """The numbers of a bag, or None."""
        row = self._rows.get(key)
        if row is not None:
            self._rows.move_to_end(key)
        return row

    def put(self, key: bytes, row: Floats) -> None:
        """Keep the numbers of a bag that is not there; drop those that were not asked for longest."""
        self._rows[key] = row.copy()  # else the row would keep the whole matrix it is of
        self.bytes += row.nbytes + ENTRY_BYTES
        while self.bytes > self._most:
            _, old = self._rows.popitem(last=False)
            self.bytes -= old.nbytes + ENTRY_BYTES

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._numbers.clear()
        self.bytes = 0
