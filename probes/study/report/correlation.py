"""The rank correlation of alignment with Δ over the conditions of a study, the one that claims are judged by."""

from __future__ import annotations

from collections.abc import Sequence

from probes.statistics import Correlation
from probes.study.judged.correlated import clustered
from probes.study.report.scores import Condition, mean_of


def correlate(conditions: Sequence[Condition], which: str) -> Correlation:
    """Spearman correlation of an alignment column with Δ: a pair for each model, those of a condition a cluster."""
    pairs, names = list[tuple[float, float]](), list[str]()
    for number, condition in enumerate(conditions):
        for cluster in condition.clusters:
            x, y = (mean_of(getattr(row, column) for row in cluster) for column in (which, "delta"))
            if x is not None and y is not None:
                pairs.append((x, y))
                names.append(str(number))
    return clustered(pairs, names)
