r"""Tags of words in the last column of CoNLL-U: ``NER=B-PER|Slot=O``; ``\p`` stands for ``|``, ``\\`` for ``\``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from synthlang.sources.tags import TAG

KEYS = {"ner": "NER", "slot": "Slot"}  # our columns, in the order of the keys
ESCAPES = {"\\": "\\\\", "|": "\\p"}
CHARACTERS = {written: char for char, written in ESCAPES.items()}


def write_misc(values: Mapping[str, str]) -> str:
    """The values of the columns that have a key, ``_`` if there are none."""
    found = (f"{key}={_escaped(values[name])}" for name, key in KEYS.items() if name in values)
    return "|".join(found) or "_"


def read_misc(misc: str, name: str) -> str | None:
    r"""The value of a column, None if there is none.

    >>> read_misc(r"Gloss=x|NER=B-a\\pb", "ner"), read_misc("_", "ner")
    ('B-a|b', None)
    """
    start = f"{KEYS[name]}="
    value = next((part.removeprefix(start) for part in misc.split("|") if part.startswith(start)), None)
    return None if value is None else re.sub(r"\\[\\p]", lambda match: CHARACTERS[match.group()], value)


def columns_in(misc: Iterable[str]) -> tuple[str, ...]:
    """The columns that every word of a sentence has a tag for."""
    words = list(misc)
    return tuple(name for name in KEYS if all(TAG.fullmatch(read_misc(word, name) or "") for word in words))


def _escaped(value: str) -> str:
    return "".join(ESCAPES.get(char, char) for char in value)
