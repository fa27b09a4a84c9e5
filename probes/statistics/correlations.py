"""Correlation over cells, seeds and checkpoints: in blocks, by cluster, with permutation p and bootstrap interval.

``blocks`` are compared within only, so that a difference between them (the pretraining method) is no correlation.
``clusters`` are rows that are not independent (the seeds of a cell): a permutation moves and a bootstrap draws them as
wholes. The equations are in correlation_values.

Two clusters may change places if they have the same profile: as many rows in each block. Then the rows of one get the
x of the other, block by block and in the order of the rows. Where x is the same on all rows that a cluster has in a
block (an alignment score of a model that was fine-tuned with several seeds), the blocks must be the same but not the
number of rows. Rows without a cluster are clusters of one row, and they change places within their block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice, permutations, product
from math import factorial, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from probes.statistics.correlation_values import NUMBERS, Kind, Rows, permuted, weighted
from probes.statistics.intervals import BOOTSTRAP_ROUNDS, Floats, generator, values_of

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
    units, parts = Units(block, cluster), groups_of(block)
    counts = (kind, n, len(parts), len(units.rows))
    if n < 3:
        return Correlation(*counts, level=level, reason=f"{n} pair{'s' * (n != 1)}: a correlation needs at least 3")
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
    values: Sequence[str | int] = names if names is not None else range(n) if alone else [0] * n
    assert len(values) == n, (len(values), n)
    index: dict[str | int, int] = {}
    return np.array([index.setdefault(name, len(index)) for name in values], np.intp)


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
        return None, None, f"a block has more than {KENDALL_ROWS:,} rows: too many pairs to draw anew"
    drawn = _in_chunks(x, y, drawn_weights(units, BOOTSTRAP_ROUNDS, random), parts, kind)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < BOOTSTRAP_ROUNDS / 2:
        return None, None, "a side is constant in more than half of the draws"
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
    return np.asarray(stats.norm.cdf(bias + z / np.maximum(1 - a * z, 1e-9)), np.float64)


CHUNK = 1_000_000  # row numbers that a chunk of permutations holds


@dataclass(frozen=True)
class ExchangeableClusters:
    """Clusters that may change places.

    slots     [members, slots] the row that stands in each slot of a member
    rows      [k] the rows of all members
    member    [k] the member each belongs to
    slot      [k] the slot it takes its x from
    """

    slots: Rows
    rows: Rows
    member: Rows
    slot: Rows


@dataclass(frozen=True)
class Units:
    """The clusters of n rows: the ``block`` [n] and the ``cluster`` [n] of each row, 0, 1, …"""

    block: Rows
    cluster: Rows

    @cached_property
    def rows(self) -> tuple[Rows, ...]:
        """Those of each cluster."""
        return groups_of(self.cluster)

    @property
    def strata(self) -> list[Rows]:
        """Which clusters a bootstrap draws from: those of the same blocks; those that are alone in theirs, together.

        What is varied between blocks was chosen, not drawn, so each block keeps about its size.
        """
        members: dict[tuple[int, ...], list[int]] = {}
        for unit, rows in enumerate(self.rows):
            members.setdefault(tuple(np.unique(self.block[rows]).tolist()), []).append(unit)
        alone = [units[0] for units in members.values() if len(units) == 1]
        found = [units for units in members.values() if len(units) > 1]
        return [np.array(units, np.intp) for units in (*found, *([alone] if alone else []))]

    def groups(self, x: Floats) -> list[ExchangeableClusters]:
        """The clusters that may exchange their x [n], by profile."""
        constant = all(np.ptp(x[part]) == 0 for rows in self.rows for part in self._parts(rows).values())
        members: dict[tuple[tuple[int, int], ...], list[Rows]] = {}
        for rows in self.rows:
            sizes = {b: 1 if constant else len(part) for b, part in self._parts(rows).items()}
            members.setdefault(tuple(sorted(sizes.items())), []).append(rows)
        return [self._group(units, constant) for units in members.values() if len(units) > 1]

    def _parts(self, rows: Rows) -> dict[int, Rows]:
        return {int(b): rows[self.block[rows] == b] for b in np.unique(self.block[rows])}

    def _group(self, units: Sequence[Rows], constant: bool) -> ExchangeableClusters:
        slots, rows, member, slot = [], [], [], []
        for number, unit in enumerate(units):
            parts = list(self._parts(unit).values())
            ordered = np.concatenate(parts)
            slots.append([int(part[0]) for part in parts] if constant else ordered.tolist())
            where = np.repeat(np.arange(len(parts)), [len(p) for p in parts]) if constant else np.arange(len(ordered))
            rows.append(ordered)
            member.append(np.full(len(ordered), number))
            slot.append(where)
        joined = (np.concatenate(columns).astype(np.intp) for columns in (rows, member, slot))
        return ExchangeableClusters(np.array(slots, np.intp), *joined)


def groups_of(codes: NDArray[np.intp]) -> tuple[Rows, ...]:
    """The rows of each code, codes in order, rows in order."""
    order = np.argsort(codes, kind="stable")
    return tuple(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)) if len(codes) else ()


def arrangements(groups: Sequence[ExchangeableClusters]) -> int:
    """In how many ways the clusters can stand."""
    return prod(factorial(len(group.slots)) for group in groups)


def every_arrangement(groups: Sequence[ExchangeableClusters], n: int) -> Iterator[Rows]:
    """All of them in chunks of [r, n]: the row each row takes its x from."""
    choices = product(*(permutations(range(len(group.slots))) for group in groups))
    while chunk := list(islice(choices, max(1, CHUNK // n))):
        yield _placed(groups, [np.array(orders, np.intp) for orders in zip(*chunk, strict=True)], n)


def drawn_arrangements(
    groups: Sequence[ExchangeableClusters], n: int, rounds: int, random: np.random.Generator
) -> Iterator[Rows]:
    """``rounds`` random ones in chunks of [r, n]."""
    size = max(1, CHUNK // n)
    for start in range(0, rounds, size):
        r = min(size, rounds - start)
        orders = [random.permuted(np.tile(np.arange(len(g.slots)), (r, 1)), axis=1) for g in groups]
        yield _placed(groups, orders, n)


def _placed(groups: Sequence[ExchangeableClusters], orders: Sequence[Rows], n: int) -> Rows:
    """[r, n] from the order [r, members] of each group."""
    found = np.tile(np.arange(n, dtype=np.intp), (len(orders[0]), 1))
    for group, order in zip(groups, orders, strict=True):
        found[:, group.rows] = group.slots[order[:, group.member], group.slot]
    return found


def drawn_weights(units: Units, rounds: int, random: np.random.Generator) -> Floats:
    """[rounds, n] how often each row was drawn, clusters with replacement within their strata."""
    counts = np.zeros((rounds, len(units.rows)))
    for stratum in units.strata:
        picks = random.integers(len(stratum), size=(rounds, len(stratum)))
        np.add.at(counts, (np.arange(rounds)[:, None], stratum[picks]), 1)
    return counts[:, units.cluster]
