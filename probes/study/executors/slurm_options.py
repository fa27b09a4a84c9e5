"""What ``--slurm KEY=VALUE`` may say: what a job asks of the cluster, for all kinds of work or for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from synthlang.config import StrictModel, parse
from synthlang.errors import InputError, did_you_mean
from synthlang.strict_yaml import parse_yaml

KINDS = ("pretrain", "adjust", "tune", "alignment", "probe", "transfer")


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*([KMGT]B?)?", text):
        raise ValueError("must be a number with K, M, G or T, as in 16G")
    return text


Memory = Annotated[str, AfterValidator(_memory)]
OPTION = re.compile(r"(?:(?P<kind>[a-z]+)\.)?(?P<key>[a-z_]+)")
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
    mem: Memory | None = None
    cpus: int = Field(1, ge=1)
    gpus: int = Field(0, ge=0, le=1)  # a task uses one
    setup: tuple[str, ...] = ()  # lines of the job script before Python starts


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
        held = self.model_dump(include=set(Resources.model_fields))
        return Resources(**held | self.kinds.get(kind, {}))


def read_options(assignments: Sequence[str]) -> SlurmOptions:
    """The options of KEY=VALUE and KIND.KEY=VALUE; ``setup`` may come several times, a line each.

    Texts are taken as they stand, so that ``account=007`` needs no quotes; ``null`` is none.
    """
    found: dict[str, Any] = {}
    kinds: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        kind, key, text = _parts(assignment)
        into = found if kind is None else kinds.setdefault(kind, {})
        if key == SETUP:
            into[SETUP] = [*into.get(SETUP, []), text]
        else:
            into[key] = _value(key, text, assignment)
    try:
        for kind, changes in kinds.items():
            parse(Resources, changes)  # as strict as the options of all kinds
            kinds[kind] = {**changes, SETUP: tuple(changes[SETUP])} if SETUP in changes else changes
        return parse(SlurmOptions, {**found, "kinds": kinds})
    except InputError as error:
        raise InputError(f"--slurm {error}") from error


def _parts(assignment: str) -> tuple[str | None, str, str]:
    """(kind or None, key, text) of an assignment, or InputError."""
    name, equals, text = assignment.partition("=")
    match = OPTION.fullmatch(name)
    if not equals or not match or not text.strip():
        raise InputError(
            f"--slurm {assignment}: must be KEY=VALUE or KIND.KEY=VALUE, as in time=120 or pretrain.gpus=1"
        )
    kind, key = match["kind"], match["key"]
    if kind is not None and kind not in KINDS:
        raise InputError(f"--slurm {assignment}: {kind!r} is no kind of work; known: {', '.join(KINDS)}")
    allowed = [n for n in (SlurmOptions if kind is None else Resources).model_fields if n != "kinds"]
    if key not in allowed:
        hint = did_you_mean(key, allowed).strip() or f"known: {', '.join(allowed)}"
        raise InputError(f"--slurm {assignment}: unknown option {key!r}; {hint}")
    return kind, key, text.strip()


def _value(key: str, text: str, assignment: str) -> Any:
    """The value of an option: a text as it stands, numbers as in YAML."""
    if text == "null":
        return None
    is_text = SlurmOptions.model_fields[key].annotation not in (int, float)
    return text if is_text else parse_yaml(text, f"--slurm {assignment}")
