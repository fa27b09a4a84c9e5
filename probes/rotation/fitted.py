"""Maps between the vectors of two languages: each side normalised, then the left turned onto the right.

Where the pairs come from makes no difference here: mean vectors of dictionary words over a corpus (word anchors,
Kulshreshtha et al. 2020, section 2.2.1), linked words of parallel sentences (2.2.2), or mean vectors of the sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from probes.layer_cache import ROWS, LayerCache
from probes.rotation.normalise import Normaliser, fit_normaliser, largest_of, plan
from probes.rotation.procrustes import Fit, Fitter, LinearMap
from probes.rotation.settings import ROUNDS, Method
from synthlang.errors import InputError

LINEAR = ("none", "centre")
Batches = Iterable[tuple[Tensor, Tensor]]
"""Left and right vectors [layers, n, d]; row i of the one belongs to row i of the other."""


@dataclass(frozen=True, eq=False)
class NormalisedMap:
    """Vectors of the left language ↦ the space of the right one, as its normaliser leaves that.

    left, right   the normaliser of each language
    fit           the orthogonal map between normalised vectors, and how good it is
    zeros         pairs that were left out because one of the vectors was zero
    """

    left: Normaliser
    right: Normaliser
    fit: Fit
    zeros: int

    def apply(self, x: Tensor) -> Tensor:
        """Left vectors […, d] → […, d], to be compared with ``apply_right``; a vector of zeros stays zero."""
        normal = self.left.apply(x)
        return self.fit.map.apply(normal).masked_fill(_nothing(x, normal, self.left)[..., None], 0.0)

    def apply_right(self, y: Tensor) -> Tensor:
        """Right vectors […, d], normalised."""
        return self.right.apply(y)

    @property
    def is_linear(self) -> bool:
        """Whether it leads into the right language's own space (``linear``), which need not be normalised then."""
        return all(side.method in LINEAR for side in (self.left, self.right))

    def to(self, device: torch.device, dtype: torch.dtype) -> NormalisedMap:
        """Return the same map with its numbers on a device and in a type."""
        left, right = (replace(side, means=side.means.to(device, dtype)) for side in (self.left, self.right))
        return NormalisedMap(left, right, replace(self.fit, map=self.fit.map.to(device, dtype)), self.zeros)

    def linear(self) -> LinearMap:
        """Return the map from the left language's own space to the right one's: e* = W (e − x̄) + ȳ.

        This is equation 5 of Kulshreshtha et al. 2020.

        Raises:
            InputError: A side is brought to unit length. A length cannot be given back once it is gone, so both
                languages must
                be normalised there, with ``apply`` for the left and ``apply_right`` for the right.
        """
        sides = (self.left, self.right)
        if not self.is_linear:
            reason = (
                f"a map with the normalisation {self.left.method} does not lead into the other language's own space"
            )
            hint = "use none or centre, or normalise both languages"
            raise InputError(reason, hint=hint, code="conflict")
        turn, (x_mean, y_mean) = self.fit.map, (side.means.sum(0) for side in sides)
        return LinearMap(turn.matrix, turn.before + x_mean, turn.after + y_mean)

    def to_json(self) -> dict[str, Any]:
        """Numbers of the fit and of both normalisers."""
        sides = {"left": self.left.to_json(), "right": self.right.to_json()}
        return {**self.fit.to_json(), "zeros": self.zeros, "normalise": sides}


class MapFitter:
    """Gathers pairs of rows batch by batch, each side normalised as it was fitted before; memory is d² and a batch."""

    def __init__(self, left: Normaliser, right: Normaliser) -> None:
        self.sides = left, right
        self.zeros = 0
        self._fitter = Fitter(left.means.shape[1])

    def update(self, x: Tensor, y: Tensor) -> None:
        """Add left rows [n, d] and their right counterparts; InputError for other widths, NaN and infinity."""
        if x.shape[1] != y.shape[1]:
            reason = f"the vectors of the two sides have {x.shape[1]} and {y.shape[1]} dimensions"
            raise InputError(reason, code="conflict")
        # in float64, as the fitter computes: the map of vectors far from 0 keeps its digits
        normal = [side.apply(rows.detach().double()) for side, rows in zip(self.sides, (x, y), strict=True)]
        kept = ~(_nothing(x, normal[0], self.sides[0]) | _nothing(y, normal[1], self.sides[1]))
        self.zeros += len(x) - int(kept.sum())
        self._fitter.update(normal[0][kept], normal[1][kept])

    def fit(self, centre: bool = False) -> NormalisedMap:
        """Fit the map.

        Raises:
            InputError: In every pair one of the vectors is zero.
        """
        if self.zeros and not self._fitter.pairs:
            reason = f"no pair of vectors is left to fit a map on: a vector is zero in each of {self.zeros}"
            raise InputError(reason, code="empty")
        return NormalisedMap(*self.sides, self._fitter.fit(centre), self.zeros)


def _nothing(rows: Tensor, normal: Tensor, side: Normaliser) -> Tensor:
    """Which rows are no vectors: zeros, or with unit length nothing but rounding once the mean was taken away."""
    zero = largest_of(rows)[..., 0] == 0
    return zero if side.method in LINEAR else zero | (largest_of(normal)[..., 0] == 0)


def fit_layers(
    pairs: Batches, layers: int, width: int, method: Method, rounds: int = ROUNDS, centre: bool = False
) -> tuple[NormalisedMap, ...]:
    """For each layer the orthogonal map of the left vectors onto their counterparts, both normalised before.

    Each side is normalised by itself, as fitted to the pairs. ``centre`` lets the map move to the mean of the right
    side (``Fitter.fit``): with the method ``none`` this is the map of Kulshreshtha et al. 2020, equation 5. Pairs with
    a vector of zeros on a side are left out and counted.

    The pairs are read once: a method that has means to fit keeps them in temporary files. Memory is that of
    layers · d² and a batch. InputError if the sides differ in number or width, if a vector is not finite, and if no
    pair is left.
    """
    if "centre" not in plan(method, rounds):
        fitters = [MapFitter(*_without_means(method, width)) for _ in range(layers)]
        for batch in pairs:
            for one, x, y in zip(fitters, *batch, strict=True):
                one.update(x, y)
        return tuple(one.fit(centre) for one in fitters)
    left, right = LayerCache(layers, width), LayerCache(layers, width)
    for x, y in pairs:
        left.write(x)
        right.write(y)
    return tuple(
        _fit(partial(left.blocks, i), partial(right.blocks, i), width, method, rounds, centre) for i in range(layers)
    )


def fit_map(x: Tensor, y: Tensor, method: Method = "none", centre: bool = False, rounds: int = ROUNDS) -> NormalisedMap:
    """Fit the map of one layer: ``fit_layers`` of the rows x [n, d] and their translations y."""
    return _fit(lambda: torch.split(x, ROWS), lambda: torch.split(y, ROWS), x.shape[1], method, rounds, centre)


Blocks = Callable[[], Iterable[Tensor]]


def _fit(x: Blocks, y: Blocks, width: int, method: Method, rounds: int, centre: bool) -> NormalisedMap:
    sides = _without_means(method, width)
    if "centre" in plan(method, rounds):
        sides = fit_normaliser(x, width, method, rounds), fit_normaliser(y, width, method, rounds)
    fitter = MapFitter(*sides)
    for rows in zip(x(), y(), strict=True):
        fitter.update(*rows)
    return fitter.fit(centre)


def _without_means(method: Method, width: int) -> tuple[Normaliser, Normaliser]:
    normaliser = Normaliser(method, 1, torch.zeros(0, width, dtype=torch.float64))
    return normaliser, normaliser
