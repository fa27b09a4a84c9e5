"""Open sources of sentences: the built-in grammar, text, CoNLL-U, tagged words and data sets of the hub."""

from __future__ import annotations

import importlib
import re
from typing import Any

from synthlang.errors import InputError
from synthlang.sources.base import MORPHOLOGY, Source
from synthlang.sources.limited import LIMIT, LimitedSource, without_limit
from synthlang.sources.splits import UnknownOptionError, path_options, unknown_option

FORMS = (
    "builtin:mini-english[?types=800&sentences=5000], text:PATH, lines:PATH, conllu:PATH[?feats&lemma], iob:PATH, "
    "slots:PATH or hf:NAME[:CONFIG][?streaming]; each takes ?limit=N sentences"
)
# Module and class of each scheme. A module is imported when its source is opened, since some import heavy libraries.
READERS = {
    "text": ("text", "TextSource"),
    "lines": ("text", "LinesSource"),
    "conllu": ("conllu", "ConlluSource"),
    "iob": ("iob", "IobSource"),
    "slots": ("slots", "SlotsSource"),
    "hf": ("hub", "HubSource"),
}
WHOLE, DECIMAL = "[0-9]{1,9}", r"[0-9](\.[0-9]{1,4})?"
FLAG = ""  # an option without a value
BUILTIN_OPTIONS = {
    **dict.fromkeys(("types", "sentences", "dev", "test", "seed"), WHOLE),
    "zipf": DECIMAL,
    **dict.fromkeys(MORPHOLOGY, FLAG),
}


def open_source(spec: str) -> Source:
    """Open a source in the notation of the command line, such as ``conllu:PATH?limit=100`` (see FORMS).

    Raises:
        InputError: The spec is not a source, an option is wrong, or the source cannot be opened.
    """
    spec, limit = without_limit(spec)
    source = _open(spec)
    return source if limit is None else LimitedSource(source, limit)


def _open(spec: str) -> Source:
    scheme, _, rest = spec.partition(":")
    if scheme == "builtin" and rest.strip():
        return _builtin(rest)
    if scheme not in READERS or not rest.strip():
        raise InputError(f"{spec!r} is not a source", hint=f"use one of: {FORMS}", code="unknown")
    module, name = READERS[scheme]
    reader = getattr(importlib.import_module(f"synthlang.sources.{module}"), name)
    try:
        source: Source = reader(rest)
    except UnknownOptionError as error:
        raise unknown_option("".join(error.keys), str(error.path), (*error.known, LIMIT)) from error
    return source


def _builtin(rest: str) -> Source:
    name = rest.rpartition("?")[0] or rest
    if name != "mini-english":
        raise InputError(f"{name!r} is not a built-in source", hint="use builtin:mini-english", code="unknown")
    _, given = path_options(rest, tuple(BUILTIN_OPTIONS), "builtin:")
    options: dict[str, Any] = {}
    for key, value in given.items():
        kind = BUILTIN_OPTIONS[key]
        if not re.fullmatch(kind, value):
            number = "from 0 to 2 with at most 4 decimals" if kind is DECIMAL else "of 1 to 9 digits"
            reason = f"must be a number {number}, not {value!r}" if kind else f"takes no value, but has {value!r}"
            example = f"for example {key}={1.5 if kind is DECIMAL else 1000}" if kind else key
            raise InputError(reason, f"builtin:{name}", keys=key, hint=f"write {example}", code="type")
        options[key] = float(value) if kind is DECIMAL else int(value) if kind else True
    from synthlang.sources.mini_english import MiniEnglish

    return MiniEnglish(**options)
