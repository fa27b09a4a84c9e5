"""What Slurm says of our jobs: which are in the queue (squeue), how one ended (sacct)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable

from synthlang.errors import InputError

PROGRAMS = ("sbatch", "squeue", "scancel", "srun")
SECONDS = 60.0  # a controller that answers later is away
UNKNOWN = "UNKNOWN"


def check_programs() -> None:
    """InputError if this machine is no place to submit from."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise InputError(
            f"{', '.join(missing)} not found: --executor slurm runs where jobs are submitted (a login node)"
        )
    if queue() is None:
        raise InputError("squeue does not answer: see `scontrol ping`, and SLURM_CONF if the cluster needs it")


def queue(name: str | None = None) -> dict[str, str] | None:
    """{job id: state} of this user's jobs, or those of a name, that wait, run or are ending; None without an answer.

    An id is ``12``, or ``12_3`` for the element of an array.
    """
    named = [f"--name={name}"] if name else []
    found = _run(["squeue", "--noheader", "--array", f"--user={os.getuid()}", *named, "--format=%i %T"])
    if found is None:
        return None
    pairs = (line.split() for line in found.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def last_state(job: str) -> str:
    """How a job ended (FAILED, CANCELLED, TIMEOUT, …), or UNKNOWN: without accounting Slurm forgets it."""
    found = _run(["sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State"])
    lines = (found or "").split("\n")
    return lines[0].split()[0] if lines[0].split() else UNKNOWN


def cancel(jobs: Iterable[str] = (), name: str | None = None) -> None:
    """Cancel jobs by id, or those of this user with a name."""
    _run(["scancel", f"--user={os.getuid()}", *([f"--name={name}"] if name else []), *jobs])


def _run(command: list[str]) -> str | None:
    """What a command prints, None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
