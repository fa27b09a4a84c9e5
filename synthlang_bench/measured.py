"""Common parts of the benchmarks: time and memory of a process, and alternating runs in separate processes."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from synthlang.files import write_json

Figures = dict[str, Any]
K = TypeVar("K", bound=Hashable)
CHILD = """
import json, sys
from argparse import Namespace
from {module} import {name} as work
print(json.dumps(work(Namespace(**json.loads(sys.argv[1])))))
"""


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process so far, in units of 2²⁰ bytes.

    The value is VmHWM on Linux, since the maximum of getrusage includes the memory of the parent process.
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    own = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if own is None else own) / 1024


def measured(work: Callable[[], Figures]) -> Figures:
    """Call ``work``, and return its result with ``seconds``, ``cpu_seconds`` and ``peak_memory_mb`` of the process."""
    began = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_memory_mb": peak_memory_mb(), **found}


def command(work: Callable[[Namespace], Figures], options: Namespace, **more: Any) -> list[str]:
    """Return a command that calls a function of a module and prints its result as JSON.

    The function receives ``options``, with the options ``more`` added or replaced. Values that JSON lacks become text.
    """
    code = CHILD.format(module=work.__module__, name=work.__name__)
    return [sys.executable, "-c", code, json.dumps({**vars(options), **more}, default=str)]


def call(work: Callable[[Namespace], Figures], options: Namespace, **more: Any) -> Figures:
    """Call a function of a module in a separate process, and return its result.

    See ``command`` for the arguments.

    Raises:
        RuntimeError: The process failed. The message has the end of its standard error.
    """
    done = subprocess.run(command(work, options, **more), capture_output=True, text=True, check=False)  # noqa: S603  our own code
    if done.returncode:
        raise RuntimeError(f"{work.__name__} ended with code {done.returncode}:\n{done.stderr[-2000:]}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def in_turns(sides: Mapping[K, Callable[[], Figures]], repeats: int) -> dict[K, list[Figures]]:
    """Return ``repeats`` measurements of each side. The sides alternate, so that other load affects all of them."""
    runs: dict[K, list[Figures]] = {side: [] for side in sides}
    for _ in range(repeats):
        for side, run in sides.items():
            runs[side].append(run())
    return runs


def medians(runs: Sequence[Figures]) -> Figures:
    """Return the median of each number over runs, also of nested numbers. Other values come from the first run."""
    found = {}
    for key, value in runs[0].items():
        each = [run[key] for run in runs]
        found[key] = medians(each) if isinstance(value, dict) else value
        if isinstance(value, int | float):
            found[key] = statistics.median(each)
    return found


def where(threads: int | None = None) -> Figures:
    """Return the device, with the number of ``threads`` on a CPU, and the versions of torch and transformers."""
    import torch
    import transformers

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"device": gpu or f"cpu, {threads or torch.get_num_threads()} threads", "versions": versions}


def parser_of(package: str, about: str | None) -> ArgumentParser:
    """Return a parser with the options that all benchmarks have, --repeats and --out."""
    parser = ArgumentParser(prog=f"python -m {package}.bench", description=about)
    repeats = "Number of repeats of each measurement (default: %(default)s)."
    parser.add_argument("--repeats", type=int, default=3, help=repeats)
    parser.add_argument("--out", type=Path, help="JSON file for the results (default: standard output only).")
    return parser


def tell(result: Figures, out: Path | None) -> None:
    """Print the result as JSON, and write it to the file ``out`` if one is given.

    Raises:
        DiskError: The file cannot be written.
    """
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if out:
        write_json(out, result)
