"""Number of threads and faster settings for the libraries of a process. This module loads no library."""

from __future__ import annotations

import os

from synthlang.errors import InputError
from synthlang.workers import cores

WIDE = 128
"""Smallest width of a model that uses more than one thread.

On two cores of a Xeon, a second thread made a step of models from this width up to 384 at least 30 % faster. At half
this width, a second thread made a step 6 % faster but used 1.5 times the processor time.
"""
SPINS = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""Limits of the time for which a waiting thread keeps its core (libgomp, libomp).

On shared cores, two threads took 1.4 times the processor time of one thread with these settings. By default, they took
five to seven times as much.
"""
PAGES = "glibc.malloc.hugetlb=1"
"""Memory in pages of 2 MB if the kernel supports it (Linux, glibc 2.35 or later).

On an AMD EPYC, the median time of a step of a small model fell from 144 ms to 126 ms.
"""


def threads_for(hidden: int | None = None, share: int | None = None) -> int:
    """Return OMP_NUM_THREADS if it is set to a number above 0, else a number of threads by model width and cores.

    A model that is narrower than WIDE has one thread.

    Args:
        hidden: The width of the model, if it is known.
        share: Number of available threads (default: one for each core).
    """
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return 1 if hidden is not None and hidden < WIDE else share or cores()


def use_threads(threads: int) -> int:
    """Set the number of threads of torch in this process, and return the previous number.

    The threads of the library tokenizers are switched off by an environment variable.

    Raises:
        InputError: ``threads`` is below 1.
    """
    import torch

    if threads < 1:
        raise InputError(f"must be at least 1, not {threads}", keys="threads", code="range")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return before


def set_environment() -> None:
    """Set SPINS and PAGES in the environment unless the user has set these variables.

    SPINS are also left out if the user has set OMP_WAIT_POLICY. Call this function before torch is loaded. PAGES
    affects only child processes.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        for name, value in SPINS.items():
            os.environ.setdefault(name, value)
    os.environ.setdefault("GLIBC_TUNABLES", PAGES)
