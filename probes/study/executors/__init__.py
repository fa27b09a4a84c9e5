"""Executors by name: in this process, in local processes, or on a Slurm cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probes.study.executors.base import Executor, Machine
from synthlang.store import Store


def open_executor(name: str, store: Store, folder: Path, machine: Machine, slurm: Iterable[str] = ()) -> Executor:
    """Open an executor: ``in-process``, ``local`` or ``slurm``.

    Args:
        name: Name of the executor.
        store: Store of the stages.
        folder: Folder of the study.
        machine: Processes, threads and devices for ``local``, and threads for ``in-process``.
        slurm: Options of Slurm, as ``KEY=VALUE``.

    Raises:
        InputError: An option of Slurm is wrong, this machine cannot submit jobs for this folder, or the list of earlier
            jobs cannot be read.
    """
    if name == "in-process":
        from probes.study.executors.local import InlineExecutor

        return InlineExecutor(store, machine.threads)
    if name == "local":
        from probes.study.executors.local import LocalExecutor

        return LocalExecutor(store, machine.workers, machine.threads, machine.devices)
    assert name == "slurm", "StudyOptions.check refuses other executors"
    from probes.study.executors.slurm import SlurmExecutor

    return SlurmExecutor(store, folder, list(slurm))
