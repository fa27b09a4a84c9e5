"""Base class of steps, with the settings of all steps, the tools that run them, and the estimate of their time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from synthlang.config import StrictModel
from synthlang.progress import Report, Say, silent, unheard
from synthlang.wording import duration, large


@dataclass(frozen=True)
class Tools:
    """Resources with which a step runs.

    Attributes:
        cache: Folder of finished parts of an interrupted step.
        workers: Number of worker processes.
        report: Called with the progress.
        say: Called with messages.
    """

    cache: Path
    workers: int = 1
    report: Report = silent
    say: Say = unheard


class StepRecord(StrictModel):
    """The record of a step that ran."""

    kind: str
    """The kind of the step."""
    settings: Mapping[str, Any]
    """The step, as in the catalogue."""
    version: str
    """Versions of the library and of the model."""
    fingerprint: str
    """Fingerprint of the library and of the model, or of an alignment (see ``Align.name``)."""
    counts: Mapping[str, int] = {}
    """Numbers of processed parts, such as sentences, by name, and of omitted parts by reason."""


class BaseStep(StrictModel):
    """Base class of steps.

    A subclass has ``unit``, ``kind``, its options, ``about``, ``rate``, ``check`` and ``run``.
    """

    unit: ClassVar[str]
    """Name of the counted units, in the plural."""
    is_parallel: ClassVar[bool] = True
    """False if the step is one process for any number of workers."""

    at: Literal["paper", "lab"] | None = None
    """The size that needs the step (default: all sizes). A fetch without a size leaves such a step out."""
    amount: int | None = Field(default=None, ge=1)
    """Approximate number of words (parse), characters (segment) or sentence pairs (align), for the estimate of time."""

    @property
    def about(self) -> str:
        """Effect of the step, with its engine and model. Every subclass defines it."""
        raise NotImplementedError

    @property
    def rate(self) -> float:
        """Units that one core processes in a second, as measured (docs/data.md). Every subclass defines the rate."""
        raise NotImplementedError

    def check(self) -> str:
        """Check that the library and the model are installed, and return their versions.

        Raises:
            InputError: The library or the model is not installed. The hint has the command that installs it.
        """
        raise NotImplementedError

    def estimate(self, amount: int | None, workers: int) -> str:
        """Return the estimated time of the step as text.

        Args:
            amount: Number of units, or None if it is unknown.
            workers: Number of worker processes.
        """
        if amount is None:
            return "time unknown before the download"
        cores = f"{workers} cores" if self.is_parallel and workers > 1 else "one core"
        return f"{large(amount)} {self.unit}, {duration(self.seconds(amount, workers))} on {cores} (estimate)"

    def seconds(self, amount: int, workers: int) -> float:
        """Return the estimated seconds of the step for ``amount`` units and a number of worker processes."""
        return amount / self.rate / (workers if self.is_parallel else 1)

    def record(self, version: str, fingerprint: str, counts: Mapping[str, int]) -> StepRecord:
        """Return the record of the step after it ran.

        Args:
            version: Versions of the library and of the model.
            fingerprint: Fingerprint of the library and of the model, or of an alignment.
            counts: Numbers of processed parts, such as sentences, by name, and of omitted parts by reason.
        """
        settings = self.model_dump(mode="json", exclude={"amount"}, exclude_none=True)
        return StepRecord(
            kind=settings["kind"], settings=settings, version=version, fingerprint=fingerprint, counts=counts
        )
