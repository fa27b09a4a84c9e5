"""The rank correlation of alignment with Δ over the conditions of a study, the one that claims are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.report.numbers import plural
from probes.statistics import Correlation
from probes.study.judged.correlated import clustered, sharing_no_model
from probes.study.report.scores import Condition, mean_of


@dataclass(frozen=True)
class Correlated:
    """A correlation, of how many models, and whether conditions were taken together since they share some."""

    found: Correlation
    models: int
    share: bool

    @property
    def conditions(self) -> str:
        """What its n is of."""
        return plural(self.found.clusters, "condition") + (" that share no model" if self.share else "")


def correlate(conditions: Sequence[Condition], which: str) -> Correlated:
    """Spearman correlation of an alignment column with Δ: a pair for each model of a condition, those of a condition a
    cluster, and those of conditions that have models in common, as where they differ in fine-tuning."""
    pairs, owners = list[tuple[float, float]](), list[int]()
    models: list[set[str]] = [set() for _ in conditions]
    for number, condition in enumerate(conditions):
        for place, cluster in enumerate(condition.clusters):
            x, y = (mean_of(getattr(row, column) for row in cluster) for column in (which, "delta"))
            if x is not None and y is not None:
                pairs.append((x, y))
                owners.append(number)
                first = cluster[0]
                models[number].add(f"{first.pretrain} {first.adjust}".strip() or f"{number} {place}")
    clusters = sharing_no_model(models)
    found = clustered(pairs, [str(clusters[owner]) for owner in owners])
    return Correlated(found, len(set().union(*models)), any(clusters[owner] != owner for owner in owners))
