"""The weights of a model as arrays, and the log-scores of all orders of nodes.

    score = values · pairs + n-gram weights · n-grams        (both 0/1 tables of ``permutations``)

Weights of two items are a matrix over the items of a batch. N-grams are a trie, which is walked for all nodes at once.
A walk takes items one after another, each at most once. The shipped models have at most 2,773 n-grams for a class of
nodes, so nearly every walk ends after a few items. ``Summands`` computes scores from values. ``adjoint``
computes the transposed sums for the derivatives.

Features are strings, and a label may contain their separator. A pair is therefore indexed under every way to cut it in
two. The edges of the trie are the pieces between two ``_``, so an item takes as many edges as its name has pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from synthlang.order.items import (
    BOS,
    EOS,
    FAMILIES,
    HIGHER,
    LONGEST,
    SHORTEST,
    Item,
    can_name,
    full,
    padding,
    views,
)
from synthlang.order.permutations import END, FREE, START, Orders, all_orders, ngram_code

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ROOT = 0


class Matches(NamedTuple):
    """N-grams that occur in some order of a node.

    Attributes:
        node: Row of the node, [matches].
        where: FREE, START or END, [matches].
        code: The items and their order (see ``ngram_code``), [matches].
        feature: Index of the n-gram among the features, [matches].
    """

    node: Ints
    where: Ints
    code: Ints
    feature: Ints

    def kinds(self, orders: Orders) -> Ints:
        """Return the row of each n-gram in ``orders.ngrams``, [matches]."""
        return np.asarray(orders.kind[self.where, self.code], dtype=np.int64)

    @staticmethod
    def join(parts: Sequence[Matches]) -> Matches:
        """Join the matches of all parts, one part after another."""
        nothing = Matches(*[np.empty(0, np.int64)] * 4)
        return Matches(*map(np.concatenate, zip(nothing, *parts, strict=True)))


class _Walk(NamedTuple):
    """Walks in progress, [walks] each.

    Attributes:
        node: Row of the node.
        pads: Number of BOS before the items, or of EOS after them.
        used: Items taken so far, as bits.
        digits: Items taken so far in order, as digits to base n.
        state: State of the trie.
    """

    node: Ints
    pads: Ints
    used: Ints
    digits: Ints
    state: Ints

    def where(self, chosen: NDArray[np.bool_]) -> _Walk:
        return _Walk(*(column[chosen] for column in self))


@dataclass(frozen=True)
class Steps:
    """Transitions of a trie for the names of some items.

    Attributes:
        items: Row of ``table`` of each item, [items].
        table: Next state by name and state, [rows, states + 1] int32. It is −1 if no n-gram continues.
        feature: Number of the n-gram that ends in each state, or −1, [states].
    """

    items: Ints
    table: NDArray[np.int32]
    feature: Ints

    def matches(self, types: Ints) -> Matches:
        """Find the n-grams in any order of the items ``types`` [nodes, n] of each node.

        N-grams have 3 … min(5, n) names, of which at most min(5, n) − 1 are BOS or EOS. An n-gram of EOS alone is in
        every order and is left out.
        """
        n = types.shape[1]
        found: list[Matches] = []
        if n >= SHORTEST:
            walk = self._begin(len(types), padding(n))
            for length in range(1, min(LONGEST, n) + 1):
                walk = self._extend(walk, self.items[types], length)
                self._collect(walk, length, n, found)
                self._to_the_end(walk.where(walk.pads == 0), length, n, found)
        return Matches.join(found)

    def _begin(self, nodes: int, most_pads: int) -> _Walk:
        """Start walks at the root, and after each possible number of BOS."""
        states = [ROOT]
        while len(states) <= most_pads and (state := int(self.table[self.items[-2], states[-1]])) >= 0:
            states.append(state)
        pads = np.repeat(np.arange(len(states)), nodes)
        zero = np.zeros(len(pads), np.int64)
        return _Walk(np.tile(np.arange(nodes), len(states)), pads, zero, zero, np.asarray(states, np.int64)[pads])

    def _extend(self, walk: _Walk, rows: Ints, length: int) -> _Walk:
        """Extend every walk by its ``length``-th item in all possible ways."""
        n = rows.shape[1]
        walk = walk.where(walk.pads + length <= min(LONGEST, n))
        state = self.table[rows[walk.node], walk.state[:, None]]
        bits = 1 << np.arange(n)
        walks, item = np.nonzero((state >= 0) & ((walk.used[:, None] & bits) == 0))
        node, pads, used, digits, _ = (column[walks] for column in walk)
        return _Walk(node, pads, used | bits[item], digits * n + item, state[walks, item].astype(np.int64))

    def _to_the_end(self, walk: _Walk, length: int, n: int, found: list[Matches]) -> None:
        """Follow EOS from the ends of walks, and collect the n-grams at the end of an order."""
        for pads in range(1, min(LONGEST, n) - length + 1):
            state = self.table[self.items[-1], walk.state].astype(np.int64)
            walk = walk._replace(state=state, pads=np.full(len(state), pads)).where(state >= 0)
            self._collect(walk, length, n, found, END)

    def _collect(self, walk: _Walk, length: int, n: int, found: list[Matches], where: int = START) -> None:
        """Add the n-grams that walks have completed to ``found``."""
        feature = self.feature[walk.state]
        hit = (feature >= 0) & (length + walk.pads >= SHORTEST)
        place = np.where(walk.pads[hit] == 0, FREE, where)
        found.append(Matches(walk.node[hit], place, ngram_code(n, length, walk.digits[hit]), feature[hit]))


class Trie:
    """Trie of n-grams (numbered features of HI) by the pieces of their names. State 0 is the root."""

    def __init__(self, ngrams: Iterable[str]) -> None:
        edges: dict[str, dict[int, int]] = {}
        feature = [-1]
        for number, name in enumerate(ngrams):
            state = ROOT
            for piece in name.split("_")[1:]:
                state = edges.setdefault(piece, {}).setdefault(state, len(feature))
                if state == len(feature):
                    feature.append(-1)
            feature[state] = number
        self._edges = {piece: np.asarray(list(pairs.items())).T for piece, pairs in edges.items()}
        self._feature = np.asarray(feature, np.int64)

    def steps(self, items: Sequence[Item]) -> Steps:
        """Return the transitions for the names of the items, BOS and EOS."""
        nowhere = np.full(len(self._feature) + 1, -1, np.int32)
        rows, table = [], [nowhere]
        start = np.append(np.arange(len(self._feature)), -1).astype(np.int32)
        for name in [*(full(item) if can_name(item) else "&" for item in items), BOS, EOS]:
            pieces = name.split("_")
            if any(piece not in self._edges for piece in pieces):
                rows.append(0)
                continue
            state = start
            for piece in pieces:
                step = nowhere.copy()
                step[self._edges[piece][0]] = self._edges[piece][1]
                state = step[state]
            rows.append(len(table))
            table.append(state)
        return Steps(np.asarray(rows, np.int64), np.stack(table), self._feature)


def pair_index(orders: Orders, types: Ints, items: int) -> Ints:
    """Return the flat index of each pair's weight in a table [categories, items + 2, items + 2], [nodes, pairs].

    ``types`` [nodes, n] are indices of ``items`` items. BOS and EOS come after the items.
    """
    ends = np.broadcast_to(np.asarray([items, items + 1]), (len(types), 2))
    both = np.concatenate([types, ends], axis=1)
    index: Ints = (orders.category * (items + 2) + both[:, orders.first]) * (items + 2) + both[:, orders.second]
    return index


@dataclass(frozen=True)
class Summands:
    """Scores of nodes with the same number of items, in the parts that ``permutations`` defines.

    Attributes:
        orders: The orders of the items of a node.
        first: Sums of the first part, [nodes, orders of the first part].
        last: Sums of the last part, [nodes, orders of the last part].
        rest: Sparse sums of the n-grams in neither part, [nodes, n!], or None if the nodes have no n-gram.
    """

    orders: Orders
    first: Floats
    last: Floats
    rest: csr_array | None

    @staticmethod
    def of(orders: Orders, values: Floats, matches: Matches, weights: Floats) -> Summands:
        """Compute the parts from ``values`` [nodes, pairs] and the ``weights`` [matches] of n-grams."""
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

    def scores(self, rows: slice) -> Floats:
        """Return the scores of all orders of the nodes in the slice ``rows``, [rows, n!]."""
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
    """Convert derivatives by score [nodes, n!] to derivatives by value [nodes, pairs] and by weight [matches]."""
    nodes, table = len(by_score), orders.ngrams
    first = by_score.reshape(nodes, table.first.shape[1], -1).sum(axis=2)
    last = np.empty((nodes, 0))
    if len(orders.last):  # sums over the orders with the same last part
        by_last = by_score[:, np.argsort(orders.last, kind="stable")]
        last = by_last.reshape(nodes, table.last.shape[1], -1).sum(axis=2)
    by_value = np.hstack([first, last]) @ orders.pairs.T
    by_kind = (table.first @ first.T) + (table.rest @ by_score.T) + (table.last @ last.T)
    return by_value, np.asarray(by_kind[matches.kinds(orders), matches.node])


# An order of 8 items has fewer: 3 views × (9 + 28 + 21) relations of two items and 3 × 11 n-grams.
MOST_FEATURES = 256


def grid_of(parts: Iterable[Mapping[str, float]]) -> float:
    """Return the spacing of a grid for weights, a power of two. Sums of weights on the grid are exact.

    ``parts`` has a mapping from features to weights for each label scheme.

    A sum of 256 weights below 2^e needs e + 8 bits before the point. A float64 has 53 bits, so with a grid of
    2^(e + 8 − 53) every sum is exact in any order of the additions. Results then do not depend on the shape of a batch.
    If all weights are below 16, the error of any log-score is below 1e-10.
    """
    most = sum(max((abs(w) for w in part.values()), default=0.0) for part in parts)
    return float(2.0 ** (np.frexp(max(most, 2.0**-100) * MOST_FEATURES)[1] - 53))


class Weights:
    """Weights of the features of one class of nodes, rounded to multiples of ``grid`` (see ``grid_of``).

    Attributes:
        trie: Trie of the n-grams.
        ngram_weights: Weight of each n-gram, in the numbering of ``trie``, [n-grams].
    """

    def __init__(self, weights: Mapping[str, float], grid: float) -> None:
        names: dict[str, int] = {}
        pairs: list[tuple[int, int, int]] = []
        values: list[float] = []
        ngrams: dict[str, float] = {}
        for feature, weight in weights.items():
            value = round(weight / grid) * grid
            family, *pieces = feature.split("_")
            if family == HIGHER:
                ngrams[feature] = value
                continue
            for cut in range(1, len(pieces)):
                a, b = "_".join(pieces[:cut]), "_".join(pieces[cut:])
                pairs.append((FAMILIES.index(family), names.setdefault(a, len(names)), names.setdefault(b, len(names))))
                values.append(value)
        self._names, self._values = names, np.asarray(values)
        self._pairs = np.asarray(pairs, np.int64).reshape(-1, 3).T
        self.trie, self.ngram_weights = Trie(ngrams), np.asarray(list(ngrams.values()))

    def pairs(self, items: Sequence[Item]) -> Floats:
        """Return the weight of each pair of items in each category, [categories, items + 2, items + 2].

        BOS and EOS come after the items. The categories are those of ``permutations.CATEGORIES``.
        """
        family, first, second = self._pairs
        total = np.zeros((len(FAMILIES), len(items) + 2, len(items) + 2))
        for view in zip(*map(views, items), strict=True):
            names = {name: number for number, name in enumerate(dict.fromkeys([*view, BOS, EOS]))}
            place = np.full(len(self._names) + 1, -1)
            known = [name for name in names if name in self._names]
            place[[self._names[name] for name in known]] = [names[name] for name in known]
            here = (place[first] >= 0) & (place[second] >= 0)
            at = family[here], place[first[here]], place[second[here]]
            if len(names) == len(items) + 2:  # each item has a name of its own
                total[at] += self._values[here]
                continue
            table = np.zeros((len(FAMILIES), len(names), len(names)))
            table[at] = self._values[here]
            which = np.asarray([names[name] for name in (*view, BOS, EOS)])
            total += table.reshape(len(FAMILIES), -1).take(which[:, None] * len(names) + which, axis=1)
        total[2:] += total[1]  # a family implies PRE: see CATEGORIES
        return total


class OrderScores:
    """Scores w · f of the orders of items, summed over weights with different label schemes.

    Args:
        parts: Pairs of weights and of the items in the label scheme of these weights.
    """

    def __init__(self, parts: Sequence[tuple[Weights, Sequence[Item]]]) -> None:
        self._pairs = np.sum([weights.pairs(items) for weights, items in parts], axis=0)
        self._ngrams = [(weights.trie.steps(items), weights.ngram_weights) for weights, items in parts]

    def summands(self, types: Ints) -> Summands:
        """Return the parts of w · f for every order of the items ``types`` [nodes, n]."""
        orders = all_orders(types.shape[1])
        values = self._pairs.reshape(-1)[pair_index(orders, types, self._pairs.shape[1] - 2)]
        found = [steps.matches(types) for steps, _ in self._ngrams]
        weights = [of_part[matches.feature] for matches, (_, of_part) in zip(found, self._ngrams, strict=True)]
        return Summands.of(orders, values, Matches.join(found), np.concatenate(weights))
