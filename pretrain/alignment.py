"""Word-embedding alignment: the share of words whose nearest row is the row of their translation.

This is the alignment score of ALIGN-MLM (Tang et al. 2022), in both directions and also under CSLS (Conneau et al.
2018, equation 4). p_i and d_i are the rows of word i in the source and in the derived language, and cos is their
cosine:

    forward(i)  = 1 if argmax_j s(p_i, d_j) = i else 0          j over ALL candidates of the derived language
    backward(i) = 1 if argmax_j s(p_j, d_i) = i else 0          j over ALL candidates of the source
    s = cos                                                     for ``cosine``
    s = 2 cos(p, d) - r(p) - r(d)                               for ``csls``
    r(x) = mean cosine of x to its k nearest candidates of the other language

A score is 100 times the mean over the words of a subset. Candidates are all rows of a language, also rows without a
translation. A row that both languages share is not a candidate of itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from pretrain.nearest import nearest
from pretrain.nearest_lists import TILE
from synthlang.errors import InputError
from synthlang.progress import Report, silent


@dataclass(frozen=True)
class Retrieval:
    """Percentage of words whose nearest row is the row of their translation."""

    forward: float
    """Source → derived, the direction of the paper."""
    backward: float
    """Derived → source."""
    mean: float
    """Mean of both directions."""


@dataclass(frozen=True)
class SubsetAlignment:
    """The scores of ``n`` words. All other words still compete as neighbours."""

    n: int
    cosine: Retrieval
    csls: Retrieval


@dataclass(frozen=True)
class AlignmentScores:
    """Scores of all words, of the words in the training dictionary and of the rest. An empty set has None."""

    all: SubsetAlignment | None
    in_dictionary: SubsetAlignment | None
    held_out: SubsetAlignment | None

    def to_json(self) -> dict[str, Any]:
        """Return nested JSON values: ``{"all": {"n": 9, "cosine": {"forward": …}, "csls": …} | None, …}``."""
        return asdict(self)


@dataclass(frozen=True)
class WordCredits:
    """Credit of each word [n] as (forward, backward) under each score, 0 to 1 (see ``pair_credits``)."""

    cosine: tuple[Tensor, Tensor]
    csls: tuple[Tensor, Tensor]
    zeros: tuple[int, int] = (0, 0)
    """Number of candidates of the source and of the other language that are rows of zeros."""

    def __len__(self) -> int:
        return len(self.cosine[0])

    def scores(self, in_dictionary: Tensor, words: Tensor | None = None) -> AlignmentScores:
        """Return the scores of ``words``, of the ones in the dictionary, and of the rest. Other words still compete.

        Args:
            in_dictionary: True for words in the dictionary, [n] bool.
            words: True for words to score, [n] bool (default: all).
        """
        inside = in_dictionary.cpu()
        words = torch.ones_like(inside) if words is None else words.cpu()
        for chosen in (inside, words):
            assert chosen.dtype == torch.bool and len(chosen) == len(self), (chosen.dtype, chosen.shape, len(self))
        return AlignmentScores(*(self._subset(chosen & words) for chosen in (words, inside, ~inside)))

    def _subset(self, chosen: Tensor) -> SubsetAlignment | None:
        if not chosen.any():
            return None
        retrievals = []
        for pair in (self.cosine, self.csls):
            forward, backward = (100 * float(credit[chosen].mean()) for credit in pair)
            retrievals.append(Retrieval(forward, backward, (forward + backward) / 2))
        return SubsetAlignment(int(chosen.sum()), *retrievals)


def pair_credits(
    parent: Tensor,
    derived: Tensor,
    pairs: Tensor,
    shared: Tensor | None = None,
    *,
    k: int = 10,
    chunk: int = TILE,
    report: Report = silent,
    names: tuple[str, str] = ("first", "second"),
) -> WordCredits:
    """Return the credit of each of the ``pairs`` [q, 2] of rows of ``parent`` [n, d] and of ``derived`` [m, d].

    All rows are candidates. ``shared`` [s, 2] are the places of rows that both languages share. A shared row competes
    for all words but its own. The caller leaves out special tokens, types that never occur in training and types whose
    translation is their own row.

    If the translation is tied with t − 1 other rows (within TIE), the credit is 1/t, the expectation of a random
    choice. A collapsed embedding therefore scores 100/n. The word of a row of zeros is a miss in both directions.
    Similarities are float32. ``k`` is limited to the number of rows, and errors use the ``names`` of the two sides.

    Raises:
        InputError: A row has NaN or infinity.

    >>> rows, pairs = torch.eye(3), torch.arange(3).unsqueeze(1).expand(-1, 2)
    >>> pair_credits(rows, rows[[0, 2, 1]], pairs).scores(torch.tensor([True, False, False])).all.cosine.forward
    33.33333333333333
    """
    if k < 1 or chunk < 1:
        raise InputError(f"k and chunk must be at least 1, not {k} and {chunk}", code="range")
    found = nearest(parent, derived, pairs, barred=shared, k=k, tile=chunk, report=report, names=names)
    both = found.forward, found.backward
    cosine, csls = [way.cosine.credit.cpu() for way in both], [way.csls.credit.cpu() for way in both]
    return WordCredits((cosine[0], cosine[1]), (csls[0], csls[1]), (both[0].zeros, both[1].zeros))
