"""CKA against retrieval over layers: whether the layers that are alike are those that are aligned."""

from __future__ import annotations

from collections.abc import Sequence

from probes.statistics import Correlation, correlation
from synthlang.errors import InputError
from synthlang.rng import key_of


def against_retrieval(cka: Sequence[float | None], retrieval: Sequence[float | None], seed: int = 0) -> Correlation:
    """Pearson's r over layers of CKA and retrieval accuracy, both [layers] in the order of the layers.

    As in Conneau et al. 2020, section 5.2, where it is over 0.9 for four pairs of languages. Layers where one is None
    are left out; with fewer than 3 there is no r but a reason. Layers are not independent of each other, so p and the
    interval say less than for that many models. InputError for lists of different layers, NaN and infinity.
    """
    if len(cka) != len(retrieval):
        raise InputError(f"CKA is of {len(cka)} layers and retrieval of {len(retrieval)}: name the same layers")
    known = [(a, b) for a, b in zip(cka, retrieval, strict=True) if a is not None and b is not None]
    key = key_of("cka-retrieval", seed)
    return correlation([a for a, _ in known], [b for _, b in known], key, "pearson")
