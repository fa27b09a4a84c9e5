"""An ordered map over processes: the same results in the same order for any number of workers.

If a worker dies, an error is raised at once. Workers end when the process that started them dies. They are forked from
a small server process that has imported only the module of the function. They therefore share the memory of that
server and do not import the main script again.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
VISIBLE = "CUDA_VISIBLE_DEVICES"
WAITING = 2  # items that a worker has at a time: one in work and the next one


class WorkerDiedError(RuntimeError):
    """Error for a worker process that was killed, usually because memory ran out."""


def ordered_map(
    function: Callable[[In], Out], items: Iterable[In], workers: int = 1, devices: Sequence[str] = ()
) -> Iterator[Out]:
    """Yield ``function(item)`` for each item in order.

    With more than one worker, the function and the items must be picklable. At most 2 · workers items are in work or
    waiting.

    Args:
        function: Function of one item.
        items: The items.
        workers: Number of processes. With 1 the function runs in this process.
        devices: CUDA devices, by their names in ``CUDA_VISIBLE_DEVICES``. Each worker process uses one of the devices.
            All devices have equally many workers if the number of workers is a multiple of the number of devices.

    Raises:
        WorkerDiedError: A worker was killed. An error of the function is raised unchanged.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    module = (function.func if isinstance(function, functools.partial) else function).__module__
    context = warm_up(module)
    given = context.Value("i", 0)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(tuple(devices), given))
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
        raise WorkerDiedError("a worker process was killed, usually because memory ran out") from error
    finally:
        # Items in work may take long, and their results are no longer needed.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Return the number of processor cores that this process may use.

    A cluster's job or a container may have fewer cores than the machine.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def warm_up(module: str) -> Any:
    """Start the server that workers are forked from, and return the multiprocessing context of the workers.

    The server imports ``module`` in the background.
    """
    # A plain fork would copy the threads of other libraries in an inconsistent state.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker_start.__name__, module])
    with worker_start.as_here():
        forkserver.ensure_running()
    return context


@contextmanager
def plain_main(is_plain: bool = True) -> Iterator[None]:
    """Hide the main module while processes start, so that they do not import it again.

    If ``is_plain`` is false, the main module stays visible.
    """
    main = sys.modules["__main__"]
    if is_plain:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start_worker(devices: tuple[str, ...], given: Any) -> None:
    """Watch the parent of a new worker, and make the next of the devices visible to the worker.

    ``given`` is the shared number of workers that have a device. CUDA is not initialised yet.
    """
    if devices:
        with given.get_lock():
            os.environ[VISIBLE] = devices[given.value % len(devices)]
            given.value += 1
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """Wait until the process that started this one ends, then exit at once. A thread of each worker runs this."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    wait([parent.sentinel])
    os._exit(1)
