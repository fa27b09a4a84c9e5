"""What is other in the settings of a study than when its folder was written, in a few words for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from probes.report.numbers import first_few

APART = ("title", "paper", "claims", "scale", "keep")
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
