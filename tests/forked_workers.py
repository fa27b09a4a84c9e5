"""Test processes of pytest-xdist that are forked from a process with all imports, which saves most of their start."""

import atexit
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import NamedTuple

from execnet import gateway_io
from execnet.gateway_base import ExecModel, Popen2IO


class Fork(NamedTuple):
    """A forked process, and the ends of the pipes to its input and from its output."""

    pid: int
    to: int
    come: int


class ForkedIO(Popen2IO):
    """The channel of execnet to a fork, in place of the one to a new Python process."""

    def __init__(self, fork: Fork, execmodel: ExecModel) -> None:
        self.pid = fork.pid
        super().__init__(os.fdopen(fork.to, "wb"), os.fdopen(fork.come, "rb"), execmodel)

    def wait(self) -> None:
        with suppress(OSError):
            os.waitpid(self.pid, 0)

    def kill(self) -> None:
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)


def fork_workers(count: int) -> None:
    """Fork this process ``count`` times, and connect the next gateways of execnet to these forks.

    Later gateways start new Python processes. All forks are made before the first gateway, because a gateway has a
    thread.
    """
    forks: list[Fork] = []
    for _ in range(count):
        forks.append(_fork(forks))
    new_process = gateway_io.Popen2IOMaster

    def next_gateway(words: list[str], execmodel: ExecModel) -> Popen2IO:
        return ForkedIO(forks.pop(0), execmodel) if forks else new_process(words, execmodel)

    vars(gateway_io)["Popen2IOMaster"] = next_gateway


def _fork(others: list[Fork]) -> Fork:
    """Return a fork that runs the program of execnet, as ``python -c`` would, and closes the pipes of other forks."""
    (its_input, to), (come, its_output) = os.pipe(), os.pipe()
    if pid := os.fork():
        os.close(its_input)
        os.close(its_output)
        return Fork(pid, to, come)
    try:
        for end in (to, come, *(end for other in others for end in (other.to, other.come))):
            os.close(end)
        for number, end in enumerate((its_input, its_output)):
            os.dup2(end, number)
            os.close(end)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.argv = ["-c"]
        exec(gateway_io.popen_bootstrapline, {})
        atexit._run_exitfuncs()
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)
