"""Links between the words of sentence pairs, as columns, and the Pharaoh files that hold them.

A Pharaoh file has a line for each sentence pair, ``i-j`` for each link and ``ipj`` for a possible one. fast_align,
eflomal, awesome-align, simalign and Moses write them counting from 0; gold standards often count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.files import atomic_file, read_lines


@dataclass(frozen=True)
class Links:
    """Links of sentence pairs, one pair after another; within a pair by left word, then by right word, each once.

    offsets       [pairs + 1] int64: the links of pair i are offsets[i] … offsets[i + 1] − 1
    left, right   [links] int32, 0-based positions of the two words in their sentences
    sure          [links] bool; False: a possible link (Och & Ney 2003, "A Systematic Comparison of Various Statistical
                  Alignment Models", section 2)
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
        """Of links [n] in any order, each with the number of its pair; a sure one wins over its possible double."""
        order = np.lexsort((~sure, right, left, sentence))
        columns = np.stack([sentence, left, right])[:, order]
        first = np.ones(len(order), bool)
        first[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        kept = columns[:, first]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(kept[0], minlength=sentences))]).astype(np.int64)
        return Links(offsets, kept[1].astype(np.int32), kept[2].astype(np.int32), sure[order][first])

    @staticmethod
    def of(pairs: Sequence[Iterable[tuple[int, int]]]) -> Links:
        """Sure links of each sentence pair.

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
        """[links] the number of the pair of each link."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def of_pair(self, row: int) -> list[tuple[int, int]]:
        """The links of one sentence pair."""
        part = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return list(zip(self.left[part].tolist(), self.right[part].tolist(), strict=True))

    def select(self, kept: NDArray[np.bool_]) -> Links:
        """The links where ``kept`` [links]; the sentence pairs stay, perhaps without a link."""
        lengths = np.bincount(self.sentence[kept], minlength=len(self))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Links(offsets, self.left[kept], self.right[kept], self.sure[kept])

    def take(self, rows: NDArray[np.int64]) -> Links:
        """The sentence pairs at ``rows``, in that order."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        index = np.arange(offsets[-1], dtype=np.int64) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        return Links(offsets, self.left[index], self.right[index], self.sure[index])

    def within(self, left_lengths: NDArray[np.int64], right_lengths: NDArray[np.int64]) -> tuple[Links, int]:
        """Without the links to words that the sentences [pairs] do not have, and how many those were."""
        sentence = self.sentence
        inside = (self.left < left_lengths[sentence]) & (self.right < right_lengths[sentence])
        return self.select(inside), int((~inside).sum())

    def swapped(self) -> Links:
        """The same links the other way round: right words to the left."""
        return Links.build(self.sentence, self.right.astype(np.int64), self.left.astype(np.int64), self.sure, len(self))

    def one_to_one(self) -> Links:
        """The links both of whose words have no other link (the word pairs of Cao et al. 2020, section 3.3)."""
        alone = np.ones(len(self.left), bool)
        for word in (self.left, self.right):
            key = self.sentence * (int(word.max(initial=0)) + 1) + word
            _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
            alone &= count[inverse] == 1
        return self.select(alone)


def concatenate_links(parts: Sequence[Links]) -> Links:
    """The sentence pairs of all parts, one part after another."""
    parts = [Links.of([]), *parts]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.offsets) for p in parts]))])
    columns = [np.concatenate([getattr(p, name) for p in parts]) for name in ("left", "right", "sure")]
    return Links(offsets.astype(np.int64), *columns)


LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")
FEW = 1000  # lines, by which a file of something else is told


def read_pharaoh(path: Path, first: int = 0) -> Links:
    """The links of a file whose first word is number ``first`` (0 or 1); a blank line is a pair without a link.

    Raises InputError, with the line, for anything that is no link and for a 0 where words count from 1.
    """
    rows: list[tuple[int, int, int, bool]] = []
    number = 0
    for number, line in read_lines(path):
        rows += _links(line, first, path, number)
    table = np.asarray(rows, np.int64).reshape(-1, 4)
    return Links.build(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(bool), number)


def check_pharaoh(path: Path, first: int = 0) -> None:
    """Raise InputError, as ``read_pharaoh`` does, for anything in the first lines that is no link."""
    for number, line in islice(read_lines(path), FEW):
        _links(line, first, path, number)


def _links(line: str, first: int, path: Path, number: int) -> list[tuple[int, int, int, bool]]:
    """The sentence pair, left and right word of each link of a line, and whether it is sure (``-``), not possible."""
    found = []
    for token in line.split():
        match = LINK.fullmatch(token)
        if match is None:
            raise InputError(f"{token!r} is no link; links are i-j, or ipj for a possible one", path, number)
        a, b = int(match[1]) - first, int(match[3]) - first
        if min(a, b) < 0:
            raise InputError(f"{token!r}: there is no word 0 where words count from 1; use first: 0", path, number)
        found.append((number - 1, a, b, match[2] == "-"))
    return found


def read_counted(path: Path, first: int | None, option: str) -> Links:
    """``read_pharaoh``; with ``first`` None words count from 0, and a file that does not show it is refused.

    A file that counts from 1 has no word 0, so without one InputError asks for ``option`` of the command.
    """
    links = read_pharaoh(path, first or 0)
    if first is None and len(links.left) and min(links.left.min(), links.right.min()) > 0:
        raise InputError(f"has no word 0: say whether its words count from 0 or from 1 ({option})", path)
    return links


def write_pharaoh(path: Path, links: Links, first: int = 0) -> None:
    """Write links, atomically."""
    marks = np.where(links.sure, "-", "p").tolist()
    left, right = (links.left + first).tolist(), (links.right + first).tolist()
    texts = [f"{a}{mark}{b}" for a, mark, b in zip(left, marks, right, strict=True)]
    with atomic_file(path, "w") as handle:
        handle.writelines(" ".join(texts[a:b]) + "\n" for a, b in pairwise(links.offsets.tolist()))
