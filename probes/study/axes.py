"""An axis of a grid: a dotted key with a list of values, or a name with labels that each set any number of keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any
from unicodedata import category

from pretrain.config import PretrainConfig
from probes.study.labels import short_key
from synthlang.catalogue import BASE

AXIS_ROOTS = ("source", "start", "pretrain", "second", "model", "adjust", "tuned", "transfer", "tasks", "probes")
RESERVED = ("task", "layer", "probe")
"""Names of no axis: results have these beside the labels of their cells, and claims look them up under these names."""

Labels = Mapping[str, str]
"""Value of a dotted key, as JSON → label."""


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


def is_key(axis: str) -> bool:
    """Whether an axis is a dotted key (or ``source``, ``model``) and not a name with labels."""
    return axis.partition(".")[0] in AXIS_ROOTS


def named(known: Iterable[Choice], value: Any) -> list[Choice]:
    """Those of the choices of an axis that ``value`` means: with this value, or else with this label."""
    held = list(known)
    found = [choice for choice in held if _is(choice.value, value)]
    return found or [choice for choice in held if choice.label == value]


def _is(one: Any, other: Any) -> bool:
    """Whether two values are the same: numbers as such, 10 is 10.0, others as JSON."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return bool(one == other) if numbers else _text(one) == _text(other)


def choices(axis: str, values: Any, labels: Labels) -> list[Choice]:
    """The choices of a sound axis; ``labels`` are those of the values of a dotted key."""
    if isinstance(values, dict):
        return [labelled(axis, label, changes) for label, changes in values.items()]
    return [plain(axis, value, labels) for value in values]


def labelled(axis: str, label: Any, changes: Mapping[str, Any]) -> Choice:
    """A label of a named axis."""
    settings = tuple(Setting(axis, key, value) for key, value in changes.items())
    return Choice(axis, str(label), str(label), settings, label)


def plain(key: str, value: Any, labels: Labels) -> Choice:
    """A value of a dotted key; ``labels`` are those of all of its values."""
    label = labels[_text(value)]
    is_name = isinstance(value, str) or label != _text(value)
    shown = label if is_name else f"{short_key(key)}={label}"
    return Choice(key, label, shown, (Setting(key, key, value),), value)


def labels_of(key: str, values: Iterable[Any]) -> Labels:
    """Value as JSON → its label; where another value would have the same one, a longer one.

    Results are grouped by labels, so values of one label would be averaged as if they were seeds. The longer labels are
    the paths of base files, without the ending, and then the JSON, which no other value has.
    """
    forms = {_text(value): (label_of(key, value), _path_of(key, value), _text(value)) for value in values}
    chosen = dict.fromkeys(forms, 0)
    while True:
        labels = {text: forms[text][form] for text, form in chosen.items()}
        count = Counter(labels.values())
        alike = [text for text, label in labels.items() if count[label] > 1]
        if not alike:
            return labels
        chosen |= {text: min(chosen[text] + 1, 2) for text in alike}


def label_of(key: str, value: Any) -> str:
    """A value as text: the ``name`` of a mapping that has one, base files without folder and ending."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return str(value["name"])
    if _is_base(key):
        return "+".join(PurePath(str(name)).stem for name in (value if isinstance(value, list) else [value]))
    return value if isinstance(value, str) else _text(value)


def _path_of(key: str, value: Any) -> str:
    """Base files with their folders; any other value as it is labelled."""
    if not _is_base(key):
        return label_of(key, value)
    files = [PurePath(str(name)) for name in (value if isinstance(value, list) else [value])]
    return "+".join((file.parent / file.stem).as_posix() for file in files)


def _is_base(key: str) -> bool:
    return BASE in key.split(".")[1:]


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
    check_name(axis)
    if len({str(label) for label in labels}) < len(labels):
        raise ValueError(f"axis {axis!r} has a label twice")
    for label, changes in labels.items():
        check_label(axis, label, changes)


def check_name(axis: str) -> None:
    """Raise ValueError for no name, or one that results have for something else."""
    if not axis.strip():
        raise ValueError(f"axis {axis!r} has no name")
    if axis in RESERVED:
        raise ValueError(f"axis {axis!r}: results have a {axis} beside the labels of a cell; call the axis otherwise")


def check_label(axis: str, label: Any, changes: Any) -> None:
    """Raise ValueError for a label that cannot be written, or does not set dotted keys."""
    if not str(label).strip():
        raise ValueError(f"axis {axis!r} has an empty label, which results take for none")
    if any(category(sign) == "Cc" for sign in str(label)):
        raise ValueError(f"axis {axis!r}, label {label!r}: has a control character, which results cannot show")
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
