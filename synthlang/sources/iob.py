"""Named entities in CoNLL columns: a word a line, its tag last, a blank line after each sentence.

    en:Sioux<TAB>B-ORG        WikiANN, the language before each word
    Sioux NNP B-NP B-ORG      CoNLL 2003: word first, tag last, columns between them are left alone
    1 Sioux B-ORG O           PATH?column=2&tag=3: word and tag in other columns, counted from 1

Tags are IOB2, IOB1 or IOBES and become IOB2. ``-DOCSTART-`` lines and comments (``# …`` without a
tag) are skipped. A file whose first column numbers the words is an error unless ``?column=`` says
where they are. A file by itself is the split its name says, else ``train``; a folder has files
named ``train``, ``dev``, ``test`` or with such a part in their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.sources.base import annotated_batches
from synthlang.sources.conllu import one_word
from synthlang.sources.tags import TAG, iob_tag, legal_tags
from synthlang.sources.text import FileSource

READER = 1  # part of the fingerprint: count up when the same bytes give other sentences
PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")


class IobSource(FileSource):
    """Sentences with entities, the tags as legal IOB2."""

    scheme = "iob"
    endings = ("", ".txt", ".conll", ".iob", ".iob2", ".bio", ".tsv", ".annotated")
    own_options = ("column", "tag")
    columns = (FORM, "ner")

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        self._places = {name: self._place(name) for name in self.own_options if name in self.options}
        for file in self.files.values():
            if "column" not in self._places and numbers_words(file):
                raise InputError("the first column numbers the words; say where they are: PATH?column=2", file)
            next(read_sentences(file, **self._places))

    def _place(self, option: str) -> int:
        value = self.options[option]
        if not re.fullmatch("[1-9][0-9]?", value):
            raise InputError(f"iob:{self.path}: {option} must be the number of a column from 1, not {value!r}")
        return int(value)

    def _marks(self) -> dict[str, Any]:
        return {"reader": READER, **self._places}

    def _batches(self, split: str) -> Iterator[Corpus]:
        return map(legal_tags, annotated_batches(read_sentences(self.files[split], **self._places)))


def read_sentences(path: Path, column: int = 1, tag: int = 0) -> Iterator[dict[str, list[str]]]:
    """Read the sentences of a file; InputError with the line for what is none, and if there is none at all.

    ``column`` is that of the words, ``tag`` that of their tags, from 1; 0 is the last one.
    """
    prefix = _common_prefix(path, column)
    form, ner, none = list[str](), list[str](), True
    for number, line in read_lines(path):
        fields = _fields(line)
        if fields:
            if len(fields) < max(2, column, tag):
                raise InputError(_too_few(column, tag), path, number)
            word = fields[column - 1].removeprefix(prefix)
            if not word.strip():
                raise InputError("the word is empty", path, number)
            form.append(one_word(word))
            ner.append(iob_tag(fields[tag - 1].strip(), path, number))
        elif form:
            yield {FORM: form, "ner": ner}
            form, ner, none = [], [], False
    if form:
        yield {FORM: form, "ner": ner}
    elif none:
        raise InputError("holds no sentence", path)


def _too_few(column: int, tag: int) -> str:
    if max(column, tag) > 2:
        return f"here are fewer columns than {max(column, tag)}"
    return "a line holds a word and its tag with a tab or a space between them"


def numbers_words(path: Path) -> bool:
    """Whether the first of three columns or more counts the words of every sentence, from 1 or from 0."""
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
    """The ``lang:`` that stands before every word of a file; empty if a word has none or another one.

    It is decided on the whole file, since a word of a file without it may look the same (``re:``).
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
    """The columns of a line, tabs between them if it has one, else spaces; none for a line that ends a sentence."""
    if not line.strip() or line.startswith("-DOCSTART-"):
        return []
    fields = line.split("\t") if "\t" in line else line.split()
    return [] if line.startswith("# ") and not TAG.fullmatch(fields[-1]) else fields
