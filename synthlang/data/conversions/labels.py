"""Sentences with a tag on each word (entities), from Parquet files or from columns of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import IO, Literal

from pydantic import Field

from synthlang.data.conversions.base import Given, SplitConverter, one_line, opened, written
from synthlang.data.sources import OTHER
from synthlang.errors import InputError
from synthlang.wording import plural

EMPTY = "words left out because they are empty"


class LabelTable(SplitConverter):
    """Write a word and its tag on each line, from Parquet files with a column of words and a column of tag numbers."""

    kind: Literal["tags"]
    """Words and numbers of tags, from Parquet."""
    words: str = "tokens"
    """The column of words."""
    tags: str = "ner_tags"
    """The column of tags."""
    names: tuple[str, ...]
    """The names of the tags 0, 1, …."""

    def run(self, given: Given, out: Path) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for split, rows in self.tables(given, (self.words, self.tags)):
            with written(out / f"{split}.tsv") as handle:
                for words, tags in rows:
                    _write(handle, zip(words, map(self._name, tags), strict=True), counts)
        return +counts

    def _name(self, tag: int) -> str:
        if not 0 <= tag < len(self.names):
            reason = f"the tag {tag} of the column {self.tags} is not one of the tags 0 to {len(self.names) - 1}"
            raise InputError(reason, hint=OTHER, code="range")
        return self.names[tag]


class LabelColumns(SplitConverter):
    """Write a word and its tag on each line, from two columns of text files with a word on each line."""

    kind: Literal["columns"]
    """Columns of text with a word on each line."""
    word: int = Field(default=1, ge=1)
    """The number of the column of words, from 1."""
    tag: int = Field(ge=1)
    """The number of the column of tags, from 1."""

    def run(self, given: Given, out: Path) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for split, name in self.splits.items():
            path = given.path(name)
            with opened(path) as lines, written(out / f"{split}.tsv") as handle:
                for is_sentence, group in groupby(enumerate(lines, start=1), lambda line: bool(line[1].strip())):
                    if is_sentence:
                        _write(handle, [self._columns(line, path, number) for number, line in group], counts)
        return +counts

    def _columns(self, line: str, path: Path, number: int) -> tuple[str, str]:
        columns, needed = line.split("\t") if "\t" in line else line.split(), max(self.word, self.tag)
        if len(columns) < needed:
            reason = f"the line has {plural(len(columns), 'column')}, but at least {needed} are needed"
            raise InputError(reason, path, number, hint=OTHER, code="format")
        return columns[self.word - 1], columns[self.tag - 1]


def _write(handle: IO[str], sentence: Iterable[tuple[str, str]], counts: Counter[str]) -> None:
    """Write the words and tags of a sentence. Spaces inside a word, which some releases have, become underscores."""
    pairs = [("_".join(one_line(word).split()), tag) for word, tag in sentence]
    counts[EMPTY] += sum(not word for word, _ in pairs)
    if lines := [f"{word}\t{tag}\n" for word, tag in pairs if word]:
        handle.write("".join(lines) + "\n")
