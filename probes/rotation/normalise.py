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

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from probes.rotation.settings import METHODS, ROUNDS, Method
from synthlang.errors import InputError

ON_THE_MEAN = 1e-6  # distance of a unit row from the mean
FITTED_ROWS = 1024  # at a time, so that the copies in float64 stay in the processor's cache


def plan(method: Method, rounds: int = ROUNDS) -> tuple[str, ...]:
    """The steps ``unit`` and ``centre`` of a method; InputError for one that is not known.

    >>> plan("iterative", 2)
    ('unit', 'centre', 'unit', 'centre', 'unit')
    """
    if rounds < 1:
        raise InputError(f"normalisation needs at least 1 round, not {rounds}")
    both = ("unit", "centre")
    steps: dict[str, tuple[str, ...]] = {
        "none": (), "centre": ("centre",), "unit": ("unit",), "unit-centre-unit": (*both, "unit"),
        "iterative": (*both * rounds, "unit"), "iterative-as-printed": both * rounds,
    }  # fmt: skip
    if method not in steps:
        raise InputError(f"no normalisation {method!r}; there are {', '.join(METHODS)}")
    return steps[method]


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
        """Fit to the rows [n, d] of one language; copies in float64 are of ``FITTED_ROWS`` rows at a time.

        InputError without rows, if one is not finite, if all are zeros, and where all rows point the same way so that
        nothing is left of them without their mean (methods with ``unit`` before ``centre``).
        """
        fitter = NormaliserFitter(rows.shape[-1], method, rounds)
        while not fitter.done:
            fitter.update(rows)
            fitter.end_pass()
        return fitter.normaliser()

    def apply(self, rows: Tensor) -> Tensor:
        """[…, d] → […, d], of the type of ``rows`` and on its device; half precision is computed in float32.

        NaN stays NaN: what is fitted or retrieved from the rows refuses it.
        """
        x = rows.to(torch.promote_types(rows.dtype, torch.float32))
        return _follow(x, plan(self.method, self.rounds), self.means.to(x.device, x.dtype))[0].to(rows.dtype)

    def to_json(self) -> dict[str, Any]:
        """The method, its rows, and how long each mean was: the last ones show how near 0 the mean has come."""
        lengths = [float(f"{length:.6g}") for length in self.means.norm(dim=1).tolist()]
        rounds = {"rounds": self.rounds} if self.method.startswith("iterative") else {}
        return {"method": self.method, **rounds, "rows": self.rows, "zeros": self.zeros, "means": lengths}


class NormaliserFitter:
    """Fits a normaliser pass by pass, so that one reading of a model can serve many of them (one for each layer).

    All rows go into ``update``, in any batches, then ``end_pass``; again from the first row until ``done``.
    """

    def __init__(self, width: int, method: Method, rounds: int = ROUNDS) -> None:
        self.method, self.rounds, self._steps = method, rounds, plan(method, rounds)
        self._centres = [at for at, step in enumerate(self._steps) if step == "centre"]
        self._means = torch.zeros(0, width, dtype=torch.float64)
        self.passes = 0
        self.rows = self.zeros = 0
        self._start()

    @property
    def done(self) -> bool:
        """Whether all means are known; rows are seen once at least, for their number and to be checked."""
        return self.passes >= max(1, len(self._centres))

    def _start(self) -> None:
        self._sum = torch.zeros(self._means.shape[1], dtype=torch.float64)
        self._counted = self._seen = self._empty = 0

    def update(self, rows: Tensor) -> None:
        """Add rows [n, d]; InputError if one is not finite."""
        assert rows.ndim == 2 and rows.shape[1] == self._means.shape[1], (rows.shape, self._means.shape)
        for start in range(0, len(rows), FITTED_ROWS):
            part = rows[start : start + FITTED_ROWS].detach()
            largest = largest_of(part)
            if not bool(largest.isfinite().all()):
                raise InputError("the vectors hold NaN or infinity, so they cannot be normalised")
            self._seen += len(part)
            self._empty += int((largest == 0).sum())
            if self._centres and not self.done:
                before = self._steps[: self._centres[self.passes]]
                x, nothing = _follow(part.double(), before, self._means.to(part.device))
                self._sum += x.sum(0).cpu()
                self._counted += len(x) - int(nothing.sum())

    def end_pass(self) -> None:
        """All rows have been seen: take their mean; see ``Normaliser.fit`` for what is refused."""
        if not self._seen:
            raise InputError("there are no vectors to normalise")
        assert self.passes == 0 or (self._seen, self._empty) == (self.rows + self.zeros, self.zeros), "other rows"
        self.rows, self.zeros = self._seen - self._empty, self._empty
        if self._steps and not self.rows:
            raise InputError(f"all {self.zeros} vectors are zeros, so they cannot be normalised")
        if self._centres and not self.done:
            mean = self._sum / max(self._counted, 1)
            # the rows are unit vectors: the squared length of their mean is 1 − their variance
            if self._centres[self.passes] and (not self._counted or 1.0 - float(mean @ mean) < ON_THE_MEAN**2):
                raise InputError("all vectors point the same way, so nothing is left of them without their mean")
            self._means = torch.cat([self._means, mean[None]])
        self.passes += 1
        self._start()

    def normaliser(self) -> Normaliser:
        """The fitted normaliser, once all passes are ``done``; a method without means needs none."""
        if not self._centres and not self.passes:
            return Normaliser(self.method, 1, self._means)
        assert self.done, f"{self.passes} passes, {len(self._centres)} means"
        return Normaliser(self.method, self.rounds, self._means, self.rows, self.zeros)


def largest_of(x: Tensor) -> Tensor:
    """[…, 1] the largest absolute value of each row: 0 for zeros, not finite for a row that is not."""
    return x.abs().amax(-1, keepdim=True)


def _follow(x: Tensor, steps: tuple[str, ...], means: Tensor) -> tuple[Tensor, Tensor]:
    """The steps one after another, and which rows are nothing [n, 1]: those of zeros stay as they are."""
    largest = largest_of(x)
    nothing = largest == 0
    left = iter(means)
    for at, step in enumerate(steps):
        if step == "unit":
            # scaled first: squares neither over- nor underflow; later rows are of about unit length
            x = x / largest.where(~nothing, 1.0) if not at else x
            x = x / _length(x).masked_fill(nothing, torch.inf)
        else:
            x = x - next(left)
            nothing = nothing | (_length(x) < ON_THE_MEAN) if at else nothing
            x = x * ~nothing
    return x, nothing


def _length(x: Tensor) -> Tensor:
    """[…, 1]."""
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length
