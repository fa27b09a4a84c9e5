"""Lines of plain text: one sentence a line, known by its line number, as parallel text comes.

The same files and rules for words as ``text:``, but a line is never cut into sentences, so that
line n of one file stays the translation of line n of another. A blank line is skipped and keeps its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import IO

import numpy as np

from synthlang.corpus import Corpus
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import BATCH_SENTENCES, check_split
from synthlang.sources.text import TextSource, digest_splits, read_pieces
from synthlang.sources.words import RULES, split_words


class LinesSource(TextSource):
    """Sentences of plain text, one a line; a sentence's id is the number of its line, from 0."""

    @cached_property
    def fingerprint(self) -> str:
        """Of the unpacked bytes of each split and the rules for words."""
        return fingerprint("lines", rules=RULES, splits=digest_splits(self.files))

    def batches(self, split: str) -> Iterator[Corpus]:
        """The sentences of a split in order."""
        check_split(self, split, f"lines:{self.path}")
        opened: list[IO[bytes]] = []
        return self._sizes.watch(split, _batches(read_pieces(self.files[split], opened)), opened)

    def lines(self, split: str) -> int:
        """How many lines the split has, blank ones included; reads it."""
        number, text = 0, ""
        for number, text in read_pieces(self.files[split]):  # noqa: B007  the last ones count
            pass
        return number - (number > 0 and not text)


def _batches(pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
    sentences: list[list[str]] = []
    numbers: list[int] = []
    for number, words in _lines(pieces):
        if words:
            sentences.append(words)
            numbers.append(number)
        if len(sentences) == BATCH_SENTENCES:
            yield _corpus(sentences, numbers)
            sentences, numbers = [], []
    if sentences:
        yield _corpus(sentences, numbers)


def _lines(pieces: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """The number of each line, from 0, with its words; pieces of one long line are joined."""
    current, words = 0, list[str]()
    for line, piece in pieces:
        if line - 1 != current:
            yield current, words
            current, words = line - 1, []
        words.extend(split_words(piece))
    yield current, words


def _corpus(sentences: list[list[str]], numbers: list[int]) -> Corpus:
    corpus = Corpus.of_words(sentences)
    return Corpus(corpus.offsets, corpus.columns, np.asarray(numbers, np.int64))
