"""How well words, words in context and sentences of two languages find each other, with a map or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.nearest import Direction, Nearest, nearest
from pretrain.nearest import Found as Listed
from probes.measures.maps.dictionary import Dictionary
from probes.measures.maps.vectors import Vectors
from probes.rotation.dictionary import TranslationSet
from probes.rotation.fitted import NormalisedMap
from probes.statistics import wilson_interval
from probes.transfer.batch import Role
from synthlang.progress import Report

AT = (1, 5, 10)
SCORES = ("cosine", "csls")
Values = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Both:
    """A map with the role of the language that it moves; no map leaves vectors as they are."""

    map: NormalisedMap | None
    moves: Role

    def of(self, role: Role, rows: Tensor) -> Tensor:
        """Vectors […, d] of one language, to be compared with those of the other one."""
        if self.map is None:
            return rows
        return self.map.apply(rows) if role == self.moves else self.map.apply_right(rows)

    def apply(self, vectors: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """(other language, parent) [n, d] → (parent, other language), to be compared with each other."""
        left, right = vectors
        return self.of("source", right), self.of("target", left)


def layer_scores(
    vectors: Vectors,
    layer: int,
    both: Both,
    dictionary: Dictionary,
    links: NDArray[np.int64],
    linked_only: bool,
    device: torch.device,
    report: Report,
) -> Values:
    """Everything measured at one layer (``layer`` counts those of ``vectors``), on a device.

    {"words", "context", "sentences", "files"}; the latter two are None where there are not two sentences to tell apart.
    """

    def compared(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return both.apply((pair[0][layer].to(device), pair[1][layer].to(device)))

    return {
        "words": word_scores(*compared(vectors.types), dictionary, report),
        "context": context_scores(*compared(vectors.words), links, linked_only, report),
        **{
            name: None if held is None or held[0].shape[1] < 2 else sentence_scores(*compared(held), report)
            for name, held in (("sentences", vectors.sentences), ("files", vectors.files))
        },
    }


def intervals(scores: Mapping[str, Any], asking: Mapping[str, int]) -> Values:
    """{measure: [low, high]} Wilson's 95 % interval of the main number of each measure that there is.

    ``asking``: how many words or sentences ask for it, in the direction with fewer; they are taken as independent.
    """
    found: Values = {}
    for measure, count in asking.items():
        value = main_number(measure, scores.get(measure))
        if value is not None and count:
            bounds = wilson_interval(value / 100, count)
            found[measure] = [_round(bounds.low or 0.0), _round(bounds.high or 0.0)]
    return found


def word_scores(x: Tensor, y: Tensor, dictionary: Dictionary, report: Report) -> Values:
    """Translation of words as MUSE measures it: {score: {direction: {"p@1": percent, …}}}.

    ``x`` the parent's types and ``y`` the other language's, all of them candidates.
    """
    sets = dictionary.forward, dictionary.backward
    asking = torch.from_numpy(sets[0].queries), torch.from_numpy(sets[1].queries)
    pairs = sets[0].pairs()
    found = nearest(x, y, torch.from_numpy(pairs), top=max(AT), asking=asking, report=report)
    order = _same_order(pairs, sets[1].pairs()[:, ::-1])
    values: Values = {}
    for score in SCORES:
        there = _precision(sets[0], getattr(found.forward, score), np.arange(len(pairs)))
        back = _precision(sets[1], getattr(found.backward, score), order)
        values[score] = {
            "forward": there,
            "backward": back,
            "mean": {k: _round((there[k] + back[k]) / 2) for k in there},
        }
    return values


def _same_order(pairs: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n] where each of the ``wanted`` [n, 2] is among ``pairs``, which are the same in another order."""
    order = np.lexsort(pairs.T)
    place = np.empty(len(wanted), np.int64)
    place[np.lexsort(wanted.T)] = order
    assert (pairs[place] == wanted).all(), "both directions have the same pairs"
    return place


def _precision(held: TranslationSet, found: Listed, order: NDArray[np.int64]) -> dict[str, float]:
    rows = found.indices.cpu().numpy()
    padded = np.full((len(rows), max(AT)), -1, np.int64)  # there may be fewer candidates
    padded[:, : rows.shape[1]] = rows
    scores = np.full(padded.shape, -np.inf)
    scores[:, : rows.shape[1]] = found.scores.cpu().numpy()
    credit = found.credit.cpu().numpy()[order]
    return {name: _round(value) for name, value in held.precision(padded, scores, credit, AT).items()}


def context_scores(x: Tensor, y: Tensor, links: NDArray[np.int64], linked_only: bool, report: Report) -> Values:
    """Retrieval of linked words in context: {score: {direction: percent}}; ``links`` [q, 2] are rows of x and y.

    Candidates are the rows that are not zeros, or those with a link.
    """
    kept = [(rows != 0).any(1).cpu().numpy() for rows in (x, y)]
    for side in (0, 1):
        kept[side][links[:, side]] = True  # a word without a vector is a miss, and is not dropped in silence
        if linked_only:
            kept[side][:] = False
            kept[side][links[:, side]] = True
    place = [np.cumsum(some) - 1 for some in kept]
    pairs = torch.from_numpy(np.stack([place[0][links[:, 0]], place[1][links[:, 1]]], axis=1))
    found = nearest(x[torch.from_numpy(kept[0])], y[torch.from_numpy(kept[1])], pairs, report=report)
    return _accuracy(found)


def sentence_scores(x: Tensor, y: Tensor, report: Report) -> Values:
    """Retrieval of parallel sentences, row i of ``x`` with row i of ``y``: {score: {direction: percent}}."""
    own = torch.arange(len(x))
    return _accuracy(nearest(x, y, torch.stack([own, own], dim=1), report=report))


def _accuracy(found: Nearest) -> Values:
    values: Values = {}
    for score in SCORES:
        there, back = (_percent(side, score) for side in (found.forward, found.backward))
        values[score] = {"forward": there, "backward": back, "mean": _round((there + back) / 2)}
    return values


def _percent(side: Direction, score: str) -> float:
    return _round(100.0 * float(getattr(side, score).credit.mean()))


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def main_number(measure: str, held: Mapping[str, Any] | None, score: str = "csls") -> float | None:
    """The accuracy of both directions that figures and tables compare: P@1."""
    if held is None:
        return None
    mean = held[score]["mean"]
    return float(mean["p@1"] if measure == "words" else mean)
