"""Stop a run early: at SIGTERM, which clusters send before they take a machine back, or at a given step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

EXIT_CODE = 128 + signal.SIGTERM  # the exit code of a shell for a process that SIGTERM ended


class Stopped(Exception):  # noqa: N818  not an error, since the run can continue
    """Exception that ends a run after a checkpoint was saved. The argument is the number of steps that were done."""


class Flag:
    """A request to stop the process.

    Attributes:
        is_set: True once the process must stop.
        until: Step from which a run stops in any case, or None.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.until: int | None = None

    def set(self, signum: int, frame: FrameType | None) -> None:
        """Set the flag. The arguments are those of a handler of signals, and are not used."""
        del signum, frame
        self.is_set = True


_watched: ContextVar[Flag | None] = ContextVar("watched", default=None)


@contextmanager
def watching(flag: Flag) -> Iterator[None]:
    """Use this flag for all runs in the block that have no other flag."""
    token = _watched.set(flag)
    try:
        yield
    finally:
        _watched.reset(token)


def watched() -> Flag:
    """Return the flag of the innermost ``watching``, or a new flag that nothing sets."""
    return _watched.get() or Flag()


@contextmanager
def on_sigterm() -> Iterator[Flag]:
    """Yield a flag that SIGTERM sets inside the block.

    Outside the main thread no signal sets the flag. Inside ``watching``, the flag of ``watching`` is yielded, because
    its owner already handles signals.
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
