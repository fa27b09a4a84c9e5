"""Correlation with blocks and clusters, a permutation p-value and a bootstrap interval.

Rows are compared within ``blocks`` only. Differences between blocks, such as pretraining objectives, have no effect.
``clusters`` are groups of dependent rows, such as the seeds of a cell. The correlation is over clusters: in each block,
a cluster is one point at its mean x and mean y. An association within clusters (a good seed and a good score) therefore
has no effect. Equations are in ``correlation_values.py``.

A permutation exchanges the x values of clusters that have points in the same blocks, block by block. The bootstrap
draws clusters. A row without a cluster is a cluster of one row.

``scipy.stats.permutation_test`` and ``bootstrap`` support neither blocks nor clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice, permutations, product
from math import factorial, fsum, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from probes.statistics.correlation_values import NUMBERS, Kind, Rows, permuted, weighted
from probes.statistics.intervals import BOOTSTRAP_ROUNDS, Floats, generator, values_of

EXACT_ARRANGEMENTS = 40_320
"""Number of permutations (8!) up to which all of them are counted."""
PERMUTATIONS = 10_000
SMALLEST_BOOTSTRAP = 5
"""Minimum number of clusters for an interval, because the bootstrap of a correlation fails with fewer."""
KENDALL_ROWS = 3_000
"""Maximum number of rows in a block for Kendall's interval, whose memory grows with the square."""
ROUNDING = 1e-12
"""Difference up to which two correlations count as equal."""
Codes = Sequence[str] | Sequence[int] | None


@dataclass(frozen=True)
class Correlation:
    """A correlation with its p-value and interval. A missing number is None and has a reason.

    Attributes:
        kind: The coefficient.
        n: Number of rows.
        blocks: Number of blocks.
        clusters: Number of clusters, without clusters whose rows are all in blocks where x or y is constant.
        r: The correlation, from −1 to 1.
        p: The two-sided permutation p value, 0 to 1.
        exact: True if ``p`` is computed from all permutations, and not from a random sample.
        low: Lower bound of the confidence interval of ``r``.
        high: Upper bound of the confidence interval of ``r``.
        level: Confidence level, 0 to 1.
        reason: The reason for a missing ``r``, in which case ``p`` and the bounds are missing, too.
        no_p: The reason for a missing ``p`` of a known ``r``.
        no_interval: The reason for missing bounds of a known ``r``.
    """

    kind: Kind
    n: int
    blocks: int
    clusters: int
    r: float | None = None
    p: float | None = None
    exact: bool = False
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    reason: str | None = None
    no_p: str | None = None
    no_interval: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all attributes by name, as JSON values."""
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
    """Correlate two variables, with a permutation p-value and a bootstrap interval.

    p is the share of permutations of x whose |r| is at least the observed |r|. If there are at most EXACT_ARRANGEMENTS
    permutations, all of them are used. Otherwise p is (1 + hits) / (1 + PERMUTATIONS) over random permutations, where
    hits is the number of random permutations with such an |r| (Phipson & Smyth 2010).

    The interval comes from BOOTSTRAP_ROUNDS draws of clusters within their strata (`Units.strata`). Draws in which x
    or y is constant are left out. For ``pearson``, the interval is the BCa interval (Efron 1987; Davison & Hinkley
    1997, section 5.3) with the jackknife over clusters. For rank correlations, it is the percentile interval, because
    BCa cannot correct for the ties of clusters that are drawn twice. Such ties pull draws towards 0, so every interval
    is extended to include r. With few clusters the interval is too narrow.

    With fewer than three rows, or if a variable is constant within every block, there is no r, no p and no interval.
    There is no p if nothing can be permuted. There is no interval for fewer than SMALLEST_BOOTSTRAP clusters,
    for Kendall's τ with more than KENDALL_ROWS rows in a block, or if a variable is constant in most draws.

    Args:
        x: [n] the first variable.
        y: [n] the second variable.
        key: The key of the random draws.
        kind: The coefficient.
        blocks: [n] the names of the blocks (default: one block).
        clusters: [n] the names of the clusters (default: each row is a separate cluster).
        level: The confidence level of the interval, 0 to 1.

    Raises:
        InputError: A value is NaN or infinite. Fewer than three rows are not checked.
    """
    assert 0 < level < 1, level
    left, right = np.asarray(x, np.float64), np.asarray(y, np.float64)
    assert left.ndim == 1 and left.shape == right.shape, (left.shape, right.shape)
    n = len(left)
    block, cluster = _codes(blocks, n, alone=False), _codes(clusters, n, alone=True)
    count = len(groups_of(block))
    if n < 3:
        counts = (kind, n, count, len(groups_of(cluster)))
        return Correlation(*counts, level=level, reason=f"{n} pair{'s' * (n != 1)}: a correlation needs at least 3")
    left, right, units = _points(values_of(left, (1,)), values_of(right, (1,)), block, cluster)
    parts = groups_of(units.block)
    for side, values in (("first", left), ("second", right)):
        if all(np.ptp(values[rows]) == 0 for rows in parts):
            where = " within every block" if len(parts) > 1 else ""
            reason = f"the {side} variable is constant{where}"
            return Correlation(kind, n, count, len(units.rows), level=level, reason=reason)
    telling = _telling(left, right, units, parts)
    r = float(permuted(left[None], right, parts, kind)[0])
    random = generator(key)
    p, exact, no_p = _permutation_p(left, right, r, units, parts, kind, random)
    low, high, no_interval = _bounds(left, right, r, units, parts, telling, kind, level, random)
    return Correlation(kind, n, count, telling, r, p, exact, low, high, level, None, no_p, no_interval)


def _points(x: Floats, y: Floats, block: Rows, cluster: Rows) -> tuple[Floats, Floats, Units]:
    """Return the mean x and mean y [k] of each cluster in each of its blocks, and the units."""
    of_points = groups_of(cluster * (int(block.max()) + 1) + block)
    first = np.array([rows[0] for rows in of_points], np.intp)
    means = (np.array([_mean(side[rows]) for rows in of_points]) for side in (x, y))
    return *means, Units(block[first], cluster[first])  # type: ignore[return-value]


def _mean(values: Floats) -> float:
    """Return a mean that does not depend on the order of values, and is exact for equal values."""
    least = float(values.min())
    return least + fsum(value - least for value in values.tolist()) / len(values)


def _codes(names: Codes, n: int, *, alone: bool) -> Rows:
    """Return codes [n] by first appearance of the names.

    If ``names`` is None, all rows have the same code, or with ``alone`` each row has its own code.
    """
    values: Sequence[str | int] = names if names is not None else range(n) if alone else [0] * n
    assert len(values) == n, (len(values), n)
    index: dict[str | int, int] = {}
    return np.array([index.setdefault(name, len(index)) for name in values], np.intp)


def _telling(x: Floats, y: Floats, units: Units, parts: Sequence[Rows]) -> int:
    """Count the clusters that have a row in a block where both x and y vary."""
    varies = np.zeros(len(x), bool)
    for rows in parts:
        varies[rows] = np.ptp(x[rows]) > 0 and np.ptp(y[rows]) > 0
    return sum(bool(varies[rows].any()) for rows in units.rows)


def _permutation_p(
    x: Floats, y: Floats, r: float, units: Units, parts: Sequence[Rows], kind: Kind, random: np.random.Generator
) -> tuple[float | None, bool, str | None]:
    groups = units.groups
    total = prod(factorial(len(points)) for points in groups)
    if total == 1:
        return None, False, "no two clusters are in the same blocks, so there is no permutation"
    exact = total <= EXACT_ARRANGEMENTS
    chunks = every_arrangement(groups, len(x)) if exact else drawn_arrangements(groups, len(x), PERMUTATIONS, random)
    hits = sum(int((np.abs(permuted(x[rows], y, parts, kind)) >= abs(r) - ROUNDING).sum()) for rows in chunks)
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
        return None, None, f"a block has more than {KENDALL_ROWS:,} rows, too many for a bootstrap of Kendall's τ"
    drawn = _in_chunks(x, y, drawn_weights(units, BOOTSTRAP_ROUNDS, random), parts, kind)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < BOOTSTRAP_ROUNDS / 2:
        return None, None, "a variable is constant in more than half of the draws"
    quantiles = np.array([(1 - level) / 2, (1 + level) / 2])
    if kind == "pearson":
        one_less = (1 - np.eye(len(units.rows)))[:, units.cluster]  # [units, n] all rows but those of one cluster
        left_out = _in_chunks(x, y, one_less, parts, kind)
        quantiles = _bca(drawn, r, _acceleration(left_out, units), quantiles)
    low, high = np.quantile(drawn, quantiles)
    return min(float(low), r), max(float(high), r), None


def _in_chunks(x: Floats, y: Floats, weights: Floats, parts: Sequence[Rows], kind: Kind) -> Floats:
    size = max(1, NUMBERS // len(x))
    chunks = (weights[start : start + size] for start in range(0, len(weights), size))
    return np.concatenate([weighted(x, y, chunk, parts, kind) for chunk in chunks])


def _acceleration(left_out: Floats, units: Units) -> float:
    """Return the acceleration a = Σ_s Σ_i U_si³ / n_s³ / (6 (Σ_s Σ_i U_si² / n_s²)^1.5).

    U_si is (n_s − 1)(mean_s − value without cluster i).
    """
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
    """Adjust the quantiles by BCa (bias-corrected and accelerated bootstrap)."""
    below = ((drawn < r - ROUNDING).mean() + (drawn <= r + ROUNDING).mean()) / 2
    edge = 0.5 / len(drawn)
    bias = stats.norm.ppf(np.clip(below, edge, 1 - edge))
    z = bias + stats.norm.ppf(quantiles)
    return np.asarray(stats.norm.cdf(bias + z / np.maximum(1 - a * z, 1e-9)), np.float64)


CHUNK = 1_000_000
"""Maximum number of array elements in a chunk of permutations."""


@dataclass(frozen=True)
class Units:
    """The ``block`` [n] and the ``cluster`` [n] of n points, as codes from 0. No two points share both."""

    block: Rows
    cluster: Rows

    @cached_property
    def rows(self) -> tuple[Rows, ...]:
        """The points of each cluster, by the code of the cluster."""
        return groups_of(self.cluster)

    @property
    def strata(self) -> list[Rows]:
        """Groups of clusters for the bootstrap: clusters with the same blocks, and one group of all other clusters.

        Blocks are part of the design and not sampled, so each block keeps about its size.
        """
        members: dict[tuple[int, ...], list[int]] = {}
        for unit, rows in enumerate(self.rows):
            members.setdefault(tuple(np.unique(self.block[rows]).tolist()), []).append(unit)
        alone = [units[0] for units in members.values() if len(units) == 1]
        found = [units for units in members.values() if len(units) > 1]
        return [np.array(units, np.intp) for units in (*found, *([alone] if alone else []))]

    @cached_property
    def groups(self) -> list[Rows]:
        """Groups of exchangeable clusters, which have points in the same blocks. Each group is [members, blocks]."""
        members: dict[tuple[int, ...], list[Rows]] = {}
        for rows in self.rows:
            ordered = rows[np.argsort(self.block[rows])]
            members.setdefault(tuple(self.block[ordered].tolist()), []).append(ordered)
        return [np.stack(points) for points in members.values() if len(points) > 1]


def groups_of(codes: NDArray[np.intp]) -> tuple[Rows, ...]:
    """Return the rows of each code in ``codes`` [n], in the order of the codes."""
    order = np.argsort(codes, kind="stable")
    return tuple(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)) if len(codes) else ()


def every_arrangement(groups: Sequence[Rows], n: int) -> Iterator[Rows]:
    """Yield all permutations of n points in chunks [r, n].

    Entry i of a permutation is the point whose x is moved to point i. ``groups`` are the groups of exchangeable
    clusters (`Units.groups`).
    """
    choices = product(*(permutations(range(len(points))) for points in groups))
    while chunk := list(islice(choices, max(1, CHUNK // n))):
        yield _placed(groups, [np.array(orders, np.intp) for orders in zip(*chunk, strict=True)], n)


def drawn_arrangements(groups: Sequence[Rows], n: int, rounds: int, random: np.random.Generator) -> Iterator[Rows]:
    """Yield ``rounds`` random permutations of n points in chunks [r, n], in the form of `every_arrangement`.

    ``groups`` are the groups of exchangeable clusters (`Units.groups`).
    """
    size = max(1, CHUNK // n)
    for start in range(0, rounds, size):
        r = min(size, rounds - start)
        orders = [random.permuted(np.tile(np.arange(len(points)), (r, 1)), axis=1) for points in groups]
        yield _placed(groups, orders, n)


def _placed(groups: Sequence[Rows], orders: Sequence[Rows], n: int) -> Rows:
    """Combine the orders [r, members] of all groups into permutations [r, n]."""
    found = np.tile(np.arange(n, dtype=np.intp), (len(orders[0]), 1))
    for points, order in zip(groups, orders, strict=True):
        found[:, points.ravel()] = points[order].reshape(len(order), -1)
    return found


def drawn_weights(units: Units, rounds: int, random: np.random.Generator) -> Floats:
    """Draw clusters of ``units`` with replacement within strata, and return the draws of each point, [rounds, n]."""
    counts = np.zeros((rounds, len(units.rows)))
    for stratum in units.strata:
        picks = random.integers(len(stratum), size=(rounds, len(stratum)))
        np.add.at(counts, (np.arange(rounds)[:, None], stratum[picks]), 1)
    return counts[:, units.cluster]
