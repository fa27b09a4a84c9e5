"""Where sentences come from: built-in grammar, text, CoNLL-U, tagged words, data sets of the hub."""

from __future__ import annotations

import importlib
import re
from typing import Any

from synthlang.errors import InputError
from synthlang.sources.base import Source

FORMS = (
    "builtin:mini-english[?types=800&sentences=5000], text:PATH, lines:PATH, conllu:PATH[?feats], iob:PATH, "
    "slots:PATH or hf:NAME[:CONFIG]"
)
# scheme → module and class, imported when it is wanted: some read through heavy libraries
READERS = {
    "text": ("text", "TextSource"),
    "lines": ("text", "LinesSource"),
    "conllu": ("conllu", "ConlluSource"),
    "iob": ("iob", "IobSource"),
    "slots": ("slots", "SlotsSource"),
    "hf": ("hub", "HubSource"),
}
WHOLE, DECIMAL = "[0-9]{1,9}", r"[0-9](\.[0-9]{1,4})?"
BUILTIN_OPTIONS = {**dict.fromkeys(("types", "sentences", "dev", "test", "seed"), WHOLE), "zipf": DECIMAL}


def open_source(spec: str) -> Source:
    """Open the source that ``spec`` names, as on the command line.

    Raises InputError for an unknown form or option and for whatever cannot be opened.
    """
    scheme, _, rest = spec.partition(":")
    if scheme == "builtin" and rest.strip():
        return _builtin(spec, rest)
    if scheme not in READERS or not rest.strip():
        raise InputError(f"source {spec!r} must be one of: {FORMS}")
    module, name = READERS[scheme]
    source: Source = getattr(importlib.import_module(f"synthlang.sources.{module}"), name)(rest)
    return source


def _builtin(spec: str, rest: str) -> Source:
    name, _, query = rest.partition("?")
    if name != "mini-english":
        raise InputError(f"source {spec!r}: the only built-in one is mini-english")
    options: dict[str, Any] = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        if key not in BUILTIN_OPTIONS or key in options or not re.fullmatch(BUILTIN_OPTIONS[key], value):
            known = ", ".join(BUILTIN_OPTIONS)
            raise InputError(f"source {spec!r}: {part!r} must be NAME=NUMBER, each of these names once: {known}")
        options[key] = float(value) if BUILTIN_OPTIONS[key] is DECIMAL else int(value)
    from synthlang.sources.mini_english import MiniEnglish

    return MiniEnglish(**options)
