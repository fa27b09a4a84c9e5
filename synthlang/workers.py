"""An ordered map over processes: the same results in the same order for any number of workers."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def ordered_map(function: Callable[[In], Out], items: Iterable[In], workers: int = 1) -> Iterator[Out]:
    """Yield ``function(item)`` for each item in order.

    With more than one worker, at most 2 · workers items are in memory at a time. The
    function and the items must be picklable (they travel between our own processes only).
    """
    if workers <= 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the tokenizer's threads half-way
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting: deque[Future[Out]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
