"""The weights of a mix for the items that occur: features are strings, and a label may hold their separator.

    PRE_nmod:because_of_@        read as nmod:because_of and @ where an item has that name

Most treebanks have no such label, and then each feature has one reading. A name with ``_`` that may be
in a feature is added to the tables when it first occurs, so results do not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.order.items import HIGHER, MOST_NAMES, SHORTEST, Item, views
from synthlang.order.tables import Tables

Ints = NDArray[np.int64]
Codes = tuple[Ints, Ints]


class Lookup:
    """``tables`` of {feature: weight}, for all names without ``_`` and those with it that were asked for."""

    def __init__(self, weights: Mapping[str, float], grid: float) -> None:
        self.tables = Tables.of(weights, grid)
        self._weights, self._grid = weights, grid
        self._asked: set[str] = set()
        self._odd: frozenset[str] = frozenset()

    def find(self, items: Sequence[Item]) -> tuple[Tables, Codes]:
        """Tables that know the items, and where these are in them: see ``Tables.codes``."""
        names = {name for item in items for name in views(item) if "_" in name} - self._asked
        if names:
            self._asked |= names
            self._add(frozenset(name for name in names if f"_{name}_" in self._text or f"_{name}\n" in self._text))
        return self.tables, self.tables.codes(items)

    @cached_property
    def _text(self) -> str:
        """The features, a line each, that may hold a name with ``_``: they have more of it than they need."""
        return "".join(
            f"{feature}\n"
            for feature in self._weights
            if feature.count("_") > (SHORTEST if feature.startswith(f"{HIGHER}_") else 2)
        )

    def _add(self, names: frozenset[str]) -> None:
        if not names:
            return
        self._odd |= names
        self.tables = Tables.of(self._weights, self._grid, self._odd)
        if max(len(view.names) for view in self.tables.pairs) > MOST_NAMES:
            raise InputError(f"the order model knows more than {MOST_NAMES} names of items that occur in the corpus")
