"""Is a reordered language closer to its superstrate? The share of dependents before their head, by relation.

For each (head's tag, arc) with enough dependents in both languages: which share stands before the head in
the parent, in the reordered parent and in the target; then the mean of |share − share in the target|.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthlang.corpus import Corpus
from synthlang.order.items import CLASS_OF_HEAD
from synthlang.transforms.reorder import Reorder
from synthlang.trees import Forest

Pair = tuple[str, str]
ENOUGH = 20


@dataclass(frozen=True)
class Shares:
    """For each (head's tag, arc): how many dependents stand before the head, and how many there are."""

    counts: dict[Pair, tuple[int, int]]

    @staticmethod
    def of(batches: Iterable[Corpus]) -> Shares:
        """Count the dependents of the heads that order models order."""
        counts: dict[Pair, list[int]] = {}
        for corpus in batches:
            forest = Forest.of(corpus)
            upos, arc = corpus.columns["upos"].values(), corpus.columns["deprel"].values()
            for row in np.flatnonzero(forest.parent >= 0).tolist():
                head = int(forest.parent[row])
                if upos[head] in CLASS_OF_HEAD:
                    entry = counts.setdefault((upos[head], arc[row]), [0, 0])
                    entry[0] += row < head
                    entry[1] += 1
        return Shares({pair: (before, total) for pair, (before, total) in counts.items()})

    def share(self, pair: Pair) -> float:
        """The share before the head."""
        before, total = self.counts[pair]
        return before / total


def closeness(
    parent: Iterable[Corpus], target: Iterable[Corpus], transform: Reorder, key: int = 0, enough: int = ENOUGH
) -> dict[str, Any]:
    """Distances to the ``target`` before and after the transform, over relations seen ``enough`` times in both.

    ``pairs``: {head arc parent reordered target count}; ``before`` and ``after``: mean absolute
    difference; ``before_weighted`` and ``after_weighted``: weighted by the parent's counts.
    """
    batches = list(parent)
    moved = [transform.rewrite(batch, key).apply(batch) for batch in batches]
    source, after, goal = Shares.of(batches), Shares.of(moved), Shares.of(target)
    shared = [p for p in source.counts if min(source.counts[p][1], goal.counts.get(p, (0, 0))[1]) >= enough]
    rows: list[dict[str, Any]] = []
    gaps: list[list[float]] = []
    for head, arc in sorted(shared, key=lambda p: (-source.counts[p][1], p)):
        pair = (head, arc)
        values = {"parent": source.share(pair), "reordered": after.share(pair), "target": goal.share(pair)}
        gaps.append([values["parent"] - values["target"], values["reordered"] - values["target"]])
        rows.append({"head": head, "arc": arc, "count": source.counts[pair][1], **values})
    weights = np.asarray([row["count"] for row in rows], dtype=np.float64)
    result: dict[str, Any] = {"relations": len(rows), "pairs": rows}
    for name, gap in zip(("before", "after"), np.abs(np.asarray(gaps).reshape(-1, 2)).T, strict=True):
        result[name] = round(float(gap.mean()), 4) if rows else None
        result[f"{name}_weighted"] = round(float(np.average(gap, weights=weights)), 4) if rows else None
    return result
