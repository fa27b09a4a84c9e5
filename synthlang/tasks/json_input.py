"""JSON from outside, checked on the way: every slip is one line that says where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from synthlang.errors import InputError
from synthlang.files import json_of
from synthlang.sources.text import open_bytes

V = TypeVar("V", str, int, bool)
NAMES = {str: "a text", int: "a whole number", bool: "true or false"}


def read_json_input(path: Path) -> Mapping[str, Any]:
    """The JSON object that a file holds; a byte order mark may stand before it, as before any text that is read."""
    with open_bytes(path) as handle:
        raw = handle.read()
    data = json_of(raw, path, "utf-8-sig")
    if not isinstance(data, dict):
        raise InputError("must hold a JSON object {…} at the top", path)
    return data


def value_of(data: Mapping[str, Any], key: str, kind: type[V], where: str, path: Path) -> V:
    """The value at ``key`` if it is of that type, else InputError with the place in the file."""
    value = data.get(key)
    if type(value) is not kind:
        found = "there is none" if key not in data else f"it is {str(value)[:40]!r}"
        raise InputError(f"{where or 'the file'}: {key!r} must be {NAMES[kind]}; {found}", path)
    if isinstance(value, str) and not _is_text(value):
        raise InputError(f"{where}: {key!r} holds half of a surrogate pair, which is no character", path)
    return value


def items_of(data: Mapping[str, Any], key: str, where: str, path: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The objects of the list at ``key``, each with its place, such as ``data[0].paragraphs[3]``."""
    values = data.get(key)
    if not isinstance(values, list):
        raise InputError(f"{where or 'the file'}: {key!r} must be a list", path)
    for index, value in enumerate(values):
        place = f"{where}.{key}[{index}]" if where else f"{key}[{index}]"
        if not isinstance(value, dict):
            raise InputError(f"{place}: must be an object", path)
        yield value, place


def _is_text(value: str) -> bool:
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in value)
