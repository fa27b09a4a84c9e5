"""The number of threads of the libraries of a process, and faster settings for its child processes.

Loads no library.
"""

from __future__ import annotations

import os

from synthlang.workers import cores

WIDE = 128
"""Width of a model from which more than one thread is used.

A second thread, with a core of its own, made a step 6 % faster with 64 dimensions for half as much processor time
again, and with 128 to 384 dimensions 30 to 70 % faster for a twentieth (two cores of a Xeon).
"""
SPINS = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""Time for which a thread that waits for others keeps its core (libgomp, libomp).

On cores that others use as well, two threads took five to seven times the processor time of one by default, and 1.4
times with these settings.
"""
PAGES = "glibc.malloc.hugetlb=1"
"""Memory in pages of 2 MB, where the kernel gives them on request (Linux, glibc 2.35 or later).

A step of 8 layers of 64 took 126 ms instead of 144 (an AMD EPYC; medians of six runs in turns).
"""


def threads_for(hidden: int | None = None, share: int | None = None) -> int:
    """Return the fastest number of threads for a model of this width, unless OMP_NUM_THREADS sets it.

    Args:
        hidden: The width (None: not known).
        share: Number of threads that are available (default: one for each core).
    """
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return 1 if hidden is not None and hidden < WIDE else share or cores()


def use_threads(threads: int) -> int:
    """Set the number of threads of the libraries in this process, and return how many torch used before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return before


def set_environment() -> None:
    """Let waiting threads sleep soon, and give child processes large pages, unless the user has set these variables.

    It runs before torch is loaded. The memory of this process itself is not affected.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        for name, value in SPINS.items():
            os.environ.setdefault(name, value)
    os.environ.setdefault("GLIBC_TUNABLES", PAGES)
