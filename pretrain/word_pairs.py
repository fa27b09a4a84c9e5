"""Pairs of ids that stand for the same word in the parent and in another language of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.alignment import AlignmentScores, WordCredits, word_credits
from pretrain.encoder import MaskedLM
from pretrain.prepare import Artifacts
from synthlang.dictionary import IdDictionary
from synthlang.progress import Report, silent


@dataclass(frozen=True)
class WordPairs:
    """``pairs`` [n, 2] of (parent id, other id), no id twice on a side; which of them are in the dictionary."""

    pairs: NDArray[np.int64]
    in_dictionary: NDArray[np.bool_]


def word_pairs(artifacts: Artifacts, member: int, dictionary: IdDictionary | None = None) -> WordPairs | None:
    """The pairs of the parent and ``member``; None if it is not known which ids are translations.

    They are all that a dictionary could have: the copies of a transliterated language, or the words of the file of
    translations, the first of each id; both ids occur in the training text. An id that both languages share has one
    row, which is nobody's neighbour but its own, and is left out. ``dictionary`` (default: the run's) says which
    pairs count as trained on.
    """
    dictionary = dictionary or artifacts.dictionary
    pairs = next((c.pairs for c in artifacts.candidates if c.member == member), np.zeros((0, 2), np.int64))
    if not artifacts.own_rows:
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = _one_to_one(pairs)
    trained = _pairs_of(dictionary, member) if dictionary is not None else np.zeros((0, 2), np.int64)
    return WordPairs(pairs, _among(pairs, trained)) if len(pairs) else None


def _pairs_of(dictionary: IdDictionary, member: int) -> NDArray[np.int64]:
    """The dictionary's pairs of the parent and a member."""
    mine = (dictionary.languages == (0, member)).all(axis=1)
    pairs: NDArray[np.int64] = dictionary.pairs[mine]
    return pairs


def _one_to_one(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs in order, without those whose id stood in an earlier pair on the same side."""
    _, first = np.unique(pairs[:, 0], return_index=True)
    pairs = pairs[np.sort(first)]
    _, first = np.unique(pairs[:, 1], return_index=True)
    return pairs[np.sort(first)]


def _among(pairs: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[n] whether each pair is one of ``others``."""
    known = {(int(a), int(b)) for a, b in others}
    return np.asarray([(int(a), int(b)) in known for a, b in pairs], dtype=bool)


def alignment_of(model: MaskedLM, pairs: WordPairs, member: int) -> AlignmentScores:
    """How well the embedding rows of the pairs find each other."""
    return credits_of(model, pairs, member).scores(torch.from_numpy(pairs.in_dictionary))


def credits_of(model: MaskedLM, pairs: WordPairs, member: int, report: Report = silent) -> WordCredits:
    """What each of the pairs earns."""
    device = next(model.parameters()).device
    with torch.no_grad():
        sides = [
            model.word_rows(torch.from_numpy(pairs.pairs[:, i].copy()).to(device), which).float()
            for i, which in ((0, 0), (1, member))
        ]
    return word_credits(sides[0], sides[1], report=report)
