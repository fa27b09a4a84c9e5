"""What pydantic found wrong, as short lines for people: the key, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic

from synthlang.errors import did_you_mean

SHOWN_VALUE = 60  # characters
WORDING = {  # in this order
    "Input should be": "must be",
    "a valid integer": "an integer",
    "a valid array": "a list",
    "a valid": "a",
    "an object": "a mapping",
    "a dictionary": "a mapping",
}
KEY_ERRORS = ("missing", "extra_forbidden", "union_tag_invalid", "union_tag_not_found")
Part = int | str


def explain(
    model: type[pydantic.BaseModel], error: pydantic.ValidationError, data: Mapping[str, Any] | None = None
) -> list[str]:
    """One line for each wrong key; the alternatives of a union are joined by ``or``.

    With ``data`` only what is wrong with it: no errors of defaults.
    """
    lines: dict[str, list[str]] = {}
    items = error.errors(include_url=False)
    for item in items:
        if item["type"] == "too_short" and any(_is_below(other["loc"], item["loc"]) for other in items):
            continue  # it has too few only without the wrong ones
        key, problem = _line(model, dict(item))
        if data is not None and item["type"] not in KEY_ERRORS and not _is_given(data, key):
            continue
        problems = lines.setdefault(".".join(key), [])
        if problem not in problems:
            problems.append(problem)
    return [f"{key}: {', or '.join(found)}" if key else ", or ".join(found) for key, found in lines.items()]


def _is_below(loc: Sequence[int | str], above: Sequence[int | str]) -> bool:
    return len(loc) > len(above) and loc[: len(above)] == above


def _is_given(data: Any, key: Sequence[str]) -> bool:
    """Whether ``data`` has a value at ``key``."""
    for part in key:
        if isinstance(data, Mapping) and part in data:
            data = data[part]
        elif isinstance(data, list) and part.isdigit():
            data = data[int(part)]
        else:
            return False
    return True


def _line(model: type[pydantic.BaseModel], item: dict[str, Any]) -> tuple[list[str], str]:
    """(keys from the top, what is wrong there)."""
    loc, kind, context = item["loc"], item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        key, models = _locate(model, loc[:-1])
        return [*key, str(loc[-1])], _unknown(str(loc[-1]), models)
    key, models = _locate(model, loc)
    if kind == "missing":
        return key, "is required"
    if kind in KEY_ERRORS:
        name = context["discriminator"].strip("'")
        allowed = ", ".join(dict.fromkeys(repr(tag) for m in models for tag in _literals(m, name)))
        found = f"{context['tag']!r} " if "tag" in context else "is required and "
        return [*key, name], f"{found}must be one of {allowed}"
    if kind == "too_short":
        least = context["min_length"]
        return key, f"{_show(item['input'])}: must have at least {least} {'entry' if least == 1 else 'entries'}"
    return key, _wrong(item["input"], item["msg"])


def _unknown(name: str, models: Sequence[type[pydantic.BaseModel]]) -> str:
    allowed = list(dict.fromkeys(field for model in models for field in _fields(model)))
    return f"unknown key; {did_you_mean(name, allowed)}allowed: {', '.join(allowed) or 'none'}"


def _wrong(value: Any, message: str) -> str:
    if message.startswith("Value error, "):  # raised by a validator of ours
        rule = message.removeprefix("Value error, ")
        return rule if isinstance(value, dict) else f"{_show(value)}: {rule}"
    for theirs, ours in WORDING.items():
        message = message.replace(theirs, ours)
    return f"{_show(value)} {message}" if message.startswith("must") else f"{_show(value)}: {message}"


def _show(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}…"


def _locate(model: type[pydantic.BaseModel], loc: Sequence[Part]) -> tuple[list[str], list[type[pydantic.BaseModel]]]:
    """The keys of a location as a user writes them, and the models that may stand there.

    pydantic puts the name of the member of a union (a tag, a class, a type) into the location;
    it is no key, so it is dropped here.
    """
    types: list[Any] = [model]
    key = []
    for part in loc:
        narrowed = [t for t in types if len(types) > 1 and _is_member(t, part)]
        inner = [] if narrowed else [found for t in types for found in _inside(t, part)]
        if inner:
            key.append(str(part))
        types = narrowed or inner or types
    return key, [t for t in types if _is_model(t)]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _is_member(kind: Any, part: Part) -> bool:
    """Whether ``part`` names this member of a union: by its class, or a literal it is told by."""
    if not _is_model(kind):
        return False
    return part == kind.__name__ or any(part in _literals(kind, name) for name in kind.model_fields)


def _literals(model: type[pydantic.BaseModel], name: str) -> tuple[Any, ...]:
    annotation = model.model_fields[name].annotation if name in model.model_fields else None
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _fields(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """Field types by the names a user writes."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _inside(kind: Any, part: Part) -> list[Any]:
    """The types of what stands at ``part`` inside a value of type ``kind``."""
    if _is_model(kind):
        fields = _fields(kind)
        return _members(fields[str(part)]) if part in fields else []
    arguments = [a for a in get_args(kind) if a is not Ellipsis]
    if not arguments or get_origin(kind) is Literal:
        return []
    if isinstance(part, int) or len(arguments) == 2:  # an item of a sequence, a value of a mapping
        return _members(arguments[-1])
    return []


def _members(annotation: Any) -> list[Any]:
    """The members of a union, also below Annotated."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [member for argument in get_args(annotation) for member in _members(argument)]
    return [annotation]


def half_character(data: Any, key: tuple[str, ...] = ()) -> str | None:
    """What is wrong with the first text, or key, of plain data that is none: with half of a surrogate pair, escaped."""
    if isinstance(data, str):
        broken = any("\ud800" <= character <= "\udfff" for character in data)
        where = f"{ascii('.'.join(key))[1:-1]}: " if key else ""
        return f"{where}{data!a}: \\ud800 to \\udfff are no characters" if broken else None
    inner: list[tuple[Any, tuple[str, ...]]] = []
    if isinstance(data, Mapping):
        inner = [(part, at) for name, held in data.items() for part, at in ((name, key), (held, (*key, str(name))))]
    elif isinstance(data, list | tuple):
        inner = [(held, (*key, str(number))) for number, held in enumerate(data)]
    return next((found for held, at in inner if (found := half_character(held, at)) is not None), None)
