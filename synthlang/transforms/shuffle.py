"""Shuffles by position: the shuffle languages of Kallini et al. 2024, "Mission: Impossible Language Models".

The rules are those of the released code (https://github.com/jkallini/mission-impossible-language-models, utils.py). Its
generator starts again for each sentence, or for each window of a sentence, so all sentences or windows of one length
have the same order. NumPy draws this order, both in the released code and here.

    draw 0, five words   a b c d e  →  c e d a b
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.rewrite import Rewrite
from synthlang.transforms.base import MOST_WORDS, check_order, chosen_sentences, filtered
from synthlang.transforms.word_order import Reordering, Rows, cut_segments, random_order

LARGEST_DRAW = 2**32 - 1


class Shuffle(Reordering):
    """Put the words of each sentence in an order by position, and leave out very short and very long sentences."""

    flags_sentences: ClassVar[bool] = True

    kind: Literal["shuffle"] = "shuffle"
    permutation: Literal["none", "random", "fixed", "even-odd"]
    """Order of the words.

    ``none`` keeps the order (a control), ``random`` draws an order for each sentence, ``fixed`` has one order for each
    length, and ``even-odd`` puts even positions, counted from 0, before odd positions.
    """
    draw: int | None = Field(default=None, ge=0, le=LARGEST_DRAW)
    """Seed of NumPy's generator, which draws the orders of ``fixed``. The seed of the language does not affect them."""
    window: int | None = Field(default=None, ge=2, le=MOST_WORDS)
    """Number of consecutive words that move among themselves. With null, all words of the sentence move."""
    shortest: int = Field(default=2, ge=0, le=MOST_WORDS)
    """Smallest number of words of a sentence. Shorter sentences are left out and counted."""
    longest: int | None = Field(default=350, ge=1, le=MOST_WORDS)
    """Largest number of words of a sentence. Longer sentences are left out and counted."""
    keep_final_punctuation: bool = False
    """Leave marks that end sentences in their places. The words between two marks then move among themselves."""

    @model_validator(mode="after")
    def _drawn_once(self) -> Shuffle:
        if self.permutation == "fixed" and self.draw is None:
            reason = "is required with permutation: fixed, whose orders it draws"
            raise InputError(reason, keys="draw", hint="set draw, for example to 21", code="missing")
        if self.permutation != "fixed" and self.draw is not None:
            hint = "set permutation: fixed, or delete draw"
            reason = f"has no effect with permutation: {self.permutation}"
            raise InputError(reason, keys="draw", hint=hint, code="no_effect")
        check_order(self, "shortest", "longest")
        return self

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        fits = corpus.lengths >= self.shortest
        if self.longest is not None:
            fits &= corpus.lengths <= self.longest
        chosen = chosen_sentences(corpus, key, self.strength)
        return filtered(super().rewrite(corpus, key), chosen, fits, "shuffle: sentences dropped, too short or too long")

    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        segments = cut_segments(segments, self.window)
        match self.permutation:
            case "none":
                return np.arange(len(segments), dtype=np.int64)
            case "random":
                return random_order(corpus, segments, key)
            case "even-odd":
                starts = np.flatnonzero(np.diff(segments, prepend=-1))
                odd = (np.arange(len(segments)) - starts[segments]) % 2
                return np.asarray(np.lexsort((odd, segments)), dtype=np.int64)
            case "fixed":
                assert self.draw is not None
                return fixed_order(segments, self.draw)


def fixed_order(segments: Rows, draw: int) -> Rows:
    """Return for each output word the row of its source word, with one order for all segments of a length, [words].

    ``segments`` [words] is the number of each word's segment, and ``draw`` the seed of NumPy's generator.
    """
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    lengths = np.diff(np.append(starts, len(segments)))
    index = np.empty(len(segments), np.int64)
    for length in np.unique(lengths).tolist():
        first = starts[lengths == length][:, None]
        index[first + np.arange(length)] = first + drawn(draw, length)
    return index


@lru_cache(maxsize=1024)
def drawn(draw: int, length: int) -> Rows:
    """Return the order that ``default_rng(draw).shuffle`` gives to 0 … ``length`` − 1, as in the released code.

    >>> drawn(0, 5).tolist()
    [2, 4, 3, 0, 1]
    """
    order = np.arange(length, dtype=np.int64)
    np.random.default_rng(draw).shuffle(order)
    return order
