"""The correlation over conditions that claims and reports share: the models of a condition are one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import atanh, tanh

import numpy as np
from scipy import stats

from probes.statistics import Correlation, CorrelationKind, Interval, correlation
from probes.study.judged.claims import Relation
from probes.study.judged.estimates import LEVEL, SAME, Outcome
from probes.study.judged.observed import Replicates, Series

KEY = 0
"""Key of the random permutations and resamples."""
RESAMPLED = 60
"""Of more conditions than this p is Student's and the interval Fisher's: resampling many takes seconds."""


def clustered(
    pairs: Sequence[Sequence[float]],
    conditions: Sequence[str],
    kind: CorrelationKind = "spearman",
    blocks: Sequence[str] | None = None,
) -> Correlation:
    """Correlation of (x, y) ``pairs`` [n], each a model of one of the ``conditions`` [n].

    Permutation and bootstrap move conditions as wholes; the order of the pairs changes nothing. Of more than RESAMPLED
    conditions in one block p is that of Student's t and the interval Fisher's with the variance of Bonett & Wright
    (2000), (1 + ρ² / 2) / (n − 3), n the number of conditions: with that many and one model each they agree with what
    resampling finds.
    """
    held: dict[str, list[tuple[str, float, float]]] = {}
    for number, (name, (left, right)) in enumerate(zip(conditions, pairs, strict=True)):
        held.setdefault(name, []).append((blocks[number] if blocks is not None else "", left, right))
    ordered = [(i, *row) for i, rows in enumerate(sorted(sorted(rows) for rows in held.values())) for row in rows]
    x, y = (np.array([row[side] for row in ordered], np.float64) for side in (2, 3))
    count = len(held)
    if count <= RESAMPLED or blocks is not None or kind == "kendall" or np.ptp(x) == 0 or np.ptp(y) == 0:
        return correlation(x, y, KEY, kind, blocks=[row[1] for row in ordered], clusters=[row[0] for row in ordered])
    r = float((stats.spearmanr(x, y) if kind == "spearman" else stats.pearsonr(x, y)).statistic)
    found = Correlation(kind, len(x), 1, count, r)
    if abs(r) >= 1 - 1e-12:
        return replace(found, p=0.0, low=r, high=r)
    p = 2 * float(stats.t.sf(abs(r) * ((count - 2) / (1 - r**2)) ** 0.5, count - 2))
    half = float(stats.norm.ppf(0.975)) * ((1 + r**2 / 2) / (count - 3)) ** 0.5
    return replace(found, p=p, low=tanh(atanh(r) - half), high=tanh(atanh(r) + half))


def outcome_of_correlation(ours: Interval | None, p: float | None, relation: Relation) -> Outcome:
    """Whether a correlation is on the side of 0 that ``relation`` says; of a perfect one ``p`` decides."""
    if ours is None or ours.low is None or ours.high is None:
        return "open"
    perfect = abs(ours.mean) > 1 - SAME
    if perfect and (p is None or p > 1 - LEVEL):
        return "open"
    if not perfect and ours.low <= 0 <= ours.high:
        return "open"
    return "holds" if (ours.mean > 0) == (relation == "greater") else "fails"


def by_axes(series: Series, axes: Sequence[str]) -> dict[tuple[str, ...], dict[str, float]]:
    """Labels of the ``axes`` → model → mean over the other axes and the seeds of fine-tuning that all of these have.

    Conditions without one of the axes are left out.
    """
    held: dict[tuple[str, ...], list[Replicates]] = {}
    for condition, parts in series.items():
        labels = dict(condition)
        if all(axis in labels for axis in axes):
            held.setdefault(tuple(labels[axis] for axis in axes), []).extend(parts.values())
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for key, replicates in held.items():
        models: dict[str, list[float]] = {}
        for one in set(replicates[0]).intersection(*replicates[1:]):
            models.setdefault(", ".join(one[0]), []).append(sum(part[one] for part in replicates) / len(replicates))
        found[key] = {model: sum(values) / len(values) for model, values in sorted(models.items())}
    return found
