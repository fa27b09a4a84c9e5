"""Steps of a run, given as numbers, as shares of the run, or at equal ratios."""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from synthlang.config import StrictModel
from synthlang.errors import InputError


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
