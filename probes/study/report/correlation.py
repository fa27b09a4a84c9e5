"""The rank correlation of alignment with Δ over the conditions of a study, the one that claims are judged by."""

from __future__ import annotations

from collections.abc import Sequence

from probes.study.judged.correlated import Correlated, Pair, correlate_pairs
from probes.study.judged.estimates import mean_of
from probes.study.judged.observed import known_by
from probes.study.report.scores import Condition, grouped


def correlate(conditions: Sequence[Condition], which: str) -> Correlated:
    """Spearman correlation of an alignment column with Δ, a pair for each model of a condition, which is a cell."""
    pairs = list[Pair]()
    for number, condition in enumerate(conditions):
        for cell in grouped(condition.rows, lambda row: row.cell).values():
            x, y = (mean_of(row.values.get(column) for row in cell) for column in (which, "delta"))
            if x is not None and y is not None:
                known = {known_by(row.pretrain, row.adjust, row.pretrain_seed) for row in cell}
                pairs.append(Pair((str(number),), x, y, frozenset(model for model in known if model)))
    return correlate_pairs(pairs)
