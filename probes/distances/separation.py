"""Distances of related and of unrelated words, and how far they are apart, before and after a model is changed.

Source: "The Impact of Cross-Lingual Adjustment" (2022), section 5.4 and figures 1 and 2, with numbers to the pictures:
the AUC is the probability that a related pair is closer than an unrelated one (1 apart, ½ mixed up).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from probes.distances.auc import Codes, Influence, auc, clustered_interval, placements
from probes.statistics import Interval
from probes.statistics.base import Floats

Distance = Literal["l2", "cosine"]
DISTANCES: tuple[Distance, ...] = ("l2", "cosine")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
TOPS = (1, 3, 10, 100)
"""How many of the largest dimensions are taken together; the paper names 10 and 100."""


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Which pairs were measured: ``sentence`` [n] of the related ones, of the unrelated ones the links and sentences.

    query, other   [m] numbers of the links whose left and right word an unrelated pair has
    same_word      unrelated pairs that were drawn but left out, being of one type of word
    """

    sentence: Codes
    query: Codes
    other: Codes
    same_word: int

    def matches(self, pairs: WordPairs) -> bool:
        """Whether they are the same pairs."""
        names = ("sentence", "query", "other")
        return all(np.array_equal(getattr(self, name), getattr(pairs, name)) for name in names)


@dataclass(frozen=True, eq=False)
class Separation:
    """Distances at one layer. Cosine distance is 1 − cos, from 0 to 2; one of a zero vector is 1.

    related     [n] of linked words        unrelated   [m] of a left word and a right word of another sentence
    zero        words among the 2 n linked ones whose vector is zero
    """

    layer: int
    distance: Distance
    related: Floats
    unrelated: Floats
    pairs: WordPairs
    zero: int
    level: float = 0.95

    @cached_property
    def auc(self) -> Interval:
        """The AUC with its interval over sentences (auc.py)."""
        return clustered_interval(self.influence("auc"), self.level, share=True)

    def influence(self, what: Literal["auc", "related", "unrelated"]) -> Influence:
        """What each pair adds to the error of the AUC, or of the mean distance of one kind."""
        sentence, query, other = self.pairs.sentence, self.pairs.query, self.pairs.other
        ends = (sentence, sentence), (sentence[query], sentence[other])
        if what != "auc":
            values, (first, second) = (self.related, ends[0]) if what == "related" else (self.unrelated, ends[1])
            mean = float(values.mean())
            return Influence(mean, (values - mean) / len(values), first, second)
        v, w = placements(self.related, self.unrelated)
        value = auc(self.related, self.unrelated)
        psi = np.concatenate([(v - value) / len(v), (w - value) / len(w)])
        first, second = (np.concatenate(both) for both in zip(*ends, strict=True))
        return Influence(value, psi, first, second)

    def to_json(self) -> dict[str, Any]:
        """The numbers, without the distances."""
        kinds: dict[str, Any] = {}
        for kind, values in (("related", self.related), ("unrelated", self.unrelated)):
            quantiles = {f"{q:g}": _short(x) for q, x in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)}
            kinds[kind] = {"n": len(values), "mean": _short(float(values.mean())), "quantiles": quantiles}
        left_out = {"zero_vectors": self.zero, "same_word": self.pairs.same_word}
        return {"layer": self.layer, "distance": self.distance, "auc": asdict(self.auc), **kinds, **left_out}


def _short(value: float) -> float:
    return float(f"{value:.6g}")
