"""What two probes say together: CKA by layer against contextual retrieval by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.measure.cka_against import against_retrieval
from probes.measure.config import ProbeName
from probes.measure.found import Found


def cka_against_retrieval(found: Mapping[ProbeName, Found], seed: int) -> dict[str, Any] | None:
    """Pearson's r over layers as JSON; None where one of the probes did not run or has no value for each layer."""
    if not {"cka", "retrieval"} <= found.keys():
        return None
    cka = found["cka"].values["comparisons"]["languages"]["same_layer"]
    context = found["retrieval"].values["variants"].get("context")
    if cka is None or context is None:
        return None
    accuracy = [_accuracy(layer["pairs"]["counted"]) for layer in context["layers"]]
    found_r: dict[str, Any] = against_retrieval(cka["biased"], accuracy, seed).to_json()
    return found_r


def _accuracy(pairs: Mapping[str, Any] | None) -> float | None:
    """Percent under CSLS, both directions averaged; None where no pair is left."""
    value = None if pairs is None else (pairs["csls"] or {}).get("mean")
    return None if value is None else float(value)
