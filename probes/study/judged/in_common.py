"""What belongs together since it has something in common."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def first_in_common(held: Sequence[Collection[Hashable]]) -> list[int]:
    """For each collection the number of the first one that it has an item in common with, or with one that has, and so
    on; its own number where there is none before it.

    >>> first_in_common([{"a"}, {"b"}, {"a", "c"}, {"c"}, ()])
    [0, 1, 0, 0, 4]
    """
    names = {name: number for number, name in enumerate(dict.fromkeys(name for one in held for name in one))}
    ends = [(number, len(held) + names[name]) for number, one in enumerate(held) for name in one]
    size = len(held) + len(names)
    rows, columns = np.array(ends, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(ends), np.int8), (rows, columns)), (size, size))
    first: dict[int, int] = {}
    components = connected_components(graph, directed=False)[1][: len(held)].tolist()
    return [first.setdefault(component, number) for number, component in enumerate(components)]
