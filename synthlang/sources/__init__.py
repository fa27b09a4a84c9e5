"""Open sources of sentences: the built-in grammar, text, CoNLL-U, tagged words and data sets of the hub."""

from __future__ import annotations

import importlib
import re
from typing import Any

from synthlang.errors import InputError
from synthlang.sources.base import MORPHOLOGY, Source
from synthlang.sources.limited import LimitedSource, without_limit

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
        return _builtin(spec, rest)
    if scheme not in READERS or not rest.strip():
        raise InputError(f"{spec!r} is not a source", hint=f"use one of: {FORMS}", code="unknown")
    module, name = READERS[scheme]
    source: Source = getattr(importlib.import_module(f"synthlang.sources.{module}"), name)(rest)
    return source


def _builtin(spec: str, rest: str) -> Source:
    name, _, query = rest.partition("?")
    if name != "mini-english":
        raise InputError(f"{name!r} is not a built-in source", hint="use builtin:mini-english", code="unknown")
    options: dict[str, Any] = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        known = f"use {', '.join(BUILTIN_OPTIONS)}"
        if key not in BUILTIN_OPTIONS:
            raise InputError(f"{part!r} is not an option of the source", spec, hint=known, code="unknown")
        if key in options:
            raise InputError(f"the option {key} occurs twice", spec, hint="delete one of the two", code="duplicate")
        kind = BUILTIN_OPTIONS[key]
        if not re.fullmatch(kind, value):
            number = f"{key}=N, where N {'is a number such as 1.0' if kind is DECIMAL else 'has 1 to 9 digits'}"
            wanted = number if kind else f"{key}, without a value"
            raise InputError(f"{part!r} must be {wanted}", spec, hint="correct this option", code="type")
        options[key] = float(value) if kind is DECIMAL else int(value) if kind else True
    from synthlang.sources.mini_english import MiniEnglish

    return MiniEnglish(**options)
