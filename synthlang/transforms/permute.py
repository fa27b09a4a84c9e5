"""Permutation: the words of a sentence in random order (Deshpande et al. 2021, T_perm)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.corpus import Corpus
from synthlang.rng import key_of, random_bits
from synthlang.transforms.base import MOST_WORDS, Reordering, cut_segments


class Permute(Reordering):
    """Shuffle the words of each sentence, uniformly over all orders.

    With ``window`` k each k consecutive words are shuffled among themselves: a local shuffle.
    """

    short_name: ClassVar[tuple[str, str] | None] = ("perm", "window")

    kind: Literal["permute"] = "permute"
    window: int | None = Field(default=None, ge=2, le=MOST_WORDS)

    def order(self, corpus: Corpus, segments: NDArray[np.int64], key: int) -> NDArray[np.int64]:
        """Sort each segment by random keys, a function of (key, sentence id, position)."""
        ids = corpus.ids[corpus.sentence_of_word]
        bits = random_bits(key_of("order", key), ids, corpus.position)
        return np.asarray(np.lexsort((bits, cut_segments(segments, self.window))), dtype=np.int64)
