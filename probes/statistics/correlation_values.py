"""Correlations within blocks for many samples at once, with permuted or weighted rows.

Every coefficient is the cosine of two vectors of scores (Daniels 1944). Each block contributes one part of a vector:

    pearson    values minus the mean of their block
    spearman   mid-ranks within the block minus their mean
    kendall    signs of the differences of all pairs of rows within the block (with one block, tau-b)

    r = Σ_b Σ_i u_bi v_bi / √(Σ_b Σ_i u_bi² · Σ_b Σ_i v_bi²)

Differences between blocks therefore do not contribute, and with one block r is the ordinary correlation. The weight of
a block is its spread, which grows with the cube of its number of rows for ranks, and with the square for pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from probes.statistics.intervals import Floats

Kind = Literal["spearman", "kendall", "pearson"]
COEFFICIENTS: tuple[Kind, ...] = get_args(Kind)
Rows = NDArray[np.intp]
PAIRWISE_UP_TO = 128
"""Block size up to which Kendall's pairs of rows form a table. In larger blocks they are counted by sorting."""
NUMBERS = 4_000_000
"""Maximum number of array elements in a chunk of samples."""


def permuted(x: Floats, y: Floats, blocks: Sequence[Rows], kind: Kind) -> Floats:
    """Return correlations [r] of x with y. A correlation is NaN if x or y is constant in every block.

    The equation is at the top of this file.

    Args:
        x: [r, n] the samples of the first variable, such as permutations of its values.
        y: [n] the second variable.
        blocks: The rows of each block, as indices from 0 to n − 1.
        kind: The coefficient.
    """
    return _cosine([SUMS[kind][0](x[:, rows], y[rows]) for rows in blocks])


def weighted(x: Floats, y: Floats, weights: Floats, blocks: Sequence[Rows], kind: Kind) -> Floats:
    """Return correlations [r] of x with y if row i occurs weights[r, i] times.

    A correlation is NaN if x or y is constant in every block among the rows that occur. The equation is at the top of
    this file, with each row counted as often as it occurs.

    Args:
        x: [n] the first variable.
        y: [n] the second variable.
        weights: [r, n] the number of times that each row occurs in each sample, at least 0.
        blocks: The rows of each block, as indices from 0 to n − 1.
        kind: The coefficient.
    """
    return _cosine([SUMS[kind][1](x[rows], y[rows], weights[:, rows]) for rows in blocks])


Sums = tuple[Floats, Floats, Floats]  # Σuv, Σu², Σv² of one block, each [r]


def _cosine(parts: Sequence[Sums]) -> Floats:
    product, left, right = (np.asarray(sum(column), np.float64) for column in zip(*parts, strict=True))
    norm = np.sqrt(left * right)
    with np.errstate(invalid="ignore", divide="ignore"):
        r: Floats = np.clip(np.where(norm > 0, product / norm, np.nan), -1, 1)
    return r


def _products(u: Floats, v: Floats) -> Sums:
    return (u * v).sum(1), (u * u).sum(1), (v * v).sum(1)


def _weighted_products(u: Floats, v: Floats, weights: Floats) -> Sums:
    return (weights * u * v).sum(1), (weights * u * u).sum(1), (weights * v * v).sum(1)


def _pearson(x: Floats, y: Floats) -> Sums:
    return _products(_centred(x), _centred(y[None]))


def _spearman(x: Floats, y: Floats) -> Sums:
    return _products(_centred(_ranks(x)), _centred(_ranks(y[None])))


def _centred(rows: Floats) -> Floats:
    """Subtract the mean of each row. A constant row becomes exactly 0, so that rounding errors do not correlate."""
    found: Floats = np.where(np.ptp(rows, axis=1, keepdims=True) > 0, rows - rows.mean(1, keepdims=True), 0.0)
    return found


def _ranks(rows: Floats) -> Floats:
    return np.asarray(stats.rankdata(rows, axis=1), np.float64)


def _kendall(x: Floats, y: Floats) -> Sums:
    n = len(y)
    if n > PAIRWISE_UP_TO:
        columns = np.array([_kendall_sorted(row, y) for row in x]).T
        return columns[0], columns[1], columns[2]
    size, right = max(1, NUMBERS // n**2), _signs(y[None])
    parts = []
    for start in range(0, len(x), size):
        left = _signs(x[start : start + size])
        parts.append((left @ right[0], (left * left).sum(1)))
    products, norms = (np.concatenate(column) for column in zip(*parts, strict=True))
    return products, norms, np.broadcast_to((right * right).sum(), products.shape)


def _signs(rows: Floats) -> Floats:
    return np.asarray(np.sign(rows[:, :, None] - rows[:, None, :]), np.float64).reshape(len(rows), -1)


def _kendall_sorted(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Compute the sums over ordered pairs from tau-b, by sorting in O(n log n)."""
    left, right = _untied(x), _untied(y)
    if not left or not right:
        return 0.0, left, right
    tau = float(stats.kendalltau(x, y, method="asymptotic").statistic)
    return float(round(tau * (left * right) ** 0.5)), left, right


def _untied(values: Floats) -> float:
    """Return the number of ordered pairs of different values."""
    _, counts = np.unique(values, return_counts=True)
    return float(len(values) ** 2 - (counts.astype(np.float64) ** 2).sum())


def _weighted_pearson(x: Floats, y: Floats, weights: Floats) -> Sums:
    return _weighted_products(_weighted_centred(x, weights), _weighted_centred(y, weights), weights)


def _weighted_spearman(x: Floats, y: Floats, weights: Floats) -> Sums:
    return _weighted_products(_weighted_ranks(x, weights), _weighted_ranks(y, weights), weights)


def _weighted_centred(x: Floats, weights: Floats) -> Floats:
    total = np.maximum(weights.sum(1, keepdims=True), 1e-300)
    found: Floats = x - (weights @ x)[:, None] / total
    # if all drawn rows have the same value, only rounding is left
    lowest = np.where(weights > 0, x, np.inf).min(1, keepdims=True)
    highest = np.where(weights > 0, x, -np.inf).max(1, keepdims=True)
    return np.where(highest > lowest, found, 0.0)


def _weighted_ranks(x: Floats, weights: Floats) -> Floats:
    """Return mid-ranks minus their mean [r, n]. A mid-rank is the weight below plus half of the ties."""
    order = np.argsort(x, kind="stable")
    below = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights[:, order], axis=1)], axis=1)
    sorted_x = x[order]
    first, last = (np.searchsorted(sorted_x, x, side=side) for side in ("left", "right"))
    found: Floats = (below[:, first] + below[:, last] - below[:, -1:]) / 2
    return found


def _weighted_kendall(x: Floats, y: Floats, weights: Floats) -> Sums:
    """Return Kendall's sums over pairs of rows, weighted by w_i w_j. Two draws of one row are tied."""
    left, right = (_signs(values[None]).reshape(len(x), -1) for values in (x, y))
    first, second, third = (
        ((weights @ table) * weights).sum(1) for table in (left * right, np.abs(left), np.abs(right))
    )
    return first, second, third


SUMS: dict[Kind, tuple[Callable[[Floats, Floats], Sums], Callable[[Floats, Floats, Floats], Sums]]] = {
    "pearson": (_pearson, _weighted_pearson),
    "spearman": (_spearman, _weighted_spearman),
    "kendall": (_kendall, _weighted_kendall),
}
