"""What a config names outside itself, as typed fields: sources, items of a task, files, models, languages, parsers.

A field whose type has a ``Reference`` in it, as ``left: UserFile | None``, holds the name of something; ``references``
finds all of them in any config. So no other module lists the fields that hold paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo

Kind = Literal["source", "items", "file", "model", "language", "parser"]


@dataclass(frozen=True)
class Reference:
    """Marks the type of a field whose text names something of a kind."""

    kind: Kind


@dataclass(frozen=True)
class Later:
    """Marks a field that a config did not have at first: at its default it is no part of ``resolved``, so that what was
    made before there was such a field is found by the same fingerprint."""


SourceSpec = Annotated[str, Reference("source")]
"""Sentences, as ``conllu:PATH`` (synthlang.sources)."""
ItemsSpec = Annotated[str, Reference("items")]
"""Labelled items, as ``ner:PATH#dev`` (synthlang.tasks), with or without the name of the task."""
UserFile = Annotated[str, Reference("file")]
"""A file or folder."""
ModelName = Annotated[str, Reference("model")]
"""A run, a folder with a model, or a model of Hugging Face."""
LanguageSpec = Annotated[str, Reference("language")]
"""A language by its short name or YAML file, or the name of a language of a model."""
ParserSpec = Annotated[str, Reference("parser")]
"""A parser, as ``spacy:NAME``."""


@dataclass(frozen=True)
class Named:
    """Something that a config names: ``place`` are the keys where the ``name`` stands, or a whole ``Language``."""

    place: tuple[str, ...]
    kind: Kind
    name: Any


def references(config: pydantic.BaseModel) -> list[Named]:
    """Everything that a config names, in the order of its fields; nothing is opened."""
    found: list[Named] = []
    resolved(config, found.append)
    return found


def resolved(config: pydantic.BaseModel, say: Callable[[Named], Any], place: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings of a config as JSON values, with what ``say`` has for each reference in its place.

    Those that came ``Later`` are left out where they have their default.
    """

    def told(value: Any, hint: Any, kind: Kind | None, place: tuple[str, ...]) -> Any:
        """``hint`` is the type of a value, ``kind`` what the type around it says a text is."""
        if value is None or isinstance(value, int | float):  # as most are
            return value
        if isinstance(value, pydantic.BaseModel):
            whole: Kind | None = getattr(type(value), "reference", None)
            return resolved(value, say, place) if whole is None else say(Named(place, whole, value))
        if isinstance(value, str):
            found = kind or _kind(hint)
            return say(Named(place, found, value)) if found is not None and value else value
        if isinstance(value, Mapping):
            return {str(key): told(inner, hint, kind, (*place, str(key))) for key, inner in value.items()}
        assert isinstance(value, list | tuple), f"{'.'.join(place)} is {value!r}, which is no JSON"
        return [told(inner, hint, kind, (*place, str(n))) for n, inner in enumerate(value)]

    return {
        name: told(getattr(config, name), hint, kind, (*place, name))
        for name, (hint, kind, later) in _fields(type(config)).items()
        if not (later and is_unused(config, name))
    }


def is_unused(config: pydantic.BaseModel, name: str) -> bool:
    """Whether a field is one that came ``Later`` and has its default."""
    field = type(config).model_fields[name]
    return is_later(field) and getattr(config, name) == field.get_default(call_default_factory=True)


def is_later(field: FieldInfo) -> bool:
    """Whether a config did not have the field at first."""
    return any(isinstance(mark, Later) for mark in field.metadata)


@lru_cache(maxsize=256)
def _fields(model: type[pydantic.BaseModel]) -> dict[str, tuple[Any, Kind | None, bool]]:
    """Field → its type, the kind of reference that it is as a whole, and whether it came later."""
    kinds = {
        name: next((mark.kind for mark in field.metadata if isinstance(mark, Reference)), None)
        for name, field in model.model_fields.items()
    }
    return {name: (field.annotation, kinds[name], is_later(field)) for name, field in model.model_fields.items()}


@lru_cache(maxsize=1024)
def _kind(hint: Any) -> Kind | None:
    """The kind that texts of a type are of: that of the marker in it, also in a union or a container."""
    if get_origin(hint) is Annotated:
        marks = [mark.kind for mark in hint.__metadata__ if isinstance(mark, Reference)]
        return marks[0] if marks else _kind(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType, dict, list, tuple):
        return next((kind for kind in map(_kind, get_args(hint)) if kind is not None), None)
    return None
