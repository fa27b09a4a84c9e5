"""Measures of the probe ``distances``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probes.results.declared import ANY, AT_LEAST_ZERO, COEFFICIENT, SHARE, Entries, Measure, Tree

PAIRS = "pairs of words"
COUNT = Measure("pairs of words", PAIRS, AT_LEAST_ZERO)
APART = Measure("share", PAIRS, SHARE)
"""The measure of the area under the ROC curve (AUC)."""


def _distance(entry: Mapping[str, Any]) -> str:
    return str(entry["distance"])


def _mean(measure: Measure) -> Tree:
    return {"mean": measure}


LENGTH = _mean(Measure("distance", PAIRS, AT_LEAST_ZERO))
LAYER: Tree = {
    "auc": _mean(replace(APART, main=True)),
    "related": LENGTH,
    "unrelated": LENGTH,
    "zero_vectors": Measure("words", "linked words", AT_LEAST_ZERO),
    "same_word": COUNT,
}
"""The measures of one distance at one layer."""
CHANGE: Tree = {
    "auc": _mean(Measure("share", PAIRS, COEFFICIENT)),
    **dict.fromkeys(("related", "unrelated"), _mean(Measure("distance", PAIRS))),
}
"""The measures of the change from one model to another, for one distance at one layer."""
DIMENSION: Tree = {"mean": Measure("squared distance or cosine", PAIRS), "auc": _mean(APART)}
MEASURES: Tree = {
    "related": COUNT,
    "unrelated": COUNT,
    "sentence_pairs": Measure("sentence pairs", "sentence pairs", AT_LEAST_ZERO),
    "models": {ANY: {"layers": Entries(LAYER, _distance), "dimensions": Entries(DIMENSION, _distance)}},
    "changes": {ANY: Entries(CHANGE, _distance)},
}
