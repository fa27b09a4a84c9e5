"""A model's weights as arrays, and the log-scores of all orders of nodes.

A matrix of item names for each view and family, and a trie for the n-grams, which is walked for all nodes at once: a
walk takes items one after another, each at most once. Published models have some 2,000 n-grams, so nearly every walk
ends after two or three items, and a node of seven items has a few dozen matches, not a lookup for each of its 5,040
orders.

    score = values · pairs + n-gram weights · n-grams        (both 0/1 tables of ``permutations``)

``Summands`` goes from values to scores, ``adjoint`` from a derivative by every score to the derivatives by the values:
the same sums, transposed.

Features are strings, and a label may hold their separator: ``PRE_nmod:because_of_@`` is read as nmod:because_of and @
where an item has that name. Most treebanks have no such label, and then each feature has one reading. A name with ``_``
that may be in a feature is added to the tables when it first occurs, so results do not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from synthlang.errors import InputError
from synthlang.order.items import (
    BOS,
    EOS,
    FAMILIES,
    HIGHER,
    LONGEST,
    MOST_NAMES,
    SHORTEST,
    Feature,
    Item,
    full,
    padding,
    readings,
    views,
)
from synthlang.order.permutations import CATEGORIES, END, FREE, START, Orders, all_orders, ngram_code

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = tuple[Ints, Ints]
ROOT = 0
LARGEST_TABLE = 4_000_000  # 16 MB


class Matches(NamedTuple):
    """Features that some order of a node has: [matches] each.

    node      row of the node
    where     FREE, START or END
    code      which items in which order: ``ngram_code``
    feature   index of the feature
    """

    node: Ints
    where: Ints
    code: Ints
    feature: Ints

    def kinds(self, orders: Orders) -> Ints:
        return np.asarray(orders.kind[self.where, self.code], dtype=np.int64)


class _Walk(NamedTuple):
    """Walks under way: [walks] each. ``pads`` BOS came first, ``used`` is a set of items as bits."""

    node: Ints
    pads: Ints
    used: Ints
    digits: Ints
    state: Ints

    def where(self, chosen: NDArray[np.bool_]) -> _Walk:
        return _Walk(*(column[chosen] for column in self))


@dataclass(frozen=True)
class Trie:
    """N-grams as states; state 0 is the root.

    tokens    name → number
    edges     [edges] sorted state · tokens + token
    target    [edges] where each leads
    feature   [states] the index of the n-gram that ends there, −1 if none does
    table     [states, tokens + 1] the same edges, −1 for none: three times as fast, if it is not too large
    """

    tokens: dict[str, int]
    edges: Ints
    target: Ints
    feature: Ints
    table: NDArray[np.int32] | None

    @staticmethod
    def of(ngrams: Sequence[tuple[str, ...]]) -> Trie:
        """The trie of n-grams; their indices are the features."""
        tokens: dict[str, int] = {BOS: 0, EOS: 1}
        for ngram in ngrams:
            for token in ngram:
                tokens.setdefault(token, len(tokens))
        edges: dict[int, int] = {}
        feature = [-1]
        for index, ngram in enumerate(ngrams):
            state = ROOT
            for token in ngram:
                edge = state * len(tokens) + tokens[token]
                state = edges.setdefault(edge, len(feature))
                if state == len(feature):
                    feature.append(-1)
            feature[state] = index
        keys = np.asarray(sorted(edges), np.int64)
        target = np.asarray([edges[int(key)] for key in keys], np.int64)
        table = None
        if len(feature) * (len(tokens) + 1) <= LARGEST_TABLE:
            table = np.full((len(feature), len(tokens) + 1), -1, np.int32)
            table[keys // len(tokens), keys % len(tokens)] = target
        return Trie(tokens, keys, target, np.asarray(feature, np.int64), table)

    def step(self, state: Ints, token: Ints) -> Ints:
        """The states after a token, −1 where no n-gram goes on; an unknown token is −1."""
        if self.table is not None:
            return self.table[state, token].astype(np.int64)  # −1 is the last column, of no edges
        if not len(self.edges):
            return np.full(np.broadcast(state, token).shape, -1, np.int64)
        key = np.where(token >= 0, state * len(self.tokens) + token, -1)
        at = np.minimum(np.searchsorted(self.edges, key), len(self.edges) - 1)
        return np.where(self.edges[at] == key, self.target[at], -1)

    def matches(self, tokens: Ints) -> Matches:
        """The n-grams in any order of the items of each node; ``tokens`` [nodes, n], −1 unknown.

        N-grams of 3 … min(5, n) names with at most min(5, n) − 1 BOS or EOS. One of EOS alone is
        in every order alike and is left out.
        """
        n = tokens.shape[1]
        found: list[Matches] = []
        if n >= SHORTEST:
            walk = self._begin(len(tokens), padding(n))
            for length in range(1, min(LONGEST, n) + 1):
                walk = self._extend(walk, tokens, length)
                self._collect(walk, length, n, found)
                free = walk.where(walk.pads == 0)
                self._to_the_end(free, length, n, found)
        if not found:
            return Matches(*(np.empty(0, np.int64) for _ in Matches._fields))
        return Matches(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _begin(self, nodes: int, most_pads: int) -> _Walk:
        """Walks at the root and after each number of BOS."""
        states = [ROOT]
        while len(states) <= most_pads:
            states.append(int(self.step(np.asarray(states[-1:]), np.asarray([self.tokens[BOS]]))[0]))
            if states[-1] < 0:
                states.pop()
                break
        pads = np.repeat(np.arange(len(states)), nodes)
        zero = np.zeros(len(pads), np.int64)
        return _Walk(np.tile(np.arange(nodes), len(states)), pads, zero, zero, np.asarray(states, np.int64)[pads])

    def _extend(self, walk: _Walk, tokens: Ints, length: int) -> _Walk:
        """Every walk with one more item, its ``length``-th."""
        n = tokens.shape[1]
        walk = walk.where(walk.pads + length <= min(LONGEST, n))
        state = self.step(walk.state[:, None], tokens[walk.node])
        bits = 1 << np.arange(n)
        walks, item = np.nonzero((state >= 0) & ((walk.used[:, None] & bits) == 0))
        node, pads, used, digits, _ = (column[walks] for column in walk)
        return _Walk(node, pads, used | bits[item], digits * n + item, state[walks, item])

    def _to_the_end(self, walk: _Walk, length: int, n: int, found: list[Matches]) -> None:
        """Follow EOS from walks that hold the last items of an order."""
        for pads in range(1, min(LONGEST, n) - length + 1):
            state = self.step(walk.state, np.full(len(walk.state), self.tokens[EOS]))
            walk = walk._replace(state=state, pads=np.full(len(state), pads)).where(state >= 0)
            self._collect(walk, length, n, found, END)

    def _collect(self, walk: _Walk, length: int, n: int, found: list[Matches], where: int = START) -> None:
        """Keep the walks that stand at a whole n-gram."""
        feature = self.feature[walk.state]
        hit = (feature >= 0) & (length + walk.pads >= SHORTEST)
        place = np.where(walk.pads[hit] == 0, FREE, where)
        found.append(Matches(walk.node[hit], place, ngram_code(n, length, walk.digits[hit]), feature[hit]))


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


# More features than any order of 8 items has: 3 views × (9 + 28 + 21) of two items, 3 × 11 n-grams.
MOST_FEATURES = 256


def grid_of(parts: Iterable[Mapping[str, float]]) -> float:
    """The power of two to whose multiples weights are rounded so that sums of them are exact.

    A sum of 256 weights below 2^e needs e + 8 bits before the point; a float64 has 53, so with a grid of
    2^(e + 8 − 53) every sum is exact, whatever the order of the additions. That is what makes an
    order independent of the batch it is drawn in (matrix products add in an order that depends on
    their shape). With weights below 16 the grid is 2^−41: an error below 1e-10 in any log-score.
    """
    most = sum(max((abs(w) for w in part.values()), default=0.0) for part in parts)
    return float(2.0 ** (np.frexp(max(most, 2.0**-100) * MOST_FEATURES)[1] - 53))


@dataclass(frozen=True)
class _View:
    """One view: names → row; ``weights`` [categories, names + 1, names + 1], zero at the unknown."""

    names: dict[str, int]
    weights: Floats

    @staticmethod
    def of(pairs: Mapping[tuple[str, str, str], float]) -> _View:
        names: dict[str, int] = {BOS: 0, EOS: 1}
        for _, a, b in pairs:
            names.setdefault(a, len(names))
            names.setdefault(b, len(names))
        weights = np.zeros((len(CATEGORIES), len(names) + 1, len(names) + 1))
        families = np.asarray([FAMILIES.index(family) for family, _, _ in pairs], np.int64)
        first = np.asarray([names[a] for _, a, _ in pairs], np.int64)
        second = np.asarray([names[b] for _, _, b in pairs], np.int64)
        values = np.asarray(list(pairs.values()))
        for number, category in enumerate(CATEGORIES):
            for family in category.split("+"):
                of = families == FAMILIES.index(family)
                weights[number, first[of], second[of]] += values[of]
        return _View(names, weights)


def _read(name: str, odd: Container[str]) -> Iterable[Feature]:
    """``readings``, quickly where there can only be one."""
    family, *tokens = name.split("_")
    if len(tokens) == 2 or (not odd and family == HIGHER and len(tokens) <= LONGEST):
        return (Feature(family, tuple(tokens)),)
    return readings(name, odd) if odd else ()


@dataclass(frozen=True)
class Tables:
    """The weights of one class of nodes, on a grid."""

    pairs: tuple[_View, _View, _View]
    trie: Trie
    ngram_weights: Floats

    @staticmethod
    def of(weights: Mapping[str, float], grid: float, odd: Container[str] = ()) -> Tables:
        """Tables of {feature: weight}, see ``grid_of``; a name that holds ``_`` is known if it is in ``odd``."""
        fulls: dict[tuple[str, str, str], float] = {}
        others: dict[tuple[str, str, str], float] = {}
        ngrams: list[tuple[str, ...]] = []
        ngram_weights: list[float] = []
        for name, weight in weights.items():
            value = round(weight / grid) * grid
            for family, tokens in _read(name, odd):
                if family == HIGHER:
                    ngrams.append(tokens)
                    ngram_weights.append(value)
                elif all("&" in token or token in (BOS, EOS) for token in tokens):
                    fulls[family, tokens[0], tokens[1]] = value
                elif not any("&" in token for token in tokens):
                    others[family, tokens[0], tokens[1]] = value
        other = _View.of(others)  # of tags and of arcs: a name alone does not say which
        return Tables((_View.of(fulls), other, other), Trie.of(ngrams), np.asarray(ngram_weights))

    def codes(self, names: Sequence[Item]) -> tuple[Ints, Ints]:
        """The rows of items in the three views, [3, items], and their tokens in the trie, [items]; −1 unknown."""
        rows = [[view.names.get(v, -1) for view, v in zip(self.pairs, views(item), strict=True)] for item in names]
        tokens = [self.trie.tokens.get(full(item), -1) for item in names]
        return np.asarray(rows, np.int64).reshape(-1, 3).T, np.asarray(tokens, np.int64)

    def summands(self, types: Ints, codes: tuple[Ints, Ints]) -> Summands:
        """The parts of w · f of every order of each node; ``types`` [nodes, n] are indices into the codes."""
        nodes, n = types.shape
        orders = all_orders(n)
        values = np.zeros((nodes, len(orders.first)))
        for view, rows in zip(self.pairs, codes[0], strict=True):
            ends = np.broadcast_to(np.asarray([view.names[BOS], view.names[EOS]]), (nodes, 2))
            code = np.concatenate([rows[types], ends], axis=1) % (side := view.weights.shape[1])
            index = (code * side)[:, orders.first]
            index += (orders.category * side * side) + code[:, orders.second]
            values += view.weights.reshape(-1)[index]
        matches = self.trie.matches(codes[1][types])
        return Summands.of(orders, values, matches, self.ngram_weights[matches.feature])


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
