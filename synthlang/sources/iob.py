"""Named entities in CoNLL columns: one word per line with its tag, and a blank line after each sentence.

    en:Sioux<TAB>B-ORG        WikiANN: each word has the prefix of its language
    Sioux NNP B-NP B-ORG      CoNLL 2003: the word is first, and the tag is last
    1 Sioux B-ORG O           PATH?column=2&tag=3: word and tag in other columns, counted from 1

Tags are IOB2, IOB1 or IOBES and become IOB2. ``-DOCSTART-`` lines and comments (``# …`` without a tag) are skipped. If
the first column numbers the words, ``?column=`` must name the column of the words. The name of a file must contain
``train``, ``dev`` or ``test``, except that any other single file is ``train``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.sources.base import annotated_batches, nothing_in
from synthlang.sources.conllu import one_word
from synthlang.sources.tags import TAG, iob_tag, legal_tags
from synthlang.sources.text import FileSource

READER = 1  # part of the fingerprint: raise when the same bytes give other sentences
PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")


class IobSource(FileSource):
    """Sentences with legal IOB2 tags of entities."""

    scheme = "iob"
    endings = ("", ".txt", ".conll", ".iob", ".iob2", ".bio", ".tsv", ".annotated")
    own_options = ("column", "tag")
    columns = (FORM, "ner")

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        self._places = {name: self._place(name) for name in self.own_options if name in self.options}
        for file in self.files.values():
            if "column" not in self._places and numbers_words(file):
                hint = "name the column of the words: PATH?column=2"
                raise InputError("the first column numbers the words", file, hint=hint, code="format")
            next(read_sentences(file, **self._places))

    def _place(self, option: str) -> int:
        value = self.options[option]
        if not re.fullmatch("[1-9][0-9]?", value):
            reason = f"must be the number of a column, from 1, not {value!r}"
            raise InputError(reason, self.path, keys=option, code="type")
        return int(value)

    def _marks(self) -> dict[str, Any]:
        return {"reader": READER, **self._places}

    def _batches(self, split: str) -> Iterator[Corpus]:
        return map(legal_tags, annotated_batches(read_sentences(self.files[split], **self._places)))


def read_sentences(path: Path, column: int = 1, tag: int = 0) -> Iterator[dict[str, list[str]]]:
    """Yield the sentences of a file.

    Args:
        path: The file.
        column: The column of the words, from 1.
        tag: The column of the tags, from 1, or 0 for the last column.

    Raises:
        InputError: A line is malformed, or the file has no sentence.
    """
    prefix = _common_prefix(path, column)
    form, ner, none = list[str](), list[str](), True
    for number, line in read_lines(path):
        fields = _fields(line)
        if fields:
            if len(fields) < max(2, column, tag):
                raise too_few_columns(path, number, max(2, column, tag))
            word = fields[column - 1].removeprefix(prefix)
            if not word.strip():
                raise InputError("the word is empty", path, number, code="format")
            form.append(one_word(word))
            ner.append(iob_tag(fields[tag - 1].strip(), path, number))
        elif form:
            yield {FORM: form, "ner": ner}
            form, ner, none = [], [], False
    if form:
        yield {FORM: form, "ner": ner}
    elif none:
        raise nothing_in("sentence", path)


def too_few_columns(path: Path, line: int, needed: int) -> InputError:
    """Return the error for a line with too few columns for a word and its tag."""
    hint = "write a word and its tag, separated by a tab or a space" if needed == 2 else ""
    return InputError(f"the line has fewer than {needed} columns", path, line, hint=hint, code="format")


def numbers_words(path: Path) -> bool:
    """Return whether the first of at least three columns numbers the words of every sentence, from 1 or from 0."""
    at, first, longest = 0, "", 0
    for _, line in read_lines(path):
        fields = _fields(line)
        if not fields:
            at = 0
            continue
        first = first or fields[0]
        if len(fields) < 3 or first not in ("0", "1") or fields[0] != str(int(first) + at):
            return False
        at += 1
        longest = max(longest, at)
    return longest > 1


def _common_prefix(path: Path, column: int) -> str:
    """Return the prefix ``lang:`` that all words of a file share, or "".

    The whole file is read, since a single word of a file without prefixes may look like one (``re:``).
    """
    found: set[str] = set()
    for _, line in read_lines(path):
        if len(fields := _fields(line)) >= column:
            match = PREFIX.match(fields[column - 1])
            found.add(match.group() if match else "")
            if len(found) > 1 or match is None:
                return ""
    return found.pop() if found else ""


def _fields(line: str) -> list[str]:
    """Return the columns of a line, split at tabs or else at spaces. A line that ends a sentence has none."""
    if not line.strip() or line.startswith("-DOCSTART-"):
        return []
    fields = line.split("\t") if "\t" in line else line.split()
    return [] if line.startswith("# ") and not TAG.fullmatch(fields[-1]) else fields
