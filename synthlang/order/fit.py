"""Fit an order model to a treebank: maximum conditional likelihood with an L2 prior (Wang & Eisner 2016, §4.3).

    L(w) = Σ_nodes log p(order of the text | items) − λ/2 · ‖w‖²
    ∂L/∂w = observed − expected feature counts − λ · w

Nodes with the same items form one bag, with a count for each observed order. Expected counts are sums over all n!
orders. The features are all pairs of items of a bag, in observed and other orders, and the frequent n-grams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.order.evaluate import evaluate, observed
from synthlang.order.items import (
    BOS,
    CLASS_OF_HEAD,
    CLASSES,
    EOS,
    HIGHER,
    MOST_ITEMS,
    SHORTEST,
    Item,
    NodeClass,
    Scheme,
    can_name,
    full,
    padding,
    views,
)
from synthlang.order.model import OrderModel
from synthlang.order.nodes import Nodes, nodes_of
from synthlang.order.permutations import CATEGORIES, Orders, all_orders
from synthlang.order.tables import Matches, Summands, Trie, adjoint, pair_index
from synthlang.progress import Report, silent

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
L2 = 3.0
MOST_ITEMS_TO_FIT = 6
SHARE_OF_NGRAMS = 0.1
CHUNK = 400_000  # number of orders that are computed at a time
DECIMALS = 4
SMALLEST = 0.005  # weights with a smaller absolute value are left out of the model
ITERATIONS = 500  # of L-BFGS, at most


@dataclass(frozen=True)
class Bags:
    """The distinct bags of n items.

    Attributes:
        types: Items in canonical order, as indices into ``names``, [bags, n].
        bag: Bag of each observed order, [observations].
        order: Observed order, as a row of ``all_orders``, [observations].
        count: Number of times that the order was observed, [observations].
        names: The items by number.
    """

    types: Ints
    bag: Ints
    order: Ints
    count: Floats
    names: tuple[Item, ...]

    @staticmethod
    def of(nodes: Nodes) -> Bags:
        """Merge nodes with the same items, so that the cost of a fit depends on distinct bags only."""
        types, bag = nodes.distinct()
        orders = len(all_orders(types.shape[1]))
        seen, count = np.unique(bag * orders + observed(nodes), return_counts=True)
        return Bags(types, seen // orders, seen % orders, count.astype(np.float64), nodes.names)


def frequent_ngrams(bags: Iterable[Bags], share: float = SHARE_OF_NGRAMS) -> list[str]:
    """Return the most frequent ``share`` (0–1, rounded up) of the n-grams in the text, as names of features.

    Ties are sorted by name.
    """
    count: Counter[tuple[str, ...]] = Counter()
    for group in bags:
        names = [full(item) if can_name(item) else "" for item in group.names]
        items = np.take_along_axis(group.types[group.bag], all_orders(group.types.shape[1]).orders[group.order], axis=1)
        for row, times in zip(items.tolist(), group.count.astype(int).tolist(), strict=True):
            for ngram in _ngrams([names[i] for i in row]):
                count[ngram] += times
    by_count = sorted(count, key=lambda ngram: (-count[ngram], ngram))
    usable = [ngram for ngram in by_count if "" not in ngram and set(ngram) != {EOS}]
    return ["_".join((HIGHER, *ngram)) for ngram in usable[: int(np.ceil(share * len(usable)))]]


def _ngrams(names: list[str]) -> Iterator[tuple[str, ...]]:
    pads = padding(len(names))
    padded = [BOS] * pads + names + [EOS] * pads
    for length in range(SHORTEST, pads + 2):
        for end in range(max(pads, length - 1), len(padded)):
            yield tuple(padded[end + 1 - length : end + 1])


@dataclass(frozen=True)
class _Part:
    """Some bags of n items with their observed orders.

    Attributes:
        orders: All orders of n items.
        cells: Index of the value of each relation of two items, [bags, pairs].
        matches: The n-grams of the bags.
        bag, order, count: The observed orders, as in ``Bags``.
    """

    orders: Orders
    cells: Ints
    matches: Matches
    bag: Ints
    order: Ints
    count: Floats

    def log_likelihood(self, sums: Summands) -> tuple[float, Floats]:
        """Return Σ log p of the observed orders, and the derivatives with respect to the scores, [bags, n!]."""
        scores = sums.scores(slice(0, len(self.cells)))
        most = scores.max(axis=1, keepdims=True)
        p = np.exp(scores - most)
        total = p.sum(axis=1, keepdims=True)
        log_z = (most + np.log(total))[:, 0]
        value = float(self.count @ (scores[self.bag, self.order] - log_z[self.bag]))
        times = np.bincount(self.bag, weights=self.count, minlength=len(scores))
        p *= -(times[:, None] / total)
        p[self.bag, self.order] += self.count  # each order of a bag is listed once
        return value, p


class Design:
    """The data of one class of nodes, prepared for the optimizer.

    Args:
        bags: The bags of the class, for each number of items.
        ngrams: Names of the n-grams that are features (see ``frequent_ngrams``).

    Attributes:
        features: Names of the features, in the order of the weights.
        nodes: Number of nodes.
    """

    def __init__(self, bags: Sequence[Bags], ngrams: Sequence[str]) -> None:
        names = bags[0].names if bags else ()
        self.features = list(ngrams)
        self._steps = Trie(ngrams).steps(names)
        index = [pair_index(all_orders(group.types.shape[1]), group.types, len(names)) for group in bags]
        cells, which = np.unique(np.concatenate([c.reshape(-1) for c in index]), return_inverse=True)
        bounds = np.cumsum([c.size for c in index])[:-1]
        codes = [part.reshape(c.shape) for part, c in zip(np.split(which, bounds), index, strict=True)]
        self._members = self._name_cells(cells, names)
        self._parts = [part for group, cells in zip(bags, codes, strict=True) for part in self._cut(group, cells)]
        self.nodes = sum(float(part.count.sum()) for part in self._parts)

    def _name_cells(self, cells: Ints, names: tuple[Item, ...]) -> Ints:
        """Return the features of each cell, [cells, 6], padded with an index beyond the last feature."""
        index = {name: number for number, name in enumerate(self.features)}
        labels = [views(item) if can_name(item) else () for item in names] + [(BOS,) * 3, (EOS,) * 3]
        rows: list[list[int]] = []
        for cell in cells.tolist():
            pair, b = divmod(cell, len(labels))
            category, a = divmod(pair, len(labels))
            found = []
            if labels[a] and labels[b]:
                for family in CATEGORIES[category].split("+"):
                    found += [f"{family}_{x}_{y}" for x, y in zip(labels[a], labels[b], strict=True)]
            rows.append([index.setdefault(name, len(index)) for name in found])
        self.features = list(index)
        return np.asarray([row + [len(index)] * (6 - len(row)) for row in rows], np.int64).reshape(-1, 6)

    def _cut(self, bags: Bags, cells: Ints) -> Iterator[_Part]:
        orders = all_orders(bags.types.shape[1])
        step = max(1, CHUNK // len(orders))
        for first in range(0, len(bags.types), step):
            part = slice(first, first + step)
            of = (bags.bag >= first) & (bags.bag < first + step)
            matches = self._steps.matches(bags.types[part])
            yield _Part(orders, cells[part], matches, bags.bag[of] - first, bags.order[of], bags.count[of])

    def log_likelihood(self, weights: Floats) -> tuple[float, Floats]:
        """Return Σ log p of the orders in the text, and its gradient [features] with respect to ``weights`` [features].

        The logarithm is natural, and the penalty of L(w) is not included.
        """
        padded = np.append(weights, 0.0)
        values = padded[self._members].sum(axis=1)
        total, by_cell, gradient = 0.0, np.zeros(len(values)), np.zeros(len(padded))
        for part in self._parts:
            feature = part.matches.feature
            value, by_score = part.log_likelihood(
                Summands.of(part.orders, values[part.cells], part.matches, weights[feature])
            )
            total += value
            by_value, by_match = adjoint(part.orders, by_score, part.matches)
            by_cell += np.bincount(part.cells.reshape(-1), weights=by_value.reshape(-1), minlength=len(values))
            gradient += np.bincount(feature, weights=by_match, minlength=len(padded))
        spread = np.repeat(by_cell, self._members.shape[1])
        gradient += np.bincount(self._members.reshape(-1), weights=spread, minlength=len(padded))
        return total, gradient[:-1]


def maximise(design: Design, l2: float, report: Report = silent, task: str = "order model") -> tuple[Floats, int]:
    """Return the weights with the highest penalised likelihood, [features], and the number of L-BFGS iterations.

    The penalised likelihood is L(w) of the module. The search starts from zero weights.

    Args:
        design: The data of one class of nodes.
        l2: The λ of the penalty λ/2 · ‖w‖².
        report: Function that shows progress.
        task: Name of the work in reports.
    """
    from scipy.optimize import fmin_l_bfgs_b

    done = 0
    latest = 0.0

    def loss(weights: Floats) -> tuple[float, Floats]:
        nonlocal latest
        value, gradient = design.log_likelihood(weights)
        latest = l2 / 2 * float(weights @ weights) - value
        return latest, l2 * weights - gradient

    def step(_: Any) -> None:
        nonlocal done
        done += 1
        report(task, done, ITERATIONS, f"loss a node {latest / design.nodes:.4f}")

    start = np.zeros(len(design.features))
    found, _, _ = fmin_l_bfgs_b(
        loss, start, m=20, factr=1e6, pgtol=1e-3, maxiter=ITERATIONS, maxfun=2 * ITERATIONS, callback=step
    )
    if done < ITERATIONS:
        report(task, ITERATIONS, ITERATIONS, f"converged after {done} iterations")
    return np.asarray(found, dtype=np.float64), done


def fit(
    corpus: Corpus,
    name: str,
    l2: Sequence[float] = (L2,),
    choose_on: Corpus | None = None,
    most_items: int = MOST_ITEMS_TO_FIT,
    labels: Scheme = "ud2",
    report: Report = silent,
    about: Mapping[str, str] | None = None,
) -> OrderModel:
    """Fit a model to the nodes of 2 … ``most_items`` items in the projective sentences of a treebank.

    Weights are rounded to 4 decimals, and weights with an absolute value below 0.005 are left out. A class of nodes
    that the treebank lacks is reported and left out of the model.

    Args:
        corpus: The treebank, with the columns ``upos``, ``head`` and ``deprel``.
        name: Name of the model.
        l2: Values of λ in the penalty λ/2 · ‖w‖². The likelihood of ``choose_on`` decides between several values.
        choose_on: Trees for the choice of λ (default: none, for a single value).
        most_items: Largest number of items of a training node, 2 to 8.
        labels: The label scheme of the treebank.
        report: Function that shows progress.
        about: Values of ``treebank``, ``licence`` and ``attribution`` for the model file.

    Raises:
        InputError: The treebank has neither class of nodes, a setting is invalid, ``name`` has more than 200
            characters, or the absolute value of a weight reaches 500.
    """
    _check(l2, choose_on, most_items)
    designs = _designs(corpus, name, most_items, report)
    models = []
    for value in l2:
        weights, notes = {}, dict[str, Any](most_items=most_items, decimals=DECIMALS, smallest=SMALLEST)
        for node, design in designs.items():
            found, steps = maximise(design, value, report, f"order model {name}, {node}, L2 {value:g}")
            rounded = np.round(found, DECIMALS).tolist()
            named = sorted(zip(design.features, rounded, strict=True))
            weights[node] = {feature: weight for feature, weight in named if abs(weight) >= SMALLEST}
            counts = {"nodes": int(design.nodes), "features": len(design.features), "kept": len(weights[node])}
            notes[node] = {**counts, "iterations": steps, "converged": steps < ITERATIONS}
        facts = {"name": name, "labels": labels, "weights": weights, **(about or {})}
        models.append(parse(OrderModel, {**facts, "fit": {**notes, "l2": value}}))
    if choose_on is None or len(models) == 1:
        return models[0]
    scores = [evaluate(model, choose_on, labels="faithful")["all"]["model"] for model in models]
    best = models[int(np.argmax(scores))]
    return best.model_copy(update={"fit": {**best.fit, "tried": [list(pair) for pair in zip(l2, scores, strict=True)]}})


def _check(l2: Sequence[float], choose_on: Corpus | None, most_items: int) -> None:
    wrong = [value for value in l2 if not 0.0 < value < float("inf")]
    if wrong or not l2:
        reason = f"each weight of the L2 prior must be a number above 0, not {wrong[0] if wrong else 'none'}"
        raise InputError(reason, keys="l2", hint="give a weight such as 3", code="range")
    if len(l2) > 1 and choose_on is None:
        reason = "several weights of the L2 prior need a split on which one of them is chosen"
        hint = "name this split in choose_on (--choose-on)"
        raise InputError(reason, keys="l2", hint=hint, code="missing")
    if not 2 <= most_items <= MOST_ITEMS:
        raise InputError(f"must be from 2 to {MOST_ITEMS}, not {most_items}", keys="max_items", code="range")


def _designs(corpus: Corpus, name: str, most_items: int, report: Report) -> dict[NodeClass, Design]:
    """Prepare the data of each class of nodes in the treebank."""
    designs: dict[NodeClass, Design] = {}
    for node in CLASSES:
        bags = [Bags.of(nodes) for nodes in nodes_of(corpus, node, most_items).values()]
        if bags:
            designs[node] = Design(bags, frequent_ngrams(bags))
        else:
            heads = ", ".join(upos for upos, of in CLASS_OF_HEAD.items() if of == node)
            note = f"no node with a {heads} head to learn from, so the model keeps the order of such nodes"
            report(f"order model {name}, {node}", 1, 1, note)
    if not designs:
        *first, last = CLASS_OF_HEAD
        wanted = f"{', '.join(first)} or {last} with 1 to {most_items - 1} dependents"
        reason = f"no projective sentence of the treebank has a {wanted}"
        hint = "use another treebank, or a larger max_items (--max-items)"
        raise InputError(reason, hint=hint, code="empty")
    return designs
