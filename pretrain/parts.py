"""Into how many micro-batches a step is cut: by the processes of a launch, and by accumulation within each."""

from __future__ import annotations

from pretrain.config import PretrainConfig
from synthlang.errors import InputError


def parts_of(config: PretrainConfig, processes: int) -> int:
    """Into how many micro-batches a step is cut; InputError if the launch does not fit the config."""
    if config.processes is not None and processes != config.processes:
        raise InputError(
            f"processes is {config.processes}, the launch has {processes}; start with accelerate launch "
            f"--num_processes {config.processes}, or set processes: {processes} (a stage of a study is one process)"
        )
    return micro_batches(config.batch.rows, config.batch.accumulation, processes, "batch.")


def micro_batches(rows: int, accumulation: int, processes: int, section: str = "") -> int:
    """The micro-batches of a step of ``rows`` rows; InputError, with keys of ``section``, if they are not equal."""
    parts = processes * accumulation
    if rows % parts:
        raise InputError(f"{section}rows {rows} must be a multiple of processes × {section}accumulation = {parts}")
    return parts
