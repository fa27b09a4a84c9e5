"""The nodes of a treebank as training data, and the conditional likelihood of their orders with its exact gradient.

    L(w) = Σ_nodes log p(order of the text | items) − λ/2 · ‖w‖²
    ∂L/∂w = observed − expected feature counts − λ · w

Nodes with the same items are one bag, with how often each order was seen. Expected counts are sums over all n! orders.
The features are those of two items that stand together in some bag (in any order, also one never seen) and the given
n-grams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus, concatenate
from synthlang.errors import InputError
from synthlang.order.items import (
    BOS,
    CLASS_OF_HEAD,
    EOS,
    HIGHER,
    MOST_NAMES,
    SHORTEST,
    Item,
    NodeClass,
    can_name,
    feature_name,
    full,
    padding,
    readings,
    views,
)
from synthlang.order.nodes import Nodes, distinct_rows, find_nodes, heads_of, item_count
from synthlang.order.permutations import CATEGORIES, Orders, all_orders
from synthlang.order.tables import Matches, Summands, Trie, adjoint
from synthlang.sources.base import Source, check_split, require_columns
from synthlang.trees import Forest

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SHARE_OF_NGRAMS = 0.1
CHUNK = 400_000  # orders at a time


@dataclass(frozen=True)
class Bags:
    """The distinct bags of n items.

    types          [bags, n] the items, canonical; indices into ``names``
    bag order      [observations] which bag had which order of ``all_orders``
    count          [observations] how often
    """

    types: Ints
    bag: Ints
    order: Ints
    count: NDArray[np.float64]
    names: tuple[Item, ...]


def read_treebank(source: Source, splits: Sequence[str], name: str) -> Corpus:
    """All sentences of some splits of the source ``name``; InputError if one is not there or has no trees."""
    require_columns(source, ("upos", "head", "deprel"), name, "an order model")
    for split in splits:
        check_split(source, split, name)
    return concatenate([batch for split in splits for batch in source.batches(split)])


def nodes_of(corpus: Corpus, node: NodeClass, most_items: int) -> dict[int, Nodes]:
    """The nodes of a class with 2 … ``most_items`` items in projective sentences, by number of items."""
    forest = Forest.of(corpus)
    size = item_count(forest)
    wanted = heads_of(corpus, {u: c for u, c in CLASS_OF_HEAD.items() if c == node})
    wanted &= (size > 1) & (size <= most_items) & forest.is_projective[corpus.sentence_of_word]
    return find_nodes(corpus, forest, wanted)


def observed(nodes: Nodes) -> Ints:
    """[nodes] the order of the items in the text, as a row of ``all_orders``."""
    n = nodes.types.shape[1]
    place_value = n ** np.arange(n - 1, -1, -1, dtype=np.int64)
    known = all_orders(n).orders @ place_value  # sorted, as the orders are
    return np.asarray(np.searchsorted(known, np.argsort(nodes.source, axis=1) @ place_value), dtype=np.int64)


def bags_of(nodes: Nodes) -> Bags:
    """Merge nodes with the same items: the cost of a fit is that of distinct bags."""
    types, which = nodes.distinct()
    seen = np.stack([which, observed(nodes)], axis=1)
    rows, inverse = distinct_rows(seen, int(seen.max(initial=0)) + 1)
    count = np.bincount(inverse, minlength=len(rows)).astype(np.float64)
    return Bags(types, rows[:, 0], rows[:, 1], count, nodes.names)


def frequent_ngrams(bags: Iterable[Bags], share: float = SHARE_OF_NGRAMS) -> list[tuple[str, ...]]:
    """The most frequent ``share`` of the n-grams of names in the orders of the text; ties by name."""
    count: Counter[tuple[str, ...]] = Counter()
    for group in bags:
        n = group.types.shape[1]
        if n < SHORTEST:
            continue
        names = [full(item) if can_name(item) else "" for item in group.names]
        items = np.take_along_axis(group.types[group.bag], all_orders(n).orders[group.order], axis=1)
        for row, times in zip(items.tolist(), group.count.astype(int).tolist(), strict=True):
            for ngram in _ngrams([names[i] for i in row]):
                count[ngram] += times
    by_count = sorted(count, key=lambda ngram: (-count[ngram], ngram))
    by_count = [ngram for ngram in by_count if "" not in ngram and set(ngram) != {EOS}]
    return by_count[: int(np.ceil(share * len(by_count)))]


def _ngrams(names: list[str]) -> Iterable[tuple[str, ...]]:
    pads = padding(len(names))
    padded = [BOS] * pads + names + [EOS] * pads
    for length in range(SHORTEST, pads + 2):
        for end in range(pads, len(padded)):
            if end + 1 >= length:
                yield tuple(padded[end + 1 - length : end + 1])


def heads_in(node: NodeClass) -> str:
    return ", ".join(upos for upos, c in CLASS_OF_HEAD.items() if c == node)


def check_names(bags: Iterable[Bags], node: NodeClass, name: str) -> None:
    """InputError if the items have more names than a model can have."""
    items = {group.names[item] for group in bags for item in np.unique(group.types).tolist()}
    names = {view for item in items if can_name(item) for view in views(item)}
    if len(names) > MOST_NAMES:
        raise InputError(
            f"{name}: the items of nodes with a {heads_in(node)} head have {len(names)} different names; "
            f"a model can have {MOST_NAMES}"
        )


@dataclass(frozen=True)
class _Part:
    """Some bags of n items: ``cells`` [bags, pairs] index the values of two items."""

    orders: Orders
    cells: Ints
    matches: Matches
    bag: Ints
    order: Ints
    count: Floats


class Design:
    """The data of one class of nodes, ready for the optimizer; ``features`` names the weights."""

    def __init__(self, bags: Sequence[Bags], ngrams: Sequence[tuple[str, ...]]) -> None:
        names = bags[0].names if bags else ()
        self.features = list(dict.fromkeys(feature_name(HIGHER, *ngram) for ngram in ngrams))
        odd = {name for item in names if can_name(item) for name in views(item) if "_" in name}
        read = [(number, f.tokens) for number, name in enumerate(self.features) for f in readings(name, odd)]
        self._trie = Trie.of([tokens for _, tokens in read])
        self._ngram_feature = np.asarray([number for number, _ in read], np.int64)
        self._cells, codes = _number_cells(bags)
        self._members = self._name_cells(names)
        self._parts = [part for group, cells in zip(bags, codes, strict=True) for part in self._cut(group, cells)]
        self.nodes = sum(float(part.count.sum()) for part in self._parts)

    def _name_cells(self, names: tuple[Item, ...]) -> Ints:
        """[cells, 6] the features of each cell; beyond the last feature for none."""
        index = {name: number for number, name in enumerate(self.features)}
        ends = [(BOS,) * 3, (EOS,) * 3]
        labels = [views(item) if can_name(item) else None for item in names] + ends
        side = len(labels)
        rows: list[list[int]] = []
        for cell in self._cells.tolist():
            a, b = labels[cell // side % side], labels[cell % side]
            category = CATEGORIES[cell // side**2]
            found = []
            for family in category.split("+") if a and b else ():
                found += [feature_name(family, x, y) for x, y in zip(a or (), b or (), strict=True)]
            rows.append([index.setdefault(name, len(index)) for name in found])
        self.features = list(index)
        return np.asarray([row + [len(index)] * (6 - len(row)) for row in rows], np.int64).reshape(-1, 6)

    def _cut(self, bags: Bags, cells: Ints) -> list[_Part]:
        orders = all_orders(bags.types.shape[1])
        tokens = np.asarray([self._trie.tokens.get(full(item), -1) for item in bags.names], np.int64)
        step = max(1, CHUNK // len(orders))
        parts = []
        for first in range(0, len(bags.types), step):
            types = bags.types[first : first + step]
            of = (bags.bag >= first) & (bags.bag < first + step)
            matches = self._trie.matches(tokens[types])
            matches = matches._replace(feature=self._ngram_feature[matches.feature])
            part = _Part(
                orders, cells[first : first + step], matches, bags.bag[of] - first, bags.order[of], bags.count[of]
            )
            parts.append(part)
        return parts

    def log_likelihood(self, weights: Floats) -> tuple[float, Floats]:
        """Σ log p of the orders in the text and its gradient, [features]."""
        padded = np.append(weights, 0.0)
        values = padded[self._members].sum(axis=1)
        total, by_cell, gradient = 0.0, np.zeros(len(values)), np.zeros(len(padded))
        for part in self._parts:
            sums = Summands.of(part.orders, values[part.cells], part.matches, weights[part.matches.feature])
            scores = sums.scores(slice(0, len(part.cells)))
            value, by_score = _log_likelihood(scores, part)
            total += value
            by_value, by_match = adjoint(part.orders, by_score, part.matches)
            by_cell += np.bincount(part.cells.reshape(-1), weights=by_value.reshape(-1), minlength=len(values))
            gradient += np.bincount(part.matches.feature, weights=by_match, minlength=len(padded))
        spread = np.repeat(by_cell, self._members.shape[1])
        gradient += np.bincount(self._members.reshape(-1), weights=spread, minlength=len(padded))
        return total, gradient[:-1]


def _log_likelihood(scores: Floats, part: _Part) -> tuple[float, Floats]:
    """The log-likelihood of a part and its derivative by each score: observed − expected counts."""
    observed = scores[part.bag, part.order]
    most = scores.max(axis=1, keepdims=True)
    p = np.exp(scores - most)
    sums = p.sum(axis=1, keepdims=True)
    log_z = (most + np.log(sums))[:, 0]
    value = float(part.count @ (observed - log_z[part.bag]))
    times = np.bincount(part.bag, weights=part.count, minlength=len(scores))
    p *= -(times[:, None] / sums)
    p[part.bag, part.order] += part.count  # an order of a bag is listed once
    return value, p


def _number_cells(bags: Sequence[Bags]) -> tuple[Ints, list[Ints]]:
    """The distinct (category, item, item) that occur, and for each group [bags, pairs] which."""
    coded = []
    for group in bags:
        orders = all_orders(group.types.shape[1])
        side = len(group.names) + 2
        ends = np.broadcast_to(np.asarray([side - 2, side - 1]), (len(group.types), 2))
        items = np.concatenate([group.types, ends], axis=1)
        coded.append((orders.category * side + items[:, orders.first]) * side + items[:, orders.second])
    cells, inverse = np.unique(np.concatenate([c.reshape(-1) for c in coded]), return_inverse=True)
    bounds = np.cumsum([c.size for c in coded])[:-1]
    return cells, [part.reshape(c.shape) for part, c in zip(np.split(inverse, bounds), coded, strict=True)]
