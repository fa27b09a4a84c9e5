"""Every setting of a study in full, what base files and defaults say with it: what all its cells have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pydantic

from probes.study.cell import Cell

PARTS = "start", "pretrain", "second", "model", "adjust", "tuned"
DIFFERS = "(differs)"
"""In the place of a value that is not the same in all cells."""
_ABSENT = object()


def common_settings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Part of a cell (``pretrain``, ``tasks`` …) → its settings as JSON; parts that no cell has are left out."""
    parts = {part: _of_all(getattr(cell, part) for cell in cells) for part in PARTS}
    if isinstance(parts["tuned"], Mapping):
        parts["tuned"] = {**parts["tuned"], "seed": _of_all(cell.tuned_seed for cell in cells)}
    for part in ("tasks", "probes"):
        held: list[Mapping[str, pydantic.BaseModel]] = [getattr(cell, part) for cell in cells]
        names = dict.fromkeys(name for one in held for name in one)
        parts[part] = {name: _of_all(one.get(name) for one in held) for name in names}
    return {part: settings for part, settings in parts.items() if settings not in (None, {})}


def _of_all(configs: Iterable[pydantic.BaseModel | str | int | None]) -> Any:
    """What configs have in common; cells share them, so each is looked at once."""
    once = {id(config): config for config in configs}.values()
    return reduce(
        _common, (c.model_dump(mode="json", round_trip=True) if isinstance(c, pydantic.BaseModel) else c for c in once)
    )


def _common(one: Any, other: Any) -> Any:
    if one is _ABSENT or other is _ABSENT:
        return DIFFERS
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {key: _common(one.get(key, _ABSENT), other.get(key, _ABSENT)) for key in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_common(*pair) for pair in zip(one, other, strict=True)]
    return one if one == other and isinstance(one, bool) == isinstance(other, bool) else DIFFERS
