"""Named entities in CoNLL columns: one word per line with its tag, and a blank line after each sentence.

    en:Sioux<TAB>B-ORG        WikiANN: each word has the prefix of its language
    Sioux NNP B-NP B-ORG      CoNLL 2003: the word is first, and the tag is last
    1 Sioux B-ORG O           PATH?column=2&tag=3: word and tag in other columns, counted from 1

Tags are IOB2, IOB1 or IOBES and become IOB2. ``-DOCSTART-`` lines and comments (``sources.columns``) are skipped. If
the first column numbers the words, ``?column=`` must name the column of the words. If there are several columns of
tags, ``?tag=`` selects one of them. GermEval 2014 is ``iob:PATH?column=2&tag=3``. In a folder, the names of files must
contain ``train``, ``dev`` or ``test``. A single file without such a name is ``train``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.sources.base import annotated_batches, nothing_in
from synthlang.sources.columns import PAIR, column_lines, too_few_columns
from synthlang.sources.markup import WORD_LINE
from synthlang.sources.tags import TAG, iob_tag, legal_tags
from synthlang.sources.text import FileSource
from synthlang.sources.words import CLEANED, SPACES, filled, tidied

READER = 1  # part of the fingerprint: raise when the same bytes give other sentences
OTHER = "otherwise use a file with a word and its tag on each line"
PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")


class IobSource(FileSource):
    """Source of sentences with IOB2 tags of entities, from files of CoNLL columns.

    Args:
        spec: ``PATH[?column=N&tag=N]``, a file or a folder with a file for each split.

    Raises:
        InputError: The path or an option is wrong, or a file cannot be read, is CoNLL-U, numbers its words without
            ``?column=``, has a malformed line in its first sentence, or has no sentence.
    """

    scheme = "iob"
    endings = ("", ".txt", ".conll", ".iob", ".iob2", ".bio", ".tsv", ".annotated")
    own_options = ("column", "tag")
    anew = (*CLEANED, *SPACES, re.compile(rb"\n#[ \t]"), re.compile(rb"\n_[ \t]"))
    columns = (FORM, "ner")

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        self._places = {name: self._place(name) for name in self.own_options if name in self.options}
        for file in self.files.values():
            if "column" not in self._places and is_conllu(file):
                hint = f"read it as conllu:{file} if each word has a tag such as NER=B-PER in the last column; {OTHER}"
                raise InputError("the file is CoNLL-U, not words with tags", file, hint=hint, code="format")
            if "column" not in self._places and (numbered := numbers_words(file)):
                hint = f"name the column of the words{numbered}"
                raise InputError("the first column numbers the words", file, hint=hint, code="format")
            counts: Counter[str] = Counter()
            if next(tidied(read_sentences(file, **self._places), counts), None) is None:
                raise nothing_in("sentence", file, counts)

    def _place(self, option: str) -> int:
        value = self.options[option]
        if not re.fullmatch("[1-9][0-9]?", value):
            reason = f"must be the number of a column, from 1 to 99, not {value!r}"
            raise InputError(reason, self.path, keys=option, hint=f"write for example ?{option}=2", code="type")
        return int(value)

    def _marks(self) -> dict[str, Any]:
        return {"reader": READER, **self._places}

    def _batches(self, split: str) -> Iterator[Corpus]:
        remarks = self._remarks[split] = Counter()
        sentences = tidied(read_sentences(self.files[split], **self._places), remarks)
        return map(legal_tags, annotated_batches(sentences))


def read_sentences(path: Path, column: int = 1, tag: int = 0) -> Iterator[dict[str, list[str]]]:
    """Yield the sentences of a file of CoNLL columns as {column: values}, with the columns ``form`` and ``ner``.

    Args:
        path: The file.
        column: The column of the words, from 1.
        tag: The column of the tags, from 1, or 0 for the last column.

    Raises:
        InputError: The file cannot be read, a line has too few columns or an empty word, or a tag is invalid.
    """
    prefix = _common_prefix(path, column, tag)
    needed = max(2, column, tag)
    for is_sentence, lines in groupby(column_lines(path, tag), lambda line: bool(line.fields)):
        form, ner = list[str](), list[str]()
        for line in lines if is_sentence else ():
            if len(line.fields) < needed:
                hint = PAIR if needed == 2 else "complete the line, or name other columns: PATH?column=1&tag=2"
                raise too_few_columns(path, line, needed, hint)
            form.append(filled(line.fields[column - 1].removeprefix(prefix), path, line.number))
            hint = "correct the tag, or name the column of the tags, as in PATH?tag=3"
            ner.append(iob_tag(line.fields[tag - 1].strip(), path, line.number, hint=hint))
        if form:
            yield {FORM: form, "ner": ner}


def is_conllu(path: Path) -> bool:
    """Return whether the first word of a file is in a line of CoNLL-U.

    Raises:
        InputError: The file cannot be read, or a line is not UTF-8 or too long.
    """
    first = next((line.text for line in column_lines(path) if line.fields), "")
    return WORD_LINE.fullmatch(first) is not None


def numbers_words(path: Path) -> str:
    """Return the end of a hint on the options for columns if the first column numbers the words, else "".

    The first column numbers the words if it counts from 0 or from 1 in every sentence. Every word must have at least
    two more columns, and some sentence must have two words.

    Raises:
        InputError: The file cannot be read, or a line is not UTF-8 or too long.
    """
    at, first, longest, tags = 0, "", 0, True
    for _, fields, _ in column_lines(path):
        if not fields:
            at = 0
            continue
        first = first or fields[0]
        if len(fields) < 3 or first not in ("0", "1") or fields[0] != str(int(first) + at):
            return ""
        at += 1
        longest = max(longest, at)
        tags = tags and len(fields) > 3 and all(TAG.fullmatch(field.strip()) for field in fields[2:])
    several = " and one of the columns of tags: PATH?column=2&tag=3" if tags else ": PATH?column=2"
    return several if longest > 1 else ""


def _common_prefix(path: Path, column: int, tag: int) -> str:
    """Return the prefix ``lang:`` that all words of a file share, or "".

    The whole file is read, since a word of a file without prefixes may begin like a prefix (``re:``).
    """
    found: set[str] = set()
    for _, fields, _ in column_lines(path, tag):
        if len(fields) >= column:
            match = PREFIX.match(fields[column - 1])
            found.add(match.group() if match else "")
            if len(found) > 1 or match is None:
                return ""
    return found.pop() if found else ""
