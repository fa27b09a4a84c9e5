"""``--set KEY=VALUE`` on the YAML of a study, also inside its grid, where keys have dots themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from probes.study.axes import AXIS_ROOTS
from synthlang.config import assigned, override

PARTS = ("product", "zip")
LISTS = ("include", "exclude")
EXAMPLE = "pretrain.objective.alpha=5"


def with_assignments(data: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The mapping of a study with each assignment applied.

    grid.product.KEY=[…], grid.zip.KEY=[…]            the values of an axis; null takes it away
    grid.product.NAME=…, grid.product.NAME.LABEL=…    a named axis, what one of its labels sets
    grid.product.NAME.LABEL.KEY=VALUE                 one key of it
    grid.exclude.N.KEY=VALUE, grid.include.N.KEY=…    one key of an entry

    Any other key is that of ``synthlang.config.override``.
    """
    result = dict(data)
    for assignment in assignments:
        keys = assignment.partition("=")[0].split(".")
        named = _place(keys, result)
        if named is None:
            result = override(result, [assignment], EXAMPLE)
            continue
        value: Any = override({}, [assignment], EXAMPLE)  # an error of the assignment itself is one here
        for key in keys:
            value = value[key]
        result = _put(result, named, value)
    return result


def _place(keys: Sequence[str], data: Mapping[str, Any]) -> list[str] | None:
    """Where in the YAML an assignment goes, if it is inside an axis or an entry of the grid."""
    if len(keys) > 2 and keys[0] == "grid" and keys[1] in PARTS:
        axis = keys[2]
        if axis in AXIS_ROOTS:
            return ["grid", keys[1], ".".join(keys[2:])]
        return ["grid", keys[1], axis, *_label_and_key(keys[3:], _labels(data, keys[1], axis))]
    if len(keys) > 3 and keys[0] == "grid" and keys[1] in LISTS:
        return ["grid", keys[1], keys[2], ".".join(keys[3:])]
    return None


def _labels(data: Mapping[str, Any], part: str, axis: str) -> Collection[str]:
    """Those that an axis has in the YAML."""
    held: Any = data
    for key in ("grid", part, axis):
        held = held.get(key) if isinstance(held, Mapping) else None
    return held if isinstance(held, Mapping) else ()


def _label_and_key(keys: Sequence[str], labels: Collection[str]) -> list[str]:
    """The label, which may have dots itself (the longest that there is), and the key that it sets."""
    end = next((end for end in range(len(keys), 0, -1) if ".".join(keys[:end]) in labels), 1)
    return [".".join(part) for part in (keys[:end], keys[end:]) if part]


def _put(data: Mapping[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    if len(keys) == 3 and value is None:  # an axis that a base has
        axes = dict((data.get("grid") or {}).get(keys[1]) or {})
        axes.pop(keys[2], None)
        keys, value = keys[:2], axes
    result: dict[str, Any] = assigned(data, list(keys), value)
    return result
