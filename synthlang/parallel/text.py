"""Parallel text from files: two files with one sentence per line, or one file with ``left ||| right``.

Empty lines count, so that line n of an alignment file belongs to line n of the text. Files whose names end in ``.gz``
are unpacked while they are read. Only spaces and tabs separate words, so U+00A0 and U+3000 are parts of words. A word
may consist of such characters alone, and alignment files count it, too.

The tokens of a model may replace the words (The Impact of Cross-Lingual Adjustment, table 6 and appendix A.1). A token
is written as its id, so that it contains no separator of an aligner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from tokenizers import Tokenizer

from synthlang.corpus import FORM, Column, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.sources.segmentation import RULES, split_words
from synthlang.sources.text import PIECE, batches_of, digest_splits, read_pieces
from synthlang.sources.words import CLEANED, NOT_NFC, REMOVED, SPACES, spaced, spelled, tidy
from synthlang.vocabulary import Encoded, encode_corpus
from synthlang.wording import plural

BAR = "|||"
TOLD = (REMOVED, NOT_NFC)

Splitter = Literal["spaces", "rules"]
SPLITTERS: dict[Splitter, Callable[[str], list[str]]] = {
    "spaces": lambda line: tidy(spaced(line), Counter()),
    "rules": split_words,
}


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs: row i of ``left`` is the translation of row i of ``right``. Rows may be empty.

    Attributes:
        left: The left sentences.
        right: The right sentences.
        fingerprint: Fingerprint of the text and the rules for words.
        counts: Numbers of removed characters and of words that are not in Unicode's form NFC, by reason.
        path: The first file of the text, for errors, or None.
    """

    left: Corpus
    right: Corpus
    fingerprint: str
    counts: Mapping[str, int] = field(default_factory=dict)
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.left)


def read_parallel(left: Path, right: Path, words: Splitter = "spaces") -> ParallelText:
    """Read two files, and split their lines into words.

    Args:
        left: The file of the left side.
        right: The file of the right side, whose line n translates line n of ``left``.
        words: Splitting into words: at ``spaces``, or by our ``rules`` for running text.

    Raises:
        InputError: A file cannot be read, a line is longer than 1 MB, or the numbers of lines differ.
    """
    counts: Counter[str] = Counter()
    first, second = ((SPLITTERS[words](line) for _, line in _lines(path, counts)) for path in (left, right))
    text = _text(first, second, [left, right], words, counts)
    check_lines(left, len(text.left), right, len(text.right))
    return text


def read_joint(path: Path, words: Splitter = "spaces") -> ParallelText:
    """Read one file of lines ``left ||| right``, and split both sides into words.

    Args:
        path: The file.
        words: Splitting into words: at ``spaces``, or by our ``rules`` for running text.

    Raises:
        InputError: The file cannot be read, or a line is longer than 1 MB or does not have exactly one separator.
    """
    split = SPLITTERS[words]
    sides: list[list[list[str]]] = []
    counts: Counter[str] = Counter()
    for number, line in _lines(path, counts):
        parts = line.split(BAR)
        if len(parts) != 2:
            reason = f"the line must have one separator {BAR}, but it has {len(parts) - 1}"
            hint = f"write: left {BAR} right, or give two files with one sentence per line"
            raise InputError(reason, path, number, hint=hint, code="format")
        sides.append([split(part) for part in parts])
    return _text([left for left, _ in sides], [right for _, right in sides], [path], words, counts)


def _text(
    left: Iterable[list[str]], right: Iterable[list[str]], paths: list[Path], words: Splitter, counts: Counter[str]
) -> ParallelText:
    name = text_fingerprint(paths, words)
    first, second = (concatenate([spelled(batch, counts) for batch in batches_of(side)]) for side in (left, right))
    told = {reason: n for reason, n in counts.items() if n and reason in TOLD}
    return ParallelText(first, second, name, told, paths[0])


def text_fingerprint(paths: Sequence[Path], words: Splitter = "spaces") -> str:
    """Return the fingerprint of parallel text in one or two files, from their bytes.

    Raises:
        InputError: A file cannot be read.
    """
    rules = words == "rules"
    anew = CLEANED if rules else (*CLEANED, *SPACES)
    files = digest_splits({str(i): path for i, path in enumerate(paths)}, rules, anew)
    return fingerprint("parallel", words=words, rules=RULES if rules else None, files=files)


def check_lines(left: Path, first: int, right: Path, second: int) -> None:
    """Check that the files ``left`` and ``right`` have the same number of lines, ``first`` and ``second``.

    Raises:
        InputError: The numbers differ. The error names both files.
    """
    if first != second:
        reason = f"the file has {plural(first, 'line')}, but {right} has {second:,}"
        hint = "correct the files, so that line n of one translates line n of the other"
        raise InputError(reason, left, hint=hint, code="conflict")


def _lines(path: Path, counts: Counter[str]) -> Iterator[tuple[int, str]]:
    before = 0
    for number, line in read_pieces(path, remarks=counts):
        if number == before:
            reason = f"the line has more than {PIECE >> 20} MB"
            hint = "divide this sentence and its translation into several lines, or delete both"
            raise InputError(reason, path, number, hint=hint, code="range")
        before = number
        yield number, line


class Cutter(Protocol):
    """Interface of a tokenizer with a fingerprint, from a checkpoint or for one language of a run."""

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
    return ParallelText(left, right, fingerprint("subword-text", **parents), path=text.path)


def as_tokens(tokenizer: Tokenizer, corpus: Corpus) -> Corpus:
    """Return the corpus with tokens as words, each written as its id."""
    encoded = encode_corpus(tokenizer, corpus)
    used, codes = np.unique(encoded.ids, return_inverse=True)
    form = Column(codes.astype(np.int32), tuple(str(token) for token in used.tolist()))
    return Corpus(encoded.word_offsets[corpus.offsets], {FORM: form}, corpus.ids)


def token_ids(corpus: Corpus) -> Encoded:
    """Return the ids of a corpus whose words are token ids as text (see ``as_tokens``), one id per word."""
    table = np.asarray([int(name) for name in corpus.form.names or ()], np.int64)
    codes = corpus.form.codes
    return Encoded(table[codes] if len(codes) else codes.astype(np.int64), np.arange(len(codes) + 1, dtype=np.int64))
