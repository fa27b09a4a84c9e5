"""Gold alignments: languages derived from one parent are aligned by construction.

Every transform says of each word which word of the parent it was (``Rewrite.origin``), so two words are linked if they
were the same word. Words that a language inserted have no link.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from synthlang.alignments.links import Links
from synthlang.corpus import Corpus
from synthlang.language import Language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.sources.base import Source, check_split


def gold_batches(source: Source, split: str, left: Language, right: Language) -> Iterator[tuple[Corpus, Corpus, Links]]:
    """The sentences of a split in two (bound) languages, batch by batch, with their links.

    A sentence that either language leaves out is left out; the ids say which are there.
    """
    check_split(source, split, "the source")
    for batch in source.batches(split):
        yield gold_links(batch, left.rewrite(batch), right.rewrite(batch))


def gold_links(corpus: Corpus, left: Rewrite, right: Rewrite) -> tuple[Corpus, Corpus, Links]:
    """Two rewrites of one batch: the sentences that both kept, in both languages, and their links."""
    everything = np.arange(len(corpus), dtype=np.int64)
    first, second = (everything if r.kept is None else r.kept for r in (left, right))
    common, of_left, of_right = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    left, right = left.take(of_left), right.take(of_right)
    starts = corpus.offsets[common]
    words_left, words_right = _parent_words(left, starts), _parent_words(right, starts)
    linked_left, linked_right = _join(words_left, words_right)
    sentence_left, position_left = _places(left)
    _, position_right = _places(right)
    columns = sentence_left[linked_left], position_left[linked_left], position_right[linked_right]
    links = Links.build(*columns, np.ones(len(linked_left), bool), len(common))
    return left.apply(corpus), right.apply(corpus), links


def _parent_words(rewrite: Rewrite, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[output words] the row of each one's parent word in the batch, −1 for an inserted one."""
    rows = rewrite.origin + np.repeat(starts, np.diff(rewrite.offsets))
    return np.where(rewrite.origin == INSERTED, -1, rows)


def _places(rewrite: Rewrite) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[output words] the sentence of each word and its position in it."""
    lengths = np.diff(rewrite.offsets)
    sentence = np.repeat(np.arange(len(rewrite), dtype=np.int64), lengths)
    return sentence, np.arange(len(sentence), dtype=np.int64) - rewrite.offsets[:-1][sentence]


def _join(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of all pairs of equal values that are ≥ 0."""
    order = np.argsort(right, kind="stable")
    low, high = (np.searchsorted(right, left, side=side, sorter=order) for side in ("left", "right"))
    counts = np.where(left < 0, 0, high - low)
    first = np.repeat(np.arange(len(left), dtype=np.int64), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(low, counts) + within]
