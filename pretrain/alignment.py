"""Word-embedding alignment: the share of words whose nearest row is the row of their translation.

This is the alignment score of ALIGN-MLM (Tang et al. 2022), in both directions and also under CSLS (Conneau et al.
2018, equation 4). p_i and d_i are the rows of word i in the source and in the derived language, and cos is their
cosine:

    forward(i)  = 1 if argmax_j s(p_i, d_j) = i else 0          j over ALL candidates of the derived language
    backward(i) = 1 if argmax_j s(p_j, d_i) = i else 0          j over ALL candidates of the source
    s = cos                                                     for ``cosine``
    s = 2 cos(p, d) - r(p) - r(d)                               for ``csls``
    r(x) = mean cosine of x to its k nearest candidates of the other language

A word with several translations counts as found if the nearest row is one of them, as in MUSE (Conneau et al. 2018).
A score is 100 times the mean over the words of a subset. Candidates are all rows of a language, also rows without a
translation. A row that both languages share is not a candidate of itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pretrain.nearest import nearest
from synthlang.progress import Report, silent


@dataclass(frozen=True)
class Retrieval:
    """Percentage of words whose nearest row is the row of their translation."""

    forward: float
    """Percentage of source words with a translation as nearest row of the other language (as in ALIGN-MLM)."""
    backward: float
    """Percentage of words of the other language with a translation as nearest row of the source language."""
    mean: float
    """Mean of both directions."""


@dataclass(frozen=True)
class SubsetAlignment:
    """The scores of a set of words, in percent. All other words still compete as neighbours.

    Attributes:
        n: Number of different source words in the set.
        cosine: Scores with the cosine as similarity.
        csls: Scores with CSLS as similarity.
    """

    n: int
    cosine: Retrieval
    csls: Retrieval


@dataclass(frozen=True)
class AlignmentScores:
    """Scores of three sets of words. An empty set has None.

    Attributes:
        all: Scores of all words.
        in_dictionary: Scores of the words in the training dictionary.
        held_out: Scores of the words outside the training dictionary.
    """

    all: SubsetAlignment | None
    in_dictionary: SubsetAlignment | None
    held_out: SubsetAlignment | None

    def to_json(self) -> dict[str, Any]:
        """Return nested JSON values: ``{"all": {"n": 9, "cosine": {"forward": …}, "csls": …} | None, …}``."""
        return asdict(self)


@dataclass(frozen=True)
class WordCredits:
    """Credit of both words of each pair as (forward, backward) under each score, 0 to 1 (see ``pair_credits``).

    Each tensor of credits is [n] float64, and is on the CPU.
    """

    cosine: tuple[Tensor, Tensor]
    csls: tuple[Tensor, Tensor]
    words: Tensor
    """The rows of the words of the pairs, [n, 2] int64.

    A word in several pairs has the same credit in each and counts once.
    """
    zeros: tuple[int, int] = (0, 0)
    """Number of candidates of the source and of the other language that are rows of zeros."""

    def __len__(self) -> int:
        return len(self.cosine[0])

    def scores(self, in_dictionary: Tensor, words: Tensor | None = None) -> AlignmentScores:
        """Return the scores of ``words``, of their part in the dictionary, and of their part outside it, in percent.

        All other words still compete as neighbours. A score is the mean over different words: source words for
        ``forward``, and words of the other language for ``backward``.

        Args:
            in_dictionary: True for pairs whose words are in the dictionary, [n] bool.
            words: True for pairs whose words are scored, [n] bool (default: all).
        """
        inside = in_dictionary.cpu()
        words = torch.ones_like(inside) if words is None else words.cpu()
        for chosen in (inside, words):
            assert chosen.dtype == torch.bool and len(chosen) == len(self), (chosen.dtype, chosen.shape, len(self))
        return AlignmentScores(*(self._subset(chosen & words) for chosen in (words, inside, ~inside)))

    def _subset(self, chosen: Tensor) -> SubsetAlignment | None:
        if not chosen.any():
            return None
        rows = [_each_once(self.words[:, side], chosen) for side in (0, 1)]
        retrievals = []
        for pair in (self.cosine, self.csls):
            forward, backward = (100 * float(credit[once].mean()) for credit, once in zip(pair, rows, strict=True))
            retrievals.append(Retrieval(forward, backward, (forward + backward) / 2))
        return SubsetAlignment(len(rows[0]), *retrievals)


def _each_once(words: Tensor, chosen: Tensor) -> Tensor:
    """Return the first chosen row of each word, in ascending order."""
    rows = chosen.nonzero()[:, 0]
    _, first = np.unique(words[rows].numpy(), return_index=True)
    return rows[torch.from_numpy(np.sort(first))]


def _of_word(credit: Tensor, words: Tensor) -> Tensor:
    """Sum the credits of each word, and return the sum at each pair of the word."""
    return credit.new_zeros(int(words.max()) + 1).index_add(0, words, credit)[words] if len(words) else credit


def pair_credits(
    parent: Tensor,
    derived: Tensor,
    pairs: Tensor,
    shared: Tensor | None = None,
    *,
    report: Report = silent,
    names: tuple[str, str] = ("first", "second"),
) -> WordCredits:
    """Return the credit of the words of translation pairs in both directions, under the cosine and under CSLS.

    If t rows are nearest (within 1e-6 of the best) and s of them are translations, the credit is s/t, the
    expectation of a random choice. If all rows are equal, a word with one translation among m candidates therefore has
    the credit 1/m. A pair with a row of zeros has the credit 0 in both directions. Similarities are float32.

    Args:
        parent: Rows of the source language, [n, d]. The caller leaves out special tokens and types that never occur in
            training, here and in ``derived``, since all rows are candidates.
        derived: Rows of the other language, [m, d].
        pairs: Rows of words that translate each other in ``parent`` and in ``derived``, [q, 2] int64. A word may be
            in several pairs. The caller leaves out types whose translation is their own row.
        shared: Numbers of the rows that both languages share, in ``parent`` and in ``derived``, [s, 2] int64. A shared
            row competes for all words but its own.
        report: Function that shows progress.
        names: Names of the two sides in errors.

    Raises:
        InputError: A row has NaN or infinity.

    >>> rows, pairs = torch.eye(3), torch.arange(3).unsqueeze(1).expand(-1, 2)
    >>> pair_credits(rows, rows[[0, 2, 1]], pairs).scores(torch.tensor([True, False, False])).all.cosine.forward
    33.33333333333333
    """
    found = nearest(parent, derived, pairs, barred=shared, report=report, names=names)
    words, both = pairs.cpu().long(), (found.forward, found.backward)
    cosine, csls = (
        [_of_word(getattr(way, score).credit.cpu(), words[:, side]) for side, way in enumerate(both)]
        for score in ("cosine", "csls")
    )
    return WordCredits((cosine[0], cosine[1]), (csls[0], csls[1]), words, (both[0].zeros, both[1].zeros))
