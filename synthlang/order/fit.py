"""Fit an order model to a treebank: maximal conditional likelihood with an L2 prior (Wang & Eisner 2016, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.order.evaluate import evaluate
from synthlang.order.items import CLASSES, MOST_ITEMS, NodeClass, Scheme
from synthlang.order.model import OrderModel
from synthlang.order.training import Design, bags_of, check_names, frequent_ngrams, heads_in, nodes_of
from synthlang.progress import Report, silent

Floats = NDArray[np.float64]
L2 = 3.0
MOST_ITEMS_TO_FIT = 6
DECIMALS = 4
SMALLEST = 0.005  # smaller weights are left out of the model
ITERATIONS = 500


def fit(
    corpus: Corpus,
    name: str,
    l2: Sequence[float] = (L2,),
    choose_on: Corpus | None = None,
    most_items: int = MOST_ITEMS_TO_FIT,
    labels: Scheme = "ud2",
    iterations: int = ITERATIONS,
    report: Report = silent,
    about: Mapping[str, str] | None = None,
) -> OrderModel:
    """The model of the nodes of 2 … ``most_items`` items in the projective sentences of a treebank.

    ``l2`` is λ of the penalty λ/2 · ‖w‖²; of several the one with the highest likelihood of the trees
    ``choose_on``. Weights are rounded to 4 decimals and those below 0.005 are left out. ``about`` goes into
    the file: treebank, licence, attribution. A class of nodes that the treebank does not have is reported and
    left out of the model; InputError if it has neither, and for whatever else cannot be fitted.
    """
    _check(l2, choose_on, most_items)
    designs = _designs(corpus, name, most_items, report)
    notes: dict[str, Any] = {"most_items": most_items, "decimals": DECIMALS, "smallest": SMALLEST}
    best, best_score = None, -np.inf
    tried = []
    for value in l2:
        weights, by_class = {}, {}
        for node, design in designs.items():
            found, steps = maximise(design, value, iterations, report, f"order model {name}, {node}, L2 {value:g}")
            weights[node] = _rounded(design, found)
            counts = {"nodes": int(design.nodes), "features": len(design.features), "kept": len(weights[node])}
            by_class[node] = {**counts, "iterations": steps, "converged": steps < iterations}
        facts = {"name": name, "labels": labels, "weights": weights, **(about or {})}
        model = parse(OrderModel, {**facts, "fit": {**notes, **by_class, "l2": value}})
        score = evaluate(model, choose_on, labels="faithful")["all"]["model"] if choose_on and len(l2) > 1 else 0.0
        tried.append([value, score])
        if score > best_score:
            best, best_score = model, score
    assert best is not None
    return best if len(l2) == 1 else best.model_copy(update={"fit": {**best.fit, "tried": tried}})


def _designs(corpus: Corpus, name: str, most_items: int, report: Report) -> dict[NodeClass, Design]:
    """The data of each class of nodes that the treebank has."""
    designs: dict[NodeClass, Design] = {}
    for node in CLASSES:
        bags = [bags_of(nodes) for nodes in nodes_of(corpus, node, most_items).values()]
        if any(len(group.count) for group in bags):
            check_names(bags, node, name)
            designs[node] = Design(bags, frequent_ngrams(bags))
        else:
            note = f"no node with a {heads_in(node)} head to learn from: the model keeps their order"
            report(f"order model {name}, {node}", 1, 1, note)
    if not designs:
        heads = ", ".join(heads_in(node) for node in CLASSES)
        raise InputError(f"{name} has no node with a {heads} head in a projective sentence to learn an order from")
    return designs


def _check(l2: Sequence[float], choose_on: Corpus | None, most_items: int) -> None:
    for value in l2 or (float("nan"),):
        if not 0.0 < value < float("inf"):
            raise InputError(f"the weight of the L2 prior must be a number above 0, not {value}")
    if len(l2) > 1 and choose_on is None:
        raise InputError("to choose among several weights of the L2 prior, name a split to choose on")
    if not 2 <= most_items <= MOST_ITEMS:
        raise InputError(f"the most items of a node to learn from must be 2 to {MOST_ITEMS}, not {most_items}")


def maximise(
    design: Design, l2: float, iterations: int = ITERATIONS, report: Report = silent, task: str = "order model"
) -> tuple[Floats, int]:
    """The weights of maximal penalised likelihood, and how many iterations L-BFGS took from zero."""
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
        report(task, done, iterations, f"loss a node {latest / design.nodes:.4f}")

    start = np.zeros(len(design.features))
    found, _, _ = fmin_l_bfgs_b(
        loss, start, m=20, factr=1e6, pgtol=1e-3, maxiter=iterations, maxfun=2 * iterations, callback=step
    )
    if done < iterations:
        report(task, iterations, iterations, f"converged after {done} iterations")
    return np.asarray(found, dtype=np.float64), done


def _rounded(design: Design, weights: Floats) -> dict[str, float]:
    rounded = np.round(weights, DECIMALS).tolist()
    return {name: w for name, w in sorted(zip(design.features, rounded, strict=True)) if abs(w) >= SMALLEST}
