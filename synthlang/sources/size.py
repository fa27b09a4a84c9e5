"""About how many sentences the splits of files have, so that progress can tell the time left.

Nothing is read for it but what is read anyway, and the first SAMPLE bytes of files whose sentences
are easy to count; once a split was read to its end, its size is exact.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from synthlang.corpus import Corpus

SAMPLE = 1 << 24  # bytes
PIECE = 1 << 20


class Sizes:
    """What is known so far of each split: its size, and whether it is exact."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int | None, bool]] = {}

    def get(self, split: str) -> int | None:
        """Sentences of a split; None if there is nothing to tell from."""
        return self._known.get(split, (None, False))[0]

    def guess(self, split: str, sentences: int | None) -> None:
        """Set the size of a split until it is known better."""
        if not self._known.get(split, (None, False))[1]:
            self._known[split] = sentences, False

    def watch(self, split: str, batches: Iterator[Corpus], opened: Sequence[IO[bytes]] = ()) -> Iterator[Corpus]:
        """The same batches; the part of the file ``opened`` that was read for them tells the size of the split."""
        sentences = 0
        for batch in batches:
            sentences += len(batch)
            if opened and (share := share_read(opened[0])):
                self.guess(split, round(sentences / share))
            yield batch
        self._known[split] = sentences, True


def _size(handle: IO[bytes]) -> int:
    """Bytes of a plain file, 0 of anything else, as of a pipe."""
    about = os.fstat(handle.fileno())
    return about.st_size if stat.S_ISREG(about.st_mode) else 0


def share_read(handle: IO[bytes]) -> float | None:
    """Which part of its file was read, from 0 to 1; None if that cannot be told.

    Of a packed file those are packed bytes, and a buffer is ahead of what was asked for.
    """
    if handle.closed:  # at the end
        return 1.0
    size = _size(handle)
    return min(1.0, os.lseek(handle.fileno(), 0, os.SEEK_CUR) / size) if size else None


def blocks_in(path: Path) -> int | None:
    """About how many blocks of lines with a blank line after each a file holds; None if that cannot be told."""
    with path.open("rb") as handle:
        if not (size := _size(handle)):
            return None
        blocks, end = 0, b""
        while handle.tell() < SAMPLE and (piece := handle.read(PIECE)):
            blocks += piece.count(b"\n\n") + piece.count(b"\n\r\n")
            end = piece[-3:]
        blocks += not end.endswith((b"\n\n", b"\n\r\n"))
        return round(blocks * size / handle.tell())
