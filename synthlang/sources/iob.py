"""Named entities in CoNLL columns: a word a line, its tag last, a blank line after each sentence.

    en:Sioux<TAB>B-ORG        WikiANN, the language before each word
    Sioux NNP B-NP B-ORG      CoNLL 2003: word first, tag last, columns between them are left alone

Tags are IOB2, IOB1 or IOBES and become IOB2. ``-DOCSTART-`` lines and comments (``# …`` without a
tag) are skipped. A file by itself is the split its name says, else ``train``; a folder has files
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
    columns = (FORM, "ner")

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        for file in self.files.values():
            next(read_sentences(file))

    def _marks(self) -> dict[str, Any]:
        return {"reader": READER}

    def _batches(self, split: str) -> Iterator[Corpus]:
        return map(legal_tags, annotated_batches(read_sentences(self.files[split])))


def read_sentences(path: Path) -> Iterator[dict[str, list[str]]]:
    """Read the sentences of a file; InputError with the line for what is none, and if there is none at all."""
    prefix = _common_prefix(path)
    form, ner, none = list[str](), list[str](), True
    for number, line in read_lines(path):
        fields = _fields(line)
        if fields:
            if len(fields) < 2:
                raise InputError("a line holds a word and its tag with a tab or a space between them", path, number)
            word = fields[0].removeprefix(prefix)
            if not word.strip():
                raise InputError("the word is empty", path, number)
            form.append(one_word(word))
            ner.append(iob_tag(fields[-1].strip(), path, number))
        elif form:
            yield {FORM: form, "ner": ner}
            form, ner, none = [], [], False
    if form:
        yield {FORM: form, "ner": ner}
    elif none:
        raise InputError("holds no sentence", path)


def _common_prefix(path: Path) -> str:
    """The ``lang:`` that stands before every word of a file; empty if a word has none or another one.

    It is decided on the whole file, since a word of a file without it may look the same (``re:``).
    """
    found: set[str] = set()
    for _, line in read_lines(path):
        if fields := _fields(line):
            match = PREFIX.match(fields[0])
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
