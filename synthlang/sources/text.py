"""What sources of files share; plain text: a file of lines (split ``train``), or a folder with a file for each split.

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
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import check_split, in_batches
from synthlang.sources.segmentation import RULES, split_sentences, split_words
from synthlang.sources.size import Sizes

SPLITS = {"train": "train", "test": "test"}
SPLITS |= dict.fromkeys(("dev", "valid", "val", "validation", "trial", "eval"), "dev")
PIECE = 1 << 20  # bytes; a longer line is read in pieces, so that memory is bounded


class FileSource(ABC):
    """A source with a file for each split: those of a folder; or one file, which is the split that its name says.

    A wrong path or an empty file is an InputError here, before any work; a wrong line when it is reached.
    """

    scheme: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    columns: tuple[str, ...] = (FORM,)

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.files = self._find()
        self._sizes = Sizes()

    def _find(self) -> dict[str, Path]:
        return files_by_split(self.path, self.endings)

    @abstractmethod
    def _marks(self) -> dict[str, Any]:
        """What the fingerprint has beside the bytes: versions of readers and rules, options."""

    @abstractmethod
    def _batches(self, split: str) -> Iterator[Corpus]: ...

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split, the version of the reader and what it reads besides the usual columns."""
        return fingerprint(self.scheme, splits=digest_splits(self._digested()), **self._marks())

    def _digested(self) -> dict[str, Path]:
        return self.files

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

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

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        for file in self.files.values():
            if not any(piece.strip() for _, piece in read_pieces(file)):
                raise InputError("holds no word: it is empty or blank", file)

    def _find(self) -> dict[str, Path]:
        return {"train": self.path} if is_file(self.path) else find_splits(self.path, self.endings)

    def _marks(self) -> dict[str, Any]:
        return {"rules": RULES}

    def _batches(self, split: str) -> Iterator[Corpus]:
        opened: list[IO[bytes]] = []
        return self._sizes.watch(split, self._read(read_pieces(self.files[split], opened)), opened)

    def _read(self, pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
        return batches_of(chain.from_iterable(split_sentences(split_words(piece)) for _, piece in pieces))

    def size(self, split: str) -> int | None:
        """Sentences of a split, guessed from the part of its bytes that was read so far."""
        return self._sizes.get(split)


class LinesSource(TextSource):
    """Sentences of plain text, one a line; a sentence's id is the number of its line, from 0."""

    scheme = "lines"

    def _read(self, pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
        for _, rows in in_batches(line for line in _lines(pieces) if line[1]):
            ids = np.asarray([number for number, _ in rows], np.int64)
            yield replace(Corpus.of_words([words for _, words in rows]), ids=ids)

    def lines(self, split: str) -> int:
        """How many lines the split has, blank ones included; reads it."""
        number, text = 0, ""
        for number, text in read_pieces(self.files[split]):  # noqa: B007  the last ones count
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


# --- the file of each split


def is_file(path: Path) -> bool:
    """True for a file, False for a folder, else InputError."""
    if not path.exists():
        raise InputError("no such file or folder", path)
    return not path.is_dir()


def files_by_split(path: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """The file of each split: a file by itself is the split its name says, else ``train``; or those of a folder."""
    return {split_of(path.name, endings) or "train": path} if is_file(path) else find_splits(path, endings)


def find_splits(folder: Path, endings: tuple[str, ...], folders: bool = False) -> dict[str, Path]:
    """The file (or folder) of each split in ``folder``, in the order train, dev, test.

    A file belongs to a split if a part of its name does (``en_ewt-ud-dev.conllu``); other
    files are left alone. Two files for one split, or none at all, is an InputError.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path.name, endings)
        if split is not None and path.is_dir() == folders:
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise InputError(f"several files for the split {split}: {names}; name one file, or keep one", folder)
    if not found:
        names = " or ".join(ending for ending in endings if ending)
        raise InputError(f"holds no file whose name says train, dev or test and ends in {names}", folder)
    return {split: found[split][0] for split in ("train", "dev", "test") if split in found}


def split_of(name: str, endings: tuple[str, ...]) -> str | None:
    """The split that a file name tells: the last of its parts that is one; an ending "" is of names that are a split.

    >>> split_of("wiki-valid.txt.gz", (".txt", ".txt.gz")), split_of("Valid", ("",)), split_of("valid.md", ("",))
    ('dev', 'dev', None)
    """
    if "" in endings and name.lower() in SPLITS:
        return SPLITS[name.lower()]
    stem = next((name.removesuffix(ending) for ending in endings if ending and name.endswith(ending)), "")
    parts = [SPLITS[part] for part in re.split(r"[-_.]", stem.lower()) if part in SPLITS]
    return parts[-1] if parts else None


def digest_splits(files: dict[str, Path]) -> dict[str, str]:
    """SHA-256 of the unpacked bytes of each split; where they lie is no part of it."""
    digests = {}
    for split, path in files.items():
        with open_bytes(path) as handle:
            digests[split] = hashlib.file_digest(handle, "sha256").hexdigest()  # type: ignore[arg-type]
    return digests


# --- the lines of a file


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
