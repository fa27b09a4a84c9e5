"""How many threads the libraries of a process get, and what processes inherit that is faster; loads no library."""

from __future__ import annotations

import os

from synthlang.workers import cores

WIDE = 128
"""From this width of a model on there is more than one thread. A second one, with a core of its own, made a step 6 %
faster with 64 dimensions for half as much processor time again, and with 128 to 384 dimensions 30 to 70 % faster for a
twentieth (two cores of a Xeon)."""
SPINS = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""For how long a thread that waits for others keeps its core (libgomp, libomp). On cores that others use as well, two
threads took five to seven times the processor time of one by default, and 1.4 times it with these."""
PAGES = "glibc.malloc.hugetlb=1"
"""Memory in pages of 2 MB, where the kernel gives them on request (Linux, glibc 2.35 or later): a step of 8 layers of
64 took 126 ms instead of 144 (an AMD EPYC; medians of six runs in turns)."""


def threads_for(hidden: int | None = None, share: int | None = None) -> int:
    """What measures fastest for a model of this width (None: not known), where nothing is said by OMP_NUM_THREADS.

    ``share`` is how many there are to take (default: a core each).
    """
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    return 1 if hidden is not None and hidden < WIDE else share or cores()


def use_threads(threads: int) -> int:
    """Let libraries in this process use so many threads; returns how many torch used before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return before


def set_environment() -> None:
    """Let threads sleep soon as they wait, and processes that are started have large pages, unless the user says how.

    Before torch is loaded. The memory of this process itself is as it was started.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        for name, value in SPINS.items():
            os.environ.setdefault(name, value)
    os.environ.setdefault("GLIBC_TUNABLES", PAGES)
