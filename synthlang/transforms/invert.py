"""Inversion: the words of a sentence in reverse order (ALIGN-MLM, section 4, T_inv)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus
from synthlang.transforms.base import Reordering


class Invert(Reordering):
    """Reverse the words: ``he saw her .`` → ``her saw he .`` (origin 2 1 0 3)."""

    kind: Literal["invert"] = "invert"

    def order(self, corpus: Corpus, segments: NDArray[np.int64], key: int) -> NDArray[np.int64]:
        """Row i of a segment [a, b) comes from row a + b − 1 − i."""
        del corpus, key  # inversion is not random
        if not len(segments):
            return segments
        starts = np.flatnonzero(np.diff(segments, prepend=-1))
        ends = np.append(starts[1:], len(segments))
        return np.asarray((starts + ends - 1)[segments] - np.arange(len(segments)), dtype=np.int64)
