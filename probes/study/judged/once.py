"""A run that several studies have under labels of their own counts once in a comparison.

Two studies may call one run by other labels, as where one of them has an axis more; its conditions would then be two. A
condition is **the same as another** where on every side all its runs are among those of the other, and no study has a
run under the labels of both: a study that lists a run twice means two conditions, and they stay two, unless those of
another study stand for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.study.judged.observed import Condition, Measured, Replicates, Series

Parts = Mapping[Condition, Replicates]


def once(sides: Sequence[Series], conditions: Sequence[Condition]) -> tuple[tuple[Series, ...], list[Condition]]:
    """The sides and those ``conditions`` of all of them without any that is the same as another, of more runs.

    Of equal ones the one of fewer labels stays, so the order of the studies does not matter.
    """
    sides = [{condition: _parts_once(parts) for condition, parts in side.items()} for side in sides]
    held = [{condition: _runs(parts) for condition, parts in side.items()} for side in sides]
    kept: list[Condition] = []
    for one in sorted(conditions, key=lambda c: (-sum(len(side[c]) for side in held), len(c), c)):
        if not any(all(_covers(side[other], side[one]) for side in held) for other in kept):
            kept.append(one)
    left = tuple(
        {c: parts for c, parts in side.items() if c in kept or not any(_covers(runs[k], runs[c]) for k in kept)}
        for side, runs in zip(sides, held, strict=True)
    )
    return left, [condition for condition in conditions if condition in kept]


def _parts_once(parts: Parts) -> dict[Condition, Replicates]:
    """Within a condition, too; parts of the same axes are labels that are averaged, and stay."""
    kept: list[Condition] = []
    held = {part: _runs({part: one}) for part, one in parts.items()}
    for one in sorted(parts, key=lambda part: (-len(held[part]), len(part), part)):
        if not any(_axes(other) != _axes(one) and _covers(held[other], held[one]) for other in kept):
            kept.append(one)
    return {part: one for part, one in parts.items() if part in kept}


def _runs(parts: Parts) -> dict[tuple[str, ...], int]:
    """Run → the studies that have it here; none where a run is not known."""
    found: dict[tuple[str, ...], int] = {}
    for one in parts.values():
        if not isinstance(one, Measured) or not one.runs:
            return {}
        for name, studies in one.runs.items():
            found[name] = found.get(name, 0) | studies
    return found


def _covers(more: Mapping[tuple[str, ...], int], less: Mapping[tuple[str, ...], int]) -> bool:
    return bool(less) and all(not more.get(name, studies) & studies for name, studies in less.items())


def _axes(part: Condition) -> set[str]:
    return {axis for axis, _ in part}
