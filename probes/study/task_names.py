"""The tasks of a cell: what they are called, and settings of all tasks that a task hides by its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from probes.transfer.tasks import TASKS
from synthlang.config import override
from synthlang.errors import InputError, did_you_mean

ROOT = "transfer."
Keys = tuple[str, ...]


def common_settings(assignments: Sequence[str]) -> dict[Keys, Any]:
    """What ``--set transfer.KEY=VALUE`` sets of all tasks: keys below ``transfer`` → value."""
    found: dict[Keys, Any] = {}
    for assignment in assignments:
        if assignment.startswith(ROOT):
            found |= dict(_leaves(override({}, [assignment], f"{ROOT}train_items=300")["transfer"]))
    return found


def _leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*keys, str(key)))
    else:
        yield keys, value


def check_task(name: str, own: Mapping[str, Any], common: Mapping[str, Any]) -> None:
    """Raise InputError for a task that is called like none and does not say which it is."""
    if "task" in own or "task" in common:
        return
    hint = did_you_mean(name, list(TASKS))
    raise InputError(f"tasks.{name}: {hint}{name} is none of {', '.join(TASKS)}; name one with tasks.{name}.task")


def check_hidden(name: str, own: Mapping[str, Any], common: Mapping[Keys, Any]) -> None:
    """Raise InputError where a task has a value of its own in the place of one that was set for all tasks."""
    for keys, value in common.items():
        held: Any = own
        for key in keys:
            held = held.get(key, _NOTHING) if isinstance(held, Mapping) else _NOTHING
        if held is not _NOTHING and held != value:
            key = ".".join(keys)
            raise InputError(f"transfer.{key} does not reach tasks.{name}, which has its own: set tasks.{name}.{key}")


_NOTHING = object()
