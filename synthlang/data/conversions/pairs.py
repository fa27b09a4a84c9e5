"""Translations: two files of lines, or two columns of a table, as words separated by spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from pydantic import Field

from synthlang.data.conversions.base import Converter, Given, one_line, opened, written
from synthlang.data.sources import ANEW, OTHER
from synthlang.errors import InputError
from synthlang.parallel.text import SPLITTERS, Splitter

EMPTY = "pairs left out because a side has no word"
SAYS = 20_000


class _Pairs(Converter):
    words: Splitter = "rules"
    """Rule for splitting a line into words: ``rules`` of running text, or ``spaces``."""
    sentences: int | None = Field(default=None, ge=1)
    """Number of pairs to keep from the start (default: all)."""

    def write(self, given: Given, pairs: Iterable[tuple[str, str]], out: Path) -> dict[str, int]:
        """Write the pairs to two files in the folder ``out``, and return the counts of omitted pairs by reason.

        Args:
            given: The downloaded files, whose ``report`` is called with the progress.
            pairs: The sentence pairs as text.
            out: The folder.

        Raises:
            InputError: There are not two names.
            DiskError: A file cannot be written.
        """
        if len(given.names) != 2:
            raise InputError(
                "sentence pairs fill exactly two files", keys="fills", hint="name both files", code="conflict"
            )
        split, counts, kept = SPLITTERS[self.words], Counter[str](), 0
        with written(out / given.names[0]) as left, written(out / given.names[1]) as right:
            for number, pair in enumerate(pairs, start=1):
                first, second = (" ".join(split(one_line(side))) for side in pair)
                if number % SAYS == 0:
                    given.report("pairs", number, max(number, self.sentences or 0), "")
                if not first or not second:
                    counts[EMPTY] += 1
                    continue
                left.write(f"{first}\n")
                right.write(f"{second}\n")
                kept += 1
                if kept == self.sentences:
                    break
        return +counts


class PairFiles(_Pairs):
    """Write the two sides of sentence pairs to two files, from two files with equal numbers of lines."""

    kind: Literal["pairs"]
    """Translations in two files."""
    left: str
    """File, or ARCHIVE!MEMBER, of the first language."""
    right: str
    """File, or ARCHIVE!MEMBER, of the second language."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.left, self.right

    def run(self, given: Given, out: Path) -> dict[str, int]:
        paths = given.path(self.left), given.path(self.right)
        with opened(paths[0]) as left, opened(paths[1]) as right:
            return self.write(given, self._pairs(left, right, paths[0]), out)

    def _pairs(self, left: Iterable[str], right: Iterable[str], path: Path) -> Iterable[tuple[str, str]]:
        for number, (first, second) in enumerate(zip_longest(left, right), start=1):
            if first is None or second is None:
                reason = "the file and its translation have different numbers of lines"
                raise InputError(reason, path, number, hint=ANEW, code="damaged")
            yield first, second


class PairTable(_Pairs):
    """Write the two sides of sentence pairs to two files, from two columns of a tab-separated file with a header."""

    kind: Literal["pair_table"]
    """Translations in columns of a table."""
    table: str
    """The table: a file, or ARCHIVE!MEMBER."""
    left: str
    """Column of the first language."""
    right: str
    """Column of the second language."""
    where: Mapping[str, str] = {}
    """Values of other columns in the rows to keep (default: all rows)."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.table,)

    def run(self, given: Given, out: Path) -> dict[str, int]:
        path = given.path(self.table)
        with opened(path) as lines:
            header = next(lines, "").split("\t")
            for column in (self.left, self.right, *self.where):
                if column not in header:
                    reason = f"has no column {column!r}; the columns are {', '.join(header)}"
                    raise InputError(reason, path, 1, hint=OTHER, code="missing")
            rows = (dict(zip(header, line.split("\t"), strict=False)) for line in lines)
            kept = (row for row in rows if all(row.get(column) == value for column, value in self.where.items()))
            pairs = ((row.get(self.left, ""), row.get(self.right, "")) for row in kept)
            return self.write(given, pairs, out)
