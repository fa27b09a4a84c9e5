"""What of this machine workers get, and the versions that numbers may depend on."""

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
from synthlang.workers import cores

VISIBLE = "CUDA_VISIBLE_DEVICES"
CPU_INFO = Path("/proc/cpuinfo")


def cuda_devices() -> list[str]:
    """How ``CUDA_VISIBLE_DEVICES`` names each device that this process may use; [] without any.

    They are counted through the driver's management library, without initialising CUDA: that would take memory on a
    device, and processes forked later could not use it.
    """
    if version("torch").endswith("+cpu"):  # built without CUDA; torch takes longer to load than a study to look at
        return []
    import torch

    count = torch.cuda.device_count()
    named = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return named[:count] if named else [str(number) for number in range(count)]


def in_cell(report: Report, cell: str) -> Report:
    """The same with the name of a cell in front of each task."""
    if not cell:
        return report

    def named(task: str, done: int, total: int, note: str) -> None:
        report(f"{cell}: {task}", done, total, note)

    return named


def machine_of(
    executor: str, workers: int | None, cells: int, threads: int | None = None, hidden: int | None = None
) -> Machine:
    """What the tasks of a study may use: where nobody says, a worker a device or, without devices, a core, and never
    more than cells; for models of the width ``hidden`` (None: not known) as many threads as ``threads_for`` says of an
    equal share of the cores.

    Sums that are split over another number of threads may differ in their last digits. So this depends on the whole
    study and not on what is left of it, and is the same for every executor of one machine.
    """
    devices = cuda_devices()
    workers = workers or max(1, min(len(devices) or cores(), cells))
    threads = threads or threads_for(hidden, max(1, cores() // workers))
    return Machine(workers if executor == "local" else 1, threads, tuple(devices))


def cpu_name() -> str:
    """The processor as its maker calls it, where the system tells, else its architecture."""
    told = CPU_INFO.read_text(encoding="utf-8", errors="replace") if CPU_INFO.is_file() else ""
    named = re.search(r"^model name\s*:\s*(\S.*)$", told, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()


def environment(machine: Machine, executor: str) -> dict[str, Any]:
    """The day, and the versions and sizes that the numbers may depend on."""
    packages = {name: version(name) for name in ("torch", "transformers", "tokenizers", "accelerate", "numpy")}
    today = datetime.now(UTC).date().isoformat()
    system: dict[str, Any] = {"date": today, "synthlang": __version__, "cpu": cpu_name()}
    system |= {"python": platform.python_version(), "platform": platform.platform(), "cores": cores()}
    sizes = {"workers": machine.workers, "threads": machine.threads, "devices": len(machine.devices)}
    return {**system, "executor": executor, **sizes, **packages}
