"""Convert pydantic's errors to InputErrors, which name the key, its value and the allowed values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import NoneType
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from synthlang.errors import Code, InputError, did_you_mean
from synthlang.wording import plural

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
"""Code of each type of pydantic error. All other types have the code "type"."""
MUST = {
    "int": "be an integer",
    "float": "be a number",
    "string": "be a text",
    "bool": "be true or false",
    "list": "be a list",
    "tuple": "be a list",
    "date": "be a date such as 2026-01-31",
    "dict": "be a mapping",
    "mapping": "be a mapping",
}
"""Rule of each kind of value, by the first word of the type of a pydantic error, such as ``int_type``."""
SECTION = "be a section of keys"
OF_KEY = "[key]"  # the part that pydantic adds to the location of a wrong key
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
    rules: dict[tuple[str, ...], list[str]] = {}
    items = error.errors(include_url=False)
    for item in items:
        at = item["loc"]
        below = (len(o["loc"]) > len(at) and o["loc"][: len(at)] == at for o in items)
        if item["type"] == "too_short" and any(below):
            continue  # pydantic counts only valid items, and the invalid ones have their own errors
        if not defaults and not isinstance(item["input"], JSON_TYPES):
            continue
        fault = _fault(model, item, data)
        known, of_keys = found.get(fault.keys), rules.setdefault(fault.keys, [])
        rule = SECTION if item["type"] in SECTIONS else _rule(item)
        if known is None:
            found[fault.keys] = fault
        elif fault.text not in known.text and (not rule or rule not in of_keys):
            both = f"{known.reason}, or {fault.reason}"
            if rule and all(of_keys):
                both = _must(item["input"], _either([*of_keys, rule]))
            found[fault.keys] = InputError(both, keys=fault.keys, hint=known.hint or fault.hint, code=known.code)
        of_keys.append(rule)
    return [fault for fault in found.values() if not _is_of_other_member(fault, found)]


def _either(rules: Sequence[str]) -> str:
    """Join rules by "or", with the verb "be" only once.

    >>> _either(["be a text", "be a list"])
    'be a text or a list'
    """
    verb = "be " if rules[0].startswith("be ") else ""
    return " or ".join([rules[0], *(rule.removeprefix(verb) for rule in rules[1:])])


def _is_of_other_member(fault: InputError, found: Collection[tuple[str, ...]]) -> bool:
    """Return whether a fault only rejects the type of a value, while another fault is below the key of this value.

    Another member of the union then accepts the type.
    """
    keys = fault.keys
    return fault.code == "type" and any(len(one) > len(keys) and one[: len(keys)] == keys for one in found)


def _fault(model: type[pydantic.BaseModel], item: ErrorDetails, data: Any) -> InputError:
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
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
        hint = "add this value to the list" if keys[-1].isdigit() else ADD
        return InputError("is required", keys=keys, hint=hint, code="missing")
    if kind == "value_error":
        return _broken_rule(keys, value, context["error"])
    if kind in SECTIONS:
        last = keys[-1] if keys else "NAME"
        form = "- {KEY: VALUE}" if last.isdigit() else f"{last}: {{KEY: VALUE}}"  # an item of a list, or a key
        return InputError(_must(value, SECTION), keys=keys, hint=f"write {form}", code="type")
    return InputError(type_reason(item), keys=keys, code=CODES.get(kind, "type"))


def type_reason(item: ErrorDetails) -> str:
    """Return the reason of an InputError for an error of pydantic about the type or the range of a value."""
    rule = _rule(item)
    return _must(item["input"], rule) if rule else f"{show_value(item['input'])}: {item['msg']}"


def _must(value: Any, rule: str) -> str:
    """Return the reason of an error about a value that breaks a rule, such as "be a list"."""
    is_mapping = isinstance(value, dict) and rule.startswith("be ")
    return f"must {rule}, not a mapping" if is_mapping else f"{show_value(value)} must {rule}"


def _rule(item: ErrorDetails) -> str:
    """Return the rule that a value breaks, as words after "must", or "" for an error of another kind."""
    kind, context = item["type"], item.get("ctx", {})
    least, most = context.get("min_length", 0), context.get("max_length", 0)
    noun = "character" if kind.startswith("string") else "value"
    if kind.endswith("too_short"):
        return f"have at least {plural(least, noun)}"
    if kind.endswith("too_long"):
        return f"have at most {plural(most, noun)}"
    if kind == "string_pattern_mismatch":
        return f"match the regular expression {context['pattern']}"
    first = "Input should "
    other = item["msg"].removeprefix(first) if item["msg"].startswith(first) else ""
    return other if kind in CODES else MUST.get(kind.partition("_")[0], other)


def _broken_rule(keys: Sequence[str], value: Any, rule: Exception) -> InputError:
    """Return the error of a validator. The text of a rule about several keys already names the keys."""
    if isinstance(rule, InputError):
        return rule.inside(*keys)
    return InputError(str(rule) if isinstance(value, dict) else f"{show_value(value)}: {rule}", keys=keys)


def _keys(loc: Location, data: Any, value: Any, missing: bool) -> list[str]:
    """Return the keys of a location without the tags and types that pydantic adds for unions."""
    keys = []
    loc = [part for part in loc if part != OF_KEY]
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


def show_value(value: Any) -> str:
    """Return a value as text for a message, cut after SHOWN_VALUE characters. A mapping is only called a mapping."""
    if isinstance(value, dict):
        return "a mapping"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}…"
