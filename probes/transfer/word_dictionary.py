"""A dictionary of a file laid over aligned text: types of words that occur in it and translate each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pretrain.adjust.text import Sentences
from probes.maps.translation_set import translation_set
from probes.transfer.aligned_text import Aligned
from synthlang.corpus import FORM, Column, Corpus
from synthlang.muse import Pair, read_muse


def named_translations(text: Aligned, path: Path, words: int, lower: bool) -> tuple[NDArray[np.int64], int]:
    """[n, 2] codes of a left and a right type that translate each other in a MUSE file of words of the parent (right)
    and of the other language, and how many of its pairs have a word that is not in the training sentences.

    At most ``words`` pairs that are there: those of the words that come first in the file (Kulshreshtha et al. 2020,
    sections 2.2.1 and 4.1). ``lower``: the file in small letters, as ``lowered_text`` is. InputError for a damaged
    file, and where no pair is there.
    """
    sides = (text.text.left, text.data.left), (text.text.right, text.data.right)
    (left, _), (right, _) = (types_in(corpus, sentences, text.data.train) for corpus, sentences in sides)
    pairs = in_small_letters(read_muse(path)) if lower else read_muse(path)
    indices = index_of(text.text.right, right), index_of(text.text.left, left)
    found = translation_set(pairs, *indices, "rotation.dictionary", path)
    rows = found.pairs()[:words]
    return np.stack([left[rows[:, 1]], right[rows[:, 0]]], axis=1), found.counts["pairs"] - found.counts["known"]


def lowered_text(text: Aligned) -> Aligned:
    """With words in small letters, those that are then alike being one type; what is read of them stays."""
    return replace(text, text=replace(text.text, left=lowered(text.text.left), right=lowered(text.text.right)))


def in_small_letters(pairs: Iterable[Pair]) -> list[Pair]:
    """Each once."""
    return list(dict.fromkeys((a.lower(), b.lower()) for a, b in pairs))


def lowered(corpus: Corpus) -> Corpus:
    """In small letters, words that are then alike being one type."""
    small = Column.of([name.lower() for name in corpus.form.names or ()])
    column = Column(small.codes[corpus.form.codes], small.names)
    return replace(corpus, columns={**corpus.columns, FORM: column})


def types_in(
    corpus: Corpus, sentences: Sentences, rows: NDArray[np.int64], least: int = 1
) -> tuple[NDArray[np.int64], int]:
    """The codes of the types that occur so often, and have a subword, in the sentences at ``rows``; and how many occur
    less often."""
    inside = np.zeros(len(corpus), bool)
    inside[rows] = True
    words = np.repeat(inside, np.diff(corpus.offsets)) & (np.diff(sentences.word_offsets) > 0)
    counts = np.bincount(corpus.form.codes[words], minlength=len(corpus.form.names or ()))
    return np.flatnonzero(counts >= least), int(((counts > 0) & (counts < least)).sum())


def index_of(corpus: Corpus, types: NDArray[np.int64]) -> dict[str, int]:
    """Word → its place among ``types`` (codes)."""
    names: Sequence[str] = corpus.form.names or ()
    return {names[code]: row for row, code in enumerate(types.tolist())}
