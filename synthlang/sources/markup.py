"""Refuse files that are not plain text, and remove the markup of well-known text corpora.

WikiExtractor writes ``<doc id="…" …>`` and ``</doc>`` around each article. WikiText and Moses write ``@-@``, ``@,@``
and so on where they split a character off a word: ``state @-@ of @-@ the @-@ art``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from synthlang.errors import InputError

DOC_LINES = "lines with the markup of WikiExtractor (<doc …>), left out"
JOINED = "marks such as @-@, joined again (state @-@ of is state-of)"
DOC = re.compile(r"\s*(?:<doc id=.*>|</doc>)\s*")
SPLIT_OFF = re.compile(r"(?<=\S) @([-.,/:])@ (?=\S)")
SHOWN = 3  # lines that must look like columns of tags or pairs of sentences
TAGGED_LINE = re.compile(r"\S+(?:[ \t]\S+){0,4}[ \t](?:O|[BIESLU]-\S+)")
JSON_START = re.compile(r'\s*(?:\{\s*(?:"[^"]*"\s*:.*)?|\[\s*(?:\{.*)?)')
WORD_LINE = re.compile(r"[0-9]+(?:[-.][0-9]+)?\t(?:[^\t]*\t){8}[^\t]*")


def without_markup(line: str, counts: Counter[str]) -> str:
    """Return a line of running text without the markup of its corpus, and count the marks by reason in ``counts``.

    A line that is a tag of WikiExtractor becomes "".
    """
    if "doc" in line and DOC.fullmatch(line):
        counts[DOC_LINES] += 1
        return ""
    if "@" not in line:
        return line
    line, joined = SPLIT_OFF.subn(r"\1", line)
    counts[JOINED] += joined
    return line


def check_plain(lines: Iterable[tuple[int, str]], path: Path) -> None:
    """Check that a file is plain text, by its first SHOWN lines that do not begin with ``#``.

    Args:
        lines: Number, from 1, and text of each line that has a word.
        path: The file, for the error.

    Raises:
        InputError: The lines are CoNLL-U, JSON, XML or HTML, words with tags, or pairs of sentences.
    """
    first = list(islice(((n, text.strip("\r\n")) for n, text in lines if not text.startswith("#")), SHOWN))
    number, line = first[0] if first else (1, "")
    name = hint = ""
    is_packed = path.suffix == ".gz"  # only text can be read packed
    unpack, plain = ("unpack the file (gunzip), and ", path.with_suffix("")) if is_packed else ("", path)
    if WORD_LINE.fullmatch(line):
        name, hint = "CoNLL-U", f"{unpack}read it as conllu:{plain}"
    elif JSON_START.fullmatch(line):
        name = "JSON"
        hint = "read a folder of JSON lines as hf:FOLDER, or write each text to a line of a plain text file"
    elif line.startswith(("<?xml", "<!DOCTYPE", "<mediawiki")):
        name, hint = "XML or HTML", "extract the text of the file first"
    elif len(first) == SHOWN and all(TAGGED_LINE.fullmatch(text) for _, text in first):
        name, hint = "words with tags", f"{unpack}read it as iob:{plain}"
    elif len(first) == SHOWN and all(text.count(" ||| ") == 1 for _, text in first):
        name, hint = "parallel text", "write each language to a file of its own"
    if name:
        raise InputError(f"the content is {name}, not plain text", path, number, hint=hint, code="format")
