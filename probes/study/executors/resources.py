"""Resources of this machine for workers, and versions on which numbers may depend."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pretrain.threads import threads_for
from probes.study.executors.base import Machine
from synthlang import __version__
from synthlang.progress import Report
from synthlang.workers import VISIBLE, cores

CPU_INFO = Path("/proc/cpuinfo")
GPU_INFO = Path("/proc/driver/nvidia/gpus")


def cuda_devices() -> list[str]:
    """Return the devices that this process may use, by their names in ``CUDA_VISIBLE_DEVICES``.

    Without this variable, the names are numbers from 0.

    Devices are counted through the management library of the driver. Initialising CUDA would take memory on a device,
    and forked processes could not use it.
    """
    if version("torch").endswith("+cpu"):  # Without CUDA, importing torch would take longer than opening the study.
        return []
    import torch

    count = torch.cuda.device_count()
    named = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return named[:count] if named else [str(number) for number in range(count)]


def of_cell(report: Report, cell: str) -> Report:
    """Return a progress function that puts the name of a cell before each task, or ``report`` itself for ""."""
    return (lambda task, done, total, note: report(f"{cell}: {task}", done, total, note)) if cell else report


def machine_of(
    executor: str, workers: int | None, cells: int, threads: int | None = None, hidden: int | None = None
) -> Machine:
    """Return the resources for the stages of a study.

    Sums that are split over another number of threads may differ in their last digits. So the number of threads depends
    on the whole study, not on its unfinished part, and it is the same for every executor of a machine.

    Args:
        executor: The name of the executor. Only ``local`` has several workers.
        workers: Number of processes (default: one for each device, else for each core, and at most one for each cell).
        cells: Number of cells.
        threads: Threads in each process (default: ``threads_for`` the hidden size and an equal share of the cores).
        hidden: Hidden size of the widest model, or None if it is unknown.
    """
    devices = cuda_devices()
    workers = workers or max(1, min(len(devices) or cores(), cells))
    threads = threads or threads_for(hidden, max(1, cores() // workers))
    return Machine(workers if executor == "local" else 1, threads, tuple(devices))


def cpu_name() -> str:
    """Return the name of the processor, or its architecture if the system has no name."""
    told = CPU_INFO.read_text(encoding="utf-8", errors="replace") if CPU_INFO.is_file() else ""
    named = re.search(r"^model name\s*:\s*(\S.*)$", told, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()


def gpu_name() -> str:
    """Return the name of the first NVIDIA GPU, or "". It is read from files of the driver, without CUDA."""
    for path in sorted(GPU_INFO.glob("*/information")):
        if named := re.search(r"^Model:\s*(\S.*)$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE):
            return named[1].strip()
    return ""


def environment(machine: Machine, executor: str) -> dict[str, Any]:
    """Return the date, the machine, the resources of the executor and the versions of packages."""
    packages = {name: version(name) for name in ("torch", "transformers", "tokenizers", "accelerate", "numpy")}
    today = datetime.now(UTC).date().isoformat()
    system: dict[str, Any] = {"date": today, "synthlang": __version__, "cpu": cpu_name()}
    system |= {"python": platform.python_version(), "platform": platform.platform(), "cores": cores()}
    sizes = {"workers": machine.workers, "threads": machine.threads, "devices": len(machine.devices)}
    return {**system, "executor": executor, **sizes, **packages}
