"""Log-scores of all orders as sums of a few parts, and the way back for gradients.

    score = values · pairs + n-gram weights · n-grams        (both 0/1 tables of ``permutations``)

``Summands.of`` and ``scores`` go from values to scores, ``adjoint`` from a derivative by every
score to the derivatives by the values: the same sums, transposed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from synthlang.order.ngrams import Matches
from synthlang.order.permutations import Orders

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summands:
    """Scores of nodes with the same number of items: parts as ``permutations`` tells.

    first   [nodes, orders of the first part]
    last    [nodes, orders of the last part]
    rest    [nodes, n!] sparse, or None for nothing
    """

    orders: Orders
    first: Floats
    last: Floats
    rest: csr_array | None

    @staticmethod
    def of(orders: Orders, values: Floats, matches: Matches, weights: Floats) -> Summands:
        """From ``values`` [nodes, pairs] and the ``weights`` [matches] of n-grams."""
        both = values @ orders.pairs
        cut = orders.ngrams.first.shape[1]
        first, last = both[:, :cut], both[:, cut:]
        if not len(matches.node):
            return Summands(orders, first, last, None)
        shape = (len(values), orders.ngrams.first.shape[0])
        ngrams = csr_array((weights, (matches.node, matches.kinds(orders))), shape=shape)
        first += (ngrams @ orders.ngrams.first).toarray()
        last += (ngrams @ orders.ngrams.last).toarray()
        return Summands(orders, first, last, ngrams @ orders.ngrams.rest)

    def __add__(self, other: Summands) -> Summands:
        rest = other.rest if self.rest is None else self.rest if other.rest is None else self.rest + other.rest
        return Summands(self.orders, self.first + other.first, self.last + other.last, rest)

    def scores(self, rows: slice) -> Floats:
        """[rows, n!] the scores of some of the nodes."""
        first = self.first[rows]
        if not len(self.orders.last):
            return first.copy()
        result = self.last[rows].take(self.orders.last, axis=1)
        result.reshape(*first.shape, -1)[...] += first[:, :, None]
        if self.rest is not None:
            rest = self.rest[rows]
            row = np.repeat(np.arange(len(result)), np.diff(rest.indptr))
            result[row, rest.indices] += rest.data
        return result


def adjoint(orders: Orders, by_score: Floats, matches: Matches) -> tuple[Floats, Floats]:
    """From derivatives by the scores [nodes, n!] to those by values [nodes, pairs] and weights [matches]."""
    first, last = _parts(orders, by_score)
    by_value = np.hstack([first, last]) @ orders.pairs.T
    if not len(matches.node):
        return by_value, np.empty(0)
    table = orders.ngrams
    by_kind = (table.first @ first.T) + (table.rest @ by_score.T)
    if last.shape[1]:
        by_kind += table.last @ last.T
    return by_value, np.asarray(by_kind[matches.kinds(orders), matches.node])


def _parts(orders: Orders, by_score: Floats) -> tuple[Floats, Floats]:
    """Sums of [nodes, n!] over the orders with the same first part, and with the same last part."""
    nodes, count = len(by_score), orders.ngrams.first.shape[1]
    first = by_score.reshape(nodes, count, -1).sum(axis=2)
    if not len(orders.last):
        return first, np.empty((nodes, 0))
    by_last = by_score[:, np.argsort(orders.last, kind="stable")]
    return first, by_last.reshape(nodes, orders.ngrams.last.shape[1], -1).sum(axis=2)
