"""What two probes say together: CKA by layer against contextual retrieval by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.measure.cka_against import against_retrieval
from probes.measure.config import ProbeName
from probes.measure.found import Found
from probes.measure.retrieval_show import drawn_kind
from probes.statistics import Correlation

KINDS = {"counted": "pairs that count", "unlike": "pairs not written alike", "linked": "all linked pairs"}


def cka_against_retrieval(found: Mapping[ProbeName, Found], seed: int) -> dict[str, Any] | None:
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
