"""Word-embedding alignment: does a word's row lie nearest to the row of its own counterpart?

Source: ALIGN-MLM (Tang et al. 2022), the alignment score, here in both directions and
also under CSLS (Conneau et al. 2018, equation 4). With p_i, d_i the rows of word i in the
parent and in the derived language and cos their cosine:

    forward(i)  = 1 if argmax_j s(p_i, d_j) = i else 0          j over ALL candidates of the derived language
    backward(i) = 1 if argmax_j s(p_j, d_i) = i else 0          j over ALL candidates of the parent
    s = cos                                                     for ``cosine``
    s = 2 cos(p, d) - r(p) - r(d)                               for ``csls``
    r(x) = mean cosine of x to its k nearest candidates of the other language

and a score is 100 times the mean over the words of a subset. Candidates are the rows of a language, those without a
counterpart too. Where both languages share one row, it is no candidate of itself: nobody is its own neighbour.
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
    """Percent (0-100) of words whose nearest row is their counterpart's."""

    forward: float
    """Parent → derived, the direction of the paper."""
    backward: float
    """Derived → parent."""
    mean: float
    """Mean of both directions."""


@dataclass(frozen=True)
class SubsetAlignment:
    """The scores of ``n`` words; every other word still competes as a neighbour."""

    n: int
    cosine: Retrieval
    csls: Retrieval


@dataclass(frozen=True)
class AlignmentScores:
    """Scores of all words, of those in the training dictionary and of the rest; None if there are none."""

    all: SubsetAlignment | None
    in_dictionary: SubsetAlignment | None
    held_out: SubsetAlignment | None

    def to_json(self) -> dict[str, Any]:
        """Nested JSON values: ``{"all": {"n": 9, "cosine": {"forward": …}, "csls": …} | None, …}``."""
        return asdict(self)


@dataclass(frozen=True)
class WordCredits:
    """What each word [n] earns, (forward, backward) under each score, 0 to 1 (see ``alignment``)."""

    cosine: tuple[Tensor, Tensor]
    csls: tuple[Tensor, Tensor]
    zeros: tuple[int, int] = (0, 0)
    """How many candidates of the parent and of the other language are rows of zeros."""

    def __len__(self) -> int:
        return len(self.cosine[0])

    def scores(self, in_dictionary: Tensor, words: Tensor | None = None) -> AlignmentScores:
        """The scores of ``words`` [n] (bool; default: of all), of those in the dictionary [n] (bool), and of the rest.

        Every other word still competes as a neighbour.
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
    """What each of the ``pairs`` [q, 2] of rows of ``parent`` [n, d] and of ``derived`` [m, d], all candidates, earns.

    ``shared`` [s, 2] are the places of rows that both languages have: a shared row competes for all words but its own.
    The caller leaves out special tokens, types never seen in training and types whose image is their own row.

    A tie for the maximum (within TIE) between t rows, the counterpart among them, counts 1/t: the expectation of
    breaking it at random, so a collapsed embedding scores 100/n and not 100. A row of zeros has cosine 0 to everything,
    and its word is a miss in both directions. Similarities are float32 whatever the input; ``k`` is cut to the number
    of rows. InputError, which calls the sides by their ``names``: NaN, infinity.

    >>> rows, pairs = torch.eye(3), torch.arange(3).unsqueeze(1).expand(-1, 2)
    >>> pair_credits(rows, rows[[0, 2, 1]], pairs).scores(torch.tensor([True, False, False])).all.cosine.forward
    33.33333333333333
    """
    if k < 1 or chunk < 1:
        raise InputError(f"k and chunk must be at least 1, not {k} and {chunk}")
    found = nearest(parent, derived, pairs, barred=shared, k=k, tile=chunk, report=report, names=names)
    both = found.forward, found.backward
    cosine, csls = [way.cosine.credit.cpu() for way in both], [way.csls.credit.cpu() for way in both]
    return WordCredits((cosine[0], cosine[1]), (csls[0], csls[1]), (both[0].zeros, both[1].zeros))
