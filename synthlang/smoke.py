"""Shrink settings for ``--smoke``, so that a run takes seconds and shows whether all of its steps work.

The attribute ``smoke`` of a class of settings declares the smaller values of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from synthlang.config import StrictModel
from synthlang.sources.limited import LIMIT, without_limit

C = TypeVar("C", bound=StrictModel)
SUFFIX = "-smoke"
NOTE = "smoke run: it shows that everything works; its numbers mean nothing"
BUILTIN = re.compile(r"(builtin:mini-english)(?:\?([^#]*))?")
SOURCES = {"source", "sources"}
"""Names of fields that hold one or several specs of sources of sentences."""
MOST = {"sentences": 300, "dev": 60, "test": 60}
"""Largest number of sentences of each split in a smoke run. For a source in files, ``sentences`` is for all splits."""


def smaller(config: C) -> C:
    """Return a copy of the config with the smaller values of ``smoke`` and with few sentences of each source.

    Raises:
        InputError: The option ``limit`` of a source is not a whole number from 1, or is given twice.
    """
    update = {name: _smaller(value) for name, value in config if name in type(config).model_fields}
    for name in SOURCES & update.keys():
        value = getattr(config, name)
        update[name] = _limited(value) if isinstance(value, str) else tuple(map(_limited, value))
    for name, most in config.smoke.items():
        value = update[name]
        update[name] = most(config) if callable(most) else most if value is None else min(value, most)
    return config.model_copy(update=update)


def _smaller(value: Any) -> Any:
    if isinstance(value, StrictModel):
        return smaller(value)
    if isinstance(value, Mapping):
        return {key: _smaller(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_smaller, value))
    return smaller_source(value) if isinstance(value, str) else value


def smaller_source(spec: str) -> str:
    """Return a spec of a source or of items, with at most MOST sentences if it is the built-in source."""
    return BUILTIN.sub(_smaller_builtin, spec)


def _limited(spec: str) -> str:
    """Return the spec of a source with few sentences."""
    if not spec or BUILTIN.match(spec):
        return smaller_source(spec)
    plain, limit = without_limit(spec)
    most = min(limit or MOST["sentences"], MOST["sentences"])
    return f"{plain}{'&' if '?' in plain else '?'}{LIMIT}={most}"


def _smaller_builtin(match: re.Match[str]) -> str:
    options = dict(option.partition("=")[::2] for option in (match[2] or "").split("&") if option)
    for name, most in MOST.items():
        given = options.get(name, str(most))
        options[name] = str(min(int(given), most)) if given.isdecimal() else given  # which the source refuses
    return f"{match[1]}?{'&'.join(f'{name}={value}' for name, value in options.items())}"


def smoke_path(path: Path) -> Path:
    """Return the output path of a smoke run, so that nobody mistakes it for a result.

    >>> smoke_path(Path("runs/a")).as_posix(), smoke_path(Path("a.json")).as_posix()
    ('runs/a-smoke', 'a-smoke.json')
    """
    ending = ".json" if path.suffix == ".json" else ""
    return path.with_name(path.name.removesuffix(ending) + SUFFIX + ending)
