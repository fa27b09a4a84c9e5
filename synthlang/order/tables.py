"""A model's weights as arrays: a matrix of item names for each view and family, a trie for the n-grams."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.order.items import BOS, EOS, FAMILIES, HIGHER, LONGEST, Feature, Item, full, readings, views
from synthlang.order.ngrams import Trie
from synthlang.order.permutations import CATEGORIES, all_orders
from synthlang.order.scores import Summands

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
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
