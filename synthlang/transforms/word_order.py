"""Inversion and permutation: the words of a sentence in another order, whatever they are.

ALIGN-MLM, section 4, T_inv; Deshpande et al. 2021, T_perm.
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
from synthlang.scripts import SCRIPTS, SPACE, byte_characters
from synthlang.sources.segmentation import ENDS
from synthlang.transforms.base import MOST_WORDS, Transform, chosen_sentences

Rows = NDArray[np.int64]
_TOKENS = [SPACE + "".join(byte_characters()[byte] for byte in mark.encode()) for mark in ENDS]
# A standalone mark is still that mark after a transliteration, so transforms compose in any order.
_MARKS = ENDS | {s.encode(mark) for s in SCRIPTS.values() for mark in ENDS}
_MARKS |= {*_TOKENS, *(s.encode_token(token) for s in SCRIPTS.values() for token in _TOKENS)}


class Reordering(Transform):
    """A transform that only moves words, in a share ``strength`` of the sentences.

    With ``keep_final_punctuation`` a standalone ``. ! ?``, or another mark that ends sentences
    (``segmentation.ENDS``: ``。 । ؟ …``), stays where it is and the words between two such marks
    move among themselves (ALIGN-MLM, appendix F); otherwise the
    words of the whole sentence do. With ``unit: token`` the words are those of a vocabulary's
    tokens (Deshpande et al. 2021), see ``vocabulary``.
    """

    keep_final_punctuation: bool = True
    unit: Literal["word", "token"] = "word"

    @abstractmethod
    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        """For each output word the row of its source word; rows stay inside their segment."""

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
    """For each word the number of its segment [words]: a sentence, or a piece of one between marks."""
    starts = np.zeros(corpus.offsets[-1], bool)
    starts[corpus.offsets[:-1][corpus.lengths > 0]] = True
    if split_at_marks:
        mark = corpus.form.lookup(_MARKS.__contains__)
        starts |= mark
        starts[1:] |= mark[:-1]
    return np.cumsum(starts) - 1


def cut_segments(segments: Rows, size: int | None) -> Rows:
    """The segments [words] cut into consecutive pieces of ``size`` words, the last one shorter; None: as they are."""
    if size is None:
        return segments
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    within = np.arange(len(segments), dtype=np.int64) - starts[segments]
    return np.asarray(np.cumsum(within % size == 0) - 1, dtype=np.int64)


class Invert(Reordering):
    """Reverse the words: ``he saw her .`` → ``her saw he .`` (origin 2 1 0 3).

    With ``chunk`` k each k consecutive words are reversed by themselves: ``a b c d e`` → ``b a d c e`` for k = 2.
    """

    short_name: ClassVar[tuple[str, str] | None] = ("inv", "chunk")

    kind: Literal["invert"] = "invert"
    chunk: int | None = Field(default=None, ge=2, le=MOST_WORDS)

    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        """Row i of a segment [a, b) comes from row a + b − 1 − i."""
        del corpus, key  # inversion is not random
        segments = cut_segments(segments, self.chunk)
        starts = np.flatnonzero(np.diff(segments, prepend=-1))
        ends = np.append(starts[1:], len(segments))
        return np.asarray((starts + ends - 1)[segments] - np.arange(len(segments)), dtype=np.int64)


class Permute(Reordering):
    """Shuffle the words of each sentence, uniformly over all orders.

    With ``window`` k each k consecutive words are shuffled among themselves: a local shuffle.
    """

    short_name: ClassVar[tuple[str, str] | None] = ("perm", "window")

    kind: Literal["permute"] = "permute"
    window: int | None = Field(default=None, ge=2, le=MOST_WORDS)

    def order(self, corpus: Corpus, segments: Rows, key: int) -> Rows:
        """Sort each segment by random keys, a function of (key, sentence id, position)."""
        bits = random_bits(key_of("order", key), corpus.ids[corpus.sentence_of_word], corpus.position)
        return np.asarray(np.lexsort((bits, cut_segments(segments, self.window))), dtype=np.int64)
