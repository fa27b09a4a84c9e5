"""Word vectors: the first lines of a file, with a header that states their number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from synthlang.data.conversions.base import Converter, Given
from synthlang.data.sources import ANEW, OTHER
from synthlang.errors import InputError
from synthlang.files import reading, writing


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

    def run(self, given: Given, out: Path, names: Sequence[str]) -> dict[str, int]:
        path, target = given.path(self.file), out / names[0]
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
