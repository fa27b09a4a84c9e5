"""What a config comes to: its settings, with the content of what it names in the place of the names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pydantic

from probes.study.inputs import Named, named_in
from probes.study.models import content_of
from synthlang.config import assigned
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import digest_files, sha256_file
from synthlang.language import Language, parse_language
from synthlang.parsing import open_engine
from synthlang.sources import open_source


def identity(config: pydantic.BaseModel, models: Mapping[str, str]) -> dict[str, Any]:
    """The settings as JSON, with fingerprints for files, sources, languages and models: no path is left.

    models   name → content, for those that stand for a model of the cell

    For configs of adjustments and probes. InputError for a file that is not there.
    """
    settings: dict[str, Any] = json.loads(config.model_dump_json())
    for named in named_in(config):
        settings = assigned(settings, list(named.place), _content(named, models))
    return settings


def _content(named: Named, models: Mapping[str, str]) -> str:
    name = named.name
    if isinstance(name, Language):
        return name.fingerprint
    if name in models:
        return models[name]
    if named.kind == "language":
        try:
            return parse_language(name).fingerprint
        except InputError:  # the name of a language of the model
            return name
    contents: dict[str, Callable[[str], str]] = {
        "model": content_of,
        "source": lambda spec: open_source(spec).fingerprint,
        "parser": lambda spec: open_engine(spec).fingerprint,
    }
    return contents.get(named.kind, _file)(name)


def _file(name: str) -> str:
    path = user_path(name)
    if path.is_dir():
        return digest_files(held for held in path.iterdir() if held.is_file())
    if not path.is_file():
        raise InputError("no such file", path)
    return sha256_file(path)
