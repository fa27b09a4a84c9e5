"""All orders of n items and their contents, as tables that depend on n only.

Items are numbered 0 … n − 1, and item 0 is the head. An order is a row of ``orders``, which are sorted. The score of an
order is a sum over two parts:

    score(order) = Σ over its first n − 3 items + Σ over its last 4 items + rest

With fewer than 6 items, the first part is the whole order.

Each relation of two items can be read from one part. The first part suffices if it has both items, or one of them and
the head. Otherwise the last part suffices, because it also determines which items precede it. Only n-grams across the
border are in the rest. With 7 items, each part therefore needs a table of only 840 columns. A table of all orders would
have 5,040 columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from synthlang.order.items import LONGEST, MOST_ITEMS, SHORTEST, padding

CATEGORIES = ("BI", "PRE", "PRE+BFR", "PRE+AFT", "PRE+BTW")
"""Relations of two items. BFR, AFT and BTW imply PRE."""
FREE, START, END = 0, 1, 2  # place of an n-gram: anywhere, at the start, at the end of the order
_TAIL, _LAST = 3, 4  # the first n − 3 items and the last 4 have one item in common

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """A 0/1 table [properties, n!] as the sum of three tables (see the module).

    Attributes:
        first: Properties of the first part, [properties, orders of the first part].
        last: Properties of the last part, [properties, orders of the last part].
        rest: All other properties, [properties, n!].
    """

    first: csr_array
    last: csr_array
    rest: csr_array


@dataclass(frozen=True)
class Orders:
    """The orders of ``items`` = n items.

    Attributes:
        items: The number n.
        orders: The item at each place, [n!, n].
        places: The place of each item, [n!, n].
        last: Index of the last part of each order among all last parts, [n!]. The array is empty if n < 6.
        category: Relation of two items, as an index into CATEGORIES, [pairs].
        first: The first item, where n is BOS, [pairs].
        second: The second item, where n + 1 is EOS, [pairs].
        pairs: Table with 1 where the relation holds, [pairs, orders of the first part + of the last part].
        ngrams: Table with 1 where an order has an n-gram of items.
        kind: Row of ``ngrams`` by place and ``ngram_code``, or −1 for none, [place, code].
    """

    items: int
    orders: Ints
    places: Ints
    last: Ints
    category: Ints
    first: Ints
    second: Ints
    pairs: NDArray[np.float64]
    ngrams: Split
    kind: NDArray[np.int32]

    def __len__(self) -> int:
        return factorial(self.items)


@cache
def all_orders(items: int) -> Orders:
    """Build the tables of n items, 2 ≤ n ≤ 8, once per process. The largest tables take 0.9 s and 28 MB."""
    assert 2 <= items <= MOST_ITEMS
    orders = np.asarray(list(permutations(range(items))), np.int64)
    places = np.argsort(orders, axis=1)
    rows = _pairs(items)
    last = _numbered(orders[:, -_LAST:]) if items >= 6 else np.empty(0, np.int64)
    split = _splitter(last, factorial(items))
    stands = split(csr_array(np.stack([_stands(places, *row) for row in rows]).astype(np.float64)))
    assert not stands.rest.nnz, "the relation of two items is known from one part"
    pairs = np.hstack([stands.first.toarray(), stands.last.toarray()])
    category, first, second = np.asarray(rows, np.int64).T
    ngrams, kind = _ngrams(orders)
    return Orders(items, orders, places, last, category, first, second, pairs, split(ngrams), kind)


def _numbered(rows: Ints) -> Ints:
    """Return the rank of each row among the distinct rows in lexicographic order."""
    codes = rows @ (MOST_ITEMS ** np.arange(rows.shape[1] - 1, -1, -1))
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _splitter(last: Ints, count: int) -> Callable[[csr_array], Split]:
    """Return a function that splits a table of ``count`` orders into first part, last part and rest."""
    if not len(last):
        return lambda table: Split(table, csr_array((table.shape[0], 0)), csr_array(table.shape))
    group = factorial(_TAIL)
    of_first = _membership(np.arange(count) // group)
    of_last = _membership(last)

    def split(table: csr_array) -> Split:
        first = _whole(table @ of_first, group)
        table = csr_array(table - first @ of_first.T)
        table.eliminate_zeros()
        part = _whole(table @ of_last, count // of_last.shape[1])
        table = csr_array(table - part @ of_last.T)
        table.eliminate_zeros()
        return Split(first, part, table)

    return split


def _membership(part: Ints) -> csr_array:
    """Return a table with 1 where an order has a part, [n!, parts]."""
    return csr_array((np.ones(len(part)), (np.arange(len(part)), part)))


def _whole(counts: csr_array, size: int) -> csr_array:
    """Return a table with 1 where all ``size`` orders of a part have the property."""
    counts = csr_array(counts)
    counts.data = (counts.data == size).astype(np.float64)
    counts.eliminate_zeros()
    return counts


def _pairs(n: int) -> list[tuple[int, int, int]]:
    """Return (category, first, second) of every relation of two items."""
    two = [(a, b) for a in range(n) for b in range(n) if a != b]
    rows = [(0, a, b) for a, b in two] + [(0, n, b) for b in range(n)] + [(0, a, n + 1) for a in range(n)]
    rows += [(1, a, b) for a, b in two if 0 in (a, b)]
    return rows + [(c, a, b) for c in (2, 3, 4) for a, b in two if 0 not in (a, b)]


def _stands(places: Ints, category: int, a: int, b: int) -> NDArray[np.bool_]:
    """Return whether two items have this relation in each order, [n!]."""
    count, n = places.shape
    ends = np.stack([np.full(count, -1), np.full(count, n)], axis=1)
    places = np.concatenate([places, ends], axis=1)
    x, y, head = places[:, a], places[:, b], places[:, 0]
    if category == 0:
        return np.asarray(y == x + 1)
    side = [x < y, y < head, head < x, (x < head) & (head < y)][category - 1]
    return np.asarray(side & (x < y))


def ngram_code(items: int, length: Ints | int, digits: Ints) -> Ints:
    """Return the codes length · n⁵ + digits of n-grams of item numbers, in the shape of ``digits``.

    Args:
        items: The number n of items of a node.
        length: Number of items in each n-gram.
        digits: The item numbers of each n-gram, read as the digits of one number in base n.
    """
    return np.asarray(length * items**LONGEST + digits, dtype=np.int64)


def _ngrams(orders: Ints) -> tuple[csr_array, NDArray[np.int32]]:
    n = orders.shape[1]
    kind = np.full((3, (LONGEST + 1) * n**LONGEST), -1, np.int32)
    parts: list[Ints] = []
    for where in (FREE, START, END):
        lengths = range(SHORTEST, min(LONGEST, n) + 1) if where == FREE else range(1, padding(n) + 1)
        for length in lengths if n >= SHORTEST else ():
            last = n - length
            for begin in {FREE: range(last + 1), START: (0,), END: (last,)}[where]:
                digits = np.zeros(len(orders), np.int64)
                for place in range(begin, begin + length):
                    digits = digits * n + orders[:, place]
                parts.append(ngram_code(n, length, digits) + where * kind.shape[1])
    if not parts:
        return csr_array((0, len(orders))), kind
    codes = np.concatenate(parts)
    known, rows = np.unique(codes, return_inverse=True)
    kind.reshape(-1)[known] = np.arange(len(known))
    columns = np.tile(np.arange(len(orders)), len(parts))
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(known), len(orders))), kind
