"""Normalisation of one language's vectors before they are mapped onto another's, fitted once and applied anywhere.

    none                   x
    centre                 x − mean                       (Kulshreshtha et al. 2020, equation 4)
    unit                   x / |x|
    unit-centre-unit       unit, centre, unit             (Artetxe et al. 2018; Cao et al. 2020, section 3.4)
    iterative              [unit, centre] k times, unit   (Zhang et al. 2019, "Are Girls Neko or Shōjo?", as their code)
    iterative-as-printed   [unit, centre] k times         (the same, equations 4 and 5: without the last unit)

Each ``centre`` subtracts the mean of all rows as the steps before left them. Those means are what is fitted: rows that
were not in the fit go the same way. As k grows, the rows of the fit come to have both unit length and mean 0.

A row of zeros is no vector: it is counted, belongs to no mean and stays zero, so its cosine to everything is 0. So does
a row that lies on the mean of unit rows (within ``ON_THE_MEAN``): what is left of it is rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from probes.rotation.settings import ROUNDS, Method
from synthlang.errors import InputError

ON_THE_MEAN = 1e-6  # distance of a unit row from the mean
FITTED_ROWS = 1024  # at a time, so that the copies in float64 stay in the processor's cache


def plan(method: Method, rounds: int = ROUNDS) -> tuple[str, ...]:
    """Return the steps ``unit`` and ``centre`` of a method.

    >>> plan("iterative", 2)
    ('unit', 'centre', 'unit', 'centre', 'unit')
    """
    both = ("unit", "centre")
    return {
        "none": (), "centre": ("centre",), "unit": ("unit",), "unit-centre-unit": (*both, "unit"),
        "iterative": (*both * rounds, "unit"), "iterative-as-printed": both * rounds,
    }[method]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Normaliser:
    """The steps of a method with the means that it subtracts.

    means         [centre steps, d] float64, one for each step ``centre`` in turn
    rows, zeros   how many rows the means were fitted on, and how many rows of zeros were left out; 0 without a fit
    """

    method: Method
    rounds: int
    means: Tensor
    rows: int = 0
    zeros: int = 0

    @staticmethod
    def fit(rows: Tensor, method: Method = "iterative", rounds: int = ROUNDS) -> Normaliser:
        """Fit to the rows [n, d] of one language; ``fit_normaliser`` with blocks of ``FITTED_ROWS`` rows."""
        return fit_normaliser(lambda: torch.split(rows.detach(), FITTED_ROWS), rows.shape[-1], method, rounds)

    def apply(self, rows: Tensor) -> Tensor:
        """[…, d] → […, d], of the type of ``rows`` and on its device; half precision is computed in float32.

        NaN stays NaN: what is fitted or retrieved from the rows refuses it.
        """
        x = rows.to(torch.promote_types(rows.dtype, torch.float32))
        return _follow(x, plan(self.method, self.rounds), self.means.to(x.device, x.dtype))[0].to(rows.dtype)

    def to_json(self) -> dict[str, Any]:
        """Return the method, its rows and the length of each mean.

        The last lengths show how near to 0 the mean has come.
        """
        lengths = [float(f"{length:.6g}") for length in self.means.norm(dim=1).tolist()]
        rounds = {"rounds": self.rounds} if self.method.startswith("iterative") else {}
        return {"method": self.method, **rounds, "rows": self.rows, "zeros": self.zeros, "means": lengths}


def fit_normaliser(
    blocks: Callable[[], Iterable[Tensor]], width: int, method: Method, rounds: int = ROUNDS
) -> Normaliser:
    """Fit to rows [n, d] that come in blocks, the same ones each time; memory is a block.

    InputError without rows, if one is not finite, if all are zeros, and where all rows point the same way so that
    nothing is left of them without their mean (methods with ``unit`` before ``centre``).
    """
    steps, means = plan(method, rounds), torch.zeros(0, width, dtype=torch.float64)
    largest = torch.cat([torch.zeros(0), *(largest_of(rows)[:, 0].float().cpu() for rows in blocks())])
    if not len(largest):
        raise InputError("there are no vectors to normalise", code="empty")
    if not bool(largest.isfinite().all()):
        raise InputError("the vectors hold NaN or infinity and cannot be normalised", code="range")
    zeros = int((largest == 0).sum())
    if steps and zeros == len(largest):
        raise InputError(f"all {zeros} vectors are zeros and cannot be normalised", code="empty")
    for at in (at for at, step in enumerate(steps) if step == "centre"):
        total, count = torch.zeros(width, dtype=torch.float64), 0
        for rows in blocks():
            x, nothing = _follow(rows.double(), steps[:at], means.to(rows.device))
            total += x.sum(0).cpu()
            count += len(x) - int(nothing.sum())
        mean = total / max(count, 1)
        # the rows are unit vectors: the squared length of their mean is 1 − their variance
        if at and (not count or 1.0 - float(mean @ mean) < ON_THE_MEAN**2):
            reason = "all vectors point the same way, so nothing is left of them without their mean"
            raise InputError(reason, code="empty")
        means = torch.cat([means, mean[None]])
    return Normaliser(method, rounds, means, len(largest) - zeros, zeros)


def largest_of(x: Tensor) -> Tensor:
    """[…, 1] the largest absolute value of each row: 0 for zeros, not finite for a row that is not."""
    return x.abs().amax(-1, keepdim=True)


def _follow(x: Tensor, steps: tuple[str, ...], means: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the steps one after another, and return with the rows a mark [n, 1] of those that are zero and stay so."""
    largest = largest_of(x)
    nothing = largest == 0
    left = iter(means)
    for at, step in enumerate(steps):
        if step == "unit":
            # scaled first: squares neither over- nor underflow; later rows are of about unit length
            x = x / largest.where(~nothing, 1.0) if not at else x
            x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).masked_fill(nothing, torch.inf)
        else:
            x = x - next(left)
            nothing = nothing | (torch.linalg.vector_norm(x, dim=-1, keepdim=True) < ON_THE_MEAN) if at else nothing
            x = x * ~nothing
    return x, nothing
