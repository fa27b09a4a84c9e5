"""Functions and classes of all conversions: downloaded files, rows of Parquet files, and lines of text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from pydantic import Field

from synthlang.config import StrictModel
from synthlang.data.archives import copy_members
from synthlang.data.sources import ANEW, OTHER
from synthlang.errors import InputError
from synthlang.files import read_lines, writing
from synthlang.progress import Report, silent
from synthlang.sources.splits import NAMES, split_of

INSIDE = "!"
"""Separator of an archive and its member, as in ``a.zip!folder/file.txt``."""
ROWS = 2000
BREAKS = re.compile(r"[\t\r\n\x00]+")
"""Characters that a field of a table or a line cannot have."""


class Given:
    """The downloaded files, by the names that conversions use.

    Args:
        files: The path of each file.
        work: An empty folder for members of archives.
        report: Called with the progress.
        names: Names of the files to write, if the data set consists of files. The files of a data set that is a folder
            are named after splits.
    """

    def __init__(
        self, files: Mapping[str, Path], work: Path, report: Report = silent, names: Sequence[str] = ()
    ) -> None:
        self._files, self._work, self.report, self.names = dict(files), work, report, names

    def unpack(self, names: Sequence[str]) -> None:
        """Unpack the member of each name of the form ``ARCHIVE!MEMBER``. An archive is read once.

        Raises:
            InputError: An archive was not downloaded, is damaged or unsafe, or lacks a member.
        """
        members: dict[str, dict[str, Path]] = defaultdict(dict)
        for number, name in enumerate(names):
            archive, inside, member = name.partition(INSIDE)
            if inside:
                members[archive][member] = self._work / f"{number}"
        for archive, wanted in members.items():
            copy_members(self.path(archive), wanted)
            self._files |= {f"{archive}{INSIDE}{member}": path for member, path in wanted.items()}

    @contextmanager
    def naming(self) -> Iterator[Given]:
        """Yield this object. An error of the block names an unpacked member in place of its temporary path."""
        try:
            yield self
        except InputError as error:
            members = {path: name for name, path in self._files.items() if INSIDE in name}
            if isinstance(error.path, Path):
                error.path = members.get(error.path, error.path)
            raise

    def path(self, name: str) -> Path:
        """Return the path of the downloaded or unpacked file ``name``.

        Raises:
            InputError: No file of this name was downloaded or unpacked.
        """
        if name not in self._files:
            reason = f"the file {name!r} is not among the downloads ({', '.join(self._files)})"
            raise InputError(reason, hint=OTHER, code="missing")
        return self._files[name]

    def matching(self, pattern: str) -> list[Path]:
        """Return the files whose names match a pattern, in the order of their names.

        Raises:
            InputError: No name matches the pattern.
        """
        found = [self._files[name] for name in sorted(self._files) if fnmatchcase(name, pattern)]
        return found or [self.path(pattern)]


class Converter(StrictModel):
    """Base class of conversions. A subclass has ``kind``, its options, ``inputs`` and ``run``."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names, patterns and members that the conversion reads. Every subclass defines them."""
        raise NotImplementedError

    @property
    def written_splits(self) -> tuple[str, ...]:
        """Splits that the conversion writes into a folder, in the order train, dev, test, or () for files."""
        return ()

    def run(self, given: Given, out: Path) -> dict[str, int]:
        """Write the converted files into the folder ``out``.

        Args:
            given: The downloaded files.
            out: An empty folder.

        Returns:
            Counts of omissions by reason.

        Raises:
            InputError: A file is missing, damaged, or has another layout than the conversion expects.
            DiskError: A file cannot be written.
        """
        raise NotImplementedError


class SplitConverter(Converter):
    """Base class of conversions with a file, or a pattern of files, for each split."""

    splits: Mapping[str, str] = Field(min_length=1)
    """The file of each split, or the pattern of its files: train, dev (valid for running text) or test."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.splits.values())

    @property
    def written_splits(self) -> tuple[str, ...]:
        return splits_of(self.splits)

    def tables(self, given: Given, columns: Sequence[str]) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
        """Yield each split with the rows of its Parquet files (see ``rows``)."""
        for split, pattern in self.splits.items():
            yield split, rows(given.matching(pattern), columns, given.report)


def splits_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the splits in the names of files or folders, in the order train, dev, test.

    >>> splits_of(["test/seq.in", "valid.txt"])
    ('dev', 'test')
    """
    found = {split_of(name.partition("/")[0]) for name in names}
    return tuple(split for split in NAMES if split in found)


def one_line(text: Any) -> str:
    """Return a text as one field of a table, where tabs and line breaks are spaces. None becomes "".

    >>> one_line("a\\tb\\nc ")
    'a b c'
    """
    return BREAKS.sub(" ", "" if text is None else str(text)).strip()


@contextmanager
def written(path: Path) -> Iterator[IO[str]]:
    """Open a UTF-8 text file for writing, with ``\\n`` as the line break.

    Raises:
        InputError: A text is not UTF-8.
        DiskError: The file cannot be written.
    """
    with writing(path), path.open("w", encoding="utf-8", newline="\n") as handle:
        yield handle


@contextmanager
def opened(path: Path) -> Iterator[Iterator[str]]:
    """Open a UTF-8 text file, and yield an iterator over its lines without their line breaks.

    Raises:
        InputError: The file is missing, cannot be read or is not UTF-8.
    """
    yield (line for _, line in read_lines(path))


def rows(paths: Sequence[Path], columns: Sequence[str], report: Report = silent) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of Parquet files, with values in the order of ``columns``, in bounded memory.

    ``report`` is called with the number of rows that were read of each file.

    Raises:
        InputError: A file is missing, is damaged or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, path in enumerate(paths, start=1):
        try:
            with pq.ParquetFile(path) as file:
                names = file.schema_arrow.names
                if lacks := [column for column in columns if column not in names]:
                    reason = f"has no column {lacks[0]!r}; the columns are {', '.join(names)}"
                    raise InputError(reason, path, hint=OTHER, code="missing")
                done, total = 0, file.metadata.num_rows
                for batch in file.iter_batches(ROWS, columns=list(columns)):
                    values = batch.to_pydict()
                    yield from zip(*(values[column] for column in columns), strict=True)
                    done += batch.num_rows
                    report(path.name, done, total, f"file {number} of {len(paths)}")
        except (pa.ArrowException, OSError) as error:
            reason = f"is damaged or not Parquet: {next(iter(str(error).splitlines()), '')}"
            raise InputError(reason, path, hint=ANEW, code="damaged") from error
