"""What CKA gives: a table of similarities for each estimator, and which of them are not defined and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from probes.cka.strip import Dependence
from probes.maps.procrustes import NOTHING


@dataclass(frozen=True, eq=False)
class CKAResult:
    """Similarities of layers: rows are layers of the left model, columns of the right one.

    biased      [L, R] from 0 to 1
    debiased    [L, R] at most 1, about 0 for unrelated layers; None with fewer than 4 sentences
    n           sentences
    undefined   why some are NaN, a line for each layer and reason
    """

    biased: Tensor
    debiased: Tensor | None
    n: int
    undefined: tuple[str, ...] = ()

    def average(self, debiased: bool = False) -> float | None:
        """Mean over l of CKA(left layer l, right layer l).

        It is the last row of Figure 7 in "Emerging cross-lingual structure". None if the models have different numbers
        of layers, or if a value that it needs is not defined.
        """
        table = self.debiased if debiased else self.biased
        if table is None or table.shape[0] != table.shape[1]:
            return None
        return _number(float(table.diagonal().mean()))

    def to_json(self) -> dict[str, Any]:
        """The numbers; null where one is not defined, and why."""
        numbers: dict[str, Any] = {"sentences": self.n}
        for name, table in (("biased", self.biased), ("debiased", self.debiased)):
            numbers[name] = None if table is None else [[_number(value) for value in row] for row in table.tolist()]
            numbers[f"{name}_average"] = self.average(debiased=name == "debiased")
        return numbers | {"undefined": list(self.undefined)}


class Own(NamedTuple):
    """The layers of one model by themselves.

    names       what they are called
    dependence  of each layer on itself
    constant    [layers] whether all sentences are the same, but for rounding
    """

    names: Sequence[str]
    dependence: Dependence
    constant: Tensor


def similarities(n: int, cross: Sequence[Dependence], left: Own, right: Own) -> CKAResult:
    """From the dependence of each left layer on the right ones, and of all on themselves."""
    undefined: list[str] = []
    for own in (left, right):
        undefined += [f"{own.names[i]}: all {n} sentences have the same vector" for i in _true(own.constant)]
    lengths = [_lengths(own.dependence.biased, own.constant) for own in (left, right)]
    biased = _ratios([row.biased for row in cross], *lengths)
    if left.dependence.debiased is None:
        return CKAResult(biased, None, n, tuple(undefined))
    lengths = []
    for own in (left, right):
        squares = own.dependence.debiased
        assert squares is not None
        # what float32's rounding of n sentences leaves of 0, see NOTHING
        empty = squares <= n * NOTHING * own.dependence.biased
        lengths.append(_lengths(squares, empty | own.constant))
        undefined += [
            f"{own.names[i]}, debiased: all {n} sentences are equally far from each other"
            for i in _true(empty & ~own.constant)
        ]
    debiased = [row.debiased for row in cross if row.debiased is not None]
    return CKAResult(biased, _ratios(debiased, *lengths), n, tuple(undefined))


def _lengths(squares: Tensor, without: Tensor) -> Tensor:
    return squares.clamp_min(0.0).sqrt().masked_fill(without, math.nan)


def _ratios(cross: Sequence[Tensor], left: Tensor, right: Tensor) -> Tensor:
    # one after the other: the product of two small lengths may be 0
    return torch.stack(list(cross)) / left[:, None] / right


def _true(which: Tensor) -> list[int]:
    found: list[int] = which.nonzero().flatten().tolist()
    return found


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
