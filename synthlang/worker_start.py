"""Start the server that workers are forked from, with the ``sys.path`` of this process and with Ctrl-C blocked.

By default the server would look for modules in the working folder first, where a user may have a ``statistics.py`` or
``pretrain/``. The server imports this module before our other modules. The import restores the environment of the
server.
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
    """Start Python processes in the block with the ``sys.path`` of this process and with Ctrl-C blocked."""
    before = json.dumps({name: os.environ.get(name) for name in CHANGED})
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    os.environ |= {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", BEFORE: before}
    resource_tracker.ensure_running()  # its start unblocks the signal, so it must come first
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        _give_back()


def _give_back() -> None:
    """Restore the environment that ``as_here`` recorded, if any."""
    for name, value in json.loads(os.environ.pop(BEFORE, "{}")).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_give_back()
