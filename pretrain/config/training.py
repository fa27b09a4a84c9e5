"""How a run goes through its data: batches, optimizer, validation, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash

Packing = Literal["stream", "sentences", "sentence"]


class BatchConfig(StrictModel):
    """``rows`` rows of ``length`` tokens a step, over all processes and micro-batches.

    packing   ``stream``: sentences one after another, cut every ``length`` tokens; ``sentences``: as many whole
              sentences as fit, then padding; ``sentence``: each sentence (for TLM each pair) sees itself only and has
              positions of its own, as if it were a row, in rows that are nearly full. A sentence that is longer than
              a row (for TLM half a row) is left out and counted
    """

    smoke: ClassVar[Mapping[str, Any]] = {"rows": 16, "accumulation": 1}

    rows: int = Field(default=128, ge=2)
    length: int = Field(default=512, ge=8)
    accumulation: int = Field(default=1, ge=1)
    packing: Packing = "stream"


class OptimizerConfig(StrictModel):
    """AdamW; the rate rises linearly for ``warmup_steps``, of a shorter run for all of it, then follows ``schedule``.

    linear          to zero at the last step (ALIGN-MLM)
    inverse_sqrt    ∝ 1 / √step (Vaswani et al. 2017; Emerging Cross-lingual Structure)
    cosine          half a cosine to zero at the last step
    constant        stays
    """

    smoke: ClassVar[Mapping[str, Any]] = {"warmup_steps": 2}

    learning_rate: float = Field(default=1e-4, gt=0.0)
    schedule: Literal["linear", "inverse_sqrt", "cosine", "constant"] = "linear"
    warmup_steps: int = Field(default=10_000, ge=0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    epsilon: float = Field(default=1e-8, gt=0.0)
    clip: float | None = Field(default=1.0, gt=0.0)


class ValidationConfig(StrictModel):
    """On the dev split every ``every`` steps (0: never): masked perplexity of ``rows`` rows of each language.

    mask_rate   share of the words that are masked there (none: that of training)
    packing     of these rows (none: that of training); runs that are compared by perplexity have the same two
    alignment   also how well the word embeddings of the languages are aligned
    """

    smoke: ClassVar[Mapping[str, Any]] = {"every": 10, "rows": 16}

    every: int = Field(default=0, ge=0)
    rows: int = Field(default=128, ge=1)
    mask_rate: Annotated[float | None, Field(gt=0.0, lt=1.0), OmitDefaultFromHash()] = None
    packing: Annotated[Packing | None, OmitDefaultFromHash()] = None
    alignment: bool = True


class CheckpointConfig(StrictModel):
    """Every ``every`` steps and at the end; which ones stay.

    keep      the last so many
    archive   besides, those of every so many steps (a multiple of ``every``)
    select    which one is exported and probed: the last, or the ``best`` by perplexity of the first language
    """

    smoke: ClassVar[Mapping[str, Any]] = {
        "every": 10,
        "archive": lambda kept: None if kept.archive is None else min(kept.every, 10),
    }

    every: int = Field(default=1000, ge=1)
    keep: int = Field(default=2, ge=1)
    archive: int | None = Field(default=None, ge=1)
    select: Literal["last", "best"] = "last"


def micro_batches(rows: int, accumulation: int, processes: int) -> int:
    """Return the number of micro-batches of a step of ``rows`` rows; InputError if they would not be equal."""
    count = processes * accumulation
    if rows % count:
        reason = f"{rows} must be a multiple of processes × accumulation = {count}"
        raise InputError(reason, keys="rows", code="range")
    return count
