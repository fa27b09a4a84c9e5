"""An axis of a grid: a dotted key with a list of values, or a name with labels that each set any number of keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

from pretrain.config import PretrainConfig
from probes.study.labels import short_key
from synthlang.config import BASE

AXIS_ROOTS = ("source", "start", "pretrain", "second", "model", "adjust", "tuned", "transfer", "tasks", "probes")


@dataclass(frozen=True)
class Setting:
    """One change of a cell: the value at a dotted key, and the axis it comes from."""

    axis: str
    key: str
    value: Any


@dataclass(frozen=True)
class Choice:
    """A value of an axis: its label, how it shows in the name of a cell, what it sets; ``value`` as the YAML has it."""

    axis: str
    label: str
    shown: str
    settings: tuple[Setting, ...]
    value: Any

    @property
    def is_plain(self) -> bool:
        """Whether its axis is a dotted key (or ``source``, ``model``) and not a name with labels."""
        return self.axis.split(".")[0] in AXIS_ROOTS

    def is_named(self, value: Any) -> bool:
        """Whether ``value`` means this choice: it is its label or its value."""
        return value == self.label if isinstance(value, str) else _text(value) == _text(self.value)


def choices(axis: str, values: Any) -> list[Choice]:
    """The choices of a sound axis."""
    if isinstance(values, dict):
        return [labelled(axis, label, changes) for label, changes in values.items()]
    return [plain(axis, value) for value in values]


def labelled(axis: str, label: Any, changes: Mapping[str, Any]) -> Choice:
    """A label of a named axis."""
    settings = tuple(Setting(axis, key, value) for key, value in changes.items())
    return Choice(axis, str(label), str(label), settings, label)


def plain(key: str, value: Any) -> Choice:
    """A value of a dotted key."""
    label = label_of(key, value)
    is_name = isinstance(value, str) or label != _text(value)
    shown = label if is_name else f"{short_key(key)}={label}"
    return Choice(key, label, shown, (Setting(key, key, value),), value)


def label_of(key: str, value: Any) -> str:
    """A value as text: the ``name`` of a mapping that has one, base files without folder and ending."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return str(value["name"])
    if BASE in key.split(".")[1:]:
        return "+".join(PurePath(str(name)).stem for name in (value if isinstance(value, list) else [value]))
    return value if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_axis(part: str, axis: str, values: Any) -> None:
    """Raise ValueError for what is no axis."""
    if isinstance(values, dict):
        _check_labels(axis, values)
    elif not isinstance(values, list):
        raise ValueError(f"{part}.{axis}: must be a list of values, or labels with what each sets")
    else:
        check_key(axis, f"axis {axis!r}")
        twice = [text for text, count in Counter(map(_text, values)).items() if count > 1]
        if twice and part == "product":  # the lists of zip are walked together
            raise ValueError(f"axis {axis!r} has {twice[0]} twice")
    if not values:
        raise ValueError(f"axis {axis!r} has no values")


def _check_labels(axis: str, labels: Mapping[Any, Any]) -> None:
    if "." in axis or axis in AXIS_ROOTS:
        raise ValueError(f"axis {axis!r} must be a list of values; an axis with labels has a name of its own, no key")
    if len({str(label) for label in labels}) < len(labels):
        raise ValueError(f"axis {axis!r} has a label twice")
    for label, changes in labels.items():
        check_label(axis, label, changes)


def check_label(axis: str, label: Any, changes: Any) -> None:
    """Raise ValueError for a label that does not set dotted keys."""
    if not isinstance(changes, dict):
        raise ValueError(f"axis {axis!r}, label {label!r}: must be a mapping of dotted keys to values")
    for key in changes:
        check_key(str(key), f"axis {axis!r}, label {label!r}: {key!r}")


def check_key(key: str, what: str) -> None:
    """Raise ValueError for a key that no cell can have."""
    parts = key.split(".")
    if parts[0] not in AXIS_ROOTS:
        raise ValueError(f"{what} must start with one of {', '.join(AXIS_ROOTS)}{_hint(parts)}")
    if not all(parts):
        raise ValueError(f"{what} is no dotted key")
    if parts[0] in ("source", "model") and len(parts) > 1:
        raise ValueError(f"{what}: {parts[0]} is one value, it has no key {parts[1]!r}")


def _hint(parts: list[str]) -> str:
    """What may have been meant by a key with another start."""
    if len(parts) == 1:
        return " (a name without a dot needs labels)"
    if parts[0] in PretrainConfig.model_fields:
        return f"; did you mean {'.'.join(['pretrain', *parts])}?"
    near = get_close_matches(parts[0], AXIS_ROOTS, 1)
    return f"; did you mean {'.'.join([*near, *parts[1:]])}?" if near else ""
