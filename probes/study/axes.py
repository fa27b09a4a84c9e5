"""Axes of a grid. An axis is a dotted key with its values, or a name with labels that set any number of keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any
from unicodedata import category

from pretrain.config import PretrainConfig
from probes.results.labels import short_key
from synthlang.catalogue import BASE
from synthlang.config_errors import show_value
from synthlang.errors import InputError, did_you_mean

AXIS_ROOTS = (
    *("source", "init_from", "pretrain", "target_model", "model", "adjust", "finetuned", "transfer", "tasks", "probes"),
)
RENAMED = {"start": "init_from", "second": "target_model", "tuned": "finetuned"}
"""Former name of a section → present name. Studies and keys of axes may use both."""
KNOWN_ROOTS = (*AXIS_ROOTS, *RENAMED)
RESERVED = ("task", "layer", "probe")
"""Reserved axis names: columns of the results table."""


@dataclass(frozen=True)
class Setting:
    """One change of a cell: the value of a dotted key, and the axis that sets it."""

    axis: str
    key: str
    value: Any


@dataclass(frozen=True)
class Choice:
    """A value of an axis.

    Attributes:
        axis: The axis.
        label: The label of the value in the results.
        shown: The text for the value in names of cells.
        settings: The changes that the value makes.
        value: The value in the YAML file. A named axis has its label here.
    """

    axis: str
    label: str
    shown: str
    settings: tuple[Setting, ...]
    value: Any


def is_key(axis: str) -> bool:
    """Return whether an axis is a key of a cell, such as ``pretrain.seed`` or ``model``, and not a name with labels."""
    return axis.partition(".")[0] in KNOWN_ROOTS


def is_value(one: Any, other: Any) -> bool:
    """Return whether two values are equal. Numbers are compared by value (10 equals 10.0), other values as JSON."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return bool(one == other) if numbers else _text(one) == _text(other)


def labelled(axis: str, label: Any, changes: Mapping[str, Any]) -> Choice:
    """Return the choice for one label of a named axis. ``changes`` maps dotted keys to values."""
    settings = tuple(Setting(axis, key, value) for key, value in changes.items())
    return Choice(axis, str(label), str(label), settings, label)


def plain(key: str, value: Any, labels: Mapping[str, str]) -> Choice:
    """Return the choice for one value of a dotted key.

    Args:
        key: The dotted key, which is also the name of the axis.
        value: A value of the key.
        labels: Value as JSON → label.
    """
    label = labels[_text(value)]
    is_name = isinstance(value, str) or label != _text(value)
    shown = label if is_name else f"{short_key(key)}={label}"
    return Choice(key, label, shown, (Setting(key, key, value),), value)


def distinct_labels(key: str, values: Iterable[Any]) -> dict[str, str]:
    """Return a distinct label for each value of an axis: value as JSON → label.

    Results are grouped by label, so two values with one label would be averaged as if they were seeds. Such values get
    longer labels: the paths of base files without the ending, or else the JSON.
    """
    forms = {
        _text(value): (label_of(key, value), label_of(key, value, with_folders=True), _text(value)) for value in values
    }
    chosen = dict.fromkeys(forms, 0)
    while True:
        labels = {text: forms[text][form] for text, form in chosen.items()}
        count = Counter(labels.values())
        alike = [text for text, label in labels.items() if count[label] > 1]
        if not alike:
            return labels
        chosen |= {text: min(chosen[text] + 1, 2) for text in alike}


def label_of(key: str, value: Any, with_folders: bool = False) -> str:
    """Return a readable label of a value. Different values may have the same label.

    The label of a mapping with a text ``name`` is this name. The label of base files is their names without the ending,
    joined by ``+``. Any other value that is not a text is written as JSON.

    Args:
        key: The dotted key of the value.
        value: The value.
        with_folders: True to include the folders of base files.
    """
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return str(value["name"])
    if BASE in key.split(".")[1:]:
        files = [PurePath(str(name)) for name in (value if isinstance(value, list) else [value])]
        return "+".join((file.parent / file.stem).as_posix() if with_folders else file.stem for file in files)
    return value if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_axis(part: str, axis: str, values: Any) -> None:
    """Raise InputError if an axis is not a valid axis of ``part``, which is ``product`` or ``zip``.

    An axis must have values, and its values must be a list under a known key, or labels (see ``check_named_axis``). A
    value may be repeated in ``zip`` only.
    """
    if isinstance(values, dict):
        check_named_axis(axis, values)
    else:
        check_key(axis, (axis,))
        if not isinstance(values, list):
            hint = "put the value in square brackets"
            raise InputError(f"must be a list, not {show_value(values)}", keys=(axis,), hint=hint, code="type")
        twice = [text for text, count in Counter(map(_text, values)).items() if count > 1]
        if twice and part == "product":  # In zip, a value may be combined with several values of another axis.
            reason = f"the value {twice[0]} is repeated"
            raise InputError(reason, keys=(axis,), hint="write each value once", code="duplicate")
    if not values:
        raise InputError("the axis has no values", keys=(axis,), hint="give at least one value", code="empty")


def check_named_axis(axis: str, labels: Mapping[Any, Any]) -> None:
    """Raise InputError if a named axis has a wrong name, or a label with a wrong name or wrong changes.

    The name must not be empty, reserved, dotted or a key of a cell. Labels must be distinct, not empty and without
    control characters. The changes of a label must be a mapping from keys of a cell to values.
    """
    if is_key(axis):
        hint = "write a list of values, or choose a name for the axis that is not a key"
        raise InputError("a key cannot have labels", keys=(axis,), hint=hint, code="type")
    if "." in axis:
        reason = "the name of an axis with labels has a dot, which only a key may have"
        hint = "choose a name without a dot, or write a key with a list of values"
        raise InputError(reason, keys=(axis,), hint=hint, code="format")
    if not axis.strip():
        raise InputError("an axis has no name", hint="give the axis a name", code="empty")
    if axis in RESERVED:
        reason = f"{axis!r} is reserved for a column of the results"
        raise InputError(reason, keys=(axis,), hint="choose another name for the axis", code="conflict")
    if len({str(label) for label in labels}) < len(labels):
        twice = next(text for text, count in Counter(map(str, labels)).items() if count > 1)
        reason = f"two labels are the same text, {twice!r}"
        raise InputError(reason, keys=(axis,), hint="change one of them", code="duplicate")
    for label, changes in labels.items():
        keys = (axis, str(label))
        if not str(label).strip():
            raise InputError("a label is empty", keys=(axis,), hint="write a text for the label", code="empty")
        if any(category(sign) == "Cc" for sign in str(label)):
            reason = f"the label {label!r} has a control character"
            raise InputError(reason, keys=(axis,), hint="remove this character", code="format")
        if not isinstance(changes, dict):
            hint = "write dotted keys with values, as in {pretrain.steps: 100}"
            raise InputError(f"must be a mapping, not {show_value(changes)}", keys=keys, hint=hint, code="type")
        for key in changes:
            check_key(str(key), (*keys, str(key)))


def check_key(key: str, keys: Sequence[str]) -> None:
    """Raise InputError if a dotted key cannot be a key of a cell.

    The first part must be a known section (KNOWN_ROOTS), and no part may be empty. The keys ``source`` and ``model``
    have no further parts. Keys inside a section are not looked up.

    Args:
        key: The dotted key.
        keys: The place of the key in the grid. It has one part for an axis, which could also be a name with labels.
    """
    parts = key.split(".")
    if parts[0] not in KNOWN_ROOTS:
        raise InputError("unknown key", keys=keys, hint=_hint(parts, len(keys) == 1), code="unknown")
    if not all(parts):
        raise InputError("a part of the dotted key is empty", keys=keys, hint="remove the extra dot", code="format")
    if parts[0] in ("source", "model") and len(parts) > 1:
        reason = f"{parts[0]} is one value and has no key {parts[1]!r}"
        raise InputError(reason, keys=keys, hint=f"write {parts[0]} alone", code="unknown")


def _hint(parts: list[str], is_axis: bool) -> str:
    """Suggest the key that was probably meant, or the valid first parts of a key, or labels for an axis."""
    if parts[0] in PretrainConfig.model_fields:
        return f"did you mean {'.'.join(['pretrain', *parts])}?"
    near = get_close_matches(parts[0], AXIS_ROOTS, 1)
    if near and len(parts) > 1:
        return f"did you mean {'.'.join([*near, *parts[1:]])}?"
    named = is_axis and len(parts) == 1 and parts[0].strip() and parts[0] not in RESERVED
    labels = "write labels with their keys, as in {LABEL: {KEY: VALUE}}, or " if named else ""
    return f"{did_you_mean(parts[0], AXIS_ROOTS)}{labels}start the key with one of {', '.join(AXIS_ROOTS)}"
