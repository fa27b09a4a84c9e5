"""The exact distribution over all orders of a node's items, and sampling from it.

    p(order) = exp(w · f(order) / T) / Σ over all n! orders,   w = (1 − m) · superstrate + m · substrate

(Wang & Eisner 2016, equation 1 and section 6). Sums of weights are exact (``tables.grid_of``), so no result depends on
the other nodes of a batch.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.order.items import Item, NodeClass, Scheme, convert
from synthlang.order.model import OrderModel, load_model
from synthlang.order.nodes import Nodes
from synthlang.order.permutations import all_orders
from synthlang.order.tables import OrderScores, Weights, grid_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LARGE_CHUNK = 4_000_000  # number of orders for which the parts of the scores, which are small, are computed at a time
CHUNK = 100_000  # number of orders for which the scores are computed at a time
MOST_ITEMS_CACHED = 6  # a bag of 6 items takes 5.8 KB, and one of 7 takes 40 KB and is seldom repeated
MOST_BYTES = 32_000_000  # for each class of nodes
ENTRY_BYTES = 320  # memory of a cache entry besides its numbers
MOST_ITEM_TYPES = 65_536


class BagCache:
    """Cache of cumulative weights of the orders of a bag of items, with a limit in bytes.

    A key is the items of the bag and the temperature. The least recently used bags are dropped first.

    Attributes:
        bytes: Memory of the cached bags in bytes.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._rows: OrderedDict[bytes, Floats] = OrderedDict()
        self._numbers: dict[Item, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self, types: Ints, names: tuple[Item, ...], temperature: float) -> list[bytes]:
        """Return the key of each row of ``types`` [bags, n], whose values index ``names``, at a temperature."""
        if len(self._numbers) > MOST_ITEM_TYPES:
            self.clear()
        numbers = self._numbers
        own = np.asarray([numbers.setdefault(item, len(numbers)) for item in names], np.int32)
        end = np.float64(temperature).tobytes()
        return [row.tobytes() + end for row in own[types]]

    def get(self, key: bytes) -> Floats | None:
        """Return the cumulative weights of a bag, [n!], or None if the cache lacks them."""
        row = self._rows.get(key)
        if row is not None:
            self._rows.move_to_end(key)
        return row

    def put(self, key: bytes, row: Floats) -> None:
        """Store the cumulative weights of a new bag, [n!]. A full cache drops the least recently used bags."""
        self._rows[key] = row.copy()  # a view would keep the whole matrix in memory
        self.bytes += row.nbytes + ENTRY_BYTES
        while self.bytes > self._most:
            _, old = self._rows.popitem(last=False)
            self.bytes -= old.nbytes + ENTRY_BYTES

    def clear(self) -> None:
        self._rows.clear()
        self._numbers.clear()
        self.bytes = 0


@dataclass(frozen=True)
class ClassDistribution:
    """Distribution over the orders of one class of nodes (see the module for the equation).

    Attributes:
        node: The class of nodes.
        parts: Pairs (weights, label scheme of their features). With scheme None, labels are looked up unchanged.
        corpus_labels: The label scheme of the corpus.
    """

    node: NodeClass
    parts: tuple[tuple[Weights, Scheme | None], ...]
    corpus_labels: Scheme
    _latest: dict[tuple[Item, ...], OrderScores] = field(default_factory=dict, repr=False, compare=False)
    _cache: BagCache = field(default_factory=BagCache, repr=False, compare=False)

    def log_scores(self, types: Ints, names: tuple[Item, ...]) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of the rows of ``types`` [nodes, n] with the scores w · f of all their orders, [rows, n!].

        ``types`` holds indices into ``names``.
        """
        if names not in self._latest:  # the groups of a batch have the same names
            self._latest.clear()
            self._latest[names] = OrderScores([(w, self.looked_up(names, scheme)) for w, scheme in self.parts])
        orders = factorial(types.shape[1])
        many, few = max(1, LARGE_CHUNK // orders), max(1, CHUNK // orders)
        for start in range(0, len(types), many):
            part = types[start : start + many]
            sums = self._latest[names].summands(part)
            for first in range(0, len(part), few):
                rows = slice(first, min(first + few, len(part)))
                yield slice(start + rows.start, start + rows.stop), sums.scores(rows)

    def looked_up(self, names: tuple[Item, ...], scheme: Scheme | None) -> list[Item]:
        """Convert items to the label scheme of a model. If the scheme is None, return them unchanged."""
        return [item if scheme is None else convert(item, self.corpus_labels, scheme, self.node) for item in names]

    def probabilities(self, nodes: Nodes, temperature: float = 1.0) -> Floats:
        """Return the probability of each order of the canonical items, as sorted by ``all_orders``, [nodes, n!].

        ``temperature`` is the T of the equation, above 0.
        """
        result = np.empty((len(nodes), factorial(nodes.types.shape[1])))
        for rows, scores in self.log_scores(nodes.types, nodes.names):
            weights = _relative(scores, temperature)
            result[rows] = weights / weights.sum(axis=1, keepdims=True)
        return result

    def log_likelihood(self, nodes: Nodes, order: Ints) -> Floats:
        """Return the natural log p of one order of each node at temperature 1, [nodes].

        ``order`` [nodes] gives the orders as rows of ``all_orders``.
        """
        result = np.empty(len(nodes))
        for rows, scores in self.log_scores(nodes.types, nodes.names):
            most = scores.max(axis=1)
            log_z = most + np.log(np.exp(scores - most[:, None]).sum(axis=1))
            result[rows] = scores[np.arange(len(scores)), order[rows]] - log_z
        return result

    def sample(self, nodes: Nodes, u: Floats, temperature: float = 1.0) -> Ints:
        """Sample an order of each node, as a row of ``all_orders``, [nodes].

        The sample is the first order whose cumulative probability exceeds ``u`` [nodes], a number in [0, 1).
        ``temperature`` is the T of the equation, above 0.
        """
        types, which = nodes.distinct()
        order, parts = self._cumulated(types, nodes.names, temperature)
        which = np.argsort(order)[which]
        by_type = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[by_type], np.arange(len(types) + 1))
        result = np.empty(len(nodes), np.int64)
        start = 0
        for cumulated in parts:
            stop = start + len(cumulated)
            of_bag = by_type[bounds[start] : bounds[stop]]
            row = which[of_bag] - start
            result[of_bag] = _first_above(cumulated, row, u[of_bag] * cumulated[row, -1])
            start = stop
        return result

    def _cumulated(self, types: Ints, names: tuple[Item, ...], temperature: float) -> tuple[Ints, Iterator[Floats]]:
        """Compute the cumulative weights [rows, n!] of ``types`` [bags, n], in parts.

        Returns:
            The order in which ``types`` are processed, and an iterator over the parts.
        """
        if types.shape[1] > MOST_ITEMS_CACHED:
            return np.arange(len(types)), (_cumulate(s, temperature) for _, s in self.log_scores(types, names))
        keys = self._cache.keys(types, names, temperature)
        known = [self._cache.get(key) for key in keys]
        order = np.asarray(sorted(range(len(keys)), key=lambda i: known[i] is None), np.int64)
        old = [row for row in known if row is not None]

        def parts() -> Iterator[Floats]:
            step = max(1, CHUNK // factorial(types.shape[1]))
            for start in range(0, len(old), step):
                yield np.stack(old[start : start + step])
            new = order[len(old) :]
            for rows, scores in self.log_scores(types[new], names):
                cumulated = _cumulate(scores, temperature)
                for index, row in zip(new[rows].tolist(), cumulated, strict=True):
                    self._cache.put(keys[index], row)
                yield cumulated

        return order, parts()

    def best(self, nodes: Nodes) -> Ints:
        """Return the most probable order of each node, as a row of ``all_orders``, [nodes].

        Among equally probable orders, the words that come first in the source come first.
        """
        result = np.empty(len(nodes), np.int64)
        orders = all_orders(nodes.types.shape[1]).orders
        n = orders.shape[1]
        place_value = n ** np.arange(n - 1, -1, -1)
        for rows, scores in self.log_scores(nodes.types, nodes.names):
            row, order = np.nonzero(scores == scores.max(axis=1, keepdims=True))
            source = np.take_along_axis(nodes.source[rows][row], orders[order], axis=1) @ place_value
            first = np.lexsort((source, row))
            starts = np.searchsorted(row[first], np.arange(len(scores)))
            result[rows] = order[first[starts]]
        return result


def _relative(scores: Floats, temperature: float) -> Floats:
    """Return exp((score − largest score of the row) / temperature), which cannot overflow."""
    scores -= scores.max(axis=1, keepdims=True)
    if temperature != 1.0:
        scores /= temperature
    return np.exp(scores, out=scores)


def _cumulate(scores: Floats, temperature: float) -> Floats:
    return np.cumsum(_relative(scores, temperature), axis=1)


def _first_above(cumulated: Floats, row: Ints, target: Floats) -> Ints:
    """Find by binary search the first column in each row with a value above the target."""
    low = np.zeros(len(row), np.int64)
    high = np.full(len(row), cumulated.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        above = cumulated[row, middle] > target
        low, high = np.where(above, low, middle + 1), np.where(above, middle, high)
    return low


def distribution(
    model: OrderModel,
    substrate: OrderModel | None = None,
    substrate_weight: float = 0.05,
    labels: str = "mapped",
    corpus_labels: Scheme = "ud2",
) -> dict[NodeClass, ClassDistribution]:
    """Return the distribution of each class of nodes that the model has weights for.

    Args:
        model: The model of the superstrate.
        substrate: A second model to mix in (default: none).
        substrate_weight: The weight m of the substrate, 0 to 1.
        labels: ``mapped`` converts an item to the label scheme of the model, ``faithful`` looks it up unchanged.
        corpus_labels: The label scheme of the corpus.

    Raises:
        InputError: ``labels`` or ``corpus_labels`` has an unknown value.
    """
    for key, value, known in (
        ("labels", labels, ("mapped", "faithful")), ("corpus_labels", corpus_labels, ("ud1", "ud2")),
    ):  # fmt: skip
        if value not in known:
            raise InputError(f"must be {known[0]} or {known[1]}, not {value!r}", keys=key, code="unknown")
    mix = [(model, 1.0)] if substrate is None else [(model, 1.0 - substrate_weight), (substrate, substrate_weight)]
    result = {}
    for node in model.classes:
        parts: dict[Scheme | None, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for m, factor in mix:
            part = parts[m.labels if labels == "mapped" else None]
            for feature, weight in m.weights.get(node, {}).items():
                part[feature] += factor * weight
        grid = grid_of(parts.values())
        weights = tuple((Weights(part, grid), scheme) for scheme, part in parts.items())
        result[node] = ClassDistribution(node, weights, corpus_labels)
    return result


@lru_cache(maxsize=4)
def _shared(
    model: str, substrate: str | None, contents: tuple[str, str | None], weight: float, labels: str, scheme: Scheme
) -> dict[NodeClass, ClassDistribution]:
    del contents  # part of the cache key, since a changed file is another model
    return distribution(load_model(model), load_model(substrate) if substrate else None, weight, labels, scheme)


def shared_distribution(
    model: str, substrate: str | None, weight: float, labels: str, scheme: Scheme
) -> dict[NodeClass, ClassDistribution]:
    """Return the ``distribution`` of models given by name or path. The last few are cached until a model file changes.

    Args:
        model: The model of the superstrate.
        substrate: A second model to mix in, or None.
        weight: The weight m of the substrate, 0 to 1.
        labels: ``mapped`` or ``faithful`` (see ``distribution``).
        scheme: The label scheme of the corpus.

    Raises:
        InputError: A model does not exist or cannot be read, or ``labels`` or ``scheme`` has an unknown value.
    """
    contents = (load_model(model).content, load_model(substrate).content if substrate else None)
    return _shared(model, substrate, contents, weight, labels, scheme)
