"""How many words find their translation: in both directions, under CSLS and the cosine, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest import Direction, nearest
from pretrain.nearest_lists import Matrix
from probes.statistics import Interval, wilson_interval
from synthlang.progress import Report, silent

LEVEL = 0.95
SIMILARITIES = ("csls", "cosine")

Credits = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """Percent (0 to 100) of words that find a translation of theirs, of those in some links.

    forward    words of the parent ask, those of the other language answer; ``backward`` the other way
    mean       of both, with Wilson's interval for as many draws as the direction with fewer words has: the two
               directions of a pair are one draw, and words of one sentence are taken as independent
    links, asking   how many links, and how many words ask in each direction (as many, if links are one to one)
    """

    forward: float
    backward: float
    mean: Interval
    links: int
    asking: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "forward": self.forward,
            "backward": self.backward,
            "mean": self.mean.mean,
            "low": self.mean.low,
            "high": self.mean.high,
            "links": self.links,
            "asking": {"forward": self.asking[0], "backward": self.asking[1]},
        }


@dataclass(frozen=True, eq=False)
class Retrieved:
    """What each link [q] earns: 1 if its word found any word that it is linked with, 1/t with t tied ones, else 0.

    ``csls`` and ``cosine``: (forward, backward). ``zeros``: rows of zeros on the left and on the right.
    """

    links: NDArray[np.int64]
    csls: tuple[Credits, Credits]
    cosine: tuple[Credits, Credits]
    zeros: tuple[int, int]

    def accuracy(self, chosen: NDArray[np.bool_], similarity: str) -> Accuracy | None:
        """Of the words of the ``chosen`` links [q]; each word counts once. None if there is none."""
        if not chosen.any():
            return None
        credits = self.csls if similarity == "csls" else self.cosine
        scores, asking = [], []
        for side, credit in ((1, credits[0]), (0, credits[1])):
            first = np.unique(self.links[chosen, side], return_index=True)[1]
            scores.append(100 * float(credit[chosen][first].mean()))
            asking.append(len(first))
        mean = wilson_interval(sum(scores) / 200, min(asking))
        return Accuracy(scores[0], scores[1], mean, int(chosen.sum()), (asking[0], asking[1]))

    def of_links(self, similarity: str = "csls") -> Credits:
        """[q] the mean of both directions."""
        credits = self.csls if similarity == "csls" else self.cosine
        return (credits[0] + credits[1]) / 2


def retrieve(
    left: Matrix,
    right: Matrix,
    links: NDArray[np.int64],
    k: int,
    report: Report = silent,
    lost: NDArray[np.bool_] | None = None,
) -> Retrieved:
    """Search in both directions; ``links`` [q, 2] are rows of ``left`` [n, d] and ``right`` [m, d].

    Of links that are ``lost`` [q] a word has no row: they earn nothing, and negative numbers stand for such words.
    """
    there = np.ones(len(links), bool) if lost is None else ~lost
    found = nearest(right, left, torch.from_numpy(links[there, ::-1].copy()), k=k, report=report)
    ways = ((found.forward, links[:, 1]), (found.backward, links[:, 0]))

    def credits(similarity: str) -> tuple[Credits, Credits]:
        one, other = (_of_any(_credit(way, similarity, there), asking) for way, asking in ways)
        return one, other

    return Retrieved(links, credits("csls"), credits("cosine"), (found.backward.zeros, found.forward.zeros))


def _credit(way: Direction, similarity: str, there: NDArray[np.bool_]) -> Credits:
    """[q] of every link; nothing for those that are not ``there``."""
    found = way.csls if similarity == "csls" else way.cosine
    credit = np.zeros(len(there))
    credit[there] = found.credit.cpu().numpy()
    return credit


def _of_any(credit: Credits, asking: NDArray[np.int64]) -> Credits:
    """What the word that asks earns by all its links: of t tied ones, each of its own is the chosen one with 1/t."""
    _, word = np.unique(asking, return_inverse=True)
    return np.minimum(np.bincount(word, credit)[word], 1.0)
