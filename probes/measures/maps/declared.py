"""Measures of the probe ``maps``."""

from __future__ import annotations

from typing import Literal, get_args

from probes.results.declared import AT_LEAST_ZERO, PERCENT, Entries, Measure, Tree

Supervision = Literal["dictionary", "parallel", "sentences"]
SUPERVISIONS: tuple[Supervision, ...] = get_args(Supervision)
OVER = {
    "words": "word types",
    "context": "linked words",
    "alone": "linked words",
    "sentences": "sentence pairs",
    "files": "sentence pairs",
}
"""The items over which the accuracy of each kind of retrieval is a mean."""
AT = (1, 5, 10)
"""Values of k for the precision P@k of word translation."""
SCORES = ("cosine", "csls")


def _score(over: str, by_rank: bool, title: str) -> Tree:
    """Return the measures of a score: both directions and their mean, each by rank if ``by_rank`` is set."""
    found, mean = Measure("percent", over, PERCENT), Measure("percent", over, PERCENT, title, main=True)
    if not by_rank:
        return {"forward": found, "backward": found, "mean": mean}
    ranks = [f"p@{rank}" for rank in AT]
    at = dict.fromkeys(ranks, found)
    return {"forward": at, "backward": at, "mean": {**at, ranks[0]: mean}}


def _retrieval(what: str, how: str = "") -> Tree:
    """Return the measures of one kind of retrieval, with ``how`` in the titles of their figures."""
    return {
        score: _score(OVER[what], what == "words", f"retrieval of {what} {how}, {score}" if how else "")
        for score in SCORES
    }


def _all(how: str = "") -> Tree:
    return {what: _retrieval(what, how) for what in OVER}


_ROTATED: Tree = {"words": _retrieval("words")}
MEASURES: Tree = {
    "before": Entries(_all("without a rotation")),
    "maps": {name: {"layers": Entries(_all(f"after a rotation by {name}"))} for name in SUPERVISIONS},
    "files": Measure("sentence pairs", "sentence pairs", AT_LEAST_ZERO),
    "static": _all(),
    "embeddings": {"before": _retrieval("words"), **_ROTATED, "static": _ROTATED},
}
