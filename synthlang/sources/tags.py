"""Tags of spans: conversion of the usual schemes to legal IOB2, and their form in CoNLL-U.

The last column of CoNLL-U holds ``NER=B-PER|Slot=O``. ESCAPES replace a backslash or ``|`` in a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.rewrite import Rewrite

TAG = re.compile(r"O|[BIESLU]-\S+")
SCHEME = {"S": "B", "U": "B", "E": "I", "L": "I"}  # IOBES and BILOU
KEYS = {"ner": "NER", "slot": "Slot"}  # our columns, in the order of the keys
ESCAPES = {"\\": "\\\\", "|": "\\p"}
CHARACTERS = {written: char for char, written in ESCAPES.items()}


def iob_tag(
    tag: str,
    path: Path | None = None,
    line: int | None = None,
    keys: Sequence[str] | str = (),
    hint: str = "correct the tag",
) -> str:
    """Convert a tag of IOB1, IOB2, IOBES or BILOU to a tag with B, I or O. ``legal_tags`` then makes the tags IOB2.

    Raises:
        InputError: The tag belongs to none of these schemes. The error has ``path``, ``line``, ``keys`` and ``hint``.

    >>> iob_tag("S-PER"), iob_tag("L-PER"), iob_tag("O")
    ('B-PER', 'I-PER', 'O')
    """
    if not TAG.fullmatch(tag):
        reason = f"the tag {tag[:40]!r} must be O, or B-, I-, E-, S-, L- or U- and a name without white space"
        raise InputError(reason, path, line, keys=keys, hint=hint, code="format")
    return SCHEME.get(tag[0], tag[0]) + tag[1:]


def legal_tags(corpus: Corpus) -> Corpus:
    """Return the corpus with legal IOB2 tags: every mention starts with B."""
    return Rewrite.identity(corpus).apply(corpus)


def write_misc(values: Mapping[str, str]) -> str:
    """Return the MISC field with the values of the columns ``ner`` and ``slot``, or ``_`` without such a column."""
    pairs = ((key, values[name]) for name, key in KEYS.items() if name in values)
    return "|".join(f"{key}={''.join(ESCAPES.get(char, char) for char in value)}" for key, value in pairs) or "_"


def read_misc(misc: str, name: str) -> str | None:
    r"""Return the tag of the column ``name`` (ner or slot) in a MISC field, or None if the field has no such tag.

    >>> read_misc(r"Gloss=x|NER=B-a\pb", "ner"), read_misc("_", "ner")
    ('B-a|b', None)
    """
    start = f"{KEYS[name]}="
    value = next((part.removeprefix(start) for part in misc.split("|") if part.startswith(start)), None)
    return None if value is None else re.sub(r"\\[\\p]", lambda match: CHARACTERS[match.group()], value)


def columns_in(misc: Iterable[str]) -> tuple[str, ...]:
    """Return which of the columns ``ner`` and ``slot`` have a tag in the MISC field of every word of a sentence."""
    words = list(misc)
    return tuple(name for name in KEYS if all(TAG.fullmatch(read_misc(word, name) or "") for word in words))
