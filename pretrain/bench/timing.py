"""How long blocks of steps take, and how much memory a process took."""

from __future__ import annotations

import resource
import statistics
import time
from pathlib import Path
from typing import Any

import torch

BLOCKS = 5  # of which the median counts


class Blocks:
    """Called after each step; the first ``warmup`` steps do not count, the others are timed in blocks.

    Between blocks the device is waited for, so that the clock sees all of its work.
    """

    def __init__(self, warmup: int, steps: int, tokens: int) -> None:
        self.warmup, self.tokens = warmup, tokens
        self.size = max(1, (steps - warmup) // BLOCKS)
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self._step = 0
        self._last: tuple[float, float] | None = None

    def __call__(self) -> None:
        """A step is done."""
        self._step += 1
        if self._step < self.warmup or (self._step - self.warmup) % self.size:
            return
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter(), time.process_time()
        if self._last is not None:
            self.seconds.append((now[0] - self._last[0]) / self.size)
            self.cpu_seconds.append((now[1] - self._last[1]) / self.size)
        self._last = now

    def result(self) -> dict[str, Any]:
        """Speed (of the median block) and peak memory in MB of this process, on a GPU that of the GPU too."""
        step = statistics.median(self.seconds)
        found: dict[str, Any] = {
            "tokens_per_second": self.tokens / step,
            "step_seconds": step,
            "step_cpu_seconds": statistics.median(self.cpu_seconds),
            "peak_memory_mb": peak_memory_mb(),
        }
        if torch.cuda.is_available():
            found["peak_gpu_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
        return found


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far.

    Linux's VmHWM starts anew with a program, while getrusage's maximum includes that of the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
