"""Distances of related and unrelated words, and their separation before and after a change of the model.

The histograms follow "The Impact of Cross-Lingual Adjustment" (2022), section 5.4 and figures 1 and 2. The AUC
summarises them: it is the probability that a related pair is closer than an unrelated pair (1 for separate
distributions, ½ for equal distributions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from probes.measures.distances import BINS, DISTANCES, Distance
from probes.measures.distances.pairs import ROWS, PairBlock
from probes.statistics import Floats, Interval
from synthlang.errors import InputError

Codes = NDArray[np.int64]
LEVEL = 0.95
FEW = 30
"""Number of sentences below which the wider of two intervals is used.

In simulations with few sentences, the narrower 95 % interval contained the true value in only 87 % of cases.
"""


@dataclass(frozen=True, eq=False)
class Influence:
    """An estimate, and the contribution of each pair to its error.

    Attributes:
        estimate: The estimate.
        values: [k] contributions, which sum to 0 up to rounding.
        first: [k] the first sentence of each pair, codes 0 … G − 1.
        second: [k] the second sentence of each pair. It equals ``first`` for a pair within one sentence.
    """

    estimate: float
    values: Floats
    first: Codes
    second: Codes

    def minus(self, other: Influence) -> Influence:
        """Return this estimate minus ``other``, an estimate on the same pairs, with the contributions of the pairs."""
        return Influence(self.estimate - other.estimate, self.values - other.values, self.first, self.second)


def placements(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the placements v [n] of ``a`` [n] and w [m] of ``b`` [m] (DeLong, DeLong & Clarke-Pearson 1988).

    v is P(a < b) + ½ P(a = b) over all of ``b``, and w is the same probability over all of ``a``. The mean of v and the
    mean of w are the AUC.
    """
    return 1 - _below(a, b), _below(b, a)


def _below(values: Floats, others: Floats) -> Floats:
    """Return the share [n] of ``others`` below each value. Ties count one half."""
    ordered = np.sort(others)
    found: Floats = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")) / 2
    return found / len(others)


def auc(a: Floats, b: Floats) -> float:
    """Return the AUC of two samples ``a`` [n] and ``b`` [m], which is P(a < b) + ½ P(a = b).

    The AUC is Mann & Whitney's U / (n m).

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    return float(_below(b, a).mean())


def standard_error(influence: Influence) -> float | None:
    """Return the standard error of an estimate from clustered word pairs, or None with only one sentence.

    The error is √V with V = G / (G − 1) Σ ψ_p ψ_q over all word pairs p, q that share a sentence (Obuchowski 1997;
    Fafchamps & Gubert 2007, equation 2.6). G is the number of sentences, and ψ are the contributions ``values``. Let
    S_c be the sum of ψ over the pairs with sentence c. Then Σ_c S_c² counts p, q once for each shared sentence, so
    products of pairs that share both sentences are subtracted once.

    V may be 0 or negative, and with fewer than FEW sentences it is too small on average. In these cases V is at least
    the variance clustered by the first sentence only, which is conservative.
    """
    psi, first, second = influence.values, influence.first, influence.second
    size = int(max(first.max(), second.max())) + 1
    sentences = len(np.unique(np.concatenate([first, second])))
    if sentences < 2:
        return None
    two = first != second
    one_way = np.bincount(first, psi, size)
    sums = one_way + np.bincount(second[two], psi[two], size)
    low, high = np.minimum(first, second)[two], np.maximum(first, second)[two]
    _, dyad = np.unique(low * size + high, return_inverse=True)
    both = np.bincount(dyad, psi[two])
    variance = float(sums @ sums - both @ both)
    if variance <= 0 or sentences < FEW:
        variance = max(variance, float(one_way @ one_way))
    return float((variance * sentences / (sentences - 1)) ** 0.5)


def clustered_interval(influence: Influence, *, share: bool = False) -> Interval:
    """Return the estimate of ``influence`` with a t interval of G − 1 degrees of freedom for G sentences.

    The bounds are the estimate ± t · `standard_error`, at the level LEVEL. With ``share``, the estimate lies between 0
    and 1, and the interval is computed on log odds (delta method) to stay in this range. The bounds are None with only
    one sentence, or for a share of exactly 0 or 1.
    """
    error, value = standard_error(influence), influence.estimate
    n = len(np.unique(np.concatenate([influence.first, influence.second])))
    if error is None or (share and not 0 < value < 1):
        return Interval(value, None, None, n, LEVEL)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    if not share:
        return Interval(value, value - half, value + half, n, LEVEL)
    odds, half = np.log(value / (1 - value)), half / (value * (1 - value))
    low, high = (float(1 / (1 + np.exp(-bound))) for bound in (odds - half, odds + half))
    return Interval(value, low, high, n, LEVEL)


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class WordPairs:
    """The measured word pairs, with the attributes of `PairBlock` for the whole stream.

    Attributes:
        sentence: [n] the sentence of each related pair, codes 0 … G − 1.
        query: [m] the index of the related pair that the left word of each unrelated pair belongs to.
        other: [m] the index of the related pair that the right word of each unrelated pair belongs to.
        same_word: Number of unrelated pairs that were left out because both right words have the same type.
    """

    sentence: Codes
    query: Codes
    other: Codes
    same_word: int


@dataclass(frozen=True, eq=False)
class Separation:
    """Distances at one layer. The cosine distance is 1 − cos, from 0 to 2, and 1 for a zero vector.

    Attributes:
        layer: The number of the layer.
        distance: The kind of distance: l2 or cosine.
        related: [n] distances of aligned words.
        unrelated: [m] distances of words of different sentences.
        pairs: The word pairs that the distances belong to.
        zero: Number of zero vectors among the 2 n aligned words.
    """

    layer: int
    distance: Distance
    related: Floats
    unrelated: Floats
    pairs: WordPairs
    zero: int

    @cached_property
    def auc(self) -> Interval:
        """The AUC with its interval, clustered by sentence."""
        return clustered_interval(self.influence("auc"), share=True)

    def influence(self, what: Literal["auc", "related", "unrelated"]) -> Influence:
        """Return the contribution of each pair to the error of an estimate, as `standard_error` reads it.

        ``what`` is the estimate: the AUC, or the mean distance of related or of unrelated pairs.
        """
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
        """Return the AUC, the number, mean and quantiles of the distances, and the numbers of pairs left out, for JSON.

        Means and quantiles are rounded to six significant digits.
        """
        kinds: dict[str, Any] = {}
        for kind, values in (("related", self.related), ("unrelated", self.unrelated)):
            quantiles = {f"{q:g}": _short(x) for q, x in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)}
            kinds[kind] = {"n": len(values), "mean": _short(float(values.mean())), "quantiles": quantiles}
        left_out = {"zero_vectors": self.zero, "same_word": self.pairs.same_word}
        return {"layer": self.layer, "distance": self.distance, "auc": asdict(self.auc), **kinds, **left_out}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


class DistanceSums:
    """Collector of the distances of a stream of blocks.

    Args:
        distances: The distances to measure.
        kept: The mask [layers, d] of the dimensions to use (default: all).
    """

    def __init__(self, distances: Sequence[Distance] = DISTANCES, kept: Tensor | None = None) -> None:
        self.distances, self.kept = tuple(distances), kept
        self._found: dict[tuple[int, Distance, bool], list[Tensor]] = {}
        self._zero: list[int] = []
        self._pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self._links = self._same_word = 0

    def add(self, block: PairBlock) -> None:
        """Measure the pairs of a block at every layer."""
        linked = block.linked
        self._zero = self._zero or [0] * len(linked.left)
        for layer, (left, right) in enumerate(zip(linked.left, linked.right, strict=True)):
            if self.kept is not None:
                left, right = left[:, self.kept[layer]], right[:, self.kept[layer]]  # noqa: PLW2901
            lengths = row_lengths(left), row_lengths(right)
            self._zero[layer] += sum(int((side == 0).sum()) for side in lengths)
            for related, one, other in block.rows():
                apart = row_lengths(left[one] - right[other])
                for name in self.distances:
                    found = apart if name == "l2" else _cosine(apart, lengths[0][one], lengths[1][other])
                    # rounding to float32 makes ties independent of the order of summation
                    self._found.setdefault((layer, name, related), []).append(found.float())
        self._pairs.append((linked.sentence, block.query + self._links, block.other + self._links))
        self._links += len(linked)
        self._same_word += block.same_word

    def result(self, layers: Sequence[int] | None = None) -> list[Separation]:
        """Return the distances of all pairs, by layer and then by kind of distance.

        ``layers`` has the numbers of the layers (default: 0, 1, …).

        Raises:
            InputError: There are no unrelated pairs.
        """
        numbers = range(len(self._zero)) if layers is None else layers
        sentence, query, other = (torch.cat(part).numpy().astype(np.int64) for part in zip(*self._pairs, strict=True))
        if not len(query):
            told = "no unrelated words are left, because the source words of every drawn pair are the same word"
            raise InputError(told, hint="give sentence pairs with more different words", code="empty")
        codes = np.unique(sentence, return_inverse=True)[1].astype(np.int64)
        pairs = WordPairs(codes, query, other, self._same_word)

        def values(*key: Any) -> Floats:
            return torch.cat(self._found[key]).numpy().astype(np.float64)

        return [
            Separation(number, name, values(i, name, True), values(i, name, False), pairs, zero)
            for i, (number, zero) in enumerate(zip(numbers, self._zero, strict=True))
            for name in self.distances
        ]


def row_lengths(rows: Tensor) -> Tensor:
    """Return the L2 norm [n] float64 of each of the ``rows`` [n, d], in parts that fit into the cache."""
    parts = [torch.linalg.vector_norm(part.double(), dim=-1) for part in torch.split(rows, ROWS)]
    return torch.cat(parts)


def _cosine(apart: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return 1 − cos(x, y) = (|x − y|² − (|x| − |y|)²) / (2 |x| |y|), [n].

    The result is exactly 0 for x = y, and 1 for a zero vector.
    """
    twice = 2 * left * right
    found = (apart.square() - (left - right).square()) / twice.where(twice > 0, 1)
    return found.clamp(0, 2).where(twice > 0, 1.0)


@dataclass(frozen=True)
class Change:
    """Differences after − before on the same pairs, with intervals clustered by sentence.

    Attributes:
        layer: The layer in the model after the change.
        distance: The kind of distance: l2 or cosine.
        auc: Difference of the AUC, from −1 to 1. It is positive if related and unrelated words became more separate.
        related: Difference of the mean distance of related words.
        unrelated: Difference of the mean distance of unrelated words.
    """

    layer: int
    distance: Distance
    auc: Interval
    related: Interval
    unrelated: Interval


def compare(before: Separation, after: Separation) -> Change:
    """Return the change from ``before`` to ``after``, which must have the same distance and word pairs."""
    assert before.distance == after.distance, (before.distance, after.distance)
    for name in ("sentence", "query", "other"):
        assert np.array_equal(getattr(before.pairs, name), getattr(after.pairs, name)), "different word pairs"
    found = [
        clustered_interval(after.influence(what).minus(before.influence(what)))
        for what in ("auc", "related", "unrelated")
    ]
    return Change(after.layer, after.distance, *found)


@dataclass(frozen=True, eq=False)
class Histogram:
    """A histogram of distances. The last bin includes its end.

    Attributes:
        edges: [bins + 1] the edges of the bins, ascending.
        related: [bins] the number of related pairs in each bin.
        unrelated: [bins] the number of unrelated pairs in each bin.
    """

    edges: Floats
    related: NDArray[np.int64]
    unrelated: NDArray[np.int64]

    def to_json(self) -> dict[str, Any]:
        """Return the edges and the counts of the histogram as lists of numbers, for JSON.

        The edges are rounded to six significant digits.
        """
        edges = [float(f"{edge:.6g}") for edge in self.edges]
        return {"edges": edges, "related": self.related.tolist(), "unrelated": self.unrelated.tolist()}


def histograms(found: Sequence[Separation], bins: int = BINS) -> list[Histogram]:
    """Return a histogram for each of ``found``, with common bins of equal width from 0 to the largest distance.

    ``found`` has at least one entry, and all entries have the same kind of distance.
    """
    top = max(float(values.max()) for one in found for values in (one.related, one.unrelated))
    edges = np.linspace(0.0, top if top > 0 else 1.0, bins + 1)
    return [
        Histogram(edges, np.histogram(one.related, edges)[0], np.histogram(one.unrelated, edges)[0]) for one in found
    ]
