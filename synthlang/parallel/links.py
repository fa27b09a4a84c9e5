"""Word alignments of sentence pairs as columns, and the Pharaoh files that hold them.

A Pharaoh file has a line for each sentence pair, with ``i-j`` for a sure alignment and ``ipj`` for a possible one.
Aligners count words from 0, but gold standards often count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synthlang.config_errors import show_value
from synthlang.errors import InputError
from synthlang.files import atomic_file, read_lines
from synthlang.sources.words import spaced
from synthlang.wording import plural


@dataclass(frozen=True)
class Links:
    """Word alignments of sentence pairs, sorted by pair, left word and right word, without repetitions.

    Attributes:
        offsets: Start of the alignments of each pair, [pairs + 1] int64.
        left: 0-based position of the left word in its sentence, [alignments] int32.
        right: 0-based position of the right word in its sentence, [alignments] int32.
        sure: False for a possible alignment (Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment
            Models", section 2), [alignments].
    """

    offsets: NDArray[np.int64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    sure: NDArray[np.bool_]

    def __post_init__(self) -> None:
        assert self.offsets[0] == 0 and self.offsets[-1] == len(self.left) == len(self.right) == len(self.sure)

    @staticmethod
    def build(
        sentence: NDArray[np.int64],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        sure: NDArray[np.bool_],
        sentences: int,
    ) -> Links:
        """Build word alignments from columns in any order. A sure alignment replaces a possible one of the same words.

        Args:
            sentence: Number of the sentence pair of each alignment, [n].
            left: 0-based position of the left word, [n].
            right: 0-based position of the right word, [n].
            sure: False for a possible alignment, [n].
            sentences: Number of sentence pairs.
        """
        order = np.lexsort((~sure, right, left, sentence))
        columns = np.stack([sentence, left, right])[:, order]
        first = np.ones(len(order), bool)
        first[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        kept = columns[:, first]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(kept[0], minlength=sentences))]).astype(np.int64)
        return Links(offsets, kept[1].astype(np.int32), kept[2].astype(np.int32), sure[order][first])

    @staticmethod
    def of(pairs: Sequence[Iterable[tuple[int, int]]]) -> Links:
        """Build word alignments, all of them sure, from (left, right) positions for each sentence pair.

        >>> Links.of([[(0, 1), (0, 0)], []]).of_pair(0)
        [(0, 0), (0, 1)]
        """
        rows = [(i, a, b) for i, links in enumerate(pairs) for a, b in links]
        table = np.asarray(rows, np.int64).reshape(-1, 3)
        return Links.build(table[:, 0], table[:, 1], table[:, 2], np.ones(len(table), bool), len(pairs))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sentence(self) -> NDArray[np.int64]:
        """The number of the pair of each alignment, [alignments]."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def of_pair(self, row: int) -> list[tuple[int, int]]:
        """Return the alignments of one sentence pair as 0-based positions (left, right), sorted."""
        part = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return list(zip(self.left[part].tolist(), self.right[part].tolist(), strict=True))

    def select(self, kept: NDArray[np.bool_]) -> Links:
        """Return all sentence pairs, with only the word alignments that ``kept`` [alignments] flags."""
        lengths = np.bincount(self.sentence[kept], minlength=len(self))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Links(offsets, self.left[kept], self.right[kept], self.sure[kept])

    def take(self, rows: NDArray[np.int64]) -> Links:
        """Return the sentence pairs at ``rows`` [n], in that order."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        index = np.arange(offsets[-1], dtype=np.int64) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        return Links(offsets, self.left[index], self.right[index], self.sure[index])

    def within(self, left_lengths: NDArray[np.int64], right_lengths: NDArray[np.int64]) -> tuple[Links, int]:
        """Return the alignments of words that the text has, and the number of the other alignments.

        Args:
            left_lengths: Number of words of each left sentence, [pairs].
            right_lengths: Number of words of each right sentence, [pairs].
        """
        sentence = self.sentence
        inside = (self.left < left_lengths[sentence]) & (self.right < right_lengths[sentence])
        return self.select(inside), int((~inside).sum())

    def swapped(self) -> Links:
        """Return the same alignments with left and right exchanged."""
        return Links.build(self.sentence, self.right.astype(np.int64), self.left.astype(np.int64), self.sure, len(self))

    def one_to_one(self) -> Links:
        """Return only the alignments whose two words have no other alignment (Cao et al. 2020, section 3.3)."""
        alone = np.ones(len(self.left), bool)
        for word in (self.left, self.right):
            key = self.sentence * (int(word.max(initial=0)) + 1) + word
            _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
            alone &= count[inverse] == 1
        return self.select(alone)


def concatenate_links(parts: Sequence[Links]) -> Links:
    """Join the sentence pairs of all parts, one part after another."""
    parts = [Links.of([]), *parts]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.offsets) for p in parts]))])
    columns = [np.concatenate([getattr(p, name) for p in parts]) for name in ("left", "right", "sure")]
    return Links(offsets.astype(np.int64), *columns)


LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")
FEW = 1000  # number of lines that suffice to recognise a file of another kind


def read_pharaoh(path: Path, first: int = 0, option: str = "links.first") -> Links:
    """Read a Pharaoh file whose words count from ``first`` (0 or 1). A blank line is a pair without alignments.

    ``option`` is the name of the setting that holds ``first``, for the error.

    Raises:
        InputError: The file cannot be read, a token is not an alignment, or a word 0 occurs where words count from 1.
    """
    rows: list[tuple[int, int, int, bool]] = []
    number = 0
    for number, line in read_lines(path):
        rows += _links(line, first, path, number, option)
    table = np.asarray(rows, np.int64).reshape(-1, 4)
    return Links.build(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(bool), number)


def check_pharaoh(path: Path, first: int = 0) -> None:
    """Check the first FEW lines of a file as ``read_pharaoh`` does.

    Raises:
        InputError: The file cannot be read, a token is not an alignment, or a word 0 occurs where words count from 1.
    """
    for number, line in islice(read_lines(path), FEW):
        _links(line, first, path, number)


def _links(
    line: str, first: int, path: Path, number: int, option: str = "links.first"
) -> list[tuple[int, int, int, bool]]:
    """Return (sentence pair, left word, right word, is sure) for each alignment of a line."""
    found = []
    for token in spaced(line):
        match = LINK.fullmatch(token)
        if match is None:
            hint = "write i-j, or ipj for a possible alignment, where i and j have at most 9 digits"
            raise InputError(f"{show_value(token)} is not a word alignment", path, number, hint=hint, code="format")
        a, b = int(match[1]) - first, int(match[3]) - first
        if min(a, b) < 0:
            reason = f"{token!r} has the word number 0, but words are set to count from 1"
            hint = f"set {option} to 0, or correct the line"
            raise InputError(reason, path, number, hint=hint, code="range")
        found.append((number - 1, a, b, match[2] == "-"))
    return found


def check_sentences(path: Path, found: int, expected: int) -> None:
    """Check that a file of word alignments has as many sentence pairs as the text.

    Raises:
        InputError: The numbers ``found`` in the file and ``expected`` from the text differ.
    """
    if found != expected:
        reason = f"the file has {plural(found, 'line')}, but the text has {plural(expected, 'sentence pair')}"
        hint = "give word alignments of this text, one line for each sentence pair (blank without an alignment)"
        raise InputError(reason, path, hint=hint, code="conflict")


def read_counted(path: Path, first: int | None, option: str) -> Links:
    """Read a Pharaoh file whose words count from ``first``, or from 0 if it is None.

    With None, a file without a word 0 is refused, because it may count from 1.

    Raises:
        InputError: The file is not a Pharaoh file (see ``read_pharaoh``), or the number of its first word is unknown.
            In the second case, the hint names the ``option`` that sets the number.
    """
    links = read_pharaoh(path, first or 0, option)
    if first is None and len(links.left) and min(links.left.min(), links.right.min()) > 0:
        reason, hint = "no word has the number 0, so words may count from 0 or from 1", f"set {option} to 0 or 1"
        raise InputError(reason, path, hint=hint, code="missing")
    return links


def write_pharaoh(path: Path, links: Links) -> None:
    """Write word alignments as a Pharaoh file whose words count from 0.

    Raises:
        InputError: ``path`` has no name, such as ``.``.
        DiskError: The file cannot be written.
    """
    marks = np.where(links.sure, "-", "p").tolist()
    texts = [f"{a}{mark}{b}" for a, mark, b in zip(links.left.tolist(), marks, links.right.tolist(), strict=True)]
    with atomic_file(path, "w") as handle:
        handle.writelines(" ".join(texts[a:b]) + "\n" for a, b in pairwise(links.offsets.tolist()))
