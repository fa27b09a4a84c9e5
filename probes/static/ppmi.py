"""Word vectors from counts: singular vectors of the positive pointwise mutual information of words near each other
(Levy, Goldberg & Dagan 2015). They need SciPy only, and are a function of the text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.progress import Report, silent

SMOOTHING = 0.75  # of the frequencies of contexts (section 3.1 there), as in word2vec

Vectors = NDArray[np.float32]


def count_vectors(
    batches: Iterable[Corpus], size: int, window: int, min_count: int, report: Report = silent
) -> tuple[tuple[str, ...], Vectors]:
    """Words, the most frequent first, and their vectors [words, size].

    With U S Vᵀ the ``size`` largest singular values of max(0, log p(w, c) / (p(w) p(c)^0.75)) over words c at most
    ``window`` away in the sentence, the vectors are U √S (section 3.3 there). Smaller tables are filled up with zeros,
    so that two languages have vectors of one size. The sign of a dimension is that of its largest number. Rarer words
    than ``min_count`` are no contexts, either. Memory is that of the pairs of types that stand near each other.
    InputError if no word is frequent enough, and if none has another one near it.
    """
    names, frequency, near = _counts(batches, window, report)
    order = np.argsort(-frequency, kind="stable")
    kept = order[frequency[order] >= min_count]
    if not len(kept):
        raise InputError(f"no word of the corpus occurs {min_count} times; lower min_count or give more text")
    table = _ppmi(csr_array((near + near.T)[kept][:, kept]))
    if not table.nnz:
        raise InputError("no two words of the corpus stand near each other more often than by chance; give more text")
    return tuple(names[i] for i in kept.tolist()), _singular(table, size)


def _counts(batches: Iterable[Corpus], window: int, report: Report) -> tuple[list[str], NDArray[np.int64], csr_array]:
    """Types, how often each occurs, and how often one stands before another within the window."""
    number: dict[str, int] = {}
    frequency, near = np.zeros(0, np.int64), csr_array((0, 0), dtype=np.float64)
    for done, corpus in enumerate(batches):
        codes = [number.setdefault(name, len(number)) for name in corpus.form.names or ()]
        words, sentence = np.asarray([*codes, 0], np.int64)[corpus.form.codes], corpus.sentence_of_word
        frequency = np.concatenate([frequency, np.zeros(len(number) - len(frequency), np.int64)])
        frequency += np.bincount(words, minlength=len(number))
        grown = np.pad(near.indptr, (0, len(number) - near.shape[0]), mode="edge")
        near = csr_array((near.data, near.indices, grown), shape=(len(number), len(number)))
        for away in range(1, window + 1):
            here = sentence[:-away] == sentence[away:]
            pairs = words[:-away][here], words[away:][here]
            near = near + coo_array((np.ones(len(pairs[0])), pairs), shape=near.shape).tocsr()
        report("word vectors: counts", done, done + 1, "")
    return list(number), frequency, near


def _ppmi(near: csr_array) -> csr_array:
    """max(0, log p(w, c) / (p(w) p(c)^0.75)) where w and c were seen near each other, else 0."""
    found = near.tocoo()
    of_word, of_context = near.sum(1), near.sum(0) ** SMOOTHING
    share = found.data / (of_word[found.row] * (of_context[found.col] / of_context.sum()))
    positive = share > 1
    at = found.row[positive], found.col[positive]
    return coo_array((np.log(share[positive]), at), shape=near.shape).tocsr()


def _singular(table: csr_array, size: int) -> Vectors:
    """[words, size] left singular vectors times the root of their values, the largest first."""
    count = table.shape[0]
    if size < count:
        left, values, _ = svds(table, size, v0=np.full(count, count**-0.5))
        order = np.argsort(-values, kind="stable")
        left, values = left[:, order], values[order]
    else:
        left, values, _ = np.linalg.svd(table.toarray())
    signs = np.sign(left[np.abs(left).argmax(0), np.arange(left.shape[1])])
    vectors = np.zeros((count, size), np.float32)
    vectors[:, : len(values)] = left * (signs * np.sqrt(np.maximum(values, 0)))
    return vectors
