"""Parallel text from files: two files with one sentence per line, or one file with ``left ||| right``.

Empty lines count, so that line n of an alignment file belongs to line n of the text. Files whose names end in ``.gz``
are unpacked while they are read.

The tokens of a model may replace the words (Impact, table 6 and appendix A.1). A token is written as its id, so that it
contains no separator of an aligner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from tokenizers import Tokenizer

from synthlang.corpus import FORM, Column, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.sources.segmentation import RULES, split_words
from synthlang.sources.text import PIECE, batches_of, digest_splits, line_too_long, read_pieces
from synthlang.vocabulary import Encoded, encode_corpus

BAR = "|||"

Splitter = Literal["spaces", "rules"]
SPLITTERS: dict[Splitter, Callable[[str], list[str]]] = {"spaces": str.split, "rules": split_words}


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs: row i of ``left`` is the translation of row i of ``right``."""

    left: Corpus
    right: Corpus
    fingerprint: str

    def __len__(self) -> int:
        return len(self.left)


def read_parallel(left: Path, right: Path, words: Splitter = "spaces") -> ParallelText:
    """Read two files, and split their lines into words at spaces or by our rules.

    Raises:
        InputError: The numbers of lines differ.
    """
    first, second = ((SPLITTERS[words](line) for _, line in _lines(path)) for path in (left, right))
    text = _text(first, second, [left, right], words)
    check_lines(left, len(text.left), right, len(text.right))
    return text


def read_joint(path: Path, words: Splitter = "spaces") -> ParallelText:
    """Read one file of lines ``left ||| right``.

    Raises:
        InputError: A line does not have exactly one separator.
    """
    split = SPLITTERS[words]
    sides: list[list[list[str]]] = []
    for number, line in _lines(path):
        parts = line.split(BAR)
        if len(parts) != 2:
            reason = f"the line has {len(parts) - 1} separators {BAR}"
            raise InputError(reason, path, number, hint=f"write: left {BAR} right", code="format")
        sides.append([split(part) for part in parts])
    return _text([left for left, _ in sides], [right for _, right in sides], [path], words)


def _text(left: Iterable[list[str]], right: Iterable[list[str]], paths: list[Path], words: Splitter) -> ParallelText:
    files = digest_splits({str(i): path for i, path in enumerate(paths)}, rules=words == "rules")
    name = fingerprint("parallel", words=words, rules=RULES if words == "rules" else None, files=files)
    return ParallelText(concatenate(list(batches_of(left))), concatenate(list(batches_of(right))), name)


def check_lines(left: Path, first: int, right: Path, second: int) -> None:
    """Check that two files have the same number of lines."""
    if first != second:
        reason = f"the file has {first} lines, but {right} has {second}"
        raise InputError(reason, left, hint="line n of one must translate line n of the other", code="conflict")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    before = 0
    for number, line in read_pieces(path):
        if number == before:
            raise line_too_long(path, number, PIECE)
        before = number
        yield number, line


class Cutter(Protocol):
    """A tokenizer with a fingerprint, of a checkpoint or of one language of a run."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, which splits a single word as it does in a text."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the mapping from words to ids."""


def in_subwords(text: ParallelText, tokenizers: tuple[Cutter, Cutter]) -> ParallelText:
    """Return the same sentence pairs with tokens as words. A word without a token is dropped."""
    left, right = (
        as_tokens(cutter.tokenizer, side) for cutter, side in zip(tokenizers, (text.left, text.right), strict=True)
    )
    parents = {"text": text.fingerprint, "tokenizers": [cutter.fingerprint for cutter in tokenizers]}
    return ParallelText(left, right, fingerprint("subword-text", **parents))


def as_tokens(tokenizer: Tokenizer, corpus: Corpus) -> Corpus:
    """Return the corpus with tokens as words, each written as its id."""
    encoded = encode_corpus(tokenizer, corpus)
    used, codes = np.unique(encoded.ids, return_inverse=True)
    form = Column(codes.astype(np.int32), tuple(str(token) for token in used.tolist()))
    return Corpus(encoded.word_offsets[corpus.offsets], {FORM: form}, corpus.ids)


def token_ids(corpus: Corpus) -> Encoded:
    """Return the ids of a corpus whose words are tokens, one token per word."""
    table = np.asarray([int(name) for name in corpus.form.names or ()], np.int64)
    codes = corpus.form.codes
    return Encoded(table[codes] if len(codes) else codes.astype(np.int64), np.arange(len(codes) + 1, dtype=np.int64))
