"""The settings of a study, told: what its cells have in common, and what has changed since its folder was written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pydantic

from probes.report.numbers import first_few
from probes.study.cell import RECORDED_AS, Cell

PARTS = "start", "pretrain", "second", "model", "adjust", "tuned"
"""Parts of a cell by the names that they have in ``study.json``."""
CELL_FIELDS = {recorded: name for name, recorded in RECORDED_AS.items()}
DIFFERS = "(differs)"
"""In the place of a value that is not the same in all cells."""
_ABSENT = object()


def common_settings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Part of a cell (``pretrain``, ``tasks`` …) → its settings as JSON; parts that no cell has are left out."""
    parts = {part: _of_all(getattr(cell, CELL_FIELDS.get(part, part)) for cell in cells) for part in PARTS}
    if isinstance(parts["tuned"], Mapping):
        parts["tuned"] = {**parts["tuned"], "seed": _of_all(cell.finetuned_seed for cell in cells)}
    for part in ("tasks", "probes"):
        named: list[Mapping[str, pydantic.BaseModel]] = [getattr(cell, part) for cell in cells]
        names = dict.fromkeys(name for configs in named for name in configs)
        parts[part] = {name: _of_all(configs.get(name) for configs in named) for name in names}
    return {part: settings for part, settings in parts.items() if settings not in (None, {})}


def _of_all(configs: Iterable[pydantic.BaseModel | str | int | None]) -> Any:
    """What configs have in common; cells share them, so each is looked at once."""
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


APART = ("title", "paper", "claims", "scale", "pool", "learned", "keep")
"""Settings that change no cell."""
SHOWN = 5  # differences
LONG = 40  # characters of a value


def told_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The differences of two studies' settings, as ``seeds: 1 → 3 values; pretrain.steps: 20 → 40``."""
    found = list(_differences(_told(before), _told(now), ""))
    if not found:
        return "what base files say has changed"
    return first_few(found, SHOWN, "; ")


def _told(settings: Mapping[str, Any]) -> dict[str, Any]:
    # null says nothing, as a key that an earlier version had not
    return {key: value for key, value in settings.items() if key not in APART and value is not None}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], place: str) -> Iterator[str]:
    for key in {**before, **now}:
        where = f"{place}{key}"
        if key not in before or key not in now:
            yield f"{where} is {'new' if key in now else 'gone'}"
        elif isinstance(before[key], Mapping) and isinstance(now[key], Mapping):
            yield from _differences(before[key], now[key], f"{where}.")
        elif before[key] != now[key]:
            yield f"{where}: {_change(before[key], now[key])}"


def _change(before: Any, now: Any) -> str:
    if isinstance(before, list) and isinstance(now, list) and len(before) != len(now):
        return f"{len(before)} → {len(now)} values"
    return f"{_shown(before)} → {_shown(now)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONG else f"{text[:LONG]}…"
