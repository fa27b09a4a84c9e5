"""What an order model is measured against: no knowledge at all, and the side of the head alone.

uniform      p(order) = 1 / n!
direction    each dependent stands left of the head with P(left | head's tag, arc), counted in the training
             text with one added to each side; the orders within a side are equally likely:
             p(order) = Π P(side) / (left! · right!)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from synthlang.order.nodes import Nodes

Floats = NDArray[np.float64]


def _sides(nodes: Nodes) -> tuple[list[list[tuple[str, str]]], NDArray[np.bool_]]:
    """[nodes][dependents] (head's tag, arc), and [nodes, dependents] whether each stands left of the head."""
    heads = [nodes.names[t][0].removeprefix("@") for t in nodes.types[:, 0].tolist()]
    arcs = [[nodes.names[t][1] for t in row] for row in nodes.types[:, 1:].tolist()]
    pairs = [[(head, arc) for arc in row] for head, row in zip(heads, arcs, strict=True)]
    return pairs, nodes.source[:, 1:] < nodes.source[:, :1]


@dataclass(frozen=True)
class Direction:
    """Counts of (left, right) by (head's tag, arc)."""

    counts: dict[tuple[str, str], tuple[int, int]]

    @staticmethod
    def of(groups: Iterable[Nodes]) -> Direction:
        """Count the sides of all dependents."""
        counts: dict[tuple[str, str], list[int]] = {}
        for nodes in groups:
            pairs, left = _sides(nodes)
            for row, flags in zip(pairs, left.tolist(), strict=True):
                for pair, is_left in zip(row, flags, strict=True):
                    counts.setdefault(pair, [0, 0])[0 if is_left else 1] += 1
        return Direction({pair: (a, b) for pair, (a, b) in counts.items()})

    def left(self, pair: tuple[str, str]) -> float:
        """P(left | head's tag, arc)."""
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
