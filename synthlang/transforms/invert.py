"""Inversion: the words of a sentence in reverse order (ALIGN-MLM, section 4, T_inv)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.corpus import Corpus
from synthlang.transforms.base import MOST_WORDS, Reordering, cut_segments


class Invert(Reordering):
    """Reverse the words: ``he saw her .`` → ``her saw he .`` (origin 2 1 0 3).

    With ``chunk`` k each k consecutive words are reversed by themselves: ``a b c d e`` → ``b a d c e`` for k = 2.
    """

    short_name: ClassVar[tuple[str, str] | None] = ("inv", "chunk")

    kind: Literal["invert"] = "invert"
    chunk: int | None = Field(default=None, ge=2, le=MOST_WORDS)

    def order(self, corpus: Corpus, segments: NDArray[np.int64], key: int) -> NDArray[np.int64]:
        """Row i of a segment [a, b) comes from row a + b − 1 − i."""
        del corpus, key  # inversion is not random
        segments = cut_segments(segments, self.chunk)
        if not len(segments):
            return segments
        starts = np.flatnonzero(np.diff(segments, prepend=-1))
        ends = np.append(starts[1:], len(segments))
        return np.asarray((starts + ends - 1)[segments] - np.arange(len(segments)), dtype=np.int64)
