"""Accuracy of retrieving words, words in context and sentences between two languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.nearest import nearest
from probes.measures.maps import AT, SCORES
from probes.measures.maps.dictionary import Dictionary
from probes.rotation.dictionary import TranslationSet
from probes.statistics import wilson_interval
from synthlang.progress import Report

Values = dict[str, Any]


def word_scores(x: Tensor, y: Tensor, dictionary: Dictionary, report: Report) -> Values:
    """Return the accuracy of word translation as in MUSE: {score: {direction: {"p@1": percent, …}}}.

    P@k is the percentage of query words with a correct translation among the k nearest types (Conneau et al. 2018). The
    scores are ``csls`` and ``cosine``, and the directions ``forward`` (from the source language), ``backward`` and
    their ``mean``.

    Args:
        x: [types, d] vectors of all types of the source language, which are the candidates of ``backward``.
        y: [types, d] vectors of all types of the other language, which are the candidates of ``forward``.
        dictionary: The translations to measure.
        report: Receives the progress.

    Raises:
        InputError: A vector has NaN or infinity.
    """
    there, back = dictionary.forward, dictionary.backward
    pairs, reverse = there.pairs(), back.pairs()[:, ::-1]
    found = nearest(
        x,
        y,
        torch.from_numpy(pairs),
        top=max(AT),
        queries=(torch.from_numpy(there.queries), torch.from_numpy(back.queries)),
        report=report,
    )
    # both directions have the same pairs in a different order
    order = np.empty(len(pairs), np.int64)
    order[np.lexsort(reverse.T)] = np.lexsort(pairs.T)
    assert (pairs[order] == reverse).all(), "both directions have the same pairs"

    def precision(answers: TranslationSet, listed: Any, order: Any, candidates: int) -> dict[str, float]:
        rows, scores, credit = (part.cpu().numpy() for part in (listed.indices, listed.scores, listed.credit))
        found = answers.precision(rows, scores, credit[order], candidates, AT)
        return {name: rounded(value) for name, value in found.items()}

    return {
        score: _of_directions(
            precision(there, getattr(found.forward, score), slice(None), len(y)),
            precision(back, getattr(found.backward, score), order, len(x)),
        )
        for score in SCORES
    }


def context_scores(x: Tensor, y: Tensor, links: NDArray[np.int64], among: str, report: Report) -> Values:
    """Return the accuracy of retrieving aligned words in context: {score: {direction: percent}}.

    `word_scores` explains the scores and the directions.

    Args:
        x: [n, d] vectors of the words of the source language.
        y: [m, d] vectors of the words of the other language.
        links: [q, 2] the rows of ``x`` and ``y`` that are aligned.
        among: The candidates: "all" for the rows that are not zero and the aligned rows, or "linked" for the aligned
            rows only.
        report: Receives the progress.

    Raises:
        InputError: A vector has NaN or infinity.
    """
    candidates, places = [], []
    for rows, linked in zip((x, y), links.T, strict=True):
        kept = (rows != 0).any(1).cpu().numpy() & (among == "all")
        kept[linked] = True  # an aligned word without a vector must count as a miss
        candidates.append(rows[torch.from_numpy(kept)])
        places.append((np.cumsum(kept) - 1)[linked])
    return _accuracy(candidates[0], candidates[1], torch.from_numpy(np.stack(places, axis=1)), report)


def sentence_scores(x: Tensor, y: Tensor, report: Report) -> Values | None:
    """Return the accuracy of sentence retrieval, where row i of ``x`` [n, d] translates row i of ``y`` [n, d].

    The result is {score: {direction: percent}} as in `context_scores`, or None with fewer than two sentences.

    Raises:
        InputError: A vector has NaN or infinity.
    """
    return _accuracy(x, y, torch.arange(len(x))[:, None].expand(-1, 2), report) if len(x) > 1 else None


def _accuracy(x: Tensor, y: Tensor, pairs: Tensor, report: Report) -> Values:
    found = nearest(x, y, pairs, report=report)
    ways = found.forward, found.backward
    return {
        score: _of_directions(*(rounded(100.0 * float(getattr(way, score).credit.mean())) for way in ways))
        for score in SCORES
    }


def _of_directions(forward: Any, backward: Any) -> Values:
    """Return both directions and their mean. A direction is a number or a dict of numbers."""
    if isinstance(forward, dict):
        mean: Any = {name: rounded((forward[name] + backward[name]) / 2) for name in forward}
    else:
        mean = rounded((forward + backward) / 2)
    return {"forward": forward, "backward": backward, "mean": mean}


def intervals(scores: Mapping[str, Any], asking: Mapping[str, int]) -> Values:
    """Return Wilson's 95 % interval for the main number of each measure: {measure: [low, high]}.

    The bounds are in percent. ``scores`` has the scores of each measure. ``asking`` has the number of queries of each
    measure, in the direction with fewer queries. Queries are treated as independent. A measure without scores or
    queries has no interval.
    """
    found: Values = {}
    for measure, count in asking.items():
        if scores.get(measure) is not None and count:
            bounds = wilson_interval(main_number(measure, scores[measure]) / 100, count)
            found[measure] = [rounded(bounds.low or 0.0), rounded(bounds.high or 0.0)]
    return found


def main_number(measure: str, scores: Mapping[str, Any]) -> float:
    """Return the accuracy (P@1) under CSLS in percent, averaged over both directions, for figures and tables.

    ``scores`` are the scores of the measure.
    """
    mean = scores["csls"]["mean"]
    return float(mean["p@1"] if measure == "words" else mean)


def rounded(value: float) -> float:
    """Return a number with six significant digits."""
    return float(f"{value:.6g}")
