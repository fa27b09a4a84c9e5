"""References of a config to data outside it: sources, items of a task, files, models, languages and parsers.

A field whose type holds a ``Reference``, as in ``left: UserFile | None``, names data outside the config.
``references`` finds every such name in any config, so no other module lists the fields that hold paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo

from synthlang.files import user_path

Kind = Literal["source", "items", "file", "model", "language", "parser"]


@dataclass(frozen=True)
class Reference:
    """Marker of a field whose text names data outside the config.

    Attributes:
        kind: The kind of data, such as ``file`` or ``model``.
    """

    kind: Kind


@dataclass(frozen=True)
class OmitDefaultFromHash:
    """Marker of a field that was added to a config later.

    ``resolved`` omits such a field while it has its default, so earlier settings keep their fingerprint.
    """


SourceSpec = Annotated[str, Reference("source")]
"""A source of sentences, such as ``conllu:PATH`` (``synthlang.sources``)."""
ItemsSpec = Annotated[str, Reference("items")]
"""Labelled items, such as ``ner:PATH#dev`` (``synthlang.tasks``), with or without the name of the task."""
UserFile = Annotated[str, Reference("file")]
"""A file or folder."""
ModelName = Annotated[str, Reference("model")]
"""A run folder, a model folder, or the name of a model on the Hugging Face hub."""
LanguageSpec = Annotated[str, Reference("language")]
"""A language, given by its short name or YAML file, or the name of a language of a model."""
ParserSpec = Annotated[str, Reference("parser")]
"""A parser, such as ``spacy:NAME``."""


@dataclass(frozen=True)
class Named:
    """A reference that was found in a config.

    Attributes:
        place: The keys that lead to the reference, outermost first.
        kind: The kind of the reference.
        name: The text of the reference, or a whole ``Language``.
    """

    place: tuple[str, ...]
    kind: Kind
    name: Any


def as_written(named: Named) -> Any:
    """Return a reference as a JSON value: its name, or the settings of a whole language."""
    return named.name.model_dump(mode="json") if isinstance(named.name, pydantic.BaseModel) else named.name


_PLAIN = frozenset((bool, int, float, type(None)))
"""Types of values that cannot be references. Most values have one of these types."""


def references(config: pydantic.BaseModel) -> list[Named]:
    """Return all references of a config, in the order of its fields. Nothing is opened."""
    found: list[Named] = []
    resolved(config, found.append)
    return found


def resolved(
    config: pydantic.BaseModel, replace: Callable[[Named], Any], place: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the settings of a config as JSON values, with each reference replaced.

    Fields marked with ``OmitDefaultFromHash`` are left out where they have their default.

    Args:
        config: The settings.
        replace: Function that returns the value to put in place of a reference.
        place: The keys that lead to ``config``.
    """

    def filled(value: Any, kind: Kind | None, place: tuple[str, ...]) -> Any:
        """Return a value with its references replaced. ``kind`` is the kind of reference that the field declares."""
        if type(value) in _PLAIN:
            return value
        if isinstance(value, pydantic.BaseModel):
            whole: Kind | None = getattr(type(value), "reference", None)
            return resolved(value, replace, place) if whole is None else replace(Named(place, whole, value))
        if isinstance(value, str):
            return replace(Named(place, kind, value)) if kind is not None and value else value
        if isinstance(value, Mapping):
            return {str(key): filled(inner, kind, (*place, str(key))) for key, inner in value.items()}
        assert isinstance(value, list | tuple), f"{'.'.join(place)} is {value!r}, which is no JSON"
        return [filled(inner, kind, (*place, str(n))) for n, inner in enumerate(value)]

    found: dict[str, Any] = {}
    for name, (kind, omitted) in _fields(type(config)).items():
        value = getattr(config, name)
        if not (omitted and value == omitted[0]):
            found[name] = value if type(value) in _PLAIN else filled(value, kind, (*place, name))
    return found


def omits_default(field: FieldInfo) -> bool:
    """Return whether a field is marked with ``OmitDefaultFromHash``."""
    return any(isinstance(mark, OmitDefaultFromHash) for mark in field.metadata)


@lru_cache(maxsize=256)
def _fields(model: type[pydantic.BaseModel]) -> dict[str, tuple[Kind | None, tuple[Any, ...]]]:
    """Map each field to its kind of reference, if any, and its omitted default.

    The default is a tuple of one value. The tuple is empty if the default is not omitted.
    """
    found: dict[str, tuple[Kind | None, tuple[Any, ...]]] = {}
    for name, field in model.model_fields.items():
        own = next((mark.kind for mark in field.metadata if isinstance(mark, Reference)), None)
        omitted = (field.get_default(call_default_factory=True),) if omits_default(field) else ()
        found[name] = own or _kind(field.annotation), omitted
    return found


def _kind(hint: Any) -> Kind | None:
    """Return the kind of reference that a type declares, also inside a union or a container."""
    if get_origin(hint) is Annotated:
        marks = [mark.kind for mark in hint.__metadata__ if isinstance(mark, Reference)]
        return marks[0] if marks else _kind(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType, dict, list, tuple):
        return next((kind for kind in map(_kind, get_args(hint)) if kind is not None), None)
    return None


def local_path(spec: str) -> Path | None:
    """Return the file or folder in the spec of a source or of items, or None for built-in data and the hub.

    Raises:
        InputError: The path begins with ``~USER``, and the user does not exist.

    >>> local_path("ner:iob:data/ner?train=a#dev").as_posix(), local_path("hf:conll2003"), local_path("")
    ('data/ner', None, None)
    """
    *schemes, place = spec.partition("#")[0].split(":")
    if not place or {"builtin", "hf"} & {*schemes}:
        return None
    return user_path(place.partition("?")[0])
