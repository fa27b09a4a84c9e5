"""How often each word occurs in a source."""

from __future__ import annotations

from collections import Counter

from synthlang.overlap import count_words
from synthlang.sources.base import Source


def word_counts(source: Source, split: str | None = None) -> Counter[str]:
    """Occurrences of each form in a split: the training split, or the first one where there is none."""
    counts: Counter[str] = Counter()
    for batch in source.batches(split or ("train" if "train" in source.splits else source.splits[0])):
        count_words(counts, batch)
    return counts
