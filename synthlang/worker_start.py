"""How the server that workers are forked from starts: it finds modules where this process does, and hears no Ctrl-C.

Left alone, Python looks into the working folder first, where a user may have a ``statistics.py`` or ``pretrain/``, and
the server would import that. It imports this module before any other of ours, which gives its environment back.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

BEFORE = "SYNTHLANG_ENVIRONMENT_BEFORE"
CHANGED = ("PYTHONPATH", "PYTHONSAFEPATH")


@contextmanager
def as_here() -> Iterator[None]:
    """Inside, a Python that is started has this one's ``sys.path`` and does not hear Ctrl-C."""
    before = json.dumps({name: os.environ.get(name) for name in CHANGED})
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    os.environ |= {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", BEFORE: before}
    resource_tracker.ensure_running()  # which unblocks the signal
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        _give_back()


def _give_back() -> None:
    """Make the environment what it was before ``as_here``; where that is not known, nothing."""
    for name, value in json.loads(os.environ.pop(BEFORE, "{}")).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_give_back()
