"""Strict configuration: frozen models, dotted overrides, and errors that name the key.

A value must have the type of its field (``"5"`` is not a number, ``1.0`` is not an integer), so that a mistake is
found before any work starts.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from os import PathLike
from typing import Any, ClassVar, TypeVar, get_args, get_origin

import pydantic

from synthlang.catalogue import load_yaml
from synthlang.config_errors import faults, show_value
from synthlang.errors import InputError
from synthlang.strict_yaml import parse_yaml, write_yaml
from synthlang.wording import plural

M = TypeVar("M", bound=pydantic.BaseModel)
PathName = str | PathLike[str] | None
Overrides = Mapping[str, Any] | Sequence[str]
"""Changes of a config: a mapping of dotted keys to values, or texts ``KEY=VALUE``."""

KEY = re.compile(r"[^\s.=]+(\.[^\s.=]+)*")


class StrictModel(pydantic.BaseModel):
    """Base class of every config.

    A config is immutable. Unknown keys, NaN and infinity are errors, and defaults are checked, too. The docstring
    below a field is its explanation in the reference.

    Attributes:
        smoke: Upper bound of each field that ``--smoke`` changes, or a function from the config to the new value.
        renamed_keys: New name of each old key. ``parse`` reads an old key with a warning. Fields and fingerprints
            have the new names.
    """

    smoke: ClassVar[Mapping[str, Any]] = {}
    renamed_keys: ClassVar[Mapping[str, str]] = {}

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)


def renamed_values(field: str, **names: str) -> Any:
    """Return a validator that replaces renamed values of a field, each with a FutureWarning.

    A model declares the validator in its body, with ``old=new``:
    ``_renamed = renamed_values("relation", near="equivalent")``.
    """

    def rename(value: Any) -> Any:
        if isinstance(value, str) and value in names:
            _warn(f"value of {field}", value, names[value])
            return names[value]
        return value

    return pydantic.field_validator(field, mode="before")(rename)


def _warn(what: str, old: str, new: str) -> None:
    reason = f"the {what} {old!r} is now called {new!r}"
    warnings.warn(
        f"{reason}; use the new name, because the next release will not read the old one", FutureWarning, stacklevel=3
    )


def with_new_keys(annotation: Any, data: Any) -> Any:
    """Replace renamed keys in the plain data of a field or model of type ``annotation``.

    Each old key gives a FutureWarning. The keys are replaced before pydantic reads the data. A model validator would
    turn the JSON into Python objects, and strict mode accepts a list for a tuple only in JSON.

    Raises:
        InputError: A section has both the old key and the new one.
    """
    if isinstance(data, str) or not _has_renamed_keys(annotation):
        return data
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        if not isinstance(data, Mapping):
            return data
        found = {}
        for key, value in data.items():
            new = annotation.renamed_keys.get(key, key)
            if new != key:
                if new in data:
                    reason = f"is the old name of {new}, and both are given"
                    raise InputError(reason, keys=[key], hint="delete this key", code="duplicate")
                _warn("key", key, new)
            field = annotation.model_fields.get(new)
            found[new] = value if field is None else _inside(key, field.annotation, value)
        return found
    inner = get_args(annotation)
    if isinstance(data, Mapping) and get_origin(annotation) in (dict, Mapping):
        return {key: _inside(key, inner[1], value) for key, value in data.items()}
    if isinstance(data, list) and get_origin(annotation) in (list, tuple, Sequence):
        return [_inside(str(number), inner[0], value) for number, value in enumerate(data)]
    for one in inner:  # members of a union, or the type in Annotated
        data = with_new_keys(one, data)
    return data


def _inside(key: str, annotation: Any, value: Any) -> Any:
    try:
        return with_new_keys(annotation, value)
    except InputError as error:
        raise error.inside(key) from error


@cache
def _has_renamed_keys(annotation: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Return whether a type is or contains a model with renamed keys."""
    if annotation in seen:
        return False
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        inner: list[Any] = [field.annotation for field in annotation.model_fields.values()]
        return bool(annotation.renamed_keys) or any(_has_renamed_keys(one, seen | {annotation}) for one in inner)
    return any(_has_renamed_keys(one, seen) for one in get_args(annotation))


def load(model: type[M], path: str | PathLike[str], assignments: Sequence[str] = (), kind: str | None = None) -> M:
    """Read a config, apply ``KEY=VALUE`` assignments and check everything against ``model``.

    Args:
        model: Class of the config.
        path: YAML file, or with a ``kind`` the name of an entry of the catalogue.
        assignments: Changes ``KEY=VALUE``, applied in order.
        kind: Kind of the entries of the catalogue that ``path`` may name.

    Raises:
        InputError: The config or one of its bases cannot be read, an assignment is malformed, a key is unknown or
            missing, or a value is wrong.
    """
    return parse(model, override(load_yaml(path, kind), assignments), path)


def parse(model: type[M], data: Mapping[str, Any], path: PathName = None) -> M:
    """Check plain data (as from YAML or JSON) against ``model``, and return the config. Errors name ``path``.

    Raises:
        InputError: A key is unknown or missing, a value is wrong, or a section has an old key and its new name. The
            error is the first fault, with its key and its value. Its attribute ``others`` holds all further faults.
    """
    try:
        data = with_new_keys(model, data)
    except InputError as error:
        raise error.inside(path=path) from error
    try:
        # JSON mode is strict about types, yet accepts a list for a tuple and a string for a path.
        model.model_validate_json(json.dumps(data), strict=True)
    except pydantic.ValidationError as error:
        # JSON mode also refuses defaults that JSON cannot express (a Path), so only faults of ``data`` count.
        _refuse(faults(model, error, data, defaults=False), path)
    try:
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        _refuse(faults(model, error, data, defaults=True), path)
        raise


def _refuse(found: Sequence[InputError], path: PathName) -> None:
    """Raise the first fault, if any, with the further faults as ``others``."""
    if found:
        first, *others = found
        first.others = tuple(others)
        raise first.inside(path=path)


def override(
    config: Mapping[str, Any], assignments: Sequence[str], example: str = "objective.alpha=5"
) -> dict[str, Any]:
    """Return a copy of a config with each assignment ``a.b=VALUE`` applied.

    VALUE is YAML, and a number in a key indexes a list. The error for a malformed assignment shows ``example``.

    Raises:
        InputError: An assignment is not KEY=VALUE, has no value or a value that is not YAML, an index is outside its
            list, or a key is set inside a single value.

    >>> override({"a": {"b": 1, "c": 2}}, ["a.b=5", "d=[x, no]"])
    {'a': {'b': 5, 'c': 2}, 'd': ['x', 'no']}
    """
    result = dict(config)
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        where = f"--set {assignment}"
        if not equals or not KEY.fullmatch(key):
            hint = f"write for example {example}, without spaces in the key"
            raise InputError("must be KEY=VALUE, with dots between nested keys", where, hint=hint, code="format")
        if not value.strip():
            hint = f"write {key}=null for no value, or \"{key}=''\" for an empty text"
            raise InputError("has no value", where, hint=hint, code="empty")
        try:
            result = assigned(result, key.split("."), parse_yaml(value, where))
        except InputError as error:
            error.line = None  # an option is a single line
            raise error.inside(path=where) from error
    return result


def assignments(overrides: Overrides) -> list[str]:
    """Return overrides as texts KEY=VALUE, with values in JSON.

    >>> assignments({"objective.alpha": 5.0, "seeds": [0, 1]}), assignments(["steps=3"])
    (['objective.alpha=5.0', 'seeds=[0, 1]'], ['steps=3'])
    """
    if isinstance(overrides, Mapping):
        return [f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in overrides.items()]
    return list(overrides)


def assigned(node: Any, keys: Sequence[str], value: Any) -> Any:
    """Return a copy of nested mappings and lists with one value replaced.

    ``keys`` lead from ``node`` to the value. Missing mappings are made, and a number indexes a list.

    Raises:
        InputError: An index is outside its list, or a key is set inside a single value.

    >>> assigned({"a": [1, {"b": 2}]}, ["a", "1", "b"], 3)
    {'a': [1, {'b': 3}]}
    """
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(node, list):
        if not (key.isascii() and key.isdigit() and int(key[:9]) < len(node)):
            reason = f"{key!r} is not an index of a list of {plural(len(node), 'value')}"
            last = f" to {len(node) - 1}" if len(node) > 1 else ""
            hint = f"use an index from 0 (the first){last}, or set the whole list" if node else "set the whole list"
            raise InputError(reason, hint=hint, code="range")
        at = int(key)
        return [*node[:at], assigned(node[at], rest, value), *node[at + 1 :]]
    if node is not None and not isinstance(node, Mapping):
        hint = "set the whole value, or choose another key"
        reason = f"{key!r} cannot be set inside {show_value(node)}, which has no keys"
        raise InputError(reason, hint=hint, code="type")
    inner = dict(node or {})
    return {**inner, key: assigned(inner.get(key), rest, value)}


def dump_yaml(model: pydantic.BaseModel) -> str:
    """Return the complete config as YAML, in the order of the fields. ``load`` reads an equal config from this text."""
    return _as_yaml(json.dumps(model.model_dump(mode="json", round_trip=True)))


@lru_cache(maxsize=32)
def _as_yaml(data: str) -> str:
    """Convert JSON to YAML. The cache helps because a run writes its config into several files."""
    return write_yaml(json.loads(data))
