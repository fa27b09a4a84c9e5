"""Estimate the number of sentences in the splits of files, so that progress can show the remaining time.

An estimate costs at most SAMPLE bytes of extra reading. Once a split has been read to its end, its size is exact.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from synthlang.corpus import Corpus

SAMPLE = 1 << 24  # bytes
PIECE = 1 << 20


class Sizes:
    """Estimated and exact sizes of splits."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int | None, bool]] = {}

    def get(self, split: str) -> int | None:
        """Return the number of sentences in a split, or None if there is no estimate."""
        return self._known.get(split, (None, False))[0]

    def guess(self, split: str, sentences: int | None) -> None:
        """Set the estimated size of a split to ``sentences`` (None: unknown), unless its exact size is known."""
        if not self._known.get(split, (None, False))[1]:
            self._known[split] = sentences, False

    def watch(
        self, split: str, batches: Iterator[Corpus], share_so_far: Callable[[], float | None] = lambda: None
    ) -> Iterator[Corpus]:
        """Yield ``batches`` unchanged, and estimate the size of the split from the share that has been read.

        ``share_so_far`` returns this share, 0 to 1, or None if it is unknown. After the last batch the size is exact.
        """
        sentences = 0
        for batch in batches:
            sentences += len(batch)
            if share := share_so_far():
                self.guess(split, round(sentences / share))
            yield batch
        self._known[split] = sentences, True


def share_read(handle: IO[bytes]) -> float | None:
    """Return the share of a file that has been read, 0 to 1, or None for an empty file.

    For a packed file the share counts packed bytes.
    """
    if handle.closed:  # at the end
        return 1.0
    size = os.fstat(handle.fileno()).st_size
    return min(1.0, os.lseek(handle.fileno(), 0, os.SEEK_CUR) / size) if size else None


def blocks_in(path: Path) -> int | None:
    """Estimate the number of blocks in a file, which are groups of lines between blank lines.

    At most about SAMPLE bytes are read. The result is None for an empty file.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as handle:
        if not (size := path.stat().st_size):
            return None
        blocks, end = 0, b""
        while handle.tell() < SAMPLE and (piece := handle.read(PIECE)):
            blocks += piece.count(b"\n\n") + piece.count(b"\n\r\n")
            end = piece[-3:]
        blocks += not end.endswith((b"\n\n", b"\n\r\n"))
        return round(blocks * size / handle.tell())
