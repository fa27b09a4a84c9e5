"""Lines of files with one word and its tags on each line, and the comments between them.

A line of such a file that begins with ``#`` is a comment unless it looks like the other lines. Its number of columns
must then occur in lines without ``#``, and its tag must be O or have a name that occurs in these lines.
``# text = We take the U-Bahn`` is therefore a comment, and ``# O`` is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from synthlang.errors import InputError
from synthlang.sources.tags import TAG
from synthlang.sources.words import columns_of, joined_lines
from synthlang.wording import plural

PAIR = "write a word and its tag, separated by a tab or a space"
"""Hint of errors about a line that needs a word and its tag."""
HASH = re.compile(r"#(?:\s|$)")
DOCUMENT = "-DOCSTART-"


class Line(NamedTuple):
    """A line of a file of words with tags, split into its columns.

    Attributes:
        number: Number of the line, from 1.
        fields: Columns of the line, or [] for a blank line, a comment or a ``-DOCSTART-`` line.
        text: The whole line.
    """

    number: int
    fields: list[str]
    text: str

    @property
    def is_comment(self) -> bool:
        return not self.fields and self.text.startswith("#")


def column_lines(path: Path, tag: int = 0) -> Iterator[Line]:
    """Yield the lines of a file of words with tags, where a comment or a blank line has no fields.

    Args:
        path: The file.
        tag: Number of the column of tags, from 1, or 0 for the last column.

    Raises:
        InputError: The file cannot be read, or a line is not UTF-8 or too long.
    """
    shape: tuple[set[int], set[str]] | None = None
    for number, text in joined_lines(path):
        fields = [] if not text.strip() or text.startswith(DOCUMENT) else columns_of(text)
        if fields and HASH.match(text):
            shape = shape or _shape(path, tag)
            if not _is_word(fields, tag, *shape):
                fields = []
        yield Line(number, fields, text)


def _shape(path: Path, tag: int) -> tuple[set[int], set[str]]:
    """Return the column counts and the tag names of all lines that do not begin with ``#``."""
    widths, names = set[int](), set[str]()
    for _, text in joined_lines(path):
        if text.strip() and not HASH.match(text) and not text.startswith(DOCUMENT):
            fields = columns_of(text)
            widths.add(len(fields))
            names.add(_name(fields, tag))
    return widths, names


def _is_word(fields: list[str], tag: int, widths: set[int], names: set[str]) -> bool:
    if len(fields) < 2 or len(fields) not in (widths or {2}):
        return False
    name = _name(fields, tag)
    return name == "O" or (name in names and TAG.fullmatch(fields[tag - 1].strip()) is not None)


def _name(fields: list[str], tag: int) -> str:
    """Return the tag of a line without its prefix (``B-``)."""
    text = fields[tag - 1].strip() if tag <= len(fields) else ""
    return text if text == "O" else text[2:]


def too_few_columns(path: Path, line: Line, needed: int, hint: str) -> InputError:
    """Return the error for a line with fewer than ``needed`` columns."""
    reason = f"the line has {plural(len(line.fields), 'column')}, but at least {needed} are needed"
    return InputError(reason, path, line.number, hint=hint, code="format")
