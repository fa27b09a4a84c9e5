"""A map for each layer from one stream of pairs, which is gone through as often as the normalisation needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor

from probes.cka.spool import Spool
from probes.maps.fitted import MapFitter, NormalisedMap
from probes.maps.methods import ROUNDS, Method
from probes.maps.normalise import Normaliser, NormaliserFitter, plan

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
        for held, x, y in zip(maps, left, right, strict=True):
            held.update(x, y)
    return tuple(held.fit() for held in maps)


def _normaliser(fitter: NormaliserFitter, method: Method, width: int) -> Normaliser:
    """That of a fitter; a method without means has none to fit."""
    if fitter.done:
        return fitter.normaliser()
    return Normaliser.plain("unit" if method == "unit" else "none", width)
