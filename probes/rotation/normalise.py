"""Normalisation of the vectors of one language before a map to another language is fitted or applied.

    none                   x
    centre                 x − mean                       (Kulshreshtha et al. 2020, equation 4)
    unit                   x / |x|
    unit-centre-unit       unit, centre, unit             (Artetxe et al. 2018; Cao et al. 2020, section 3.4)
    iterative              [unit, centre] k times, unit   (code of Zhang et al. 2019, "Are Girls Neko or Shōjo?")
    iterative-as-printed   [unit, centre] k times         (Zhang et al. 2019, equations 4 and 5)

Each ``centre`` subtracts the mean of all rows after the previous steps. These means are fitted once, and later
subtracted from other rows as well. As k grows, the fitted rows approach unit length and mean 0.

Zero rows are counted and left out of means. They stay zero, so that their cosine with every vector is 0. A unit row
whose distance from the mean is below ``ON_THE_MEAN`` becomes a zero row, because the difference is only rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from probes.rotation.settings import ROUNDS, Method
from synthlang.errors import InputError
from synthlang.wording import plural

ON_THE_MEAN = 1e-6  # distance of a unit row from the mean
FITTED_ROWS = 1024  # block size whose copies in float64 fit into the processor's cache


def plan(method: Method, rounds: int = ROUNDS) -> tuple[str, ...]:
    """Return the steps ``unit`` and ``centre`` of a method, with ``rounds`` rounds if the method is iterative.

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
    """A fitted normalisation.

    Attributes:
        method: The name of the method in the table of this module.
        rounds: Number of rounds of an iterative method.
        means: The mean that each step ``centre`` subtracts, [steps, d] float64.
        rows: Number of rows that the means were fitted on.
        zeros: Number of zero rows that were left out.
    """

    method: Method
    rounds: int
    means: Tensor
    rows: int = 0
    zeros: int = 0

    @staticmethod
    def fit(rows: Tensor, method: Method = "iterative", rounds: int = ROUNDS) -> Normaliser:
        """Fit a normalisation to the rows [n, d] of one language.

        See `fit_normaliser` for ``method`` and ``rounds``.

        Raises:
            InputError: The rows cannot be normalised (see `fit_normaliser`).
        """
        return fit_normaliser(lambda: torch.split(rows.detach(), FITTED_ROWS), rows.shape[-1], method, rounds)

    def apply(self, rows: Tensor) -> Tensor:
        """Normalise rows […, d], and keep their type and device. Half precision is computed in float32."""
        x = rows.to(torch.promote_types(rows.dtype, torch.float32))
        return _follow(x, plan(self.method, self.rounds), self.means.to(x.device, x.dtype))[0].to(rows.dtype)

    def to_json(self) -> dict[str, Any]:
        """Return the method, the number of rows, and the length of each mean, which should approach 0."""
        lengths = [float(f"{length:.6g}") for length in self.means.norm(dim=1).tolist()]
        rounds = {"rounds": self.rounds} if self.method.startswith("iterative") else {}
        return {"method": self.method, **rounds, "rows": self.rows, "zeros": self.zeros, "means": lengths}


def fit_normaliser(
    blocks: Callable[[], Iterable[Tensor]], width: int, method: Method, rounds: int = ROUNDS
) -> Normaliser:
    """Fit a normalisation to rows [n, d] that are read in blocks. Memory is one block.

    Args:
        blocks: Function that returns blocks of rows, [rows, d] each. It must return the same blocks in each call.
        width: Number of dimensions d.
        method: The name of the method in the table of this module.
        rounds: Number of rounds of an iterative method.

    Raises:
        InputError: There are no rows, or a row is not finite. Every method except ``none`` also refuses rows that are
            all zero. Methods that subtract the mean of unit rows also refuse rows that all have the same direction.
    """
    steps, means = plan(method, rounds), torch.zeros(0, width, dtype=torch.float64)
    largest = torch.cat([torch.zeros(0), *(largest_of(rows)[:, 0].float().cpu() for rows in blocks())])
    if not len(largest):
        raise InputError("there are no vectors to normalise", code="empty")
    if not bool(largest.isfinite().all()):
        raise InputError(
            "vectors with NaN or infinity cannot be normalised",
            hint="use an earlier checkpoint, or another model",
            code="damaged",
        )
    zeros = int((largest == 0).sum())
    if steps and zeros == len(largest):
        raise InputError(
            f"the vectors cannot be normalised, because all are zero ({plural(zeros, 'vector')})",
            hint="use other words or sentences, or other vectors",
            code="empty",
        )
    for at in (at for at, step in enumerate(steps) if step == "centre"):
        total, count = torch.zeros(width, dtype=torch.float64), 0
        for rows in blocks():
            x, nothing = _follow(rows.double(), steps[:at], means.to(rows.device))
            total += x.sum(0).cpu()
            count += len(x) - int(nothing.sum())
        mean = total / max(count, 1)
        # for unit vectors, the squared length of the mean is 1 − variance
        if at and (not count or 1.0 - float(mean @ mean) < ON_THE_MEAN**2):
            vectors = plural(len(largest) - zeros, "vector")
            reason = f"the vectors cannot be centred, because all have the same direction ({vectors})"
            raise InputError(reason, hint="set normalise to unit, or use more words or sentences", code="empty")
        means = torch.cat([means, mean[None]])
    return Normaliser(method, rounds, means, len(largest) - zeros, zeros)


def largest_of(x: Tensor) -> Tensor:
    """Return the largest absolute value of each row, […, 1]."""
    return x.abs().amax(-1, keepdim=True)


def _follow(x: Tensor, steps: tuple[str, ...], means: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the steps, and return the rows and the mask [n, 1] of zero rows."""
    largest = largest_of(x)
    nothing = largest == 0
    left = iter(means)
    for at, step in enumerate(steps):
        if step == "unit":
            # scale first against overflow and underflow; later rows have about unit length
            x = x / largest.where(~nothing, 1.0) if not at else x
            x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).masked_fill(nothing, torch.inf)
        else:
            x = x - next(left)
            nothing = nothing | (torch.linalg.vector_norm(x, dim=-1, keepdim=True) < ON_THE_MEAN) if at else nothing
            x = x * ~nothing
    return x, nothing
