"""How well an order model predicts the orders of trees it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus
from synthlang.order.baseline import Direction
from synthlang.order.distribution import ClassDistribution, distribution
from synthlang.order.labels import Scheme
from synthlang.order.model import OrderModel
from synthlang.order.nodes import Nodes
from synthlang.order.training import nodes_of, observed

Floats = NDArray[np.float64]


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
    """The scores as a table in Markdown."""
    names = {"N": "noun nodes", "V": "verb nodes", "all": "all"}
    head = "| held-out | nodes | log p a node: model | direction | uniform | perplexity | best order right | blindly |"
    rows = [head, "|---|---|---|---|---|---|---|---|"]
    for key, score in scores.items():
        numbers = [f"{score.get(k, float('nan')):.3f}" for k in ("model", "direction", "uniform", "perplexity")]
        shares = [f"{100 * score.get(k, 0.0):.1f} %" for k in ("best", "best_uniform")]
        rows.append(f"| {names[key]} | {score['nodes']} | {' | '.join([*numbers, *shares])} |")
    return "\n".join(rows)
