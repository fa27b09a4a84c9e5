"""What two probes say together: CKA by layer against contextual retrieval by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probes.measures.result import ProbeResult
from probes.measures.retrieval.show import drawn_kind
from probes.statistics import Correlation, correlation
from synthlang.errors import InputError
from synthlang.rng import key_of

KINDS = {"counted": "pairs that count", "unlike": "pairs not written alike", "linked": "all linked pairs"}


def cka_against_retrieval(found: Mapping[str, ProbeResult], seed: int) -> dict[str, Any] | None:
    """Pearson's r over layers as JSON, or None for r and the reason; None where one of the probes did not run.

    ``pairs`` are the linked words of retrieval that are meant, those of its figure: the ones that count, or, where
    these are few, the next larger set.
    """
    if not {"cka", "retrieval"} <= found.keys():
        return None
    cka = found["cka"].values["comparisons"]["languages"]["same_layer"]["biased"]
    retrieval = found["retrieval"].values
    context = retrieval["variants"].get("context")
    if context is None:
        return _nothing("words in context were not retrieved (retrieval.variants)")
    if cka is None:
        return _nothing("the models are read at different numbers of layers")
    if retrieval["static"] is not None:
        return _nothing("words were retrieved by static vectors, which have no layers (retrieval.static)")
    kind = drawn_kind(retrieval)
    accuracy = [_accuracy(layer["pairs"][kind]) for layer in context["layers"]]
    return {"pairs": KINDS[kind], **against_retrieval(cka, accuracy, seed).to_json()}


def _nothing(reason: str) -> dict[str, Any]:
    return {"pairs": None, **Correlation("pearson", 0, 0, 0, reason=reason).to_json()}


def _accuracy(pairs: Mapping[str, Any]) -> float | None:
    """Percent under CSLS, both directions averaged; None where no pair is left."""
    value = (pairs["csls"] or {}).get("mean")
    return None if value is None else float(value)


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
