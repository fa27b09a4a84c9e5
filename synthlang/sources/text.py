"""What sources of files share; plain text: a file of lines (split ``train``), or a folder with a file for each split.

``text:`` takes a line for a paragraph or a sentence; ``lines:`` for one sentence, known by its line number, as
parallel text comes: line n of one file stays the translation of line n of another. A blank line is skipped. The
module ``words`` holds the rules by which a line becomes words and sentences. A name that ends in ``.gz`` is unpacked
on the way.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import LONGEST_LINE, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import check_split, in_batches
from synthlang.sources.segmentation import (
    LATER,
    LONGEST_MARK,
    RULES,
    control_characters,
    is_uncut,
    reads_alike,
    split_sentences,
    split_words,
)
from synthlang.sources.size import Sizes
from synthlang.sources.splits import OPTIONS, files_by_split, files_read, path_options

PIECE = 1 << 20  # bytes; a longer line is read in pieces, so that memory is bounded
LONGEST_TEXT = 1 << 30  # bytes of a line, which nobody takes for a line
TOO_LONG = "the line has more than {} MB; put line breaks in"
CUT_LINES = "lines of more than 1 MB, cut between words"
CONTROL_CHARACTERS = "control characters, read as spaces"
UNCUT = "words as long as a clause, of a script without spaces (synthlang parse --tokens engine cuts them)"


class FileSource(ABC):
    """A source with a file for each split: those of a folder; or one file, which is the split that its name says.

    A wrong path or an empty file is an InputError here, before any work; a wrong line when it is reached.
    """

    scheme: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    by_rules: ClassVar[bool] = False  # whether the rules for words make its words
    has_labels: ClassVar[bool] = True  # whether a file of a folder must not be passed over
    own_options: ClassVar[tuple[str, ...]] = ()  # what may stand after ? beside those of ``splits``
    columns: tuple[str, ...] = (FORM,)

    def __init__(self, spec: str | Path) -> None:
        path, self.options = path_options(str(spec), (*OPTIONS, *self.own_options))
        self.path = user_path(path)
        self.files = self._find()
        self._sizes = Sizes()
        self._remarks: dict[str, Counter[str]] = {}

    def _find(self) -> dict[str, Path]:
        return files_by_split(self.path, self.endings, self.options, labelled=self.has_labels)

    @abstractmethod
    def _marks(self) -> dict[str, Any]:
        """What the fingerprint has beside the bytes: versions of readers and rules, options."""

    @abstractmethod
    def _batches(self, split: str) -> Iterator[Corpus]: ...

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split, the version of the reader and what it reads besides the usual columns."""
        return fingerprint(self.scheme, splits=digest_splits(self._digested(), self.by_rules), **self._marks())

    def _digested(self) -> dict[str, Path]:
        return self.files

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    @property
    def is_one_file(self) -> bool:
        """Whether it is a file by itself, so that its name or ``?split=`` says which split it is."""
        return self.path.is_file()

    @property
    def read_as(self) -> str:
        """Which file was read as which split, and which others of the folder were not read."""
        return files_read(self.path, self.files, self.endings)

    def remarks(self, split: str) -> Mapping[str, int]:
        """What was mended in the sentences of a split that were read so far, or may be wrong with them, by reason."""
        return self._remarks.get(split, Counter())

    def check(self, split: str) -> None:
        """Raise InputError if there is no such split."""
        check_split(self, split, f"{self.scheme}:{self.path}")

    def batches(self, split: str) -> Iterator[Corpus]:
        """The sentences of a split in order."""
        self.check(split)
        return self._batches(split)


def batches_of(sentences: Iterable[list[str]]) -> Iterator[Corpus]:
    """Lists of words as batches."""
    return (Corpus.of_words(rows, first) for first, rows in in_batches(sentences))


class TextSource(FileSource):
    """Sentences of plain text; the only column is ``form``."""

    scheme = "text"
    endings = (".txt", ".txt.gz")
    by_rules, has_labels = True, False
    longest_line: ClassVar[int] = LONGEST_TEXT

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        for split, file in self.files.items():
            check_first_line(file, self.longest_line)
            if not any(piece.strip() for _, piece in self._pieces(split)):
                raise InputError("holds no word: it is empty or blank", file)

    def _marks(self) -> dict[str, Any]:
        return {"rules": RULES}

    def _batches(self, split: str) -> Iterator[Corpus]:
        opened: list[IO[bytes]] = []
        remarks = self._remarks[split] = Counter()
        batches = self._read(self._pieces(split, opened, remarks))
        return self._sizes.watch(split, (counted_uncut(batch, remarks) for batch in batches), opened)

    def _pieces(
        self, split: str, opened: list[IO[bytes]] | None = None, remarks: Counter[str] | None = None
    ) -> Iterator[tuple[int, str]]:
        return read_pieces(self.files[split], opened, remarks, self.longest_line)

    def _read(self, pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
        return batches_of(chain.from_iterable(split_sentences(split_words(piece)) for _, piece in pieces))

    def size(self, split: str) -> int | None:
        """Sentences of a split, guessed from the part of its bytes that was read so far."""
        return self._sizes.get(split)


class LinesSource(TextSource):
    """Sentences of plain text, one a line; a sentence's id is the number of its line, from 0."""

    scheme = "lines"
    longest_line = LONGEST_LINE  # its pieces are joined

    def remarks(self, split: str) -> Mapping[str, int]:
        return {reason: count for reason, count in super().remarks(split).items() if reason != CUT_LINES}

    def _read(self, pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
        for _, rows in in_batches(line for line in _lines(pieces) if line[1]):
            ids = np.asarray([number for number, _ in rows], np.int64)
            yield replace(Corpus.of_words([words for _, words in rows]), ids=ids)

    def lines(self, split: str) -> int:
        """How many lines the split has, blank ones included; reads it."""
        number, text = 0, ""
        for number, text in self._pieces(split):  # noqa: B007  the last ones count
            pass
        return number - (number > 0 and not text)


def _lines(pieces: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """The number of each line, from 0, with its words; pieces of one long line are joined."""
    current, words = 0, list[str]()
    for line, piece in pieces:
        if line - 1 != current:
            yield current, words
            current, words = line - 1, []
        words += split_words(piece)
    yield current, words


def counted_uncut(batch: Corpus, remarks: Counter[str]) -> Corpus:
    """The batch; ``remarks`` gets how many running words are probably clauses that the rules for words cannot cut."""
    if is_uncut(" ".join(name for name in batch.form.names or () if not name.isascii())):  # hardly any batch has one
        remarks[UNCUT] += int(batch.form.lookup(is_uncut).sum())
    return batch


# --- the bytes and lines of a file


def digest_splits(files: dict[str, Path], rules: bool = False) -> dict[str, str]:
    """SHA-256 of the unpacked bytes of each split; where they lie is no part of it.

    With ``rules`` a text that the rules for words read otherwise since ``LATER`` is marked so.
    """
    return {split: _digest(path, rules) for split, path in files.items()}


def _digest(path: Path, rules: bool) -> str:
    digest, alike, end = hashlib.sha256(), True, b""
    with open_bytes(path) as handle:
        while block := handle.read(PIECE):
            digest.update(block)
            alike = alike and (not rules or reads_alike(end + block))
            end = block[-LONGEST_MARK:]
    return digest.hexdigest() + ("" if alike else f" rules {LATER}")


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if it ends in ``.gz``; what fails while reading is an InputError."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as handle:
            yield handle  # type: ignore[misc]
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"damaged or not a gzip file: {error}", path) from error
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", path) from error


def check_first_line(path: Path, longest: int) -> None:
    """Raise InputError if the first line has more than ``longest`` bytes: so it is known before any work."""
    length = 0
    with open_bytes(path) as handle:
        while (block := handle.read(PIECE)) and b"\n" not in block:
            length += len(block)
            if length > longest:
                raise InputError(TOO_LONG.format(longest >> 20), path, 1)


def read_pieces(
    path: Path,
    opened: list[IO[bytes]] | None = None,
    remarks: Counter[str] | None = None,
    longest: int = LONGEST_TEXT,
) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a UTF-8 file; a line longer than PIECE comes in several.

    ``opened`` gets the file, for who wants to know how far it was read; ``remarks`` gets how many lines came in pieces
    and how many control characters there are. InputError for a line of more than ``longest`` bytes.
    """
    remarks = Counter() if remarks is None else remarks
    with open_bytes(path) as handle:
        if opened is not None:
            opened.append(handle)
        number, rest, codec, length = 1, b"", "utf-8-sig", 0
        while raw := handle.readline(PIECE):
            whole = raw.endswith(b"\n") or len(raw) < PIECE
            if not whole or length:
                remarks[CUT_LINES] += not length
                length = 0 if whole else length + len(raw)
                if length > longest:
                    raise InputError(TOO_LONG.format(longest >> 20), path, number)
            line = rest + raw
            cut = len(line) if whole else _cut(line)
            if found := control_characters(raw):
                remarks[CONTROL_CHARACTERS] += found
            yield number, _decode(line[:cut], codec, path, number)
            number, rest, codec = number + raw.endswith(b"\n"), line[cut:], "utf-8"
        if rest:
            yield number, _decode(rest, codec, path, number)


def _cut(line: bytes) -> int:
    """Where to cut a line without an end: after a space, else before the last character."""
    space = line.rfind(b" ") + 1
    if space:
        return space
    cut = len(line) - 1
    while cut > 1 and line[cut] & 0xC0 == 0x80:  # a byte inside a UTF-8 character
        cut -= 1
    return cut


def _decode(raw: bytes, codec: str, path: Path, number: int) -> str:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start} of the line)", path, number) from error
