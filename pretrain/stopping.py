"""SIGTERM, which clusters send before they take a machine back: finish the step, save, end. Or a step to end at."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

EXIT_CODE = 128 + signal.SIGTERM  # the exit code of a shell for a process that SIGTERM ended


class Stopped(Exception):  # noqa: N818  it is no error, since the run can continue
    """A run that had to stop has saved its checkpoint. The step is the argument."""


class Flag:
    """A request to stop the process. ``until`` is the step at which a run stops for now in any case."""

    def __init__(self) -> None:
        self.is_set = False
        self.until: int | None = None

    def set(self, signum: int, frame: FrameType | None) -> None:
        del signum, frame
        self.is_set = True


_watched: ContextVar[Flag | None] = ContextVar("watched", default=None)


@contextmanager
def watching(flag: Flag) -> Iterator[None]:
    """Make this flag that of all runs in the block that are given no flag of their own."""
    token = _watched.set(flag)
    try:
        yield
    finally:
        _watched.reset(token)


def watched() -> Flag:
    """Return the flag of the innermost ``watching``, or one that is never set."""
    return _watched.get() or Flag()


@contextmanager
def on_sigterm() -> Iterator[Flag]:
    """Give a flag that SIGTERM sets inside the block. Outside the main thread nothing sets it.

    Inside a ``watching`` it is the flag of that, whose owner handles signals.
    """
    outer = _watched.get()
    if outer is not None:
        yield outer
        return
    flag = Flag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = signal.signal(signal.SIGTERM, flag.set)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGTERM, before)
