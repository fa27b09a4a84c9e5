"""Which sentences a row has, and how such rows are written.

Sentences of one text, as it goes on: ``<s> sentence </s> sentence </s> … <pad> …``; <s> takes one place, a sentence its
tokens and one more. ``pack`` fills the rows in order.

Sentences that stand alone: ``<s> sentence </s> <s> sentence </s> … <pad> …``, none of which sees another; a sentence
takes its tokens and two more. It does not matter which of them share a row, so ``fill`` leaves hardly a place empty.

Both decide once; rows are written when asked.
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
CHUNK = 1 << 20  # sentences looked at together: bounds the memory; never changes the rows of ``pack``


@dataclass(frozen=True)
class RowItems:
    """Row r has the items ``starts[r]`` … ``starts[r + 1] − 1``, or what ``order`` has there."""

    starts: Ints
    order: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, rows: Ints) -> tuple[Ints, Ints]:
        """The items of some rows one after another, and which of ``rows``, counted from 0, each is in."""
        place, row = ranges(self.starts[rows], self.starts[rows + 1])
        return place if self.order is None else self.order[place].astype(np.int64), row


def pack(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> RowItems:
    """Items in their order, as many in a row as fit.

    costs     costs(first, last) [sides, last − first]: what the items first … last − 1 cost on each side of a row,
              0 … capacity; an item without a cost on any side is in a row but takes no place there
    capacity  of each side; a row takes items as long as every side has room (next fit: no row is opened again)

    O(items · log chunk) in NumPy, and one step of Python a row.
    """
    found = [np.zeros(1, np.int64)]
    first, size = 0, chunk
    while first < items:
        report(task, first, items, "")
        last = min(first + size, items)
        starts, rest = _follow(_ends(costs(first, last), capacity), last == items)
        found.append(first + starts)
        size = chunk if rest else 2 * size  # one row that has the whole chunk and goes on
        first += rest
    report(task, items, items, "")
    return RowItems(np.concatenate(found))


def fill(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> RowItems:
    """Items in rows that are as full as can be: best fit decreasing (Johnson 1973), in each ``chunk`` of items.

    costs     costs(first, last) [last − first]: what the items first … last − 1 cost; one of 0 is left out
    capacity  of a row, at least the highest cost

    Items of one cost are alike, so whole sets of rows are filled at once (Krell et al. 2021, "Efficient sequence
    packing without cross-contamination", arXiv 2107.02027): a sort of the items, and some capacity² steps of Python.
    """
    sizes, orders = [], []
    for first in range(0, items, chunk):
        report(task, first, items, "")
        cost = costs(first, min(first + chunk, items))
        by_cost = np.argsort(cost, kind="stable")
        stops = np.cumsum(np.bincount(cost, minlength=capacity + 1))
        taken = np.concatenate([[0], stops[:-1]])  # of the items of each cost, where the next one stands
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
    """The costs in a row, and how many such rows there are; ``counts`` [capacity + 1] are the items of each cost."""
    rooms: dict[int, list[tuple[tuple[int, ...], int]]] = defaultdict(list)  # the rows with so much room left
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
    """[items] for each item the first one that does not fit any more into a row that begins with it."""
    ends = []
    for side in costs:
        total = np.concatenate([[0], np.cumsum(side)])
        ends.append(np.searchsorted(total, total[:-1] + capacity, side="right") - 1)
    first: Ints = np.minimum.reduce(ends)
    assert bool((first > np.arange(len(first))).all()), "an item that fits into no row"
    return first


def _follow(ends: Ints, is_last: bool) -> tuple[Ints, int]:
    """The ends of the rows one after another, and where the first row begins that may go on behind the chunk."""
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
    """The numbers start … stop − 1 of each range one after another, and the range that each is from."""
    lengths = stops - starts
    which = np.repeat(np.arange(len(starts)), lengths)
    return np.arange(len(which)) + (starts - (np.cumsum(lengths) - lengths))[which], which


def write_sentences(out: Ints, shards: Shards, sentences: Ints, row: Ints, specials: Specials) -> NDArray[np.bool_]:
    """Write packed rows into ``out`` [rows, width]; gives where there is no padding, [rows, width].

    sentences  [n] the sentences of all rows, one after another
    row        [n] the row that each is in, in ascending order; every row has at least one
    """
    rows, width = out.shape
    begin = shards.offsets[sentences]
    lengths = shards.offsets[sentences + 1] - begin
    before = np.cumsum(lengths + 1) - (lengths + 1)  # in all rows, with </s>
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

    sentences  [n] the sentences of all rows, one after another
    row        [n] the row that each is in, in ascending order

    Gives for each place, [rows, width], the number of its sentence in the row (−1: padding), and its position in that.
    """
    rows, width = out.shape
    begin = shards.offsets[sentences]
    lengths = shards.offsets[sentences + 1] - begin
    first = np.searchsorted(row, np.arange(rows))
    before = np.cumsum(lengths + 2) - (lengths + 2)  # in all rows
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
