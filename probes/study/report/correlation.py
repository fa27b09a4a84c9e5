"""The rank correlation of alignment with Δ over the cells of a study."""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, tanh

from scipy import stats

from probes.statistics import RankCorrelation, rank_correlation
from probes.study.report.scores import CellScore

CORRELATION_KEY = 0
"""Key of the random permutations and resamples of the report's correlations."""
RESAMPLED = 60
"""Of more cells than this a correlation has Student's p and Fisher's interval: resampling many takes seconds."""


def correlate(scores: Sequence[CellScore], which: str) -> RankCorrelation:
    """Spearman correlation of an alignment column with Δ over the cell means that have both.

    Of more than RESAMPLED cells p is that of Student's t and the interval Fisher's with the variance of Bonett &
    Wright (2000), (1 + ρ² / 2) / (n − 3): with that many they agree with what resampling finds.
    """
    pairs = [(a, d) for s in scores if (a := s.mean(which)) is not None and (d := s.mean("delta")) is not None]
    x, y = [a for a, _ in pairs], [d for _, d in pairs]
    if len(pairs) <= RESAMPLED or len(set(x)) == 1 or len(set(y)) == 1:
        return rank_correlation(x, y, CORRELATION_KEY)
    found = stats.spearmanr(x, y)
    rho, z = float(found.statistic), float(stats.norm.ppf(0.975))
    if abs(rho) == 1:
        return RankCorrelation("spearman", len(x), rho, float(found.pvalue))
    half = z * ((1 + rho**2 / 2) / (len(x) - 3)) ** 0.5
    low, high = tanh(atanh(rho) - half), tanh(atanh(rho) + half)  # Fisher's scale
    return RankCorrelation("spearman", len(x), rho, float(found.pvalue), False, low, high)
