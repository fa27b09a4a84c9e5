"""What ``--slurm KEY=VALUE`` may say: what a job asks of the cluster, for all kinds of work or for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from synthlang.config import StrictModel, parse
from synthlang.errors import InputError, did_you_mean
from synthlang.strict_yaml import parse_yaml

KINDS = ("pretrain", "adjust", "tune", "alignment", "probe", "transfer")


SETUP = "setup"


class Resources(StrictModel):
    """What one job asks for; the names are those of sbatch, with ``_`` for ``-``."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    exclude: str | None = None
    gres: str | None = None
    time: int = Field(60, ge=1)  # minutes; before they end a job saves and goes back into the queue
    mem: str | None = None
    cpus: int = Field(1, ge=1)
    gpus: int = Field(0, ge=0, le=1)  # a task uses one
    setup: tuple[str, ...] = ()  # lines of the job script before Python starts

    @field_validator("mem")
    @classmethod
    def _memory(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"[1-9]\d*([KMGT]B?)?", text):
            raise ValueError("must be a number with K, M, G or T, as in 16G")
        return text


class SlurmOptions(Resources):
    """Resources of every job, changes for a kind of work, and how jobs are sent and watched."""

    jobs: int = Field(1000, ge=1)  # of the study in the queue at a time, unless the whole graph is handed over
    array_parallelism: int = Field(256, ge=1)  # jobs of one array at a time
    array_size: int = Field(1000, ge=1)  # Slurm's MaxArraySize is 1001 unless a cluster changed it
    warning: int = Field(90, ge=3, le=65535)  # seconds between the warning and the time limit
    requeues: int = Field(20, ge=0)  # how often a job may reach its time limit, or be lost, and go on
    python: str | None = None  # the command that starts Python on a node, by default the one that runs now
    poll: float = Field(5.0, gt=0)  # seconds between two looks at the queue
    kinds: dict[str, dict[str, Any]] = Field({})

    def of(self, kind: str) -> Resources:
        """What a job of a kind asks for."""
        common = self.model_dump(mode="json", include=set(Resources.model_fields))
        return parse(Resources, common | self.kinds.get(kind, {}))


def read_options(assignments: Sequence[str]) -> SlurmOptions:
    """The options of KEY=VALUE and KIND.KEY=VALUE; ``setup`` may come several times, a line each.

    Texts are taken as they stand, so that ``account=007`` needs no quotes; ``null`` is none.
    """
    found: dict[str, Any] = {}
    kinds: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        name, _, text = (part.strip() for part in assignment.partition("="))
        kind, dot, key = name.rpartition(".")
        if not key or not text or (dot and not kind):
            raise InputError(
                f"--slurm {assignment}: must be KEY=VALUE or KIND.KEY=VALUE, as in time=120 or pretrain.gpus=1"
            )
        if kind and kind not in KINDS:
            raise InputError(f"--slurm {assignment}: {kind!r} is no kind of work; known: {', '.join(KINDS)}")
        allowed = [option for option in (Resources if kind else SlurmOptions).model_fields if option != "kinds"]
        if key not in allowed:
            hint = did_you_mean(key, allowed).strip() or f"known: {', '.join(allowed)}"
            raise InputError(f"--slurm {assignment}: unknown option {key!r}; {hint}")
        into = kinds.setdefault(kind, {}) if kind else found
        into[key] = [*into.get(key, []), text] if key == SETUP else _value(key, text, assignment)
    try:
        for changes in kinds.values():
            parse(Resources, changes)  # as strict as the options of all kinds
        return parse(SlurmOptions, {"kinds": kinds, **found})
    except InputError as error:
        raise InputError(f"--slurm {error}") from error


def _value(key: str, text: str, assignment: str) -> Any:
    """The value of an option: a text as it stands, numbers as in YAML."""
    if text == "null":
        return None
    is_number = SlurmOptions.model_fields[key].annotation in (int, float)
    return parse_yaml(text, f"--slurm {assignment}") if is_number else text
