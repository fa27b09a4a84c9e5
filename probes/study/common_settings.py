"""Settings that the cells of a study share, and changes of settings between two starts of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pydantic

from probes.study.cell import PARTS, RECORDED_AS, Cell
from synthlang.wording import changes, first_few

DIFFERS = "(differs)"
"""Placeholder for a value that differs between cells."""
_ABSENT = object()


def common_settings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the settings of the cells by part (``pretrain``, ``tasks`` …) as JSON values.

    A setting that differs between cells has the value ``DIFFERS``. Renamed sections have their former names, as in
    study.json. There must be at least one cell.
    """
    names = (*PARTS, "model")
    parts = {RECORDED_AS.get(name, name): _of_all(getattr(cell, name) for cell in cells) for name in names}
    if isinstance(parts["tuned"], Mapping):
        parts["tuned"] = {**parts["tuned"], "seed": _of_all(cell.finetuned_seed for cell in cells)}
    for part in ("tasks", "probes"):
        named: list[Mapping[str, pydantic.BaseModel]] = [getattr(cell, part) for cell in cells]
        of_part = dict.fromkeys(name for configs in named for name in configs)
        parts[part] = {name: _of_all(configs.get(name) for configs in named) for name in of_part}
    return {part: settings for part, settings in parts.items() if settings not in (None, {})}


def _of_all(configs: Iterable[pydantic.BaseModel | str | int | None]) -> Any:
    """Merge the settings of configs, with ``DIFFERS`` where they differ. A repeated config is read once."""
    distinct = {id(config): config for config in configs}.values()
    return reduce(
        _common,
        (c.model_dump(mode="json", round_trip=True) if isinstance(c, pydantic.BaseModel) else c for c in distinct),
    )


def _common(one: Any, other: Any) -> Any:
    if one is _ABSENT or other is _ABSENT:
        return DIFFERS
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {key: _common(one.get(key, _ABSENT), other.get(key, _ABSENT)) for key in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_common(*pair) for pair in zip(one, other, strict=True)]
    return one if one == other and isinstance(one, bool) == isinstance(other, bool) else DIFFERS


APART = ("title", "paper", "claims", "planned", "compare", "scale", "pool", "learned", "thresholds", "keep")
"""Keys of a study that do not affect its cells."""
SHOWN = 5
"""Maximum number of differences to show."""


def describe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the first SHOWN changes of settings as text, such as ``pretrain.steps: 20 → 40``, and count the others.

    Keys in APART are not compared. If no setting has changed, the text names a base file as the cause.
    """
    found = list(changes(_compared(before), _compared(now)))
    return first_few(found, SHOWN, "; ") if found else "a base file has changed"


def _compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    # null is equal to a key that an earlier version did not have
    return {key: value for key, value in settings.items() if key not in APART and value is not None}
