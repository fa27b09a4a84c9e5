"""What a permutation moves and a bootstrap draws: clusters of rows, such as the seeds of one cell, in blocks.

Two clusters may change places if they have the same profile: as many rows in each block. Then the rows of one get the
x of the other, block by block and in the order of the rows. Where x is the same on all rows that a cluster has in a
block (an alignment score of a model that was fine-tuned with several seeds), the blocks must be the same but not the
number of rows. Rows without a cluster are clusters of one row, and they change places within their block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from probes.statistics.base import Floats
from probes.statistics.correlation_values import Rows

CHUNK = 1_000_000  # row numbers that a chunk of permutations holds


@dataclass(frozen=True)
class Group:
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
    """The clusters of n rows: ``rows`` of each, and ``block`` [n] the block of each row."""

    rows: tuple[Rows, ...]
    block: Rows

    @staticmethod
    def of(block: Rows, cluster: Rows) -> Units:
        """From the codes of each row [n]: 0, 1, …."""
        return Units(groups_of(cluster), block)

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

    def groups(self, x: Floats) -> list[Group]:
        """The clusters that may exchange their x [n], by profile."""
        constant = all(np.ptp(x[part]) == 0 for rows in self.rows for part in self._parts(rows).values())
        members: dict[tuple[tuple[int, int], ...], list[Rows]] = {}
        for rows in self.rows:
            sizes = {b: 1 if constant else len(part) for b, part in self._parts(rows).items()}
            members.setdefault(tuple(sorted(sizes.items())), []).append(rows)
        return [self._group(units, constant) for units in members.values() if len(units) > 1]

    def _parts(self, rows: Rows) -> dict[int, Rows]:
        return {int(b): rows[self.block[rows] == b] for b in np.unique(self.block[rows])}

    def _group(self, units: Sequence[Rows], constant: bool) -> Group:
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
        return Group(np.array(slots, np.intp), *joined)


def groups_of(codes: NDArray[np.intp]) -> tuple[Rows, ...]:
    """The rows of each code, codes in order, rows in order."""
    order = np.argsort(codes, kind="stable")
    return tuple(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)) if len(codes) else ()


def arrangements(groups: Sequence[Group]) -> int:
    """In how many ways the clusters can stand."""
    return prod(factorial(len(group.slots)) for group in groups)


def every_arrangement(groups: Sequence[Group], n: int) -> Iterator[Rows]:
    """All of them in chunks of [r, n]: the row each row takes its x from."""
    choices = product(*(permutations(range(len(group.slots))) for group in groups))
    while chunk := list(islice(choices, max(1, CHUNK // n))):
        yield _placed(groups, [np.array(orders, np.intp) for orders in zip(*chunk, strict=True)], n)


def drawn_arrangements(groups: Sequence[Group], n: int, rounds: int, random: np.random.Generator) -> Iterator[Rows]:
    """``rounds`` random ones in chunks of [r, n]."""
    size = max(1, CHUNK // n)
    for start in range(0, rounds, size):
        r = min(size, rounds - start)
        orders = [random.permuted(np.tile(np.arange(len(g.slots)), (r, 1)), axis=1) for g in groups]
        yield _placed(groups, orders, n)


def _placed(groups: Sequence[Group], orders: Sequence[Rows], n: int) -> Rows:
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
    return _per_row(units, counts)


def left_out_weights(units: Units) -> Floats:
    """[units, n] all rows but those of one cluster: the jackknife."""
    return _per_row(units, 1 - np.eye(len(units.rows)))


def _per_row(units: Units, counts: Floats) -> Floats:
    of_row = np.empty(len(units.block), np.intp)
    for unit, rows in enumerate(units.rows):
        of_row[rows] = unit
    found: Floats = counts[:, of_row]
    return found
