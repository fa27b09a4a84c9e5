"""Edits of a batch: words put beside words, words left out, words with something joined to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column, Corpus
from synthlang.rewrite import INSERTED, Rewrite

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Insertion:
    """A word ``word`` at each of the rows ``rows`` [n]; ``place`` < 0 before the row, > 0 after it.

    Of several at one row the larger place stands further right; equal ones in the order given.
    """

    rows: Rows
    place: int
    word: str


def edit(corpus: Corpus, form: Column, keep: NDArray[np.bool_], insertions: Sequence[Insertion]) -> Rewrite:
    """The rewrite to ``form`` [words] with only the words to ``keep`` [words] and the inserted ones.

    A place beside a word that is left out is where that word was.
    """
    kept = np.flatnonzero(keep)
    index: dict[str, int] = {}  # names that became equal are one
    own = np.asarray([index.setdefault(name, len(index)) for name in form.names or ()], np.int32)
    codes = [index.setdefault(i.word, len(index)) for i in insertions]
    anchors = np.concatenate([kept, *(i.rows for i in insertions)]).astype(np.int64)
    places = np.repeat([0, *(i.place for i in insertions)], [len(kept), *(len(i.rows) for i in insertions)])
    inserted = np.repeat(np.asarray(codes, np.int32), [len(i.rows) for i in insertions])
    all_codes = np.concatenate([own[form.codes[kept]], inserted])
    origin = np.concatenate([corpus.position[kept], np.full(len(inserted), INSERTED)])
    order = np.lexsort((places, anchors))
    lengths = np.bincount(corpus.sentence_of_word[anchors], minlength=len(corpus))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Rewrite(offsets, origin[order].astype(np.int32), Column(all_codes[order].astype(np.int32), tuple(index)))


def join_affixes(form: Column, affixes: Sequence[tuple[NDArray[np.int64], Sequence[str]]], before: bool) -> Column:
    """The forms with affixes joined to them.

    ``affixes`` are (choice [words], texts): the text joined to each word, −1 for none; the first one
    stands nearest to the word, after it or ``before`` it.
    """
    names = form.names or ()
    codes = form.codes.astype(np.int64)
    for choice, texts in affixes:
        if not len(codes):
            continue
        pairs, inverse = np.unique(codes * (len(texts) + 1) + choice + 1, return_inverse=True)
        joined = []
        for pair in pairs.tolist():
            name, affix = names[pair // (len(texts) + 1)], pair % (len(texts) + 1)
            joined.append(name if not affix else texts[affix - 1] + name if before else name + texts[affix - 1])
        unique = Column.of(joined)
        codes, names = unique.codes[inverse].astype(np.int64), unique.names or ()
    return Column(codes.astype(np.int32), tuple(names))
