"""An ordered map over processes: the same results in the same order for any number of workers.

A worker that dies is an error at once, and when the process that started the workers dies, however it does, they end
too. Workers are forked from a small server process that has imported the function's module and nothing else, so they
share its memory; the script that runs the map is not imported again in each of them.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import wait
from types import ModuleType
from typing import Any, TypeVar

from synthlang import worker_start

In = TypeVar("In")
Out = TypeVar("Out")
WAITING = 2  # items a worker has at a time: one in work and the next one


class WorkerDiedError(RuntimeError):
    """A worker ended without a word: killed, most often for want of memory."""


def ordered_map(function: Callable[[In], Out], items: Iterable[In], workers: int = 1) -> Iterator[Out]:
    """Yield ``function(item)`` for each item in order.

    With more than one worker at most 2 · workers items are on their way at a time. The function and the items must be
    picklable (they travel between our own processes only). What the function raises is raised here; WorkerDiedError if
    a worker was killed.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    module = (function.func if isinstance(function, functools.partial) else function).__module__
    pool = ProcessPoolExecutor(workers, mp_context=warm_up(module), initializer=_watch_parent)
    waiting: deque[Future[Out]] = deque()
    try:
        for item in items:
            with plain_main(module != "__main__"):  # submitting starts the workers
                waiting.append(pool.submit(function, item))
            while waiting and (waiting[0].done() or len(waiting) >= WAITING * workers):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerDiedError("a worker process was killed, most often for want of memory") from error
    finally:
        for process in list((pool._processes or {}).values()):  # what is in work may take long, and nobody waits for it
            process.terminate()
        pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Processor cores that this process may use (a cluster's job or a container may have fewer than the machine)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def warm_up(module: str) -> Any:
    """Start the server that workers are forked from, without waiting for its imports; returns the context."""
    methods = multiprocessing.get_all_start_methods()
    # a plain fork would copy other libraries' threads half-way
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([worker_start.__name__, module])
        with worker_start.as_here():
            forkserver.ensure_running()
    return context


@contextmanager
def plain_main(is_plain: bool = True) -> Iterator[None]:
    """Hide the main module while processes start: each would import it again, with all that it imports."""
    main = sys.modules["__main__"]
    if is_plain:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _watch_parent() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """Wait for the process that started this one to end, then end at once; for a thread of a worker."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    wait([parent.sentinel])
    os._exit(1)
