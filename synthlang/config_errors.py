"""Convert pydantic's errors to InputErrors, which name the key, its value and the allowed values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import NoneType
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from synthlang.errors import Code, InputError, did_you_mean

SHOWN_VALUE = 60  # characters of a value that a message shows
ADD = "add this key"
JSON_TYPES = (dict, list, str, int, float, NoneType)
SECTIONS = frozenset({"model_type", "model_attributes_type", "dict_type", "mapping_type", "dataclass_type"})
"""Types of pydantic errors for a value that should be a section of keys."""
CODES: dict[str, Code] = {
    "literal_error": "unknown",
    "enum": "unknown",
    "greater_than": "range",
    "greater_than_equal": "range",
    "less_than": "range",
    "less_than_equal": "range",
    "finite_number": "range",
    "too_short": "range",
    "too_long": "range",
    "string_too_short": "range",
    "string_too_long": "range",
    "string_pattern_mismatch": "format",
}
"""Code of each type of pydantic error. All others have the code "type"."""
Location = Sequence[int | str]


def faults(
    model: type[pydantic.BaseModel], error: pydantic.ValidationError, data: Any, defaults: bool
) -> list[InputError]:
    """Convert an error of pydantic to one InputError for each wrong key, in the order of pydantic.

    The reasons of the members of a union are joined by "or".

    Args:
        model: Class of the config.
        error: The error of pydantic.
        data: The plain data that was checked.
        defaults: True to include wrong defaults.
    """
    found: dict[tuple[str, ...], InputError] = {}
    items = error.errors(include_url=False)
    for item in items:
        at = item["loc"]
        below = (len(o["loc"]) > len(at) and o["loc"][: len(at)] == at for o in items)
        if item["type"] == "too_short" and any(below):
            continue  # pydantic counts only valid items, and the invalid ones have their own errors
        if not defaults and not isinstance(item["input"], JSON_TYPES):
            continue
        fault = _fault(model, item, data)
        known = found.get(fault.keys)
        if known is None:
            found[fault.keys] = fault
        elif fault.text not in known.text:
            both = f"{known.reason}, or {fault.reason}"
            found[fault.keys] = InputError(both, keys=fault.keys, hint=known.hint or fault.hint, code=known.code)
    return [fault for fault in found.values() if not _is_of_other_member(fault, found)]


def _is_of_other_member(fault: InputError, found: Collection[tuple[str, ...]]) -> bool:
    """Return whether a fault is a wrong type, while another member of the union has a fault below the same key."""
    keys = fault.keys
    return fault.code == "type" and any(len(one) > len(keys) and one[: len(keys)] == keys for one in found)


def _fault(model: type[pydantic.BaseModel], item: ErrorDetails, data: Any) -> InputError:
    kind, context, value, message = item["type"], item.get("ctx", {}), item["input"], item["msg"]
    keys = _keys(item["loc"], data, value, kind == "missing")
    if kind == "extra_forbidden":
        allowed = _allowed(model, keys[:-1], data)
        hint = f"{did_you_mean(keys[-1], allowed)}allowed: {', '.join(allowed) or 'none'}"
        return InputError("unknown key", keys=keys, hint=hint, code="unknown")
    if kind.startswith("union_tag"):
        name, tags = context["discriminator"].strip("'"), context.get("expected_tags")
        problem = f"{context['tag']!r} must be one of {tags}" if tags else "is required"
        hint = "" if tags else ADD
        return InputError(problem, keys=[*keys, name], hint=hint, code="unknown" if tags else "missing")
    if kind == "missing":
        return InputError("is required", keys=keys, hint=ADD, code="missing")
    if kind == "value_error":
        return _broken_rule(keys, value, context["error"])
    if kind in SECTIONS:
        last = keys[-1] if keys else "NAME"
        form = "- {KEY: VALUE}" if last.isdigit() else f"{last}: {{KEY: VALUE}}"  # an item of a list, or a key
        return InputError(f"{_show(value)} must be a section of keys", keys=keys, hint=f"write {form}", code="type")
    return InputError(type_reason(value, message), keys=keys, code=CODES.get(kind, "type"))


def type_reason(value: Any, message: str) -> str:
    """Return the reason of an InputError for a ``value`` that pydantic rejects with ``message``.

    >>> type_reason("x", "Input should be a valid integer")
    "'x' must be a valid integer"
    """
    must = message.replace("Input should", "must")
    return f"{_show(value)} {must}" if must != message else f"{_show(value)}: {message}"


def _broken_rule(keys: Sequence[str], value: Any, rule: Exception) -> InputError:
    """Return the error of a validator. A rule about several keys names them itself."""
    if isinstance(rule, InputError):
        return rule.inside(*keys)
    return InputError(str(rule) if isinstance(value, dict) else f"{_show(value)}: {rule}", keys=keys)


def _keys(loc: Location, data: Any, value: Any, missing: bool) -> list[str]:
    """Return the keys of a location without the tags and types that pydantic adds for unions."""
    keys = []
    for number, part in enumerate(loc, start=1):
        items = dict(enumerate(data)) if isinstance(data, list | tuple) else data
        if isinstance(items, Mapping) and part in items:
            data = items[part]
        elif number < len(loc) or not (missing or repr(data) != repr(value)):
            continue
        keys.append(str(part))
    return keys


def _allowed(model: type[pydantic.BaseModel], keys: Sequence[str], data: Any) -> list[str]:
    """Return the keys that are allowed in the section at ``keys``.

    In a union, only the members that match the tags in ``data`` count.
    """
    schema = model.model_json_schema()

    def members(node: dict[str, Any]) -> list[dict[str, Any]]:
        if "$ref" in node:
            return members(schema["$defs"][node["$ref"].rpartition("/")[2]])
        options = node.get("anyOf") or node.get("oneOf")
        return [member for option in options for member in members(option)] if options else [node]

    nodes = members(schema)
    for key in keys:
        parts = [
            part
            for n in nodes
            for part in (n.get("properties", {}).get(key), n.get("additionalProperties"), n.get("items"))
        ]
        nodes = [member for part in parts if isinstance(part, dict) for member in members(part)]
        data = data[int(key)] if isinstance(data, list | tuple) else data[key]
    fields = [node.get("properties", {}) for node in nodes]
    named = [
        f for f in fields if all(data.get(k, v.get("default")) == v["const"] for k, v in f.items() if "const" in v)
    ]
    return list(dict.fromkeys(name for found in named or fields for name in found))


def _show(value: Any) -> str:
    """Return a value in the form of YAML, cut after SHOWN_VALUE characters."""
    if isinstance(value, dict):
        return "a mapping"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}…"
