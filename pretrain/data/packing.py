"""Greedy packing of whole sentences into rows, in order, and how such rows are written.

A packed row is ``<s> sentence </s> sentence </s> … <pad> …``: <s> takes one place, a sentence its tokens
and one more. ``pack`` decides once which sentences a row has; ``write_sentences`` makes rows when asked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from synthlang.progress import Report, silent
from synthlang.shards import Shards
from synthlang.vocabularies import Specials

Ints = NDArray[np.int64]
CHUNK = 1 << 20  # sentences looked at together: bounds the memory, never changes the rows


def pack(
    costs: Callable[[int, int], Ints], items: int, capacity: int, task: str, report: Report = silent, chunk: int = CHUNK
) -> Ints:
    """Which items each row has: [rows + 1], row r has the items starts[r] … starts[r + 1] − 1.

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
    return np.concatenate(found)


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
    token, of = ranges(begin, begin + lengths)
    ids[token + (place - begin)[of]] = shards.tokens[token]
    ids[place + lengths] = specials.eos
    out[:] = ids.reshape(rows, width)
    out[:, 0] = specials.bos
    used = np.zeros(rows, np.int64)
    used[row] = column + lengths + 1  # the last sentence of a row comes last
    return np.arange(width) < used[:, None]
