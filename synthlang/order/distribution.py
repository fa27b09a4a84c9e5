"""The exact distribution over all orders of a node's items, and orders drawn from it.

    p(order) = exp(w · f(order) / T) / Σ over all n! orders,   w = (1 − m) · superstrate + m · substrate

(Wang & Eisner 2016, equation 1 and section 6). Sums of weights are exact (``tables.grid_of``), so
nothing here depends on which nodes stand together in a batch. The distributions of bags of
items that were seen before are kept, up to a number of bytes; the oldest go first.
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
LARGE_CHUNK, CHUNK = 4_000_000, 100_000  # orders at a time: sums that need a third of the memory; all of them
MOST_ITEMS_CACHED = 6  # 5.8 KB a bag; of seven items 40 KB, and such bags seldom come again
MOST_BYTES = 32_000_000  # for each class of nodes
ENTRY_BYTES = 320  # what Python needs for an entry besides its numbers
MOST_ITEM_TYPES = 65_536


class BagCache:
    """Cumulated probabilities of bags by their items and the temperature, not by the batch they came in."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._rows: OrderedDict[bytes, Floats] = OrderedDict()
        self._numbers: dict[Item, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self, types: Ints, names: tuple[Item, ...], temperature: float) -> list[bytes]:
        """The key of each row of ``types`` [bags, n]; they are indices into ``names``."""
        if len(self._numbers) > MOST_ITEM_TYPES:
            self.clear()
        numbers = self._numbers
        own = np.asarray([numbers.setdefault(item, len(numbers)) for item in names], np.int32)
        end = np.float64(temperature).tobytes()
        return [row.tobytes() + end for row in own[types]]

    def get(self, key: bytes) -> Floats | None:
        row = self._rows.get(key)
        if row is not None:
            self._rows.move_to_end(key)
        return row

    def put(self, key: bytes, row: Floats) -> None:
        """Keep the numbers of a bag that is not there; drop those that were not asked for longest."""
        self._rows[key] = row.copy()  # else the row would keep the whole matrix it is of
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
    """The orders of one class of nodes: ``parts`` are (weights, the label scheme they know or None for as it is)."""

    node: NodeClass
    parts: tuple[tuple[Weights, Scheme | None], ...]
    corpus_labels: Scheme
    _latest: dict[tuple[Item, ...], OrderScores] = field(default_factory=dict, repr=False, compare=False)
    _cache: BagCache = field(default_factory=BagCache, repr=False, compare=False)

    def log_scores(self, types: Ints, names: tuple[Item, ...]) -> Iterator[tuple[slice, Floats]]:
        """w · f of every order, [rows, n!], a few rows of ``types`` [nodes, n] at a time: (which rows, scores)."""
        if names not in self._latest:  # the groups of a batch share their names
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
        """The items as a model of that scheme knows them; None: as they stand."""
        return [item if scheme is None else convert(item, self.corpus_labels, scheme, self.node) for item in names]

    def probabilities(self, nodes: Nodes, temperature: float = 1.0) -> Floats:
        """[nodes, n!] the probability of each order of the canonical items, in the order of ``all_orders``."""
        result = np.empty((len(nodes), factorial(nodes.types.shape[1])))
        for rows, scores in self.log_scores(nodes.types, nodes.names):
            weights = _relative(scores, temperature)
            result[rows] = weights / weights.sum(axis=1, keepdims=True)
        return result

    def log_likelihood(self, nodes: Nodes, order: Ints) -> Floats:
        """[nodes] log p of an order of each, a row of ``all_orders``."""
        result = np.empty(len(nodes))
        for rows, scores in self.log_scores(nodes.types, nodes.names):
            most = scores.max(axis=1)
            log_z = most + np.log(np.exp(scores - most[:, None]).sum(axis=1))
            result[rows] = scores[np.arange(len(scores)), order[rows]] - log_z
        return result

    def sample(self, nodes: Nodes, u: Floats, temperature: float = 1.0) -> Ints:
        """[nodes] an order for each: the first whose cumulated probability exceeds ``u`` [nodes] in [0, 1)."""
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
        """Cumulated weights [rows, n!] of all ``types`` [bags, n], in parts, and the order that these are in."""
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
        """[nodes] the most probable order; of equal ones the one that is first in source order."""
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
    """exp of the scores less the greatest of their row: in (0, 1], no overflow."""
    scores -= scores.max(axis=1, keepdims=True)
    if temperature != 1.0:
        scores /= temperature
    return np.exp(scores, out=scores)


def _cumulate(scores: Floats, temperature: float) -> Floats:
    return np.cumsum(_relative(scores, temperature), axis=1)


def _first_above(cumulated: Floats, row: Ints, target: Floats) -> Ints:
    """For each target the first column of its row whose value exceeds it: a binary search."""
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
    """The distributions of the classes that the model has weights for.

    ``labels``: ``mapped`` looks an item up under the label that the model's scheme has for it,
    ``faithful`` under the label as it stands.
    """
    for value, known in ((labels, ("mapped", "faithful")), (corpus_labels, ("ud1", "ud2"))):
        if value not in known:
            raise InputError(f"the labels {value!r} must be {known[0]} or {known[1]}")
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
    del contents  # part of the key: a file that changed is another model
    return distribution(load_model(model), load_model(substrate) if substrate else None, weight, labels, scheme)


def shared_distribution(
    model: str, substrate: str | None, weight: float, labels: str, scheme: Scheme
) -> dict[NodeClass, ClassDistribution]:
    """``distribution`` of models by name, built once a process."""
    contents = (load_model(model).content, load_model(substrate).content if substrate else None)
    return _shared(model, substrate, contents, weight, labels, scheme)
