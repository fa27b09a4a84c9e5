"""Correlation over cells, seeds and checkpoints: in blocks, by cluster, with permutation p and bootstrap interval.

``blocks`` are compared within only, so that a difference between them (the pretraining method) is no correlation.
``clusters`` are rows that are not independent (the seeds of a cell): a permutation moves and a bootstrap draws them as
wholes. The equations are in correlation_values, what may change places is in correlation_units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from probes.statistics.base import BOOTSTRAP_ROUNDS, Floats, generator, values_of
from probes.statistics.correlation_units import (
    Units,
    arrangements,
    drawn_arrangements,
    drawn_weights,
    every_arrangement,
    groups_of,
    left_out_weights,
)
from probes.statistics.correlation_values import NUMBERS, Kind, Rows, permuted, weighted

EXACT_ARRANGEMENTS = 40_320
"""Up to so many permutations (8!) all are counted."""
PERMUTATIONS = 10_000
SMALLEST_BOOTSTRAP = 5
"""With fewer clusters a bootstrap of a correlation collapses; no interval is given."""
KENDALL_ROWS = 3_000
"""Kendall's interval needs memory of the square of the rows of a block."""
ROUNDING = 1e-12  # the rounding of equal correlations must not decide whether they count
Codes = Sequence[str] | Sequence[int] | None


@dataclass(frozen=True)
class Correlation:
    """A correlation over ``n`` rows of ``clusters`` clusters in ``blocks`` blocks, or None and the ``reason`` why.

    Clusters that lie only in blocks where a side is constant say nothing of how the sides go together and are not
    counted.
    """

    kind: Kind
    n: int
    blocks: int
    clusters: int
    r: float | None = None
    p: float | None = None
    """Two-sided permutation p-value."""
    exact: bool = False
    """Whether ``p`` counts all permutations, not a random sample of them."""
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    reason: str | None = None
    no_p: str | None = None
    no_interval: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def correlation(
    x: ArrayLike,
    y: ArrayLike,
    key: int,
    kind: Kind = "spearman",
    *,
    blocks: Codes = None,
    clusters: Codes = None,
    level: float = 0.95,
) -> Correlation:
    """Correlation of pairs x [n], y [n] with a permutation p and a bootstrap interval.

    blocks, clusters   [n] names; None: one block, each row a cluster

    p is the share of permutations of x whose |r| reaches the observed one: of all for ≤ EXACT_ARRANGEMENTS, else
    (1 + hits) / (1 + PERMUTATIONS) over random ones (Phipson & Smyth 2010). The interval is of BOOTSTRAP_ROUNDS draws
    of clusters within their strata, draws with a constant side left out. Of ``pearson`` it is BCa (Efron 1987; Davison
    & Hinkley 1997, section 5.3), corrected for bias and, by the jackknife over clusters, for skewness; of the rank
    correlations it is the percentile one: a cluster drawn twice makes ties that no sample has, and a correction for
    those is none. They pull draws towards 0, so the interval is widened where it would leave r out. With few clusters
    it is too narrow.
    Raises InputError for NaN and infinity.
    """
    assert 0 < level < 1, level
    left, right = np.asarray(x, np.float64), np.asarray(y, np.float64)
    assert left.ndim == 1 and left.shape == right.shape, (left.shape, right.shape)
    n = len(left)
    block, cluster = _codes(blocks, n, alone=False), _codes(clusters, n, alone=True)
    units, parts = Units.of(block, cluster), groups_of(block)
    counts = (kind, n, len(parts), len(units.rows))
    if n < 3:
        return Correlation(
            *counts, level=level, reason=f"{n} pair{'' if n == 1 else 's'}: a correlation needs at least 3"
        )
    left, right = values_of(left, (1,)), values_of(right, (1,))
    for side, values in (("first", left), ("second", right)):
        if all(np.ptp(values[rows]) == 0 for rows in parts):
            where = " within every block" if len(parts) > 1 else ""
            return Correlation(*counts, level=level, reason=f"the {side} side is constant{where}")
    telling = _telling(left, right, units, parts)
    r = float(permuted(left[None], right, parts, kind)[0])
    random = generator(key)
    p, exact, no_p = _permutation_p(left, right, r, units, parts, kind, random)
    low, high, no_interval = _bounds(left, right, r, units, parts, telling, kind, level, random)
    return Correlation(kind, n, len(parts), telling, r, p, exact, low, high, level, None, no_p, no_interval)


def _codes(names: Codes, n: int, *, alone: bool) -> Rows:
    """[n] 0, 1, … in order of first appearance; without names each row its own, or all the same."""
    if names is None:
        return np.arange(n) if alone else np.zeros(n, np.intp)
    assert len(names) == n, (len(names), n)
    index: dict[str | int, int] = {}
    return np.array([index.setdefault(name, len(index)) for name in names], np.intp)


def _telling(x: Floats, y: Floats, units: Units, parts: Sequence[Rows]) -> int:
    """How many clusters have a row in a block where both sides vary."""
    varies = np.zeros(len(x), bool)
    for rows in parts:
        varies[rows] = np.ptp(x[rows]) > 0 and np.ptp(y[rows]) > 0
    return sum(bool(varies[rows].any()) for rows in units.rows)


def _permutation_p(
    x: Floats, y: Floats, r: float, units: Units, parts: Sequence[Rows], kind: Kind, random: np.random.Generator
) -> tuple[float | None, bool, str | None]:
    groups, others = units.groups(x), units.groups(y)
    if arrangements(others) > arrangements(groups):  # y has one value a cluster, x has not
        x, y, groups = y, x, others
    total = arrangements(groups)
    if total == 1:
        return None, False, "no two clusters have the same number of rows in the same blocks: nothing can change places"
    exact = total <= EXACT_ARRANGEMENTS
    chunks = every_arrangement(groups, len(x)) if exact else drawn_arrangements(groups, len(x), PERMUTATIONS, random)
    hits = 0
    for picks in chunks:
        hits += int((np.abs(permuted(x[picks], y, parts, kind)) >= abs(r) - ROUNDING).sum())
    return (hits / total if exact else (1 + hits) / (1 + PERMUTATIONS)), exact, None


def _bounds(
    x: Floats,
    y: Floats,
    r: float,
    units: Units,
    parts: Sequence[Rows],
    count: int,
    kind: Kind,
    level: float,
    random: np.random.Generator,
) -> tuple[float | None, float | None, str | None]:
    if count < SMALLEST_BOOTSTRAP:
        return None, None, f"{count} clusters: a bootstrap needs at least {SMALLEST_BOOTSTRAP}"
    if kind == "kendall" and max(map(len, parts)) > KENDALL_ROWS:
        return None, None, f"a block has more than {KENDALL_ROWS:,} rows: too many pairs to draw anew"
    drawn = _in_chunks(x, y, drawn_weights(units, BOOTSTRAP_ROUNDS, random), parts, kind)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < BOOTSTRAP_ROUNDS / 2:
        return None, None, "a side is constant in more than half of the draws"
    quantiles = np.array([(1 - level) / 2, (1 + level) / 2])
    if kind == "pearson":
        left_out = _in_chunks(x, y, left_out_weights(units), parts, kind)
        quantiles = _bca(drawn, r, _acceleration(left_out, units), quantiles)
    low, high = np.quantile(drawn, quantiles)
    return min(float(low), r), max(float(high), r), None


def _in_chunks(x: Floats, y: Floats, weights: Floats, parts: Sequence[Rows], kind: Kind) -> Floats:
    size = max(1, NUMBERS // len(x))
    chunks = (weights[start : start + size] for start in range(0, len(weights), size))
    return np.concatenate([weighted(x, y, chunk, parts, kind) for chunk in chunks])


def _acceleration(left_out: Floats, units: Units) -> float:
    """a = Σ_s Σ_i U_si³ / n_s³ / (6 (Σ_s Σ_i U_si² / n_s²)^1.5), U_si = (n_s − 1)(mean_s − value without cluster i)."""
    cubes = squares = 0.0
    for stratum in units.strata:
        values = left_out[stratum]
        values = values[np.isfinite(values)]
        if len(values) > 1:
            influence = (len(values) - 1) * (values.mean() - values)
            cubes += float((influence**3).sum()) / len(values) ** 3
            squares += float((influence**2).sum()) / len(values) ** 2
    return cubes / (6 * squares**1.5) if squares > 0 else 0.0


def _bca(drawn: Floats, r: float, a: float, quantiles: Floats) -> Floats:
    """The quantiles to take instead of these."""
    below = ((drawn < r - ROUNDING).mean() + (drawn <= r + ROUNDING).mean()) / 2
    edge = 0.5 / len(drawn)
    bias = stats.norm.ppf(np.clip(below, edge, 1 - edge))
    z = bias + stats.norm.ppf(quantiles)
    scale = np.maximum(1 - a * z, 1e-9)
    found: Floats = np.asarray(stats.norm.cdf(bias + z / scale), np.float64)
    return found
