"""Settings of training: batches, optimizer, validation, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash

Packing = Literal["stream", "sentences", "sentence"]
Place = Annotated[int | float, Field(gt=0)]
"""A number of steps, or a share of the run."""


def check_place(place: float, keys: str) -> None:
    """Check that ``place`` is a whole number of steps, or a share of the run, which is below 1.

    Raises:
        InputError: ``place`` is above 1 and not whole. The error names the ``keys`` of the setting.
    """
    if place > 1 and not float(place).is_integer():
        reason = f"{place} is neither a whole number of steps nor a share of the run"
        raise InputError(reason, keys=keys, hint="give a whole number of steps, or a share below 1", code="range")


def step_of(place: float, steps: int) -> int:
    """Return the step that ``place`` gives as a number or as a share of a run of ``steps`` steps.

    A number below 1 is a share, and is rounded down to a step.

    >>> step_of(40, 100), step_of(0.29, 100)
    (40, 29)
    """
    return int(Fraction(repr(place)) * (steps if place < 1 else 1))  # 0.29 as written: 29 of 100 steps


class LogSteps(StrictModel):
    """Steps at equal ratios, such as 1, 10, 100 and 1000 for ``{log: 4}`` in a run of 1,000 steps."""

    log: int = Field(ge=2)
    """Number of steps, from ``first`` to the last step of the run. Steps that coincide after rounding count once."""
    first: int = Field(default=1, ge=1)
    """First step."""

    def of(self, steps: int) -> list[int]:
        """Return the steps first · (steps / first) ** (i / (log − 1)) for i = 0 … log − 1, rounded and distinct.

        >>> LogSteps(log=4).of(1000), LogSteps(log=5, first=100).of(1000)
        ([1, 10, 100, 1000], [100, 178, 316, 562, 1000])
        """
        ratio = steps / self.first
        return sorted({round(self.first * ratio ** (i / (self.log - 1))) for i in range(self.log)})


class BatchConfig(StrictModel):
    """The rows of a step, over all processes and micro-batches."""

    smoke: ClassVar[Mapping[str, Any]] = {"rows": 16, "accumulation": 1}

    rows: int = Field(default=128, ge=2)
    """Number of rows of a step."""
    length: int = Field(default=512, ge=8)
    """Number of tokens of a row."""
    accumulation: int = Field(default=1, ge=1)
    """Number of micro-batches into which each process splits its part of a step."""
    packing: Packing = "stream"
    """Packing of sentences into rows: ``stream``, ``sentences`` or ``sentence``.

    With ``stream``, the text is cut into rows of ``length`` tokens. With ``sentences``, a row has as many whole
    sentences as fit, and padding. With ``sentence``, rows are also nearly full, but each sentence (for TLM each pair)
    has its own positions and attends only to itself. Except with ``stream``, a sentence that does not fit into a row is
    left out and counted. A sentence pair is left out and counted if a side is empty or does not fit into half a row.
    """

    @property
    def tokens(self) -> int:
        """Number of tokens of a step, with padding."""
        return self.rows * self.length


class OptimizerConfig(StrictModel):
    """AdamW with a schedule of the learning rate."""

    smoke: ClassVar[Mapping[str, Any]] = {"warmup_steps": 2}

    learning_rate: float = Field(default=1e-4, gt=0.0)
    """Largest learning rate."""
    schedule: Literal["linear", "inverse_sqrt", "cosine", "constant"] = "linear"
    """Course of the learning rate after the warm-up.

    ``linear`` falls to zero at the last step (ALIGN-MLM). ``inverse_sqrt`` is ∝ 1 / √step (Vaswani et al. 2017;
    Emerging Cross-lingual Structure). ``cosine`` follows half a cosine to zero at the last step. ``constant`` keeps the
    rate.
    """
    warmup_steps: int = Field(default=10_000, ge=0)
    """Number of steps in which the rate rises linearly."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Weight decay of the matrices. Biases and LayerNorms have none."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Decay rate of the first moment."""
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    """Decay rate of the second moment."""
    epsilon: float = Field(default=1e-8, gt=0.0)
    """Number that is added to the denominator of an update."""
    clip: float | None = Field(default=1.0, gt=0.0)
    """Largest norm of the gradient. With null, gradients are not clipped."""


class ValidationConfig(StrictModel):
    """Validation during training: perplexity and word alignment of each language.

    Perplexity is measured on the dev split, at masked words or, with a decoder, at all tokens.
    """

    smoke: ClassVar[Mapping[str, Any]] = {"every": 10, "rows": 16}

    every: int = Field(default=0, ge=0)
    """Number of steps between validations. 0 turns validation off. A number above 0 also validates the last step."""
    rows: int = Field(default=128, ge=1)
    """Largest number of rows of each language."""
    mask_rate: Annotated[float | None, Field(gt=0.0, lt=1.0), OmitDefaultFromHash()] = None
    """Share of the words that are masked (default: as in training).

    Runs that are compared by perplexity need the same share and the same packing.
    """
    packing: Annotated[Packing | None, OmitDefaultFromHash()] = None
    """Packing of the rows (default: as in training)."""
    alignment: bool = True
    """Also measure the alignment of the languages' word embeddings."""


class CheckpointConfig(StrictModel):
    """Saving and deletion of checkpoints. The last step always has a checkpoint."""

    smoke: ClassVar[Mapping[str, Any]] = {
        "every": 10,
        "archive": lambda kept: None if kept.archive is None else min(kept.every, 10),
        "at": lambda kept: None if kept.at is None else LogSteps(log=3),
    }

    every: int = Field(default=1000, ge=1)
    """Number of steps between checkpoints."""
    keep: int = Field(default=2, ge=1)
    """Number of latest checkpoints that are kept."""
    archive: int | None = Field(default=None, ge=1)
    """Number of steps between further checkpoints that are kept, a multiple of ``every``."""
    at: Annotated[tuple[Place, ...] | LogSteps | None, OmitDefaultFromHash()] = None
    """Further checkpoints that are saved and kept: a list of steps or of shares of the run, or ``{log: N}``.

    A share is below 1 and rounded down to a step. ``{log: N, first: F}`` gives N steps at equal ratios, from step F
    (default: 1) to the last. If validation is on, these steps are also validated.
    """
    select: Literal["last", "best"] = "last"
    """Checkpoint that is exported and probed: the ``last``, or the ``best`` by perplexity of the first language.

    The best one is chosen among the multiples of ``every`` and the last step.
    """

    @field_validator("at")
    @classmethod
    def _places(cls, value: tuple[float, ...] | LogSteps | None) -> tuple[float, ...] | LogSteps | None:
        if isinstance(value, tuple):
            for number, place in enumerate(value):
                check_place(place, str(number))
            if not value:
                raise InputError("names no step", hint="give at least one step, or leave this key out", code="empty")
        return value

    def steps_at(self, steps: int) -> list[int]:
        """Return the sorted steps of ``at`` in a run of ``steps`` steps.

        >>> CheckpointConfig(at=(10, 0.5)).steps_at(200), CheckpointConfig(at=LogSteps(log=3)).steps_at(100)
        ([10, 100], [1, 10, 100])
        """
        if isinstance(self.at, LogSteps):
            return self.at.of(steps)
        return sorted({max(1, step_of(place, steps)) for place in self.at or ()})

    def check(self, steps: int) -> None:
        """Check the settings against a run of ``steps`` steps.

        Raises:
            InputError: ``archive`` is not a multiple of ``every``, or ``at`` has a step after the last one.
        """
        if self.archive is not None and self.archive % self.every:
            reason = f"{self.archive} is not a multiple of checkpoints.every ({self.every})"
            hint = f"use a multiple of {self.every}, or change checkpoints.every"
            raise InputError(reason, keys="checkpoints.archive", hint=hint, code="conflict")
        if isinstance(self.at, LogSteps):
            named = {"checkpoints.at.first": self.at.first}
        else:
            named = {f"checkpoints.at.{number}": step_of(place, steps) for number, place in enumerate(self.at or ())}
        if late := [(key, step) for key, step in named.items() if step > steps]:
            reason = f"step {late[0][1]:,} is after the last step of the run ({steps:,})"
            raise InputError(reason, keys=late[0][0], hint=f"use a number up to {steps}", code="range")


def micro_batches(rows: int, accumulation: int, processes: int) -> int:
    """Return the number of micro-batches of a step over all processes, ``processes`` · ``accumulation``.

    Raises:
        InputError: The number ``rows`` of a step is not a multiple of this number.
    """
    count = processes * accumulation
    if rows % count:
        reason = f"{rows} is not a multiple of processes × accumulation ({processes} × {accumulation} = {count})"
        # a factor can be changed to 1, which mends the rows only if they are a multiple of the other factor
        factors = (("accumulation", processes), ("the number of processes", accumulation))
        hint = f"use a multiple of {count}" + "".join(f", or change {name}" for name, n in factors if not rows % n)
        raise InputError(reason, keys="rows", hint=hint, code="range")
    return count
