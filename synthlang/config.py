"""Strict configuration: frozen models, dotted overrides, errors that name the key.

A value must have the type of its field (``"5"`` is no number, ``1.0`` no integer), so that a
slip is seen before any work starts. How YAML is read: ``strict_yaml``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from synthlang.config_errors import explain, half_character
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.strict_yaml import parse_yaml, read_yaml, write_yaml

M = TypeVar("M", bound=pydantic.BaseModel)
PathName = str | PathLike[str] | None

SHOWN_ERRORS = 3
BASE = "base"
KEY = re.compile(r"[^\s.=]+(\.[^\s.=]+)*")


class StrictModel(pydantic.BaseModel):
    """Base of every config: immutable, no unknown keys, no NaN or infinity, checked defaults."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)


def load(model: type[M], path: str | PathLike[str], assignments: Sequence[str] = ()) -> M:
    """Read ``path``, apply ``KEY=VALUE`` assignments and check everything against ``model``."""
    return parse(model, override(load_yaml(path), assignments), path)


def load_yaml(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a YAML file with a mapping at the top; anything else is an InputError with its line.

    ``base: FILE`` or ``base: [FILE, …]`` (paths from this file's folder) are read first: mappings are merged key by
    key, any other value of a later file replaces that of an earlier one, and this file is the last.
    """
    return _with_base(Path(path), ())


def _with_base(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    """The mapping of a file over those of its bases; ``below`` are the files that led here."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        found = "the file is empty" if data is None else "it is a list" if isinstance(data, list) else "it is one value"
        raise InputError(f"the top level must be a mapping of keys to values; {found}", path)
    if BASE not in data:
        return data
    here, result = (*below, path.resolve()), dict[str, Any]()
    for base in _base_files(data.pop(BASE), path):
        if base.resolve() in here:
            raise InputError(f"base: {base} is based on this file, so neither can be read first", path)
        result = merged(result, _with_base(base, here))
    return merged(result, data)


def _base_files(names: Any, path: Path) -> list[Path]:
    """The files that ``base`` names in the file ``path``."""
    listed = names if isinstance(names, list) else [names]
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise InputError(f"base must be the name of a YAML file or a list of names, not {names!r}", path)
    bases = [path.parent / user_path(name) for name in listed]
    for base in bases:
        if not base.exists():
            raise InputError(f"base: there is no file {base}", path)
    return bases


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``changes`` over ``base``: mappings are merged key by key, any other value replaces.

    >>> merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 5}, "d": []})
    {'a': {'b': 5, 'c': 2}, 'd': []}
    """
    result = dict(base)
    for key, value in changes.items():
        held = result.get(key)
        result[key] = merged(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
    return result


def parse(model: type[M], data: Mapping[str, Any], path: PathName = None) -> M:
    """Check plain data (as from YAML or JSON) against ``model``.

    Raises InputError that names each wrong key, its value and what is allowed.
    """
    if (problem := half_character(data)) is not None:
        raise InputError(problem, path)
    try:
        # JSON mode is strict about types, yet takes a list for a tuple and a string for a path.
        model.model_validate_json(json.dumps(data), strict=True)
    except pydantic.ValidationError as error:
        # It also refuses a default that JSON cannot write (a Path): only what is wrong with ``data`` counts.
        _refuse(explain(model, error, data, defaults=False), path)
    try:
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        _refuse(explain(model, error, data, defaults=True), path)
        raise


def _refuse(problems: Sequence[str], path: PathName) -> None:
    """Raise InputError with the first few problems, if there are any."""
    more = len(problems) - SHOWN_ERRORS
    if problems:
        raise InputError("; ".join(problems[:SHOWN_ERRORS]) + (f"; and {more} more" if more > 0 else ""), path)


def override(
    config: Mapping[str, Any], assignments: Sequence[str], example: str = "objective.alpha=5"
) -> dict[str, Any]:
    """A new config with each ``a.b=VALUE`` applied; VALUE is YAML, a number indexes a list. Errors show ``example``.

    >>> override({"a": {"b": 1, "c": 2}}, ["a.b=5", "d=[x, no]"])
    {'a': {'b': 5, 'c': 2}, 'd': ['x', 'no']}
    """
    result = dict(config)
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        where = f"--set {assignment}"
        if not equals or not KEY.fullmatch(key):
            raise InputError(f"{where}: must be KEY=VALUE with a dotted key, as in {example}")
        if not value.strip():
            raise InputError(f"{where}: has no value; write {key}=null for none or {key}='' for an empty text")
        new = parse_yaml(value, where)
        try:
            result = assigned(result, key.split("."), new)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
    return result


def assigned(node: Any, keys: Sequence[str], value: Any) -> Any:
    """A copy of nested mappings and lists with one value replaced; missing mappings are made, a number indexes a list.

    >>> assigned({"a": [1, {"b": 2}]}, ["a", "1", "b"], 3)
    {'a': [1, {'b': 3}]}
    """
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(node, list):
        if not (key.isascii() and key.isdigit() and int(key[:9]) < len(node)):
            raise InputError(f"{key!r} is no index of a list of {len(node)} values (the first is 0)")
        at = int(key)
        return [*node[:at], assigned(node[at], rest, value), *node[at + 1 :]]
    if node is not None and not isinstance(node, Mapping):
        raise InputError(f"{key!r} cannot be set inside {node!r}, which is no mapping")
    inner = dict(node or {})
    return {**inner, key: assigned(inner.get(key), rest, value)}


def dump_yaml(model: pydantic.BaseModel) -> str:
    """The complete resolved config as YAML, in the order of the fields; ``load`` reads it back."""
    return write_yaml(model.model_dump(mode="json", round_trip=True))
