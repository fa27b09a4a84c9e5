"""Plain text: a file of lines (split ``train``), or a folder with a file for each split.

``text:`` takes a line for a paragraph or a sentence; ``lines:`` for one sentence, known by its line number, as
parallel text comes: line n of one file stays the translation of line n of another. A blank line is skipped. The
module ``words`` holds the rules by which a line becomes words and sentences. A name that ends in ``.gz`` is unpacked
on the way.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from synthlang.corpus import FORM, Column, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import BATCH_SENTENCES, check_split
from synthlang.sources.size import Sizes
from synthlang.sources.words import RULES, split_sentences, split_words

SPLITS = {"train": "train", "test": "test"}
SPLITS |= dict.fromkeys(("dev", "valid", "val", "validation", "trial", "eval"), "dev")
PIECE = 1 << 20  # bytes; a longer line is read in pieces, so that memory is bounded


class FileSource:
    """A source with a file for each split, of any format."""

    files: dict[str, Path]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)


class TextSource(FileSource):
    """Sentences of plain text; the only column is ``form``.

    A wrong path, an empty file or one without a word is an InputError here, before any work;
    bytes that are not UTF-8 are one when they are reached.
    """

    columns: tuple[str, ...] = (FORM,)

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.files = {"train": self.path} if is_file(self.path) else find_splits(self.path, (".txt", ".txt.gz"))
        self._sizes = Sizes()
        for file in self.files.values():
            if not any(piece.strip() for _, piece in read_pieces(file)):
                raise InputError("holds no word: it is empty or blank", file)

    @cached_property
    def fingerprint(self) -> str:
        """Of the unpacked bytes of each split and the rules for words."""
        return fingerprint("text", rules=RULES, splits=digest_splits(self.files))

    def batches(self, split: str) -> Iterator[Corpus]:
        check_split(self, split, f"text:{self.path}")
        opened: list[IO[bytes]] = []
        pieces = read_pieces(self.files[split], opened)
        sentences = chain.from_iterable(split_sentences(split_words(piece)) for _, piece in pieces)
        return self._sizes.watch(split, batches_of(sentences), opened)

    def size(self, split: str) -> int | None:
        """Sentences of a split, guessed from the part of its bytes that was read so far."""
        return self._sizes.get(split)


def batches_of(sentences: Iterable[list[str]]) -> Iterator[Corpus]:
    """Lists of words as batches of BATCH_SENTENCES sentences, the last one shorter."""
    rest = iter(sentences)
    first = 0
    while rows := list(islice(rest, BATCH_SENTENCES)):
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        form = Column.of(list(chain.from_iterable(rows)))
        yield Corpus(offsets, {FORM: form}, np.arange(first, first + len(rows), dtype=np.int64))
        first += len(rows)


def is_file(path: Path) -> bool:
    """True for a file, False for a folder, else InputError."""
    if not path.exists():
        raise InputError("no such file or folder", path)
    return not path.is_dir()


def files_by_split(path: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """The file of each split: a file by itself is the split its name says, else ``train``; or those of a folder."""
    return {split_of(path.name, endings) or "train": path} if is_file(path) else find_splits(path, endings)


def find_splits(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """The file of each split in ``folder``, in the order train, dev, test.

    A file belongs to a split if a part of its name does (``en_ewt-ud-dev.conllu``); other
    files are left alone. Two files for one split, or none at all, is an InputError.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path.name, endings)
        if split is not None and path.is_file():
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise InputError(f"several files for the split {split}: {names}; name one file, or keep one", folder)
    if not found:
        raise InputError(f"holds no file whose name says train, dev or test and ends in {' or '.join(endings)}", folder)
    return {split: found[split][0] for split in ("train", "dev", "test") if split in found}


def split_of(name: str, endings: tuple[str, ...]) -> str | None:
    """The split that a file name tells: the last of its parts that is one.

    >>> split_of("wiki-valid.txt.gz", (".txt", ".txt.gz"))
    'dev'
    """
    stem = next((name[: -len(ending)] for ending in endings if name.endswith(ending)), None)
    parts = [] if stem is None else [SPLITS[p] for p in re.split(r"[-_.]", stem.lower()) if p in SPLITS]
    return parts[-1] if parts else None


def digest_splits(files: dict[str, Path]) -> dict[str, str]:
    """SHA-256 of the unpacked bytes of each split; where they lie is no part of it."""
    digests = {}
    for split, path in files.items():
        with open_bytes(path) as handle:
            digests[split] = hashlib.file_digest(handle, "sha256").hexdigest()  # type: ignore[arg-type]
    return digests


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


def read_pieces(path: Path, opened: list[IO[bytes]] | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a UTF-8 file; a line longer than PIECE comes in several.

    ``opened`` gets the file, for who wants to know how far it was read.
    """
    with open_bytes(path) as handle:
        if opened is not None:
            opened.append(handle)
        number, rest, codec = 1, b"", "utf-8-sig"
        while raw := handle.readline(PIECE):
            whole = raw.endswith(b"\n") or len(raw) < PIECE
            line = rest + raw
            cut = len(line) if whole else _cut(line)
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


def named_splits(folder: Path) -> dict[str, Path]:
    """Split → the entry of ``folder`` whose whole name is that split's, in the order train, dev, test."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPLITS.get(path.name.lower())
        if split in found:
            raise InputError(f"{found[split].name} and {path.name} are both the split {split}; keep one", folder)
        if split is not None:
            found[split] = path
    return {split: found[split] for split in ("train", "dev", "test") if split in found}


class LinesSource(TextSource):
    """Sentences of plain text, one a line; a sentence's id is the number of its line, from 0."""

    @cached_property
    def fingerprint(self) -> str:
        """Of the unpacked bytes of each split and the rules for words."""
        return fingerprint("lines", rules=RULES, splits=digest_splits(self.files))

    def batches(self, split: str) -> Iterator[Corpus]:
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
