"""The vocabulary that two languages share: exact counts of words, by type and by token.

Papers give a nominal share ("50 % of the vocabulary kept"). The actual share depends on the frequency of the types
that are kept. This module counts the actual share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from synthlang.corpus import Corpus


@dataclass(frozen=True)
class Overlap:
    """Numbers of words in a source text, and of the words that it shares with a derived text.

    Attributes:
        types_shared: Number of the source's word types that also occur in the derived text.
        types: Number of the source's word types.
        tokens_shared: Σ over words of min(count in the source, count in the derived text).
        tokens: Number of the source's running words.
    """

    types_shared: int
    types: int
    tokens_shared: int
    tokens: int

    @property
    def by_type(self) -> float:
        """Share of the source's types that the derived text also has, 0–1. It is 0 for an empty text."""
        return self.types_shared / max(self.types, 1)

    @property
    def by_token(self) -> float:
        """Share of the source's running words that the derived text also has, with multiplicity, 0–1.

        The share is 0 for an empty text.
        """
        return self.tokens_shared / max(self.tokens, 1)


def count_words(counts: Counter[str], corpus: Corpus) -> None:
    """Add the number of occurrences of each word form of a batch to ``counts``."""
    names = corpus.form.names or ()
    used = np.bincount(corpus.form.codes, minlength=len(names))
    for code in np.flatnonzero(used).tolist():
        counts[names[code]] += int(used[code])
