"""What a study runs on: the machine, divided among its workers, and the versions that its numbers may depend on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from probes.study.executors import Machine
from probes.study.executors.resources import cores, cuda_devices, thread_count, worker_count


def machine_of(executor: str, workers: int | None, cells: int) -> Machine:
    """What the tasks of a study may use. It depends on the whole study, not on what is left of it."""
    devices = cuda_devices()
    workers = workers or worker_count(cells, devices)
    return Machine(workers if executor == "local" else 1, thread_count(workers), tuple(devices))


def environment(machine: Machine, executor: str) -> dict[str, Any]:
    """Versions and sizes that the numbers may depend on."""
    packages = {name: version(name) for name in ("torch", "transformers", "tokenizers", "accelerate", "numpy")}
    system = {"python": platform.python_version(), "platform": platform.platform(), "cores": cores()}
    sizes = {"workers": machine.workers, "threads": machine.threads, "devices": len(machine.devices)}
    return {**system, "executor": executor, **sizes, **packages}
