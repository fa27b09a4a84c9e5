"""What the measurements share: time and memory of a process, sides that take turns in processes of their own."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from synthlang.files import write_json

Figures = dict[str, Any]
K = TypeVar("K", bound=Hashable)
BLOCKS = 5  # of steps, of which the median counts


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far.

    Linux's VmHWM starts anew with a program, while getrusage's maximum includes that of the process that started it.
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    own = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if own is None else own) / 1024


def measured(work: Callable[[], Figures]) -> Figures:
    """What the work returns, with its time and the peak memory of the process."""
    began = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_memory_mb": peak_memory_mb(), **found}


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
        import torch

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

    def result(self) -> Figures:
        """Speed (of the median block) and peak memory in MB of this process, on a GPU that of the GPU too."""
        import torch

        step = statistics.median(self.seconds)
        found = {"tokens_per_second": self.tokens / step, "step_seconds": step}
        found |= {"step_cpu_seconds": statistics.median(self.cpu_seconds), "peak_memory_mb": peak_memory_mb()}
        if torch.cuda.is_available():
            found["peak_gpu_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
        return found


def call(module: str, arguments: Sequence[str], quiet: bool = True) -> Figures:
    """The JSON that a module prints last, in a process of its own; what it says beside is shown unless ``quiet``."""
    errors = subprocess.PIPE if quiet else None
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)  # noqa: S603  our own code
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with code {done.returncode}:\n{(done.stderr or '')[-2000:]}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def in_turns(sides: Mapping[K, Callable[[], Figures]], repeats: int) -> dict[K, list[Figures]]:
    """What each side measures, ``repeats`` times; the sides take turns, so that a busy machine is busy for all."""
    runs: dict[K, list[Figures]] = {side: [] for side in sides}
    for _ in range(repeats):
        for side, run in sides.items():
            runs[side].append(run())
    return runs


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of each number over runs, also of those within figures; the rest of the first."""
    found = {}
    for key, value in runs[0].items():
        each = [run[key] for run in runs]
        found[key] = medians(each) if isinstance(value, dict) else value
        if isinstance(value, int | float):
            found[key] = statistics.median(each)
    return found


def where(threads: int | None = None) -> Figures:
    """The device and the versions."""
    import torch
    import transformers

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"device": gpu or f"cpu, {threads or torch.get_num_threads()} threads", "versions": versions}


def tell(result: Figures, out: Path | None) -> None:
    """Print the result, and write it to a file too if there is one."""
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if out:
        write_json(out, result)
