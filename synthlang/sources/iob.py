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
from functools import cached_property
from pathlib import Path

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import check_split
from synthlang.sources.conllu import annotated_batches, one_word
from synthlang.sources.tags import TAG, iob_tag, legal_tags
from synthlang.sources.text import SPLITS, FileSource, digest_splits, find_splits, is_file, named_splits, split_of

READER = 1  # part of the fingerprint: count up when the same bytes give other sentences
ENDINGS = (".txt", ".conll", ".iob", ".iob2", ".bio", ".tsv")
PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")
Sentence = dict[str, list[str]]


class IobSource(FileSource):
    """Sentences with entities; a wrong path is an InputError here, a wrong line when it is reached."""

    columns: tuple[str, ...] = (FORM, "ner")

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        if is_file(self.path):
            name = self.path.name
            self.files = {SPLITS.get(name.lower()) or split_of(name, ENDINGS) or "train": self.path}
        else:
            self.files = named_splits(self.path) or find_splits(self.path, ENDINGS)
        for file in self.files.values():
            next(read_sentences(file))  # an empty file ends here, not in the middle of the work

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split and the version of this reader."""
        return fingerprint("iob", reader=READER, splits=digest_splits(self.files))

    def batches(self, split: str) -> Iterator[Corpus]:
        """The sentences of a split in order, the tags as legal IOB2."""
        check_split(self, split, f"iob:{self.path}")
        return map(legal_tags, annotated_batches(read_sentences(self.files[split])))


def read_sentences(path: Path) -> Iterator[Sentence]:
    """Read the sentences of a file; InputError with the line for what is none, and if there is none at all."""
    prefix = common_prefix(path)
    sentence, none = Sentence(form=[], ner=[]), True
    for number, line in read_lines(path):
        fields = _fields(line)
        if fields:
            form, tag = _word(fields, prefix, path, number)
            sentence[FORM].append(form)
            sentence["ner"].append(tag)
        elif sentence[FORM]:
            yield sentence
            sentence, none = Sentence(form=[], ner=[]), False
    if sentence[FORM]:
        yield sentence
    elif none:
        raise InputError("holds no sentence", path)


def common_prefix(path: Path) -> str:
    """The ``lang:`` that stands before every word of a file; empty if a word has none or another one.

    It is decided on the whole file, since a word of a file without it may look the same (``re:``).
    """
    prefix: str | None = None
    for _, line in read_lines(path):
        fields = _fields(line)
        if fields:
            match = PREFIX.match(fields[0])
            if match is None or match.group() != (prefix or match.group()):
                return ""
            prefix = match.group()
    return prefix or ""


def _fields(line: str) -> list[str]:
    """The columns of a line, tabs between them if it has one, else spaces; none for a line that ends a sentence."""
    if not line.strip() or line.startswith("-DOCSTART-"):
        return []
    fields = line.split("\t") if "\t" in line else line.split()
    return [] if line.startswith("# ") and not TAG.fullmatch(fields[-1]) else fields


def _word(fields: list[str], prefix: str, path: Path, number: int) -> tuple[str, str]:
    if len(fields) < 2:
        raise InputError("a line holds a word and its tag with a tab or a space between them", path, number)
    form, last = fields[0].removeprefix(prefix), fields[-1].strip()
    if not form.strip():
        raise InputError("the word is empty", path, number)
    tag = iob_tag(last)
    if tag is None:
        raise InputError(f"the tag {last[:40]!r} must be O, or B- or I- and a kind of entity", path, number)
    return one_word(form), tag
