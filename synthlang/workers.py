"""An ordered map over processes: the same results in the same order for any number of workers.

Each worker has a pipe of its own. One that dies is an error at once, and when the process that
started them dies, however it does, they end too. Workers are forked from a small server process
that has imported the function's module and nothing else, so they share its memory; the script
that runs the map is not imported again in each of them.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")
WAITING = 2  # items a worker has at a time: one in work and the next one


class WorkerDiedError(RuntimeError):
    """A worker ended without a word: killed, most often for want of memory."""


def ordered_map(function: Callable[[In], Out], items: Iterable[In], workers: int = 1) -> Iterator[Out]:
    """Yield ``function(item)`` for each item in order.

    With more than one worker at most 2 · workers items are on their way at a time. The function
    and the items must be picklable (they travel between our own processes only) and the items
    small, since a busy worker's pipe holds no more than 64 kB: send a path, not the data. What
    the function raises is raised here; WorkerDiedError if a worker was killed.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    inner = function.func if isinstance(function, functools.partial) else function
    context = warm_up(inner.__module__)
    rest = iter(items)
    head = list(islice(rest, 1))  # the first item is made while the server imports
    with _started(function, inner.__module__, workers, context) as pool:
        for item in chain(head, rest):
            while pool.is_full():
                pool.receive(None)
                yield from pool.ready()
            pool.send(item)
            pool.receive(0.0)
            yield from pool.ready()
        while pool.order:
            pool.receive(None)
            yield from pool.ready()


class _Pool:
    """The parent's end of the pipes; ``order`` has the pipe of each item whose result was not yet given."""

    def __init__(self, pipes: list[Connection]) -> None:
        self.pipes = pipes
        self.free = deque(pipes * WAITING)
        self.order: deque[Connection] = deque()
        self.results: dict[Connection, deque[tuple[bool, Any]]] = {pipe: deque() for pipe in pipes}

    def is_full(self) -> bool:
        return not self.free or len(self.order) >= WAITING * len(self.pipes)

    def send(self, item: Any) -> None:
        pipe = self.free.popleft()
        with _died():
            pipe.send(item)
        self.order.append(pipe)

    def receive(self, timeout: float | None) -> None:
        """Take in the results there are; with the timeout None wait for one."""
        for pipe in wait(self.pipes, timeout):
            assert isinstance(pipe, Connection)
            with _died():
                self.results[pipe].append(pipe.recv())
            self.free.append(pipe)

    def ready(self) -> Iterator[Any]:
        """The results whose turn it is."""
        while self.order and self.results[self.order[0]]:
            done, value = self.results[self.order.popleft()].popleft()
            if not done:
                raise value
            yield value


@contextmanager
def _died() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise WorkerDiedError("a worker process was killed, most often for want of memory") from error


def warm_up(module: str) -> Any:
    """Start the server that workers are forked from, without waiting for its imports; returns the context."""
    methods = multiprocessing.get_all_start_methods()
    # a plain fork would copy other libraries' threads half-way
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([module])
        forkserver.ensure_running()
    return context


@contextmanager
def _started(function: Callable[[Any], Any], module: str, workers: int, context: Any) -> Iterator[_Pool]:
    """Start the workers; they end when the block does."""
    pipes, processes = [], []
    try:
        with _plain_main(module != "__main__"):
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True)
                process.start()
                theirs.close()  # so that our end sees the end of the worker
                pipes.append(ours)
                processes.append(process)
        for pipe in pipes:
            with _died():
                pipe.send(function)
        yield _Pool(pipes)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        for pipe in pipes:
            pipe.close()


@contextmanager
def _plain_main(is_plain: bool) -> Iterator[None]:
    """Hide the main module while processes start: each would import it again, with all that it imports."""
    main = sys.modules["__main__"]
    if is_plain:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(pipe: Connection) -> None:
    """What a worker does: results of items until it is ended."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):  # the parent ended, or is ending us
        function = pipe.recv()
        while True:
            item = pipe.recv()
            try:
                answer = (True, function(item))
            except Exception as error:  # whatever it is, it is raised in the parent
                answer = (False, error)
            pipe.send(answer)


def end_with_parent() -> None:
    """Wait for the process that started this one to end, then end at once; for a thread of a worker."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    wait([parent.sentinel])
    os._exit(1)
