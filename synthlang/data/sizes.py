"""Sizes of data sets in megabytes, each with its basis: measured, stated by a page, or estimated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field, model_validator
from rich.filesize import decimal

from synthlang.config import StrictModel
from synthlang.errors import InputError

MEGABYTE = 1_000_000
"""Number of bytes of the unit in which the catalogue has sizes."""
ESTIMATE = "≈ "
"""Mark before a size that is an estimate."""


class Size(StrictModel):
    """A size in megabytes under the name of its basis, as in ``{stated: 58}``."""

    measured: float | None = Field(default=None, ge=0)
    """Size of files that were read, or of the same files in another place."""
    stated: float | None = Field(default=None, ge=0)
    """Size that the source, or a public repository that uses the source, states."""
    estimated: float | None = Field(default=None, ge=0)
    """Estimate (docs/data.md has the rules)."""

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) != 1:
            hint = "write measured, stated or estimated, with a number of megabytes"
            raise InputError("must have exactly one key", hint=hint, code="conflict")
        return data

    @property
    def megabytes(self) -> float:
        """The size in megabytes."""
        return next(number for number in (self.measured, self.stated, self.estimated) if number is not None)

    def __str__(self) -> str:
        """Return the size as text, with a mark if it is an estimate."""
        return ("" if self.estimated is None else ESTIMATE) + megabytes(self.megabytes)


def megabytes(number: float) -> str:
    """Return a size, given in megabytes, as text in a suitable unit.

    >>> megabytes(0.4), megabytes(317.2), megabytes(20_300)
    ('400.0 kB', '317.2 MB', '20.3 GB')
    """
    return decimal(round(number * MEGABYTE))


def size_text(size: Size | None) -> str:
    """Return a size as text, or ``unknown`` for None.

    >>> size_text(Size(stated=0.4)), size_text(Size(estimated=20_300)), size_text(None)
    ('400.0 kB', '≈ 20.3 GB', 'unknown')
    """
    return "unknown" if size is None else str(size)


def total(sizes: Iterable[Size | None]) -> str:
    """Return the sum of sizes as text.

    A sum with an estimate has a mark. A sum with an unknown size is a lower bound. If all sizes are unknown, the text
    is ``unknown``.

    >>> total([Size(stated=1), Size(estimated=2)]), total([Size(stated=1), None]), total([])
    ('≈ 3.0 MB', 'at least 1.0 MB', '0 bytes')
    """
    all_sizes: Sequence[Size | None] = list(sizes)
    known = [size for size in all_sizes if size is not None]
    if all_sizes and not known:
        return "unknown"
    least = "" if len(known) == len(all_sizes) else "at least "
    mark = ESTIMATE if any(size.estimated is not None for size in known) else ""
    return f"{least}{mark}{megabytes(sum(size.megabytes for size in known))}"
