"""Files that a reader of ours reads unchanged: whole files, and the beginning of a file of word vectors."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from synthlang.data.conversions.base import Converter, Given, splits_of
from synthlang.data.sources import ANEW, OTHER
from synthlang.errors import InputError
from synthlang.files import reading, safe_name, writing
from synthlang.packed import open_packed


class CopiedFiles(Converter):
    """Copy files, and unpack a file packed with gzip if its new name does not end in .gz."""

    kind: Literal["copy"]
    """Copy files under new names."""
    files: Mapping[str, str] = Field(min_length=1)
    """The downloaded file, or ARCHIVE!MEMBER, for each file of the data set (which may be ``train/label``)."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.files.values())

    @property
    def written_splits(self) -> tuple[str, ...]:
        return splits_of(self.files)

    def run(self, given: Given, out: Path) -> dict[str, int]:
        for target, name in self.files.items():
            path = out.joinpath(*(safe_name(part) for part in target.split("/")))
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                source = given.path(name)
                if name.endswith(".gz") and not target.endswith(".gz"):
                    with open_packed(source) as unpacked, path.open("wb") as handle:
                        shutil.copyfileobj(unpacked, handle)
                else:
                    shutil.copyfile(source, path)
        return {}


class FirstVectors(Converter):
    """Write the vectors of the first words of a file, which are the most frequent words.

    The downloaded file may end inside a later line, since only its start need be downloaded.
    """

    kind: Literal["vectors"]
    """Word vectors, from the start of a file."""
    file: str
    """The downloaded file of word vectors."""
    words: int = Field(default=200_000, ge=1)
    """Largest number of words to keep."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.file,)

    def run(self, given: Given, out: Path) -> dict[str, int]:
        path, target = given.path(self.file), out / given.names[0]
        with reading(path), path.open("rb") as source, writing(target), target.open("wb") as handle:
            header = source.readline(1 << 10).split()
            if len(header) != 2 or not all(part.isdigit() for part in header):
                reason = "the first line must be the number of words and the number of dimensions"
                raise InputError(reason, path, 1, hint=OTHER, code="format")
            words = min(self.words, int(header[0]))
            handle.write(b"%d %s\n" % (words, header[1]))
            for number in range(words):
                line = source.readline()
                if not line.endswith(b"\n"):
                    reason = f"the file ends after {number:,} of {words:,} words"
                    raise InputError(reason, path, number + 2, hint=ANEW, code="damaged")
                handle.write(line)
        return {}
