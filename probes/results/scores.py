"""Scores of tasks: their names and declarations, and the scores in the result of a transfer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from probes.results.declared import AT_LEAST_ONE, AT_LEAST_ZERO, DIFFERENCE, PERCENT, Measure

SCORES = ("parent", "sup", "zs", "delta")
"""Main scores of a transfer: score in the source language, SUP, ZS, and Δ = SUP − ZS."""
MAJORITY = "majority"
"""The score of the majority baseline on the test set of SUP, or on that of ZS if the target has no training data."""
MIXED = "mixed"
"""Score on items whose fields are in different languages. "mixed FIELD" is the score with this field translated."""
PERPLEXITY = "perplexity"
"""The perplexity of the source language."""
ALIGNMENT, FORWARD = "alignment_all", "alignment_forward"
"""Alignments of all words: the mean of both directions, and from source to derived language as in ALIGN-MLM."""
ALIGNMENTS = {
    ALIGNMENT: ("all", "mean"),
    "alignment_dictionary": ("in_dictionary", "mean"),
    "alignment_held_out": ("held_out", "mean"),
    FORWARD: ("all", "forward"),
}
"""Name of an alignment among the scores → its words and direction in the result of the alignment."""
MOVED = {"moved_embeddings": "embeddings", "moved_layers": "layers"}
"""Name of a movement among the scores → its name in the record of a fit."""
COLUMNS = (*SCORES, *ALIGNMENTS, PERPLEXITY, *MOVED, MAJORITY)
"""The scores that have a separate column in results.csv."""
DIGITS = 4
"""Number of decimal places of alignments, perplexities and movements."""

_SCORE = Measure("percent", "test items", PERCENT)
_ALIGNED = Measure("percent", "word types", PERCENT)
PERPLEXITY_MEASURE = Measure("perplexity", "masked tokens of the dev set", AT_LEAST_ONE)
DECLARED: Mapping[str, Measure] = {
    **dict.fromkeys(("parent", "sup", "zs", MAJORITY, MIXED), _SCORE),
    "delta": Measure("points", "test items", DIFFERENCE),
    **dict.fromkeys(ALIGNMENTS, _ALIGNED),
    PERPLEXITY: PERPLEXITY_MEASURE,
    "moved_embeddings": Measure("relative distance", "rows of the word embeddings", AT_LEAST_ZERO),
    "moved_layers": Measure("relative distance", "parameters of the layers", AT_LEAST_ZERO),
}


def score_measure(name: str) -> Measure | None:
    """Return the declaration of a score, or None if no score has this name.

    >>> score_measure("mixed question").unit, score_measure("words.types")
    ('percent', None)
    """
    return DECLARED[MIXED] if name.startswith(f"{MIXED} ") else DECLARED.get(name)


def transfer_scores(result: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Yield the scores of a transfer by name. The main scores are always yielded, with None if a score is missing.

    ``result`` is the JSON of a transfer, with ``scores`` by test set and the ``metric`` to read from them.
    """
    yield from ((name, result[name]) for name in SCORES)
    moved = movements(result.get("fits", {}).get("source", []))
    yield from ((name, value) for name, value in moved.items() if value is not None)
    baseline = result.get(MAJORITY, {})
    majority = baseline.get("sup", baseline.get("zs"))
    if majority is not None:
        yield MAJORITY, majority
    for name, metrics in sorted(result["scores"].items()):
        if name.startswith(f"{MIXED} "):
            yield name, metrics[result["metric"]]


def movements(fits: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the movements of the model in fine-tuning on the source language: name → mean over the fits.

    Several fits come from a search that keeps several settings. A value is None if there is no fit, or if a fit does
    not record the movement.
    """
    found: dict[str, float | None] = {}
    for column, name in MOVED.items():
        values = [fit.get("moved", {}).get(name) for fit in fits]
        found[column] = None if not values or None in values else round(sum(values) / len(values), DIGITS)
    return found


def alignment_scores(result: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the alignments in the result of an alignment stage, in percent, by the names of ALIGNMENTS.

    An alignment without words is None.
    """
    scores = result["scores"] or {}
    found = {
        column: (scores.get(words) or {}).get("cosine", {}).get(way) for column, (words, way) in ALIGNMENTS.items()
    }
    return {column: None if value is None else round(value, DIGITS) for column, value in found.items()}
