"""Delay of inserted words: the markers of ``hop`` move by a number of tokens (Kallini et al. 2024, token hop)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from synthlang.corpus import Corpus
from synthlang.rewrite import Rewrite
from synthlang.transforms.base import MOST_WORDS, Transform, check_columns, chosen_sentences, parent_words
from synthlang.transforms.mark import INSERTED_TAG


class Delay(Transform):
    """Move the words that earlier transforms inserted, such as markers, some words to the right."""

    requires: ClassVar[tuple[str, ...]] = ("upos",)
    keeps_forms: ClassVar[bool] = True
    invertible: ClassVar[bool] = False  # a word that moved to the end may come from several places

    kind: Literal["delay"] = "delay"
    by: int = Field(default=4, ge=1, le=MOST_WORDS)
    """Number of words that an inserted word passes, not counting other inserted words.

    If the sentence ends first, the word moves to its end.
    """
    unit: Literal["word", "token"] = "word"
    """Unit that is passed: words, or the tokens of a vocabulary (as in the paper)."""

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        if not len(corpus):
            return Rewrite.identity(corpus)
        check_columns(corpus, self)
        sentence = corpus.sentence_of_word
        tag = corpus.columns["upos"].lookup(lambda name: name == INSERTED_TAG)
        inserted = tag & parent_words(corpus).lookup(lambda name: name == INSERTED_TAG)
        passed = np.cumsum(~inserted)  # number of other words up to each word, itself included
        last = np.append(0, passed)[corpus.offsets[1:]][sentence]
        steps = np.where(chosen_sentences(corpus, key, self.strength), self.by, 0)[sentence]
        place = np.where(inserted, np.minimum(passed + steps, last), passed)
        return Rewrite.reorder(corpus, np.lexsort((inserted, place, sentence)).astype(np.int64))
