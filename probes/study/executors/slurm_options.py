"""Options ``--slurm KEY=VALUE``: resources of the jobs, for all kinds of stages or for one kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from probes.stages.kinds import STAGE_KINDS
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError, did_you_mean
from synthlang.strict_yaml import parse_yaml

SETUP = "setup"
"""Name of the option that may be given several times, once for each line."""


class Resources(StrictModel):
    """Resources of one job.

    Except for ``cpus``, ``gpus`` and ``setup``, the keys are named after options of sbatch.
    """

    partition: str | None = None
    """Partition for the jobs, as in sbatch --partition."""
    account: str | None = None
    """Account that is charged, as in sbatch --account."""
    qos: str | None = None
    """Quality of service, as in sbatch --qos."""
    constraint: str | None = None
    """Required features of a node, as in sbatch --constraint."""
    exclude: str | None = None
    """Nodes to exclude, as in sbatch --exclude."""
    gres: str | None = None
    """Generic resources in place of gpus, such as gpu:h100:1, as in sbatch --gres."""
    time: int = Field(60, ge=1)
    """Time limit in minutes. A job saves and requeues itself before the limit."""
    mem: str | None = None
    """Memory of a job, such as 32G (default: set by the cluster)."""
    cpus: int = Field(1, ge=1)
    """Number of processors and threads. Other numbers may change the last digits of results."""
    gpus: int = Field(0, ge=0, le=1)
    """Number of GPUs. A stage uses at most one."""
    setup: tuple[str, ...] = ()
    """Lines of the job script before Python starts, such as module load cuda."""

    @field_validator("mem")
    @classmethod
    def _memory(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"[1-9]\d*([KMGT]B?)?", text):
            hint = "write a number with K, M, G or T, as in 16G"
            raise InputError(f"{text!r} is not an amount of memory", hint=hint, code="format")
        return text


class SlurmOptions(Resources):
    """Resources of every job, changes for a kind of stage, and settings of submission."""

    jobs: int = Field(1000, ge=1)
    """Maximum number of jobs of the study in the queue. It does not apply with --no-wait."""
    array_parallelism: int = Field(256, ge=1)
    """Maximum number of jobs of an array that run at the same time."""
    array_size: int = Field(1000, ge=1)
    """Maximum number of jobs in an array. The limit MaxArraySize of Slurm is 1001 by default."""
    warning: int = Field(90, ge=3, le=65535)
    """Seconds between the warning signal and the time limit. One training step must fit into this time."""
    requeues: int = Field(20, ge=0)
    """Maximum number of requeues of a job that reached its time limit or was lost by the cluster."""
    python: str | None = None
    """Command that starts Python on a node (default: the running Python)."""
    poll: float = Field(5.0, gt=0)
    """Seconds between two checks of the queue."""
    kinds: dict[str, dict[str, Any]] = Field({})
    """Kind of stage → resources of its jobs, written as KIND.KEY=VALUE."""

    def of(self, kind: str) -> Resources:
        """Return the resources of a job that makes a stage of the kind ``kind``."""
        common = self.model_dump(mode="json", include=set(Resources.model_fields))
        return parse(Resources, common | self.kinds.get(kind, {}))


def read_options(assignments: Sequence[str]) -> SlurmOptions:
    """Return the options of assignments KEY=VALUE and KIND.KEY=VALUE.

    A text needs no quotes, as in ``account=007``, and ``null`` means none. ``setup`` may be given several times, once
    for each line.

    Raises:
        InputError: An assignment is malformed, or its key, kind or value is wrong.
    """
    found: dict[str, Any] = {}
    kinds: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        name, _, text = (part.strip() for part in assignment.partition("="))
        kind, dot, key = name.rpartition(".")
        if not key or not text or (dot and not kind):
            hint = "write KEY=VALUE or KIND.KEY=VALUE, as in time=120 or pretrain.gpus=1"
            raise InputError(f"{assignment!r} is not an assignment", "--slurm", hint=hint, code="format")
        if kind and kind not in STAGE_KINDS:
            hint = f"{did_you_mean(kind, [*STAGE_KINDS])}choose one of {', '.join(STAGE_KINDS)}"
            raise InputError(f"unknown kind of stage {kind!r}", "--slurm", keys=name, hint=hint, code="unknown")
        allowed = [option for option in (Resources if kind else SlurmOptions).model_fields if option != "kinds"]
        if kind and key in SlurmOptions.model_fields and key not in (*allowed, "kinds"):
            reason = "cannot differ between kinds of stages"
            raise InputError(reason, "--slurm", keys=name, hint=f"write {key}={text}", code="unsupported")
        if key not in allowed:
            hint = did_you_mean(key, allowed).strip() or f"choose one of {', '.join(allowed)}"
            reason = "unknown option" + (" for a single kind of stage" if kind else "")
            raise InputError(reason, "--slurm", keys=name, hint=hint, code="unknown")
        into = kinds.setdefault(kind, {}) if kind else found
        into[key] = [*into.get(key, []), text] if key == SETUP else _value(key, text, assignment)
    try:
        for kind, changes in kinds.items():
            try:
                parse(Resources, changes)
            except InputError as error:
                raise error.inside(kind) from error
        return parse(SlurmOptions, {"kinds": kinds, **found})
    except InputError as error:
        raise error.inside(path="--slurm") from error


def _value(key: str, text: str, assignment: str) -> Any:
    """Return the value of an option: None for ``null``, a number as in YAML, anything else as text."""
    if text == "null":
        return None
    is_number = SlurmOptions.model_fields[key].annotation in (int, float)
    return parse_yaml(text, f"--slurm {assignment}") if is_number else text
