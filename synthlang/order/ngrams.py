"""Which n-gram features a node's items can match: a trie walked for all nodes at once.

A walk takes items one after another, each at most once. Published models have some 2,000
n-grams, so nearly every walk ends after two or three items and a node of seven items has a
few dozen matches, not one lookup for each of its 5,040 orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthlang.order.items import BOS, EOS, LONGEST, SHORTEST, padding
from synthlang.order.permutations import END, FREE, START, Orders, ngram_code

Ints = NDArray[np.int64]
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
        """Their rows of ``orders.ngrams``."""
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
