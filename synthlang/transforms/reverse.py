"""Reversal with a marker: the reverse languages of Kallini et al. 2024, "Mission: Impossible Language Models".

A marker is inserted at a random place of each sentence, with equal probability before each word and at the end. Then
the words after the marker, or all words with the marker, are reversed, as in the released code
(https://github.com/jkallini/mission-impossible-language-models, utils.py). The place is a function of the language's
seed and the sentence id, so a control marks the same places. The released data have other places, because their places
depend on the order in which the program read the files.

    he saw her .    none  he R saw her .    after  he R . her saw    all  . her saw R he
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from synthlang.corpus import Column, Corpus
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.rng import key_of, uniform
from synthlang.scripts import token_of_word
from synthlang.transforms.base import MOST_WORDS, Transform, chosen_sentences, filtered
from synthlang.transforms.mark import Marker
from synthlang.transforms.word_order import Rows


class Places(NamedTuple):
    """Places of markers in sentences.

    Attributes:
        offsets: Start of each sentence with its marker, [sentences + 1].
        marker: Place of each sentence's marker before any reversal, [sentences]. The value for a sentence without a
            marker is the length of the sentence.
        length: Number of words of each sentence without its marker, [sentences].
    """

    offsets: Rows
    marker: Rows
    length: Rows

    @staticmethod
    def of(corpus: Corpus, key: int, strength: float, is_marked: bool) -> Places:
        """Return the places of the markers of a batch.

        Args:
            corpus: The batch.
            key: Random key of the transform.
            strength: Share of the sentences that are chosen for a marker, 0 to 1.
            is_marked: True if the chosen sentences of the batch already have their markers.
        """
        chosen = chosen_sentences(corpus, key, strength)
        length = corpus.lengths - chosen if is_marked else corpus.lengths
        place = (uniform(key_of("place", key), corpus.ids) * (length + 1)).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(length + chosen)]).astype(np.int64)
        return Places(offsets, np.where(chosen, place, length), length)

    def reversed(self, place: Rows, sentence: Rows, part: str) -> Rows:
        """Return the new place of the word at ``place`` [n] of ``sentence`` [n], [n]. The function is its own inverse.

        ``part`` is ``after`` or ``all``. Places count from 0 in the sentence with its marker. In a sentence of n words
        and a marker at place m, place i becomes n − i for ``all``. For ``after``, a place i > m becomes n + 1 + m − i.
        """
        marker, length = self.marker[sentence], self.length[sentence]
        if part == "all":  # with the marker, a sentence has one word more
            return length - place
        return np.where(place > marker, length + 1 + marker - place, place)


class Reverse(Transform):
    """Insert a marker at a random place of each sentence, and reverse the words after it or the whole sentence."""

    flags_sentences: ClassVar[bool] = True
    adds_forms: ClassVar[bool] = True

    kind: Literal["reverse"] = "reverse"
    part: Literal["none", "after", "all"]
    """Part that is reversed: nothing (a control), the words after the marker, or all words and the marker."""
    marker: Marker = "🅁"
    """The word that is inserted. With ``unit: token``, the vocabulary must have it as one token."""
    unit: Literal["word", "token"] = "word"
    """Unit that moves: words, or the tokens of a vocabulary (as in the paper)."""
    shortest: int = Field(default=1, ge=0, le=MOST_WORDS)
    """Smallest number of words of a sentence. Shorter sentences are left out and counted."""

    def added_forms(self, words: Sequence[str], key: int) -> tuple[str, ...]:
        del words, key
        return (f" {self.marker}",)

    @property
    def added_tokens(self) -> tuple[str, ...]:
        return (token_of_word(self.marker),) if self.unit == "token" else ()

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        chosen = chosen_sentences(corpus, key, self.strength)
        places = Places.of(corpus, key, self.strength, is_marked=False)
        sentence = np.repeat(np.arange(len(corpus)), np.diff(places.offsets))
        place = np.arange(places.offsets[-1]) - places.offsets[:-1][sentence]
        moves = chosen[sentence]
        before = np.where(moves, places.reversed(place, sentence, self.part), place) if self.part != "none" else place
        marker = places.marker[sentence]
        inserted = moves & (before == marker)
        source = np.where(inserted, INSERTED, before - (before > marker)).astype(np.int32)
        names = corpus.form.names or ()
        text = token_of_word(self.marker) if self.unit == "token" else self.marker
        names = names if text in names else (*names, text)
        codes = np.append(corpus.form.codes, names.index(text))
        rows = np.where(inserted, len(codes) - 1, source + corpus.offsets[:-1][sentence])
        result = Rewrite(places.offsets, source, Column(codes[rows].astype(np.int32), names))
        return filtered(result, chosen, corpus.lengths >= self.shortest, "reverse: sentences dropped, too short")

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        """Return the rewrite that removes the markers and reverses the words again."""
        chosen = chosen_sentences(corpus, key, self.strength)
        places = Places.of(corpus, key, self.strength, is_marked=True)
        offsets = np.concatenate([[0], np.cumsum(places.length)]).astype(np.int64)
        sentence = np.repeat(np.arange(len(corpus)), places.length)
        place = np.arange(offsets[-1]) - offsets[:-1][sentence]
        moves = chosen[sentence]
        place = place + (moves & (place >= places.marker[sentence]))
        after = np.where(moves, places.reversed(place, sentence, self.part), place) if self.part != "none" else place
        rows = after + corpus.offsets[:-1][sentence]
        result = Rewrite.identity(corpus)
        return replace(result, offsets=offsets, source_index=after.astype(np.int32), form=corpus.form.take(rows))
