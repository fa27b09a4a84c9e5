"""Inversion and permutation: the words of a sentence in an order that does not depend on the words.

Inversion is T_inv of ALIGN-MLM, section 4. Permutation is T_perm of Deshpande et al. 2021.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.corpus import Corpus
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, random_bits
from synthlang.scripts import SCRIPTS, token_of_word
from synthlang.sources.segmentation import ENDS
from synthlang.transforms.base import MOST_WORDS, Transform, chosen_sentences

Rows = NDArray[np.int64]
_TOKENS = [token_of_word(mark) for mark in ENDS]
# A standalone mark is found after a transliteration, too, so transforms compose in any order.
_MARKS = ENDS | {s.encode(mark) for s in SCRIPTS.values() for mark in ENDS}
_MARKS |= {*_TOKENS, *(s.encode_token(token) for s in SCRIPTS.values() for token in _TOKENS)}


class Reordering(Transform):
    """A transform that only moves words, in a share ``strength`` of the sentences."""

    keeps_forms: ClassVar[bool] = True

    keep_final_punctuation: bool = True
    """Leave a standalone ``. ! ?``, or another mark that ends sentences (``。 । ؟ …``), in its place.

    The words between two such marks then move among themselves (ALIGN-MLM, appendix F). Otherwise all words of the
    sentence move.
    """
    unit: Literal["word", "token"] = "word"
    """Unit that moves: words, or the tokens of a vocabulary (Deshpande et al. 2021)."""

    @abstractmethod
    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        """Return for each output word the row of its source word, [words]. Rows stay inside their segment.

        ``segments`` [words] is the number of each word's segment, and ``key`` the random key of the transform.
        ``rewrite`` applies the order to the chosen sentences only.
        """

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        return Rewrite.reorder(corpus, self._index(corpus, key))

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        return Rewrite.reorder(corpus, np.argsort(self._index(corpus, key), kind="stable"))

    def _index(self, corpus: Corpus, key: int) -> Rows:
        index = np.arange(corpus.offsets[-1], dtype=np.int64)
        chosen = chosen_sentences(corpus, key, self.strength)
        moved = self.order(corpus, segment_of_word(corpus, self.keep_final_punctuation), key)
        return np.where(chosen[corpus.sentence_of_word], moved, index)


def segment_of_word(corpus: Corpus, split_at_marks: bool) -> Rows:
    """Return the number of each word's segment, [words]. A segment is a sentence, or its part between two marks.

    With ``split_at_marks``, a mark that ends sentences and stands alone is a separate segment.
    """
    starts = np.zeros(corpus.offsets[-1], bool)
    starts[corpus.offsets[:-1][corpus.lengths > 0]] = True
    if split_at_marks:
        mark = corpus.form.lookup(_MARKS.__contains__)
        starts |= mark
        starts[1:] |= mark[:-1]
    return np.cumsum(starts) - 1


def cut_segments(segments: Rows, size: int | None) -> Rows:
    """Cut the segments [words] into consecutive pieces of ``size`` words. The last piece of a segment may be shorter.

    With ``size`` None the segments are unchanged.
    """
    if size is None:
        return segments
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    within = np.arange(len(segments), dtype=np.int64) - starts[segments]
    return np.asarray(np.cumsum(within % size == 0) - 1, dtype=np.int64)


class Invert(Reordering):
    """Reverse the words: ``he saw her .`` → ``her saw he .`` (source_index 2 1 0 3)."""

    short_name: ClassVar[tuple[str, str] | None] = ("inv", "chunk")

    kind: Literal["invert"] = "invert"
    chunk: int | None = Field(default=None, ge=2, le=MOST_WORDS)
    """Number k of consecutive words that are reversed by themselves. With null, the whole segment is reversed.

    For k = 2, ``a b c d e`` becomes ``b a d c e``.
    """

    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        """Return for each output word the row of its source word, [words].

        Row i of a segment [a, b) gets the word of row a + b − 1 − i.
        """
        del corpus, key  # inversion is not random
        segments = cut_segments(segments, self.chunk)
        starts = np.flatnonzero(np.diff(segments, prepend=-1))
        ends = np.append(starts[1:], len(segments))
        return np.asarray((starts + ends - 1)[segments] - np.arange(len(segments)), dtype=np.int64)


class Permute(Reordering):
    """Shuffle the words of each sentence, uniformly over all orders."""

    short_name: ClassVar[tuple[str, str] | None] = ("perm", "window")

    kind: Literal["permute"] = "permute"
    window: int | None = Field(default=None, ge=2, le=MOST_WORDS)
    """Number k of consecutive words that are shuffled among themselves. With null, the whole segment is shuffled."""

    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        return random_order(corpus, cut_segments(segments, self.window), key)


def random_order(corpus: Corpus, segments: Rows, key: int) -> Rows:
    """Return for each output word the row of its source word, in a random order of each segment, [words].

    ``segments`` [words] is the number of each word's segment. The words of a segment are sorted by random bits, which
    are a function of ``key``, the id of the sentence and the position of the word.
    """
    bits = random_bits(key_of("order", key), corpus.ids[corpus.sentence_of_word], corpus.position)
    return np.asarray(np.lexsort((bits, segments)), dtype=np.int64)
