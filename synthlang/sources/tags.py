"""Tags of words that belong to spans: any of the usual schemes becomes legal IOB2; how they stand in CoNLL-U.

In its last column: ``NER=B-PER|Slot=O``; of a backslash and ``|`` in a tag, see ESCAPES.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from synthlang.corpus import Corpus
from synthlang.rewrite import Rewrite

TAG = re.compile(r"O|[BIESLU]-\S+")
SCHEME = {"S": "B", "U": "B", "E": "I", "L": "I"}  # IOBES and BILOU


def iob_tag(tag: str) -> str | None:
    """A tag of IOB1, IOB2, IOBES or BILOU with B, I or O; None for what is no tag.

    >>> iob_tag("S-PER"), iob_tag("L-PER"), iob_tag("O"), iob_tag("PER"), iob_tag("B-")
    ('B-PER', 'I-PER', 'O', None, None)
    """
    return SCHEME.get(tag[0], tag[0]) + tag[1:] if TAG.fullmatch(tag) else None


def legal_tags(corpus: Corpus) -> Corpus:
    """The corpus with legal IOB2 tags: a mention starts with B."""
    return Rewrite.identity(corpus).apply(corpus)


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
