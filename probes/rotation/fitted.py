"""Maps between the vectors of two languages: each side normalised, the left turned onto the right, kept in a folder.

Where the pairs come from makes no difference here: mean vectors of dictionary words over a corpus (word anchors,
Kulshreshtha et al. 2020, section 2.2.1), linked words of parallel sentences (2.2.2), or mean vectors of the sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from torch import Tensor

from probes.rotation.normalise import Normaliser, NormaliserFitter, Rows, batches_of, held, largest_of, plan
from probes.rotation.procrustes import Fit, Fitter, LinearMap
from probes.rotation.settings import ROUNDS, Method
from probes.spool import Spool
from synthlang.errors import InputError

LINEAR = ("none", "centre")


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

    def linear(self) -> LinearMap:
        """The same map from the left language's own space to the right one's: e* = W (e − x̄) + ȳ (Kulshreshtha et al.
        2020, equation 5).

        InputError where a side is brought to unit length: a length, once gone, cannot be given back, so there both
        languages must be normalised, ``apply`` for the left and ``apply_right`` for the right.
        """
        sides = (self.left, self.right)
        if any(side.method not in LINEAR for side in sides):
            raise InputError(
                f"a map with the normalisation {self.left.method} moves nothing into the other language's own space; "
                "use none or centre, or normalise both languages"
            )
        fitted, (x_mean, y_mean) = self.fit.map, (side.means.sum(0) for side in sides)
        return LinearMap(fitted.matrix, fitted.before + x_mean, fitted.after + y_mean)

    def to_json(self) -> dict[str, Any]:
        """Numbers of the fit and of both normalisers."""
        sides = {"left": self.left.to_json(), "right": self.right.to_json()}
        return {**self.fit.to_json(), "zeros": self.zeros, "normalise": sides}


def fit_map(
    x_batches: Rows,
    y_batches: Rows,
    normalise: Method | tuple[Normaliser, Normaliser] = "none",
    centre: bool = False,
    rounds: int = ROUNDS,
) -> NormalisedMap:
    """The orthogonal map of the left vectors x onto their counterparts y, both normalised before.

    Row i of ``x_batches`` belongs to row i of ``y_batches``: two matrices [n, d] or two series of batches cut alike.
    ``normalise`` names a method that is fitted here, to the pairs, each side by itself; or it is two normalisers, as
    Zhang et al. 2019 have it: fitted to all words of each language. ``centre`` lets the map move to y's mean
    (``Fitter.fit``): with ``none`` this is the map of Kulshreshtha et al. 2020, equation 5.

    Memory is d² and a batch. Methods that need means go through the pairs again and again: batches that can be read
    only once (generators) are then held as a whole. Pairs with a vector of zeros on a side are left out and counted.
    InputError if the sides differ in number or width, if a vector is not finite, and if no pair is left.
    """
    if isinstance(normalise, str) and "centre" in plan(normalise, rounds):
        x_batches, y_batches = held(x_batches), held(y_batches)
        normalise = Normaliser.fit(x_batches, normalise, rounds), Normaliser.fit(y_batches, normalise, rounds)
    fitter: MapFitter | None = None
    for x, y in _together(x_batches, y_batches):
        if isinstance(normalise, str):
            method: Literal["none", "unit"] = "unit" if normalise == "unit" else "none"
            normalise = Normaliser.plain(method, x.shape[1]), Normaliser.plain(method, x.shape[1])
        fitter = fitter or MapFitter(*normalise)
        fitter.update(x, y)
    if fitter is None:
        raise InputError("there are no pairs of vectors to fit a map on")
    return fitter.fit(centre)


class MapFitter:
    """Gathers pairs of rows batch by batch, each side normalised as it was fitted before; memory is d² and a batch."""

    def __init__(self, left: Normaliser, right: Normaliser) -> None:
        self.sides = left, right
        self.zeros = 0
        self._fitter: Fitter | None = None

    def update(self, x: Tensor, y: Tensor) -> None:
        """Add left rows [n, d] and their right counterparts; InputError for another width, NaN and infinity."""
        _check_width(self.sides, x.shape[1])
        self._fitter = self._fitter or Fitter(x.shape[1])
        # in float64, as the fitter computes: the map of vectors far from 0 keeps its digits
        normal = [side.apply(rows.detach().double()) for side, rows in zip(self.sides, (x, y), strict=True)]
        kept = ~(_nothing(x, normal[0], self.sides[0]) | _nothing(y, normal[1], self.sides[1]))
        self.zeros += len(x) - int(kept.sum())
        self._fitter.update(normal[0][kept], normal[1][kept])

    def fit(self, centre: bool = False) -> NormalisedMap:
        """The map; InputError without a pair of which neither vector is zero."""
        if self._fitter is None:
            raise InputError("there are no pairs of vectors to fit a map on")
        if not self._fitter.pairs:
            raise InputError(f"there are no pairs of vectors to fit a map on: a vector is zero in each of {self.zeros}")
        return NormalisedMap(*self.sides, self._fitter.fit(centre), self.zeros)


def _nothing(rows: Tensor, normal: Tensor, side: Normaliser) -> Tensor:
    """Which rows are no vectors: zeros, or with unit length nothing but rounding once the mean was taken away."""
    zero = largest_of(rows)[..., 0] == 0
    return zero if side.method in LINEAR else zero | (largest_of(normal)[..., 0] == 0)


def _check_width(sides: tuple[Normaliser, Normaliser], width: int) -> None:
    for side in sides:
        if side.means.shape[1] != width:
            raise InputError(f"the vectors have {width} dimensions, their normaliser {side.means.shape[1]}")


def _together(x_batches: Rows, y_batches: Rows) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of both sides; InputError where they do not fit each other."""
    for x, y in zip_longest(batches_of(x_batches), batches_of(y_batches)):
        counts = [0 if side is None else len(side) for side in (x, y)]
        if counts[0] != counts[1] or x is None or y is None:
            raise InputError(f"the sides do not pair up: a batch has {counts[0]} left and {counts[1]} right vectors")
        if x.shape[1] != y.shape[1]:
            raise InputError(
                f"the vectors of the two sides have {x.shape[1]} and {y.shape[1]} dimensions, not the same"
            )
        yield x, y


Batches = Iterable[tuple[Tensor, Tensor]]
"""Left and right vectors [layers, n, d]; row i of the one belongs to row i of the other."""


def passes_of(method: Method, rounds: int = ROUNDS) -> int:
    """How often ``fit_layers`` goes through the pairs."""
    return plan(method, rounds).count("centre") + 1


def spooled(batches: Batches) -> Callable[[], Batches]:
    """The batches again and again, from a temporary file: a model reads its text once, and memory is a batch."""
    spool = Spool(None)
    for left, right in batches:
        spool.write(left.float().cpu(), right.float().cpu())
    return spool.read


def fit_layers(
    pairs: Callable[[], Batches], layers: int, width: int, method: Method, rounds: int = ROUNDS
) -> tuple[NormalisedMap, ...]:
    """For each layer what ``fit_map(left, right, method)`` gives.

    ``pairs()`` gives the same batches each time; it is called ``passes_of(method)`` times. Memory is that of
    2 · layers · d² and a batch. InputError as ``fit_map`` has it.
    """
    fitters = [[NormaliserFitter(width, method, rounds) for _ in range(2)] for _ in range(layers)]
    for _ in range(passes_of(method, rounds) - 1):
        for batch in pairs():
            for side, vectors in enumerate(batch):
                for layer, rows in enumerate(vectors):
                    fitters[layer][side].update(rows)
        for both in fitters:
            for fitter in both:
                fitter.end_pass()
    maps = [MapFitter(*(_normaliser(fitter, method, width) for fitter in both)) for both in fitters]
    for left, right in pairs():
        for pairs_of_layer, x, y in zip(maps, left, right, strict=True):
            pairs_of_layer.update(x, y)
    return tuple(map(MapFitter.fit, maps))


def _normaliser(fitter: NormaliserFitter, method: Method, width: int) -> Normaliser:
    """That of a fitter; a method without means has none to fit."""
    if fitter.done:
        return fitter.normaliser()
    return Normaliser.plain("unit" if method == "unit" else "none", width)
