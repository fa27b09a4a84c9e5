"""Marker hops: the hop languages of Kallini et al. 2024, "Mission: Impossible Language Models".

A verb of the present third person loses its ending, and a marker of its number follows some words later. The rules are
those of the released code (https://github.com/jkallini/mission-impossible-language-models, utils.py):

- A verb is affected if its features include Person=3, Tense=Pres, VerbForm=Fin, and Number=Sing or Number=Plur. Its
  word is replaced by its lemma, if the verb has a lemma.
- Words are counted from the verb on. ASCII punctuation and the parts of words in ``parts`` do not count, and the marker
  is never put between a word and its part.
- A sentence in which fewer than ``room`` words follow an affected verb is left out. The part of a sentence after its
  last letter or digit holds no words.

    he cleans his very messy bookshelf .        distance 0   he clean S his very messy bookshelf .
                                                distance 4   he clean his very messy bookshelf S .

``Delay`` moves the markers of distance 0 by tokens, as in the token hop of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import punctuation
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from synthlang.corpus import Column, Corpus
from synthlang.rewrite import Rewrite
from synthlang.sources.words import one_word, visible
from synthlang.transforms.base import (
    MOST_WORDS,
    Transform,
    check_columns,
    check_order,
    chosen_sentences,
    filtered,
    parent_words,
)
from synthlang.transforms.mark import INSERTED_TAG, Insertion, Marker, edit
from synthlang.transforms.word_order import Rows

Flags = NDArray[np.bool_]
PRESENT_THIRD = frozenset({"Person=3", "Tense=Pres", "VerbForm=Fin"})
NUMBERS = ("Number=Sing", "Number=Plur")
PARTS = ("n't", "'ll", "'s", "'re", "'ve", "'m")
MARKS = frozenset(punctuation)


class Hops(NamedTuple):
    """The last word before each marker.

    Attributes:
        rows: Row of the word that each marker follows, [verbs].
        complete: Flags of the verbs that enough words follow, [verbs].
    """

    rows: Rows
    complete: Flags


def hop(corpus: Corpus, form: Column, verbs: Rows, distance: int, parts: Sequence[str]) -> Hops:
    """Find the word that each marker follows, ``distance`` words after its verb.

    If too few words follow the verb, the marker follows the last word with a letter or digit, or the verb itself.

    Args:
        corpus: The batch.
        form: Word forms of the batch after lemmatisation, [words].
        verbs: Rows of the affected verbs, [verbs].
        distance: Number of words between a verb and its marker. ASCII punctuation and ``parts`` do not count.
        parts: Words that are parts of the word before them.
    """
    is_part = form.lookup(parts.__contains__)
    counts = ~is_part & form.lookup(lambda name: not MARKS.issuperset(name))
    alphanumeric = np.flatnonzero(form.lookup(lambda name: any(map(str.isalnum, name))))
    counted = np.flatnonzero(counts)
    ends = corpus.offsets[1:][corpus.sentence_of_word[verbs]]
    last_letter = np.append(alphanumeric, -1)[np.searchsorted(alphanumeric, ends) - 1]  # −1: the batch has none before
    # A hop leaves the verb and the words after it, one by one, until it has left ``distance`` words that count.
    left = np.searchsorted(counted, verbs) + distance - 1
    landing = np.append(counted, len(counts))[np.minimum(left, len(counted))] + 1
    complete = (landing <= last_letter) if distance else np.ones(len(verbs), bool)
    rows = np.where(complete, landing if distance else verbs, np.maximum(verbs, last_letter))
    if distance:
        following = np.append(counted, len(counts))[np.searchsorted(counted, rows)]
        rows = np.where(last_letter > rows, np.minimum(following, ends - 1), rows)
    has_next = rows + 1 < ends
    return Hops(rows + (has_next & np.append(is_part, False)[rows + 1]), complete)


class Hop(Transform):
    """Put verbs of the present third person into their basic form, with a marker of their number some words later."""

    requires: ClassVar[tuple[str, ...]] = ("lemma", "feats")
    invertible: ClassVar[bool] = False
    flags_sentences: ClassVar[bool] = True
    adds_forms: ClassVar[bool] = True

    kind: Literal["hop"] = "hop"
    distance: int = Field(default=4, ge=0, le=MOST_WORDS)
    """Number of words between a verb and its marker. ASCII punctuation and ``parts`` do not count."""
    room: int = Field(default=4, ge=0, le=MOST_WORDS)
    """Number of words that must follow each affected verb. Other sentences are left out and counted."""
    singular: Marker = "🅂"
    """Marker of a verb with Number=Sing."""
    plural: Marker = "🄿"
    """Marker of a verb with Number=Plur."""
    parts: tuple[str, ...] = PARTS
    """Words that are parts of the word before them."""

    @model_validator(mode="after")
    def _fits(self) -> Hop:
        check_order(self, "distance", "room")
        return self

    def added_forms(self, words: Sequence[str], key: int) -> tuple[str, ...]:
        del words, key
        return (f" {self.singular}", f" {self.plural}")

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        if not len(corpus):
            return replace(Rewrite.identity(corpus), affected=np.zeros(0, bool))
        check_columns(corpus, self)
        chosen = chosen_sentences(corpus, key, self.strength)[corpus.sentence_of_word]
        number = corpus.columns["feats"].lookup(number_of, np.int64)
        verbs = np.flatnonzero(chosen & (number >= 0))
        form = lemmatised(corpus, verbs)
        hops = hop(corpus, form, verbs, self.distance, self.parts)
        roomy = hop(corpus, form, verbs, self.room, self.parts).complete
        affected = np.bincount(corpus.sentence_of_word[verbs], minlength=len(corpus)) > 0
        lacking = np.bincount(corpus.sentence_of_word[verbs[~roomy]], minlength=len(corpus)) > 0
        markers = enumerate((self.singular, self.plural))
        insertions = [Insertion(hops.rows[number[verbs] == which], 1, word) for which, word in markers]
        result = edit(corpus, form, np.ones(len(form.codes), bool), insertions)
        reason = f"hop: sentences dropped, fewer than {self.room} words after a verb"
        result = filtered(result, affected, ~lacking, reason)
        return result.counted({**result.counts, "hop: affected sentences": result.affected})


def number_of(features: str) -> int:
    """Return 0 for a verb of the present third person singular, 1 for the plural, and −1 for any other word.

    >>> number_of("Mood=Ind|Number=Plur|Person=3|Tense=Pres|VerbForm=Fin"), number_of("Number=Sing")
    (1, -1)
    """
    given = set(features.split("|"))
    return next((i for i, number in enumerate(NUMBERS) if number in given), -1) if given >= PRESENT_THIRD else -1


def lemmatised(corpus: Corpus, verbs: Rows) -> Column:
    """Return the word forms, [words], with the verbs at the rows ``verbs`` [n] replaced by their lemmas.

    A verb without a lemma keeps its form.
    """
    form, lemma = corpus.form, corpus.columns["lemma"]
    names, lemmas = list(form.names or ()), lemma.names or ()
    index = {name: code for code, name in enumerate(names)}
    used, place = np.unique(lemma.codes[verbs], return_inverse=True)
    written = (one_word(visible(lemmas[code])) for code in used.tolist())
    table = [-1 if text in ("", "_") else index.setdefault(text, len(index)) for text in written]
    new = np.asarray(table, np.int32)[place] if table else np.zeros(0, np.int32)
    codes = form.codes.copy()
    codes[verbs] = np.where(new < 0, codes[verbs], new)
    return Column(codes, tuple(index))


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
