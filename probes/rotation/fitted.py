"""Maps between the vectors of two languages: both are normalised, then the left one is rotated onto the right one.

The pairs of vectors may be means of dictionary words over a corpus (word anchors, Kulshreshtha et al. 2020, section
2.2.1), aligned words of parallel sentences (2.2.2), or means of sentences.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from synthlang.wording import plural

LINEAR = ("none", "centre")
Batches = Iterable[tuple[Tensor, Tensor]]
"""Left and right vectors [layers, n, d], paired by row."""


@dataclass(frozen=True, eq=False)
class NormalisedMap:
    """A map from vectors of the left language to the normalised space of the right one.

    Attributes:
        left: The normalisation of vectors of the left language.
        right: The normalisation of vectors of the right language.
        fit: The orthogonal map between normalised vectors, with measures of the fit.
        zeros: Number of pairs left out because a vector was zero.
    """

    left: Normaliser
    right: Normaliser
    fit: Fit
    zeros: int

    def apply(self, x: Tensor) -> Tensor:
        """Map left vectors […, d] to the space of the results of ``apply_right``.

        The result is M(n(x)), where n is the normalisation ``left`` and M is ``fit.map``. Zero vectors stay zero.
        """
        normal = self.left.apply(x)
        return self.fit.map.apply(normal).masked_fill(_nothing(x, normal, self.left)[..., None], 0.0)

    def apply_right(self, y: Tensor) -> Tensor:
        """Normalise right vectors […, d]."""
        return self.right.apply(y)

    @property
    def is_linear(self) -> bool:
        """True if the map can be expressed without normalisation of the right language (see ``linear``)."""
        return all(side.method in LINEAR for side in (self.left, self.right))

    def to(self, device: torch.device, dtype: torch.dtype) -> NormalisedMap:
        """Return the same map on a device and in a type."""
        left, right = (replace(side, means=side.means.to(device, dtype)) for side in (self.left, self.right))
        return NormalisedMap(left, right, replace(self.fit, map=self.fit.map.to(device, dtype)), self.zeros)

    def linear(self) -> LinearMap:
        """Return the map between unnormalised vectors, e* = W (e − x̄) + ȳ (Kulshreshtha et al. 2020, equation 5).

        Raises:
            InputError: The map normalises lengths, so it only exists between normalised vectors.
        """
        sides = (self.left, self.right)
        if not self.is_linear:
            reason = f"a map with the normalisation {self.left.method} is not linear in unnormalised vectors"
            hint = "use the normalisation none or centre"
            raise InputError(reason, hint=hint, code="conflict")
        turn, (x_mean, y_mean) = self.fit.map, (side.means.sum(0) for side in sides)
        return LinearMap(turn.matrix, turn.before + x_mean, turn.after + y_mean)

    def to_json(self) -> dict[str, Any]:
        """Return the measures of the fit and the properties of both normalisers, for JSON."""
        sides = {"left": self.left.to_json(), "right": self.right.to_json()}
        return {**self.fit.to_json(), "zeros": self.zeros, "normalise": sides}


class MapFitter:
    """Fitter of a map on normalised pairs of rows, which are added batch by batch. Memory is d² and one batch.

    Args:
        left: The normalisation of left rows.
        right: The normalisation of right rows.
    """

    def __init__(self, left: Normaliser, right: Normaliser) -> None:
        self.sides = left, right
        self.zeros = 0
        self._fitter = Fitter(left.means.shape[1])

    def update(self, x: Tensor, y: Tensor) -> None:
        """Add left rows ``x`` and right rows ``y``, [n, d] each, paired by index.

        Raises:
            InputError: The sides differ in width, or a vector is not finite.
        """
        _check_widths(x, y)
        # float64 keeps the precision for vectors far from 0
        normal = [side.apply(rows.detach().double()) for side, rows in zip(self.sides, (x, y), strict=True)]
        kept = ~(_nothing(x, normal[0], self.sides[0]) | _nothing(y, normal[1], self.sides[1]))
        self.zeros += len(x) - int(kept.sum())
        self._fitter.update(normal[0][kept], normal[1][kept])

    def fit(self, centre: bool = False) -> NormalisedMap:
        """Fit the map on the pairs that were added.

        Args:
            centre: True to subtract the mean of each side, and to add the right mean to mapped vectors.

        Raises:
            InputError: There are no pairs, or every pair has a zero vector.
        """
        if self.zeros and not self._fitter.pairs:
            reason = f"a map cannot be fitted, because every pair has a zero vector ({plural(self.zeros, 'pair')})"
            raise InputError(reason, hint="use other words or sentences, or other vectors", code="empty")
        return NormalisedMap(*self.sides, self._fitter.fit(centre), self.zeros)


def _check_widths(x: Tensor, y: Tensor) -> None:
    """Raise InputError if left and right vectors […, d] differ in width."""
    if x.shape[-1] != y.shape[-1]:
        reason = f"vectors of {x.shape[-1]} and {y.shape[-1]} dimensions cannot be mapped to each other"
        raise InputError(reason, hint="use vectors of the same size on both sides", code="conflict")


def _nothing(rows: Tensor, normal: Tensor, side: Normaliser) -> Tensor:
    """Return the mask of rows that are zero, or that a normalisation with unit lengths makes zero."""
    zero = largest_of(rows)[..., 0] == 0
    return zero if side.method in LINEAR else zero | (largest_of(normal)[..., 0] == 0)


def fit_layers(
    pairs: Batches, layers: int, width: int, method: Method, rounds: int = ROUNDS, centre: bool = False
) -> tuple[NormalisedMap, ...]:
    """Fit an orthogonal map from left to right vectors for each layer, after normalising both sides.

    A map solves the Procrustes problem of ``probes.rotation.procrustes`` between normalised vectors. Each side has its
    own normalisation, fitted to the pairs. Pairs with a zero vector are left out and counted. The pairs are read once,
    and methods that fit means store them in temporary files. Memory is layers · d² and a batch.

    With ``centre``, the map moves to the mean of the right side. With the method ``none``, this is the map of
    Kulshreshtha et al. 2020, equation 5.

    Args:
        pairs: Batches of left and right vectors, [layers, n, d] each, paired by row.
        layers: Number of layers.
        width: Number of dimensions d.
        method: The normalisation of each side.
        rounds: Number of rounds of an iterative normalisation.
        centre: True to subtract the mean of each side, and to add the right mean to mapped vectors.

    Raises:
        InputError: The sides differ in width, a vector is not finite, no pair is left, a side cannot be normalised (see
            `fit_normaliser`), or the temporary files cannot be written.
    """
    if "centre" not in plan(method, rounds):
        plain = Normaliser(method, 1, torch.zeros(0, width, dtype=torch.float64))
        fitters = [MapFitter(plain, plain) for _ in range(layers)]
        for batch in pairs:
            for one, x, y in zip(fitters, *batch, strict=True):
                one.update(x, y)
        return tuple(one.fit(centre) for one in fitters)
    sides = LayerCache(layers, width), LayerCache(layers, width)
    for batch in pairs:
        _check_widths(*batch)
        for side, rows in zip(sides, batch, strict=True):
            side.write(rows)
    found = []
    for i in range(layers):
        fitter = MapFitter(*(fit_normaliser(partial(side.blocks, i), width, method, rounds) for side in sides))
        for x, y in zip(*(side.blocks(i) for side in sides), strict=True):
            fitter.update(x, y)
        found.append(fitter.fit(centre))
    return tuple(found)


def fit_map(x: Tensor, y: Tensor, method: Method = "none", centre: bool = False, rounds: int = ROUNDS) -> NormalisedMap:
    """Fit the map of one layer as in `fit_layers`, on rows ``x`` [n, d] and their translations ``y`` [n, d].

    See `fit_layers` for ``method``, ``centre`` and ``rounds``.

    Raises:
        InputError: The sides differ in width, a vector is not finite, no pair is left, or a side cannot be normalised
            (see `fit_normaliser`).
    """
    pairs = zip(*(torch.split(rows[None], ROWS, 1) for rows in (x, y)), strict=True)
    return fit_layers(pairs, 1, x.shape[1], method, rounds, centre)[0]
