"""Settings that the cells of a study share, and changes of settings between two starts of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pydantic

from probes.report.numbers import first_few
from probes.study.cell import PARTS, RECORDED_AS, Cell

DIFFERS = "(differs)"
"""Placeholder for a value that differs between cells."""
_ABSENT = object()


def common_settings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the settings of the cells by part (``pretrain``, ``tasks`` …) as JSON.

    A setting that differs between cells has the value ``DIFFERS``.
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


APART = ("title", "paper", "claims", "planned", "compare", "scale", "pool", "learned", "keep")
"""Keys of a study that do not affect its cells."""
SHOWN = 5
"""Maximum number of differences to show."""
LONG = 40
"""Maximum length of a shown value in characters."""


def describe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the changes of settings as text, such as ``seeds: 1 → 3 values; pretrain.steps: 20 → 40``."""
    found = list(_differences(_compared(before), _compared(now), ""))
    if not found:
        return "a base file has changed"
    return first_few(found, SHOWN, "; ")


def _compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    # null is equal to a key that an earlier version did not have
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
