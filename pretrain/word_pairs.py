"""Pairs of ids that are translations between the source language and another language, and their alignment score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.alignment import WordCredits, pair_credits
from pretrain.artifacts import Artifacts
from pretrain.model.language_model import LanguageModel
from synthlang.dictionary.ids import IdDictionary
from synthlang.dictionary.word_dictionary import trained_types
from synthlang.progress import Report, silent


@dataclass(frozen=True)
class WordPairs:
    """Pairs of ids that translate each other, and the ids that compete with them.

    Attributes:
        pairs: (source id, other id), [n, 2] int64. No pair occurs twice.
        in_dictionary: True for pairs that share a word with a pair of the dictionary, [n] bool.
        candidates: Sorted ids of the source and of the other language among which translations are searched, including
            the pairs.
        own_rows: True if each language has separate rows, so that an id of both languages has two rows.
        names: Names of the source and of the other language.
        same: Number of pairs that were left out because both languages share their row.
    """

    pairs: NDArray[np.int64]
    in_dictionary: NDArray[np.bool_]
    candidates: tuple[NDArray[np.int64], NDArray[np.int64]]
    own_rows: bool
    names: tuple[str, str]
    same: int = 0

    @property
    def shared(self) -> NDArray[np.int64]:
        """The sorted ids whose row both languages share."""
        both = np.zeros(0, np.int64) if self.own_rows else np.intersect1d(*self.candidates, assume_unique=True)
        return np.asarray(both, np.int64)


def word_pairs(artifacts: Artifacts, language: int, dictionary: IdDictionary | None = None) -> WordPairs | None:
    """Return the translations between the source language and ``language`` as pairs of ids, or None if none is known.

    The result has all pairs that a dictionary could have: the copies of a transliterated language, or the translations
    in a file. Both ids occur in the training text. Candidates are all ids that occur in the training text of their
    language, without specials. A pair with one shared row, which any model gets right, is left out and counted.

    Args:
        artifacts: The data of the run.
        language: Number of the other language.
        dictionary: Dictionary for the flags ``in_dictionary`` (default: the run's dictionary).
    """
    dictionary = dictionary or artifacts.dictionary
    pairs = next((c.pairs for c in artifacts.candidates if c.language == language), np.zeros((0, 2), np.int64))
    image = np.zeros(len(pairs), bool) if artifacts.own_rows else pairs[:, 0] == pairs[:, 1]
    pairs = distinct(pairs[~image])
    if not len(pairs):
        return None
    trained = np.zeros((0, 2), np.int64)
    if dictionary is not None:
        trained = dictionary.pairs[(dictionary.languages == (0, language)).all(axis=1)]
    of_both = artifacts.languages[0], artifacts.languages[language]
    parent, other = (trained_types(one.train.counts, artifacts.id_space.specials.all) for one in of_both)
    names = of_both[0].name, of_both[1].name
    in_dictionary = np.isin(pairs[:, 0], trained[:, 0]) | np.isin(pairs[:, 1], trained[:, 1])
    return WordPairs(pairs, in_dictionary, (parent, other), artifacts.own_rows, names, int(image.sum()))


def distinct(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs [n, 2] in the order of their first occurrence, each once."""
    _, first = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(first)]


def credits_of(
    model: LanguageModel, pairs: WordPairs, language: int, report: Report = silent, language_ids: bool = False
) -> WordCredits:
    """Return the credit of each pair in both directions (see ``pair_credits``).

    Args:
        model: The model.
        pairs: Pairs of the source language and ``language``.
        language: Number of the other language.
        report: Function that shows progress.
        language_ids: True to add to each row the embedding of its language, if the model has language embeddings.

    Raises:
        InputError: An embedding row has NaN or infinity.
    """
    device = next(model.parameters()).device
    with torch.no_grad():
        sides = [
            rows_of(model, torch.from_numpy(ids).to(device), which, language_ids)
            for ids, which in zip(pairs.candidates, (0, language), strict=True)
        ]
    places, shared = (places_in(pairs.candidates, ids) for ids in (pairs.pairs, np.stack([pairs.shared] * 2, axis=1)))
    return pair_credits(sides[0], sides[1], places, shared, report=report, names=pairs.names)


def rows_of(model: LanguageModel, ids: torch.Tensor, language: int, language_ids: bool = False) -> torch.Tensor:
    """Return the word embeddings of ids [n] of a language, [n, d] float32.

    With ``language_ids``, the embedding of the language is added to each row, if the model has language embeddings.
    """
    rows, own = model.word_rows(ids, language).float(), model.embeddings.languages
    return rows + own[language].float() if language_ids and own is not None else rows


def places_in(candidates: tuple[NDArray[np.int64], NDArray[np.int64]], pairs: NDArray[np.int64]) -> torch.Tensor:
    """Return the positions of the ids of ``pairs`` [q, 2] among the sorted ``candidates`` of each side, [q, 2]."""
    places = [np.searchsorted(ids, pairs[:, side]) for side, ids in enumerate(candidates)]
    for ids, side, at in zip(candidates, pairs.T, places, strict=True):
        assert np.array_equal(ids[at], side), "candidates hold the words of the pairs"
    return torch.from_numpy(np.stack(places, axis=1))
