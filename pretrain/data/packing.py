"""The sentences of each row, and how such rows are written.

Sentences of one text in its order: ``<s> sentence </s> sentence </s> … <pad> …``. <s> takes one place, and a
sentence takes one more than its tokens. ``pack`` fills the rows in order.

Sentences that stand alone: ``<s> sentence </s> <s> sentence </s> … <pad> …``, none of which attends to another. A
sentence takes two more places than its tokens. It does not matter which of them share a row, so ``fill`` leaves
hardly a place empty.

Both decide once. Rows are written on request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.progress import Report, silent
from synthlang.shards import Shards
from synthlang.vocabularies import Specials

Ints = NDArray[np.int64]
CHUNK = 1 << 20  # sentences packed together; it bounds the memory and never changes the rows of ``pack``


@dataclass(frozen=True)
class RowItems:
    """The items of each row.

    Row r has the items ``starts[r]`` … ``starts[r + 1] − 1``, or those at these places of ``order``.
    """

    starts: Ints
    order: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the items of some rows one after another, and which of ``rows``, counted from 0, each is in."""
        place, row = ranges(self.starts[rows], self.starts[rows + 1])
        return place if self.order is None else self.order[place].astype(np.int64), row


def pack(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> RowItems:
    """Put items into rows in their order, as many into a row as fit.

    The work is O(items · log chunk) in NumPy, and one step of Python for each row.

    Args:
        costs: costs(first, last) [sides, last − first] is the cost of the items first … last − 1 on each side of a
            row, 0 … capacity. An item without a cost on any side is in a row but takes no place there.
        items: Number of items.
        capacity: Capacity of each side. A row takes items while every side has room (next fit: no row is opened
            again).
        task: Name of the task, for the progress.
        report: Gets the progress.
        chunk: Number of items that are packed together.
    """
    found = [np.zeros(1, np.int64)]
    first, size = 0, chunk
    while first < items:
        report(task, first, items, "")
        last = min(first + size, items)
        starts, rest = _follow(_ends(costs(first, last), capacity), last == items)
        found.append(first + starts)
        size = chunk if rest else 2 * size  # one row has the whole chunk and continues behind it
        first += rest
    report(task, items, items, "")
    return RowItems(np.concatenate(found))


def fill(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> RowItems:
    """Put items into rows that are as full as possible: best fit decreasing (Johnson 1973), in each ``chunk`` of items.

    Items of one cost are alike, so whole sets of rows are filled at once (Krell et al. 2021, "Efficient sequence
    packing without cross-contamination", arXiv 2107.02027). The work is a sort of the items, and some capacity²
    steps of Python.

    Args:
        costs: costs(first, last) [last − first] is the cost of the items first … last − 1. An item of cost 0 is
            left out.
        items: Number of items.
        capacity: Capacity of a row, at least the highest cost.
        task: Name of the task, for the progress.
        report: Gets the progress.
        chunk: Number of items that are packed together.
    """
    sizes, orders = [], []
    for first in range(0, items, chunk):
        report(task, first, items, "")
        cost = costs(first, min(first + chunk, items))
        by_cost = np.argsort(cost, kind="stable")
        stops = np.cumsum(np.bincount(cost, minlength=capacity + 1))
        taken = np.concatenate([[0], stops[:-1]])  # the place of the next item of each cost
        for pattern, count in _patterns(np.diff(stops, prepend=0), capacity):
            rows = np.empty((count, len(pattern)), np.int64)
            for column, item in enumerate(pattern):
                rows[:, column] = by_cost[taken[item] : taken[item] + count]
                taken[item] += count
            sizes.append(np.full(count, len(pattern)))
            orders.append((first + rows.ravel()).astype(np.min_scalar_type(items)))
    report(task, items, items, "")
    none = np.zeros(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes or [none]))])
    return RowItems(starts, np.concatenate(orders or [none]))


def _patterns(counts: Ints, capacity: int) -> list[tuple[tuple[int, ...], int]]:
    """Return the costs in a row, and the number of such rows. ``counts`` [capacity + 1] are the items of each cost."""
    rooms: dict[int, list[tuple[tuple[int, ...], int]]] = defaultdict(list)  # the rows by the room that is left
    for cost in range(capacity, 0, -1):
        left = int(counts[cost])
        while left:
            room = min((room for room, rows in rooms.items() if room >= cost and rows), default=None)
            pattern, rows = ((), left) if room is None else rooms[room].pop()
            room = capacity if room is None else room
            most = room // cost  # a row that takes one item has the least room for the next one, too
            full, rest = divmod(left, most)
            if full >= rows:
                full, rest = rows, 0
            for copies, count in ((most, full), (rest, int(rest > 0)), (0, rows - full - int(rest > 0))):
                if count and (pattern or copies):
                    rooms[room - copies * cost].append((pattern + (cost,) * copies, count))
            left -= most * full + rest
    return [one for rows in rooms.values() for one in rows]


def _ends(costs: Ints, capacity: int) -> Ints:
    """Return for each item the first one that no longer fits into a row that begins with it, [items]."""
    ends = []
    for side in costs:
        total = np.concatenate([[0], np.cumsum(side)])
        ends.append(np.searchsorted(total, total[:-1] + capacity, side="right") - 1)
    first: Ints = np.minimum.reduce(ends)
    assert bool((first > np.arange(len(first))).all()), "an item that fits into no row"
    return first


def _follow(ends: Ints, is_last: bool) -> tuple[Ints, int]:
    """Return the ends of the rows one after another, and the start of the first row that is not complete.

    That row may continue behind the chunk.
    """
    following = ends.tolist()
    rows, here, stop = [], 0, len(following)
    while here < stop:
        end = following[here]
        if end == stop and not is_last:
            break
        rows.append(end)
        here = end
    return np.asarray(rows, np.int64), here


def ranges(starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """Return the numbers start … stop − 1 of each range one after another, and the range of each number."""
    lengths = stops - starts
    which = np.repeat(np.arange(len(starts)), lengths)
    return np.arange(len(which)) + (starts - (np.cumsum(lengths) - lengths))[which], which


def write_sentences(out: Ints, shards: Shards, sentences: Ints, row: Ints, specials: Specials) -> NDArray[np.bool_]:
    """Write packed rows into ``out`` [rows, width], and return where there is no padding, [rows, width].

    Args:
        out: Place of the ids.
        shards: The text.
        sentences: The sentences of all rows, one after another, [n].
        row: The row of each, in ascending order, [n]. Every row has at least one.
        specials: The special ids.
    """
    rows, width = out.shape
    begin = shards.offsets[sentences]
    lengths = shards.offsets[sentences + 1] - begin
    before = np.cumsum(lengths + 1) - (lengths + 1)  # counted through all rows, with </s>
    column = 1 + before - before[np.searchsorted(row, np.arange(rows))][row]
    ids = np.full(rows * width, specials.pad, np.int64)
    place = row * width + column
    _write(ids, place, shards, begin, lengths, specials)
    out[:] = ids.reshape(rows, width)
    out[:, 0] = specials.bos
    used = np.zeros(rows, np.int64)
    used[row] = column + lengths + 1  # the last sentence of a row comes last
    return np.arange(width) < used[:, None]


def write_alone(out: Ints, shards: Shards, sentences: Ints, row: Ints, specials: Specials) -> tuple[Ints, Ints]:
    """Write rows of sentences that stand alone into ``out`` [rows, width].

    Args:
        out: Place of the ids.
        shards: The text.
        sentences: The sentences of all rows, one after another, [n].
        row: The row of each, in ascending order, [n].
        specials: The special ids.

    Returns:
        For each place, [rows, width], the number of its sentence in the row (−1: padding), and its position in it.
    """
    rows, width = out.shape
    begin = shards.offsets[sentences]
    lengths = shards.offsets[sentences + 1] - begin
    first = np.searchsorted(row, np.arange(rows))
    before = np.cumsum(lengths + 2) - (lengths + 2)  # counted through all rows
    start = row * width + before - before[first][row]
    ids = np.full(rows * width, specials.pad, np.int64)
    ids[start] = specials.bos
    _write(ids, start + 1, shards, begin, lengths, specials)
    out[:] = ids.reshape(rows, width)
    place, of = ranges(start, start + lengths + 2)
    number, position = np.full(rows * width, -1), np.zeros(rows * width, np.int64)
    number[place] = (np.arange(len(row)) - first[row])[of]
    position[place] = place - start[of]
    return number.reshape(rows, width), position.reshape(rows, width)


def _write(ids: Ints, place: Ints, shards: Shards, begin: Ints, lengths: Ints, specials: Specials) -> None:
    """Write the tokens of sentences from their ``place`` on, and </s> behind each."""
    token, of = ranges(begin, begin + lengths)
    ids[token + (place - begin)[of]] = shards.tokens[token]
    ids[place + lengths] = specials.eos
