"""Evaluate how well an order model predicts unseen trees, and whether reordering brings a language closer to another.

A model is compared with two baselines:

    uniform      p(order) = 1 / n!
    direction    each dependent is left of the head with P(left | head's tag, arc), counted in the training text with
                 one added to each side, and the orders within a side are equally likely:
                 p(order) = Π P(side) / (left! · right!)

Closeness to a superstrate compares shares of dependents before their head, for each (head's tag, arc) with enough
dependents. It is the mean of |share − share in the target|, before and after the source is reordered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from synthlang.corpus import Corpus
from synthlang.order.distribution import ClassDistribution, distribution
from synthlang.order.items import CLASS_OF_HEAD
from synthlang.order.model import OrderModel
from synthlang.order.nodes import Nodes, nodes_of
from synthlang.order.permutations import all_orders
from synthlang.trees import Forest

Floats = NDArray[np.float64]
Pair = tuple[str, str]  # the tag of a head, the arc of its dependent
ENOUGH = 20  # smallest number of dependents of a relation that is compared


def _sides(nodes: Nodes) -> tuple[list[list[Pair]], NDArray[np.bool_]]:
    """Return (head's tag, arc) of each dependent, and whether it precedes the head, [nodes, dependents]."""
    heads = [nodes.names[t][0].removeprefix("@") for t in nodes.types[:, 0].tolist()]
    arcs = [[nodes.names[t][1] for t in row] for row in nodes.types[:, 1:].tolist()]
    pairs = [[(head, arc) for arc in row] for head, row in zip(heads, arcs, strict=True)]
    return pairs, nodes.source[:, 1:] < nodes.source[:, :1]


@dataclass(frozen=True)
class Direction:
    """Numbers of dependents left and right of their head, by (head's tag, arc)."""

    left: Counter[Pair]
    right: Counter[Pair]

    @staticmethod
    def of(groups: Iterable[Nodes]) -> Direction:
        """Count the dependents on each side of the head in all groups of nodes."""
        found = Direction(Counter(), Counter())
        for nodes in groups:
            pairs, left = _sides(nodes)
            for pair, is_left in zip(chain(*pairs), left.ravel().tolist(), strict=True):
                (found.left if is_left else found.right)[pair] += 1
        return found

    def p_left(self, pair: Pair) -> float:
        """Return the smoothed probability that a dependent is left of its head: (left + 1) / (left + right + 2)."""
        return (self.left[pair] + 1) / (self.left[pair] + self.right[pair] + 2)

    def log_likelihood(self, nodes: Nodes) -> Floats:
        """Return the natural log p of the order in the text under the baseline ``direction``, [nodes].

        The equation is at the top of the module.
        """
        pairs, left = _sides(nodes)
        p_left = np.asarray([[self.p_left(pair) for pair in row] for row in pairs]).reshape(left.shape)
        lefts = left.sum(axis=1)
        sides = np.log(np.where(left, p_left, 1 - p_left)).sum(axis=1)
        return np.asarray(sides - gammaln(lefts + 1) - gammaln(left.shape[1] - lefts + 1))


def observed(nodes: Nodes) -> NDArray[np.int64]:
    """Return the order of the items in the text, as a row of ``all_orders``, [nodes]."""
    n = nodes.types.shape[1]
    place_value = n ** np.arange(n - 1, -1, -1, dtype=np.int64)
    known = all_orders(n).orders @ place_value  # sorted, because the orders are
    return np.asarray(np.searchsorted(known, np.argsort(nodes.source, axis=1) @ place_value), np.int64)


def evaluate(
    model: OrderModel,
    held_out: Corpus,
    training: Corpus | None = None,
    most_items: int = 7,
    labels: str = "mapped",
) -> dict[str, dict[str, Any]]:
    """Score a model on held-out trees, for each class of nodes and for ``all`` nodes.

    Args:
        model: The order model.
        held_out: Text with trees (the columns ``upos``, ``head`` and ``deprel``).
        training: Text with trees for the baseline ``direction`` (default: no such baseline).
        most_items: Largest number of items of a node that is scored, 2 to 8. The smallest number is always 2.
        labels: ``mapped`` or ``faithful`` (see ``distribution``).

    Returns:
        For each class of the model, and for ``all``, a dictionary with these keys. Numbers have 4 decimals. Without
        nodes, the dictionary has only the first two keys. The keys of ``direction`` need ``training``:

        nodes, items       number of nodes and of items
        model              mean log-likelihood of a node, in nats
        uniform, direction mean log-likelihood of a node under the baselines, in nats
        model_item, …      the same log-likelihoods per item
        perplexity         exp(−model)
        best               share of nodes whose order in the text is the most probable order of the model
        best_uniform       expected share of nodes whose order in the text equals an order that is drawn uniformly

    Raises:
        InputError: ``labels`` has an unknown value.
    """
    models = distribution(model, labels=labels)
    tables = []
    for node in model.classes:
        side = None if training is None else Direction.of(nodes_of(training, node, most_items).values())
        groups = nodes_of(held_out, node, most_items).values()
        tables.append(_join([_values(nodes, models[node], side) for nodes in groups]))
    return {**{str(n): _means(t) for n, t in zip(model.classes, tables, strict=True)}, "all": _means(_join(tables))}


def _values(nodes: Nodes, model: ClassDistribution, side: Direction | None) -> dict[str, Floats]:
    """Return the number of items and the scores of each node, as columns [nodes] by name."""
    n, order = nodes.types.shape[1], observed(nodes)
    return {
        "items": np.full(len(nodes), float(n)),
        "uniform": np.full(len(nodes), -np.log(factorial(n))),
        "model": model.log_likelihood(nodes, order),
        "best": (model.best(nodes) == order).astype(np.float64),
        **({} if side is None else {"direction": side.log_likelihood(nodes)}),
    }


def _join(tables: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    tables = [table for table in tables if table]
    return {name: np.concatenate([table[name] for table in tables]) for name in (tables[0] if tables else ())}


def _means(values: dict[str, Floats]) -> dict[str, Any]:
    if not values:
        return {"nodes": 0, "items": 0}
    items = float(values["items"].sum())
    result: dict[str, Any] = {"nodes": len(values["items"]), "items": int(items)}
    for name in ("model", "direction", "uniform"):
        if name in values:
            result[name] = round(float(values[name].mean()), 4)
            result[f"{name}_item"] = round(float(values[name].sum() / items), 4)
    result["perplexity"] = round(float(np.exp(-values["model"].mean())), 4)
    result["best"] = round(float(values["best"].mean()), 4)
    result["best_uniform"] = round(float(np.exp(values["uniform"]).mean()), 4)
    return result


def table(scores: dict[str, dict[str, Any]]) -> str:
    """Return the scores of ``evaluate`` as a Markdown table."""
    names = {"N": "noun nodes", "V": "verb nodes", "all": "all"}
    measures = "log p per node: model | direction | uniform | perplexity | best order correct | by chance"
    head = f"| held-out | nodes | {measures} |"
    rows = [head, "|---|---|---|---|---|---|---|---|"]
    for key, score in scores.items():
        numbers = [f"{score.get(k, float('nan')):.3f}" for k in ("model", "direction", "uniform", "perplexity")]
        shares = [f"{100 * score.get(k, 0.0):.1f} %" for k in ("best", "best_uniform")]
        rows.append(f"| {names[key]} | {score['nodes']} | {' | '.join([*numbers, *shares])} |")
    return "\n".join(rows)


def shares(corpus: Corpus) -> dict[Pair, tuple[float, int]]:
    """Return for each (head's tag, arc) the share of dependents before the head, 0–1, and the number of dependents.

    Only heads with a tag of CLASS_OF_HEAD (NOUN, PROPN, PRON, VERB) count.
    """
    before, total = Counter[Pair](), Counter[Pair]()
    parent = Forest.of(corpus).parent
    upos, arc = corpus.columns["upos"].values(), corpus.columns["deprel"].values()
    for row in np.flatnonzero(parent >= 0).tolist():
        head = int(parent[row])
        if upos[head] in CLASS_OF_HEAD:
            before[upos[head], arc[row]] += row < head
            total[upos[head], arc[row]] += 1
    return {pair: (before[pair] / count, count) for pair, count in total.items()}


def closeness(parent: Corpus, reordered: Corpus, target: Corpus, enough: int = ENOUGH) -> dict[str, Any]:
    """Measure the distances of ``parent`` and ``reordered`` to ``target``.

    The distance to the target is the mean of |share − share in the target| over relations (see ``shares``).

    Args:
        parent: The source text with trees.
        reordered: The same text after reordering.
        target: Text with trees of the language that the reordering imitates.
        enough: Smallest number of dependents in both ``parent`` and ``target`` for a relation to count.

    Returns:
        The number of ``relations``, the shares of each relation as ``pairs``, and the distances ``before`` (of
        ``parent``) and ``after`` (of ``reordered``). The keys ``before_weighted`` and ``after_weighted`` hold means
        weighted by the counts in ``parent``. The four means have 4 decimals, and are None if no relation counts.
    """
    source, moved, goal = shares(parent), shares(reordered), shares(target)
    shared = [pair for pair, (_, count) in source.items() if min(count, goal.get(pair, (0, 0))[1]) >= enough]
    rows: list[dict[str, Any]] = []
    for pair in sorted(shared, key=lambda p: (-source[p][1], p)):
        values = {"parent": source[pair][0], "reordered": moved[pair][0], "target": goal[pair][0]}
        rows.append({"head": pair[0], "arc": pair[1], "count": source[pair][1], **values})
    result: dict[str, Any] = {"relations": len(rows), "pairs": rows}
    weights = [row["count"] for row in rows]
    for name, column in (("before", "parent"), ("after", "reordered")):
        gap = [abs(row[column] - row["target"]) for row in rows]
        result[name] = round(float(np.mean(gap)), 4) if rows else None
        result[f"{name}_weighted"] = round(float(np.average(gap, weights=weights)), 4) if rows else None
    return result
