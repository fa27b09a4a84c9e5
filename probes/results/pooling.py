"""Results of several studies in one table, and the rule by which a run counts once.

The column ``run`` identifies a run by the fingerprints of its stages, and is empty if they are not known. The rule has
two parts:

1. If several studies have a run under the same labels up to seeds, the rows of the first study stay (``pooled``).
2. A run can have other labels in another study, for example if that study has one more axis. Both rows stay, so that
   claims find the run by either label. A comparison leaves out a condition if another condition has all of its runs
   (``drop_shared_runs``).

The second part also holds within a study. Conditions that differ only in settings on which a measure does not depend
are one condition for that measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from probes.results.labels import unseeded
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.read import concat, labels_of

Condition = tuple[tuple[str, str], ...]
"""Sorted pairs (axis, label)."""
Runs = frozenset[str]
Part = TypeVar("Part", bound=Mapping[Any, float])
"""Values of replicates. The attribute ``runs`` holds the names of their runs. It is empty if a run is not known."""


def pooled(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the tables of studies, without the rows of a run that an earlier study has under the same labels.

    Labels of seeds do not count. The earlier study must also have the run for the same task, except for alignments,
    which do not depend on the task. Rows without a known run all stay. There must be at least one table.
    """
    if len(tables) == 1:
        return tables[0]
    whole = concat(tables)
    study = pd.Series(np.repeat(range(len(tables)), [len(table) for table in tables]), whole.index)
    task = whole["task"].astype(str).where(~whole["measure"].isin(list(ALIGNMENT_MEASURES)), "")
    texts = {labels: unseeded(labels_of(labels)) for labels in whole["labels"].unique()}
    place = whole["labels"].map(texts.__getitem__).astype(str)
    first = study.groupby([whole["run"].astype(str), task, place]).transform("min")
    return whole[(whole["run"] == "") | (first == study)]


def drop_shared_runs(
    sides: Sequence[Mapping[Condition, Mapping[Condition, Part]]], conditions: Sequence[Condition]
) -> tuple[tuple[dict[Condition, dict[Condition, Part]], ...], list[Condition]]:
    """Leave out each condition of a comparison whose runs also belong to another condition, on every side.

    If two conditions have the same runs, the one with fewer labels stays, so the order of the studies does not matter.
    A condition with a run that is not known stays. First, each condition loses the parts whose runs also belong to
    another of its parts with other axes.

    Args:
        sides: The conditions of each side of the comparison, and for each condition the parts that it averages.
        conditions: The conditions that all sides have.

    Returns:
        The sides and the conditions that stay.
    """
    parted = [{condition: _without_shared_parts(parts) for condition, parts in side.items()} for side in sides]
    runs = [{condition: _runs_of(parts.values()) for condition, parts in side.items()} for side in parted]
    stay: list[Condition] = []
    for one in sorted(conditions, key=lambda c: (-sum(len(of[c]) for of in runs), len(c), c)):
        if not any(all(_among(of[one], of[other]) for of in runs) for other in stay):
            stay.append(one)
    left = tuple(
        {c: parts for c, parts in side.items() if c in stay or not any(_among(of[c], of[k]) for k in stay)}
        for side, of in zip(parted, runs, strict=True)
    )
    return left, [condition for condition in conditions if condition in stay]


def _without_shared_parts(parts: Mapping[Condition, Part]) -> dict[Condition, Part]:
    """Drop each part of a condition whose runs also belong to another part. Parts with the same axes stay."""
    stay: list[Condition] = []
    axes = {part: {axis for axis, _ in part} for part in parts}
    runs = {part: _runs_of([one]) for part, one in parts.items()}
    for one in sorted(parts, key=lambda part: (-len(runs[part]), len(part), part)):
        if not any(axes[other] != axes[one] and _among(runs[one], runs[other]) for other in stay):
            stay.append(one)
    return {part: one for part, one in parts.items() if part in stay}


def _runs_of(parts: Iterable[Part]) -> Runs:
    """Return the runs of all parts, or an empty set if the runs of any part are not known."""
    runs: list[Runs] = [getattr(one, "runs", frozenset()) for one in parts]
    return frozenset().union(*runs) if all(runs) else frozenset()


def _among(less: Runs, more: Runs) -> bool:
    return bool(less) and less <= more
