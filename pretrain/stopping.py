"""SIGTERM, as clusters send it before they take a machine back: finish the step, save, end; or a step to end at."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

EXIT_CODE = 128 + signal.SIGTERM  # what a shell says of a process that SIGTERM ended


class Stopped(Exception):  # noqa: N818  it is no error: the run can go on
    """A run that was asked to end has saved its checkpoint; the step is the argument."""


class Flag:
    """Whether the process was asked to end; ``until``: the step at which a run ends for now, whoever asks."""

    def __init__(self) -> None:
        self.is_set = False
        self.until: int | None = None

    def set(self, signum: int, frame: FrameType | None) -> None:
        del signum, frame
        self.is_set = True


_watched: ContextVar[Flag | None] = ContextVar("watched", default=None)


@contextmanager
def watching(flag: Flag) -> Iterator[None]:
    """Runs that are given no flag of their own look at this one inside the block."""
    token = _watched.set(flag)
    try:
        yield
    finally:
        _watched.reset(token)


def watched() -> Flag:
    """The flag of the innermost ``watching``, or one that nothing sets."""
    return _watched.get() or Flag()


@contextmanager
def on_sigterm() -> Iterator[Flag]:
    """A flag that SIGTERM sets inside the block; outside the main thread nothing sets it.

    Inside a ``watching`` it is that flag, and whoever made it deals with signals.
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
