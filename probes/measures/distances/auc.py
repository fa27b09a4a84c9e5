"""How well two samples of distances are apart: the area under the ROC curve, with an interval for clustered pairs.

A = P(a < b) + ½ P(a = b) for a of the first sample [n] and b of the second [m]: Mann & Whitney's U / (n m), exact by
ranks. Its variance is that of the placements (DeLong, DeLong & Clarke-Pearson 1988): with

    v(a) = P(a < b) + ½ P(a = b) over all b          w(b) = P(a < b) + ½ P(a = b) over all a

an a adds (v(a) − A) / n to the error of A, and a b adds (w(b) − A) / m. Pairs of words of one sentence are not
independent, and an unrelated pair is of two sentences; so what they add is summed by sentence first, as Obuchowski
1997, "Nonparametric Analysis of Clustered ROC Curve Data", does, with all products of two pairs that share a
sentence on either side (Fafchamps & Gubert 2007, "The Formation of Risk Sharing Networks", equation 2.6).

Chosen over a bootstrap of sentences, which it agrees with: it has no random numbers, costs one sort instead of
thousands, and a bootstrap has no single right weight for a pair of two sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from probes.statistics import Floats, Interval

Codes = NDArray[np.int64]
LEVEL = 0.95
FEW = 30
"""With fewer sentences than this the interval is the wider of two: simulated, 95 % ones held the truth in 87 % else."""


@dataclass(frozen=True, eq=False)
class Influence:
    """An estimate, and the contribution of each pair to its error.

    Attributes:
        estimate: The estimate.
        values: [k] contributions, which sum to 0 up to rounding.
        first: [k] a sentence of each pair, codes 0 … G − 1.
        second: [k] its other sentence, the same for a pair of one sentence.
    """

    estimate: float
    values: Floats
    first: Codes
    second: Codes

    def minus(self, other: Influence) -> Influence:
        """Return the difference of two estimates on the same pairs."""
        return Influence(self.estimate - other.estimate, self.values - other.values, self.first, self.second)


def placements(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return v [n] of the a and w [m] of the b. Both have the mean A. Time is that of sorting."""
    return 1 - _below(a, b), _below(b, a)


def _below(values: Floats, others: Floats) -> Floats:
    """Return for each value the share of the others that are smaller, with ties as one half, [n]."""
    ordered = np.sort(others)
    found: Floats = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")) / 2
    return found / len(others)


def auc(a: Floats, b: Floats) -> float:
    """Return the area under the curve, A, of two samples [n] and [m].

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    return float(_below(b, a).mean())


def standard_error(influence: Influence) -> float | None:
    """√V with V = G / (G − 1) Σ ψ_p ψ_q over all pairs of pairs p, q that share a sentence; None with one sentence.

    With S_c the sum over the pairs that have the sentence c, Σ_c S_c² counts p, q once for each sentence they share; so
    what shares both is taken off once. V may come out at 0 or below, and with FEW sentences it is too small on average:
    then the one by the sentences of the first words alone counts if it is larger, which errs to the safe side.
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
    """Return the estimate with a t interval of G − 1 degrees of freedom, where ``n`` is G, the number of sentences.

    With ``share`` the estimate is between 0 and 1, and so is the interval, which is taken on the log odds. There are no
    bounds with one sentence, and none for a share of exactly 0 or 1, whose spread the data do not determine.
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
