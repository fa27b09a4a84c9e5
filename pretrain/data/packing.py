"""Assign sentences to rows once, and write rows on request.

``pack`` keeps the order of the text: ``<s> sentence </s> sentence </s> … <pad> …``. <s> takes one column, and a
sentence takes one column more than its tokens.

``fill`` is for sentences that do not attend to each other: ``<s> sentence </s> <s> sentence </s> … <pad> …``. A
sentence takes two columns more than its tokens. Any sentences may share a row, so the rows are nearly full.
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
CHUNK = 1 << 20  # sentences that are packed together, which bounds the memory and does not affect ``pack``


@dataclass(frozen=True)
class RowItems:
    """The items of each row.

    Row r has the items ``starts[r]`` … ``starts[r + 1] − 1``. With ``order``, these numbers are indices into ``order``,
    which has the items.

    Attributes:
        starts: First item of each row, and the number of items, [rows + 1] int64.
        order: The items of all rows, one row after another, [items]. None means that rows take items in their order.
    """

    starts: Ints
    order: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the items of the rows with the numbers ``rows``, and the index in ``rows`` of each item's row.

        The items of all rows follow one another, [items] int64 each.
        """
        place, row = ranges(self.starts[rows], self.starts[rows + 1])
        return place if self.order is None else self.order[place].astype(np.int64), row


def pack(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> RowItems:
    """Put items into rows in their order. Each row takes as many items as fit (next fit).

    The work is O(items · log chunk) in NumPy, and one step of Python for each row.

    Args:
        costs: Function of (first, last) that returns the costs (0 … capacity) of the items first … last − 1 on each
            side of a row, [sides, last − first]. An item whose costs are 0 is in a row but takes no room.
        items: Number of items.
        capacity: Capacity of each side. A row takes items while every side has room.
        task: Name of the task, for the progress.
        report: Function that shows progress.
        chunk: Number of items that are packed together.
    """
    found = [np.zeros(1, np.int64)]
    first, size = 0, chunk
    while first < items:
        report(task, first, items, "")
        last = min(first + size, items)
        starts, rest = _follow(_ends(costs(first, last), capacity), last == items)
        found.append(first + starts)
        size = chunk if rest else 2 * size  # a row has the whole chunk and continues after it
        first += rest
    report(task, items, items, "")
    return RowItems(np.concatenate(found))


def fill(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> RowItems:
    """Put items into rows that are as full as possible, by best fit decreasing (Johnson 1973) in each ``chunk``.

    Items of equal cost are interchangeable, so equal rows are filled at once (Krell et al. 2021, "Efficient sequence
    packing without cross-contamination", arXiv 2107.02027). The work in a chunk is a sort of its items, and of the
    order of capacity² steps of Python.

    Args:
        costs: Function of (first, last) that returns the costs of the items first … last − 1, [last − first]. An item
            of cost 0 is left out.
        items: Number of items.
        capacity: Capacity of a row, at least the highest cost.
        task: Name of the task, for the progress.
        report: Function that shows progress.
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
    """Pack ``counts[cost]`` items by best-fit decreasing. Return (costs in a row, number of such rows) pairs."""
    rooms: dict[int, list[tuple[tuple[int, ...], int]]] = defaultdict(list)  # the rows by the remaining room
    for cost in range(capacity, 0, -1):
        left = int(counts[cost])
        while left:
            room = min((room for room, rows in rooms.items() if room >= cost and rows), default=None)
            pattern, rows = ((), left) if room is None else rooms[room].pop()
            room = capacity if room is None else room
            most = room // cost  # after one item, the row still has the least sufficient room for the next one
            full, rest = divmod(left, most)
            if full >= rows:
                full, rest = rows, 0
            for copies, count in ((most, full), (rest, int(rest > 0)), (0, rows - full - int(rest > 0))):
                if count and (pattern or copies):
                    rooms[room - copies * cost].append((pattern + (cost,) * copies, count))
            left -= most * full + rest
    return [one for rows in rooms.values() for one in rows]


def _ends(costs: Ints, capacity: int) -> Ints:
    """Return the end of the row that starts at each item, [items]."""
    ends = []
    for side in costs:
        total = np.concatenate([[0], np.cumsum(side)])
        ends.append(np.searchsorted(total, total[:-1] + capacity, side="right") - 1)
    first: Ints = np.minimum.reduce(ends)
    assert bool((first > np.arange(len(first))).all()), "an item that fits into no row"
    return first


def _follow(ends: Ints, is_last: bool) -> tuple[Ints, int]:
    """Return the ends of the complete rows, and the start of the row that is left for the next chunk."""
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
    """Return the numbers start … stop − 1 of all ranges one after another, and the index of each number's range.

    ``starts`` and ``stops`` are [ranges], and both results are [numbers].
    """
    lengths = stops - starts
    which = np.repeat(np.arange(len(starts)), lengths)
    return np.arange(len(which)) + (starts - (np.cumsum(lengths) - lengths))[which], which


def write_sentences(out: Ints, shards: Shards, sentences: Ints, row: Ints, specials: Specials) -> NDArray[np.bool_]:
    """Write packed rows into ``out`` [rows, width], and return flags of columns without padding, [rows, width].

    Args:
        out: Array that receives the ids.
        shards: The text.
        sentences: The sentences of all rows, one after another, [n].
        row: The sorted row of each sentence, [n]. Every row has at least one sentence.
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
    """Write rows of sentences that do not attend to each other into ``out`` [rows, width].

    Args:
        out: Array that receives the ids.
        shards: The text.
        sentences: The sentences of all rows, one after another, [n].
        row: The sorted row of each sentence, [n].
        specials: The special ids.

    Returns:
        The number of each column's sentence in the row (−1 for padding), and its position in the sentence, each
        [rows, width].
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
    """Write the tokens of each sentence at its ``place``, followed by </s>."""
    token, of = ranges(begin, begin + lengths)
    ids[token + (place - begin)[of]] = shards.tokens[token]
    ids[place + lengths] = specials.eos
