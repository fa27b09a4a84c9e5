"""How well an order model predicts the orders of trees it has not seen, and whether a reordered language is closer.

A model is measured against no knowledge at all, and against the side of the head alone:

    uniform      p(order) = 1 / n!
    direction    each dependent stands left of the head with P(left | head's tag, arc), counted in the training text
                 with one added to each side; the orders within a side are equally likely:
                 p(order) = Π P(side) / (left! · right!)

Closeness to a superstrate: for each (head's tag, arc) with enough dependents, which share stands before the head in the
parent, in the reordered parent and in the target; then the mean of |share − share in the target|.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from synthlang.corpus import Corpus
from synthlang.order.distribution import ClassDistribution, distribution
from synthlang.order.items import CLASS_OF_HEAD, Scheme
from synthlang.order.model import OrderModel
from synthlang.order.nodes import Nodes
from synthlang.order.training import nodes_of, observed
from synthlang.trees import Forest

Floats = NDArray[np.float64]
Pair = tuple[str, str]  # the tag of a head, the arc of its dependent
ENOUGH = 20  # dependents of a relation


def _sides(nodes: Nodes) -> tuple[list[list[Pair]], NDArray[np.bool_]]:
    """[nodes][dependents] (head's tag, arc), and [nodes, dependents] whether each stands left of the head."""
    heads = [nodes.names[t][0].removeprefix("@") for t in nodes.types[:, 0].tolist()]
    arcs = [[nodes.names[t][1] for t in row] for row in nodes.types[:, 1:].tolist()]
    pairs = [[(head, arc) for arc in row] for head, row in zip(heads, arcs, strict=True)]
    return pairs, nodes.source[:, 1:] < nodes.source[:, :1]


@dataclass(frozen=True)
class Direction:
    """Counts of (left, right) by (head's tag, arc)."""

    counts: dict[Pair, tuple[int, int]]

    @staticmethod
    def of(groups: Iterable[Nodes]) -> Direction:
        counts: dict[Pair, list[int]] = {}
        for nodes in groups:
            pairs, left = _sides(nodes)
            for row, flags in zip(pairs, left.tolist(), strict=True):
                for pair, is_left in zip(row, flags, strict=True):
                    counts.setdefault(pair, [0, 0])[0 if is_left else 1] += 1
        return Direction({pair: (a, b) for pair, (a, b) in counts.items()})

    def left(self, pair: Pair) -> float:
        before, after = self.counts.get(pair, (0, 0))
        return (before + 1) / (before + after + 2)

    def log_likelihood(self, nodes: Nodes) -> Floats:
        """[nodes] log p of the order in the text."""
        pairs, left = _sides(nodes)
        p_left = np.asarray([[self.left(pair) for pair in row] for row in pairs]).reshape(left.shape)
        lefts = left.sum(axis=1)
        rights = left.shape[1] - lefts
        sides = np.log(np.where(left, p_left, 1 - p_left)).sum(axis=1)
        return np.asarray(sides - gammaln(lefts + 1) - gammaln(rights + 1))


def evaluate(
    model: OrderModel,
    held_out: Corpus,
    training: Corpus | None = None,
    most_items: int = 7,
    labels: str = "mapped",
    corpus_labels: Scheme = "ud2",
) -> dict[str, dict[str, Any]]:
    """Scores by class of nodes and for ``all``, on nodes of 2 … ``most_items`` items.

    nodes items        how many
    model uniform direction    mean log-likelihood of a node; direction needs the ``training`` text
    model_item …       the same divided by items, not nodes
    perplexity         exp(−model)
    best               share of nodes whose order in the text is the model's most probable one
    best_uniform       that share for an order drawn blindly
    """
    models = distribution(model, labels=labels, corpus_labels=corpus_labels)
    columns: dict[str, list[Floats]] = {}
    result = {}
    for node in model.classes:
        groups = list(nodes_of(held_out, node, most_items).values())
        side = None if training is None else Direction.of(nodes_of(training, node, most_items).values())
        values = _values(groups, models[node], side)
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
        result[str(node)] = _means(values)
    return {**result, "all": _means({name: np.concatenate(parts) for name, parts in columns.items()})}


def _values(groups: Sequence[Nodes], model: ClassDistribution, side: Direction | None) -> dict[str, Floats]:
    """Columns with a value for each node."""
    columns: dict[str, list[Floats]] = {"items": [], "uniform": [], "model": [], "best": [], "direction": []}
    for nodes in groups:
        n = nodes.types.shape[1]
        order = observed(nodes)
        columns["items"].append(np.full(len(nodes), float(n)))
        columns["uniform"].append(np.full(len(nodes), -np.log(factorial(n))))
        columns["model"].append(model.log_likelihood(nodes, order))
        columns["best"].append((model.best(nodes) == order).astype(np.float64))
        if side is not None:
            columns["direction"].append(side.log_likelihood(nodes))
    return {
        name: np.concatenate(parts or [np.empty(0)]) for name, parts in columns.items() if parts or name != "direction"
    }


def _means(values: dict[str, Floats]) -> dict[str, Any]:
    nodes, items = len(values["items"]), float(values["items"].sum())
    result: dict[str, Any] = {"nodes": nodes, "items": int(items)}
    if not nodes:
        return result
    for name in ("model", "direction", "uniform"):
        if name in values:
            result[name] = round(float(values[name].mean()), 4)
            result[f"{name}_item"] = round(float(values[name].sum() / items), 4)
    result["perplexity"] = round(float(np.exp(-values["model"].mean())), 4)
    result["best"] = round(float(values["best"].mean()), 4)
    result["best_uniform"] = round(float(np.exp(values["uniform"]).mean()), 4)
    return result


def table(scores: dict[str, dict[str, Any]]) -> str:
    names = {"N": "noun nodes", "V": "verb nodes", "all": "all"}
    head = "| held-out | nodes | log p a node: model | direction | uniform | perplexity | best order right | blindly |"
    rows = [head, "|---|---|---|---|---|---|---|---|"]
    for key, score in scores.items():
        numbers = [f"{score.get(k, float('nan')):.3f}" for k in ("model", "direction", "uniform", "perplexity")]
        shares = [f"{100 * score.get(k, 0.0):.1f} %" for k in ("best", "best_uniform")]
        rows.append(f"| {names[key]} | {score['nodes']} | {' | '.join([*numbers, *shares])} |")
    return "\n".join(rows)


@dataclass(frozen=True)
class Shares:
    """For each (head's tag, arc): how many dependents stand before the head, and how many there are."""

    counts: dict[Pair, tuple[int, int]]

    @staticmethod
    def of(batches: Iterable[Corpus]) -> Shares:
        counts: dict[Pair, list[int]] = {}
        for corpus in batches:
            forest = Forest.of(corpus)
            upos, arc = corpus.columns["upos"].values(), corpus.columns["deprel"].values()
            for row in np.flatnonzero(forest.parent >= 0).tolist():
                head = int(forest.parent[row])
                if upos[head] in CLASS_OF_HEAD:
                    entry = counts.setdefault((upos[head], arc[row]), [0, 0])
                    entry[0] += row < head
                    entry[1] += 1
        return Shares({pair: (before, total) for pair, (before, total) in counts.items()})

    def share(self, pair: Pair) -> float:
        before, total = self.counts[pair]
        return before / total


def closeness(
    parent: Iterable[Corpus], reordered: Iterable[Corpus], target: Iterable[Corpus], enough: int = ENOUGH
) -> dict[str, Any]:
    """Distances of ``parent`` and ``reordered`` to ``target``, over relations seen ``enough`` times in both.

    ``pairs``: {head arc parent reordered target count}; ``before`` and ``after``: mean absolute
    difference; ``before_weighted`` and ``after_weighted``: weighted by the parent's counts.
    """
    source, after, goal = Shares.of(parent), Shares.of(reordered), Shares.of(target)
    shared = [p for p in source.counts if min(source.counts[p][1], goal.counts.get(p, (0, 0))[1]) >= enough]
    rows: list[dict[str, Any]] = []
    gaps: list[list[float]] = []
    for head, arc in sorted(shared, key=lambda p: (-source.counts[p][1], p)):
        pair = (head, arc)
        values = {"parent": source.share(pair), "reordered": after.share(pair), "target": goal.share(pair)}
        gaps.append([values["parent"] - values["target"], values["reordered"] - values["target"]])
        rows.append({"head": head, "arc": arc, "count": source.counts[pair][1], **values})
    weights = np.asarray([row["count"] for row in rows], dtype=np.float64)
    result: dict[str, Any] = {"relations": len(rows), "pairs": rows}
    for name, gap in zip(("before", "after"), np.abs(np.asarray(gaps).reshape(-1, 2)).T, strict=True):
        result[name] = round(float(gap.mean()), 4) if rows else None
        result[f"{name}_weighted"] = round(float(np.average(gap, weights=weights)), 4) if rows else None
    return result
