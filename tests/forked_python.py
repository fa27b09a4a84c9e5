"""Python processes that are forked from a loaded one, which saves the seconds of their imports."""

import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import forkserver, util

new_python = vars(util)["spawnv_passfds"]
"""The function that ``forked_python`` replaces."""


def forked_python(path: bytes, words: list[str], kept: list[int]) -> int:
    """Run ``python -c CODE`` in a fork of this process and return the id of the fork.

    It takes the place of ``multiprocessing.util.spawnv_passfds``, which starts the server of worker processes. As in a
    new process, only the given files are open, no signal has a handler, and the server of this process is not known.
    """
    if pid := os.fork():
        return pid
    try:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) not in kept:
                with suppress(OSError):
                    os.close(int(name))
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        vars(forkserver)["_forkserver"]._lock = threading.Lock()  # the fork happens while it is held
        exec(words[-1], {})
    finally:
        os._exit(0)
