"""Sources in files, and plain text in a file of lines or in a folder.

A folder has one file per split. If no file name contains the name of a split, all text files of the folder are one
split.

A line of ``text:`` is a paragraph or a sentence. A line of ``lines:`` is one sentence whose id is the line number, so
that line n of one file stays the translation of line n of another. Blank lines are skipped. The module ``segmentation``
splits a line into words and sentences. A file whose name ends in ``.gz`` is unpacked while it is read. Files in another
format are refused (``markup``).
"""

from __future__ import annotations

import hashlib
import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import LONGEST_LINE, decoded, unreadable, user_path
from synthlang.fingerprint import fingerprint
from synthlang.packed import START, check_is_text, open_packed
from synthlang.sources.base import check_split, in_batches, nothing_in
from synthlang.sources.markup import DOC_LINES, JOINED, check_plain, without_markup
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
from synthlang.sources.size import Sizes, share_read
from synthlang.sources.splits import (
    CJK,
    NAMES,
    NORMALISE,
    OPTIONS,
    files_by_split,
    files_read,
    is_file,
    path_options,
    some_names,
    split_of,
    texts_in,
)
from synthlang.sources.words import (
    BLANK,
    CLEANED,
    MARKUP,
    MISNUMBERED,
    NORMALISED,
    NOT_NFC,
    REMOVED,
    WITHHELD,
    count_unseen,
    spelled,
)

NOW = 3  # in the fingerprint of data that version 2 of the readers read differently
PIECE = 1 << 20  # bytes; a longer line is read in pieces, so that memory is bounded
LONGEST_TEXT = 1 << 30  # bytes; a longer line is refused
CUT_LINES = "lines of more than 1 MB, cut between words"
CONTROL_CHARACTERS = "control characters, read as spaces"
UNCUT = "words as long as a clause in a script without spaces (use ?cjk=characters or synthlang parse --tokens engine)"
REASONS = (
    *(CONTROL_CHARACTERS, CUT_LINES, UNCUT, REMOVED, NOT_NFC, NORMALISED),
    *(DOC_LINES, JOINED, BLANK, WITHHELD, MISNUMBERED),
)
"""Reasons that the remarks on a text may have."""


class FileSource(ABC):
    """A source with one file per split: the files of a folder, or a single file.

    A wrong path or an empty file raises an InputError when the source is opened. A wrong line raises an InputError when
    the line is read.

    Args:
        spec: ``PATH[?option&…]`` (see the module ``splits``).
    """

    scheme: ClassVar[str]
    """Text before the path in the notation of the command line, such as ``text``."""
    endings: ClassVar[tuple[str, ...]]
    """Endings of the names of data files in a folder."""
    by_rules: ClassVar[bool] = False
    """True if the rules of ``segmentation`` split the words."""
    has_labels: ClassVar[bool] = True
    """True if every data file of a folder must belong to a split."""
    own_options: ClassVar[tuple[str, ...]] = ()
    """Names of the options of this kind of source besides the options of all sources, as in ``PATH?name=value``."""
    anew: ClassVar[tuple[re.Pattern[bytes], ...]] = CLEANED
    """Patterns of bytes that earlier versions of the reader read in another way (see ``digest_splits``)."""
    columns: tuple[str, ...] = (FORM,)

    def __init__(self, spec: str | Path) -> None:
        path, self.options = path_options(str(spec), (*OPTIONS, *self.own_options))
        self.normalise = self.options.pop(NORMALISE, None)
        self.path = user_path(path)
        self.files = self._find()
        self._sizes = Sizes()
        self._remarks: dict[str, Counter[str]] = {}

    def _find(self) -> dict[str, Path]:
        return files_by_split(self.path, self.endings, self.options, labelled=self.has_labels)

    @abstractmethod
    def _marks(self) -> dict[str, Any]:
        """Return the versions and options for the fingerprint."""

    @abstractmethod
    def _batches(self, split: str) -> Iterator[Corpus]: ...

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the bytes of each split, the version of the reader and its options.

        Raises:
            InputError: A file cannot be read.
        """
        marks = self._marks() | ({NORMALISE: self.normalise} if self.normalise else {})
        return fingerprint(self.scheme, splits=digest_splits(self._digested(), self.by_rules, self.anew), **marks)

    def _digested(self) -> dict[str, Path]:
        return self.files

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    @property
    def is_one_file(self) -> bool:
        """True if the source is a single file."""
        return self.path.is_file()

    @property
    def read_as(self) -> str:
        """Message that lists the files that are read as splits, and the other data files of the folder."""
        return files_read(self.path, self.files, self.endings)

    def remarks(self, split: str) -> Mapping[str, int]:
        """Return counts of changes, omissions and suspicious words by reason, in the part of a split that was read."""
        return +self._remarks.get(split, Counter())  # without zeros

    def check(self, split: str) -> None:
        """Check that the split exists.

        Raises:
            InputError: The source lacks the split.
        """
        check_split(self, split, f"{self.scheme}:{self.path}")

    def batches(self, split: str) -> Iterator[Corpus]:
        """Yield the sentences of a split in order.

        Raises:
            InputError: The source lacks the split. A malformed line raises the error when it is read.
        """
        self.check(split)
        return (self._spelled(batch, split) for batch in self._batches(split))

    def _spelled(self, batch: Corpus, split: str) -> Corpus:
        return spelled(batch, self._remarks.setdefault(split, Counter()), self.normalise)


def batches_of(sentences: Iterable[list[str]]) -> Iterator[Corpus]:
    """Yield lists of words as batches of up to BATCH_SENTENCES sentences with ids from 0."""
    return (Corpus.of_words(rows, first) for first, rows in in_batches(sentences))


class TextSource(FileSource):
    """Source of the sentences of plain text. The only column is ``form``.

    Args:
        spec: ``PATH[?option&…]``, a file, a folder with a file for each split, or a folder of text files.

    Raises:
        InputError: The path or an option is wrong, or a file cannot be read, is not plain text, has too long a first
            line, or has no word.
    """

    scheme = "text"
    endings = (".txt", ".txt.gz")
    by_rules, has_labels = True, False
    own_options = (CJK,)
    anew = (*CLEANED, *MARKUP)
    longest_line: ClassVar[int] = LONGEST_TEXT

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        self.parts: dict[str, list[Path]] = {}  # the files of a folder are in the order of their names
        for split, path in self.files.items():
            self.parts[split] = [path] if path.is_file() else texts_in(path, self.endings)
            if not [part for part in self.parts[split] if self._has_words(part)]:
                raise nothing_in("word", path)

    def _find(self) -> dict[str, Path]:
        """Return the file of each split or, if no name in the folder is that of a split, the folder as one split."""
        if is_file(self.path) or {*NAMES} & {*self.options} or any(split_of(one.name) for one in self.path.iterdir()):
            return super()._find()
        return {self.options.get("split") or "train": self.path}

    def _has_words(self, part: Path) -> bool:
        """Check that a file is plain text, and return whether it has a word."""
        check_first_line(part, self.longest_line)
        pieces = read_pieces(part, longest=self.longest_line)
        filled = (piece for piece in pieces if split_words(piece[1]))
        if (first := next(filled, None)) is not None:
            check_plain(chain([first], filled), part)
        return first is not None

    def _digested(self) -> dict[str, Path]:
        """Return the files by split. Files of a folder are numbered, since only their order and their bytes count."""
        numbered = ((split, n, part) for split, parts in self.parts.items() for n, part in enumerate(parts))
        return {split if self.files[split].is_file() else f"{split} {n}": part for split, n, part in numbered}

    @property
    def read_as(self) -> str:
        split, *_ = self.parts
        if self.files[split].is_file():
            return super().read_as
        return f"{split} is {len(self.parts[split])} files: {some_names(self.parts[split])}"

    def _marks(self) -> dict[str, Any]:
        return {"rules": RULES} | {name: value for name, value in self.options.items() if name == CJK}

    def _split(self, line: str) -> list[str]:
        return split_words(line, CJK in self.options)

    def _batches(self, split: str) -> Iterator[Corpus]:
        opened: list[IO[bytes]] = []
        remarks = self._remarks[split] = Counter()
        pieces = self._pieces(split, opened, remarks)
        batches = self._read((number, without_markup(piece, remarks)) for number, piece in pieces)
        counted = (counted_uncut(batch, remarks) for batch in batches)
        return self._sizes.watch(split, counted, lambda: share_read(opened[0]) if opened else None)

    def _pieces(
        self, split: str, opened: list[IO[bytes]] | None = None, remarks: Counter[str] | None = None
    ) -> Iterator[tuple[int, str]]:
        before, alone = 0, len(self.parts[split]) == 1
        for part in self.parts[split]:
            number = 0
            for number, piece in read_pieces(part, opened if alone else None, remarks, self.longest_line):
                yield before + number, piece  # the numbers of lines go on, since they are ids of sentences
            before += number

    def _read(self, pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
        return batches_of(chain.from_iterable(split_sentences(self._split(piece)) for _, piece in pieces))

    def size(self, split: str) -> int | None:
        """Return the number of sentences in a split, estimated from the part that was read so far.

        The result is None before the first batch has been read. For a split of several files, it is None until all
        files have been read.
        """
        return self._sizes.get(split)


class LinesSource(TextSource):
    """Source of plain text with one sentence per line. The id of a sentence is the number of its line, from 0.

    The argument and the errors are those of ``TextSource``, but a line may have at most about LONGEST_LINE bytes.
    """

    scheme = "lines"
    longest_line = LONGEST_LINE  # the pieces of a line are joined in memory

    def remarks(self, split: str) -> Mapping[str, int]:
        return {reason: count for reason, count in super().remarks(split).items() if reason != CUT_LINES}

    def _read(self, pieces: Iterator[tuple[int, str]]) -> Iterator[Corpus]:
        for _, rows in in_batches(line for line in _lines(pieces, self._split) if line[1]):
            ids = np.asarray([number for number, _ in rows], np.int64)
            yield replace(Corpus.of_words([words for _, words in rows]), ids=ids)

    def lines(self, split: str) -> int:
        """Return the number of lines of a split, including blank lines, by reading the split.

        Raises:
            InputError: The split cannot be read, or a line is too long.
            KeyError: The source lacks the split.
        """
        number, text = 0, ""
        for number, text in self._pieces(split):  # noqa: B007  the last values are used below
            pass
        return number - (number > 0 and not text)


def _lines(pieces: Iterator[tuple[int, str]], split: Callable[[str], list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield (number from 0, words) for each line. Pieces of a long line are joined."""
    current, words = 0, list[str]()
    for line, piece in pieces:
        if line - 1 != current:
            yield current, words
            current, words = line - 1, []
        words += split(piece)
    yield current, words


def counted_uncut(batch: Corpus, remarks: Counter[str]) -> Corpus:
    """Return the batch, and count in ``remarks`` its words that are probably clauses of a script without spaces."""
    if is_uncut(" ".join(name for name in batch.form.names or () if not name.isascii())):  # few batches have one
        remarks[UNCUT] += int(batch.form.lookup(is_uncut).sum())
    return batch


# --- the bytes and lines of a file


def digest_splits(
    files: dict[str, Path], rules: bool = False, anew: Sequence[re.Pattern[bytes]] = CLEANED
) -> dict[str, str]:
    """Return the SHA-256 of the unpacked bytes of each split, independent of the paths of the files.

    A digest is marked if an earlier version gave other words for the text, so that other data keeps its fingerprint.

    Args:
        files: The file of each split.
        rules: True if the rules of ``segmentation`` split the words. Texts that the rules before ``LATER`` split in
            another way are then marked, too.
        anew: Patterns of bytes that earlier versions of the reader read in another way.

    Raises:
        InputError: A file cannot be read, is damaged, or is not UTF-8 text by its first bytes.
    """
    return {split: _digest(path, rules, anew) for split, path in files.items()}


def _digest(path: Path, rules: bool, anew: Sequence[re.Pattern[bytes]]) -> str:
    digest, version, end = hashlib.sha256(), 0, b""
    with open_bytes(path) as handle:
        while block := handle.read(PIECE):
            digest.update(block)
            # a byte order mark at the start was never read, and patterns for the start of a line need a line break
            seen = end + block if end else b"\n" + block.removeprefix(b"\xef\xbb\xbf")
            version = max(version, version_of(seen, rules, anew))
            end = block[-LONGEST_MARK:]
    return digest.hexdigest() + (f" rules {version}" if version else "")


def version_of(block: bytes, rules: bool, anew: Sequence[re.Pattern[bytes]] = CLEANED) -> int:
    """Return the first version of the readers that read these bytes as the present version does: 0, LATER or NOW.

    Args:
        block: UTF-8 text.
        rules: True if the rules of ``segmentation`` split the words.
        anew: Patterns of bytes that versions before NOW read in another way.
    """
    if any(pattern.search(block) for pattern in anew):
        return NOW
    return LATER if rules and not reads_alike(block) else 0


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file of text for reading, unpacked if its name ends in ``.gz``.

    Raises:
        InputError: The file cannot be read, is damaged, unpacks to more than the limit, or is not UTF-8 text by its
            first bytes. A failure while the block reads raises the error, too.
    """
    try:
        with open_packed(path) if path.suffix == ".gz" else path.open("rb") as handle:
            check_is_text(handle.peek(START)[:START], path)
            yield handle
    except OSError as error:
        raise unreadable(error, path) from error


def line_too_long(path: Path, line: int, longest: int) -> InputError:
    """Return the error for a line of more than ``longest`` bytes."""
    reason = f"the line has more than {longest >> 20} MB"
    return InputError(reason, path, line, hint="insert line breaks", code="range")


def check_first_line(path: Path, longest: int) -> None:
    """Check before any work that the first line has at most about ``longest`` bytes.

    Raises:
        InputError: The file cannot be read, or the line is too long. A line that is longer by less than 1 MB may pass.
    """
    length = 0
    with open_bytes(path) as handle:
        while (block := handle.read(PIECE)) and b"\n" not in block:
            length += len(block)
            if length > longest:
                raise line_too_long(path, 1, longest)


def read_pieces(
    path: Path,
    opened: list[IO[bytes]] | None = None,
    remarks: Counter[str] | None = None,
    longest: int = LONGEST_TEXT,
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line) of a UTF-8 file. A line longer than PIECE is yielded in several pieces.

    A line break stays at the end of its line.

    Args:
        path: The file.
        opened: List to which the open file is added, so that the caller can see how far it was read.
        remarks: Counter of lines in pieces, of control characters and of invisible characters.
        longest: Largest number of bytes of a line.

    Raises:
        InputError: The file cannot be read, a line is not UTF-8, or a line is longer than ``longest``.
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
                    raise line_too_long(path, number, longest)
            line = rest + raw
            cut = len(line) if whole else _cut(line)
            if found := control_characters(raw):
                remarks[CONTROL_CHARACTERS] += found
            text = decoded(line[:cut], codec, path, number)
            if found := count_unseen(text):
                remarks[REMOVED] += found
            yield number, text
            number, rest, codec = number + raw.endswith(b"\n"), line[cut:], "utf-8"
        if rest:
            text = decoded(rest, codec, path, number)
            remarks[REMOVED] += count_unseen(text)
            yield number, text


def _cut(line: bytes) -> int:
    """Return the index at which to cut an incomplete line: after its last space, else before its last character."""
    space = line.rfind(b" ") + 1
    if space:
        return space
    cut = len(line) - 1
    while cut > 1 and line[cut] & 0xC0 == 0x80:  # a byte inside a UTF-8 character
        cut -= 1
    return cut
