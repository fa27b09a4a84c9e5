"""Reproducible training of word vectors on a corpus: fastText or word2vec with gensim, or PPMI with SciPy.

fastText   Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information"
word2vec   Mikolov et al. 2013
PPMI       singular vectors of the positive pointwise mutual information of nearby words (Levy, Goldberg & Dagan 2015)
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds

from probes.static.settings import StaticConfig, no_gensim
from probes.static.vectors import StaticVectors
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.progress import Report, silent

LONGEST = 10_000  # words per sentence, because gensim silently drops the rest of a longer one
SMOOTHING = 0.75  # exponent for frequencies of contexts (Levy et al., section 3.1), as in word2vec


def train_vectors(
    config: StaticConfig, corpus: Corpus, also: Sequence[str] = (), report: Report = silent
) -> StaticVectors:
    """Train vectors for the words of a corpus. The most frequent words come first.

    For one version of gensim and one type of processor, the result depends only on the corpus and the settings.

    Args:
        config: The settings of the training.
        corpus: The sentences to train on.
        also: Words that get a vector even if they have none after the training: the mean vector of their n-grams.
            ``ppmi`` ignores these words, and for ``word2vec`` there must be none.
        report: Function that receives the progress.

    Raises:
        InputError: gensim is needed but not installed, no word is frequent enough, or training diverges. ``ppmi`` also
            needs two words that occur together more often than by chance.
    """
    if config.kind == "ppmi":
        names, vectors = count_vectors(corpus, config.size, config.window, config.min_count)
        settings = config.model_dump(mode="json", include={"kind", "size", "window", "min_count"})
        return StaticVectors(names, torch.from_numpy(vectors), {"source": "counts", "settings": settings})
    sentences = _Sentences(corpus, config.epochs + 1, report)
    model = _model(config)
    model.build_vocab(corpus_iterable=sentences)
    if not len(model.wv):
        raise _too_rare(config.min_count)
    model.train(
        corpus_iterable=sentences,
        total_examples=model.corpus_count,
        total_words=model.corpus_total_words,
        epochs=config.epochs,
    )
    report("word vectors", sentences.passes, sentences.passes, "")
    words = tuple(model.wv.index_to_key)
    rows = np.asarray(model.wv.vectors[: len(words)], np.float32)
    extra = [word for word in dict.fromkeys(also) if word and word not in model.wv.key_to_index]
    if extra:
        rows = np.concatenate([rows, np.stack([model.wv.get_vector(word) for word in extra])])
    if not np.isfinite(rows).all():
        hint = "reduce this key"
        raise InputError("the training of word vectors diverged", keys="learning_rate", hint=hint, code="failed")
    facts = {
        "source": f"gensim {importlib.import_module('gensim').__version__}",
        "settings": config.model_dump(mode="json"),
        "sentences": int(model.corpus_count),
        "tokens": int(model.corpus_total_words),
        "also": len(extra),
    }
    return StaticVectors((*words, *extra), torch.from_numpy(rows.copy()), facts)


class _Sentences:
    """The sentences of a corpus as lists of words, at most LONGEST each. Each iteration reports the progress."""

    def __init__(self, corpus: Corpus, passes: int, report: Report) -> None:
        self._words, self._bounds = corpus.form.values(), corpus.offsets.tolist()
        self._report, self._pass, self.passes = report, 0, passes

    def __iter__(self) -> Iterator[list[str]]:
        self._report("word vectors", self._pass, self.passes, "")
        self._pass += 1
        for start, stop in pairwise(self._bounds):
            for at in range(start, stop, LONGEST):
                yield self._words[at : min(at + LONGEST, stop)]


def _model(config: StaticConfig) -> Any:
    """Return an untrained model of gensim."""
    try:
        models = importlib.import_module("gensim.models")
    except ImportError as error:
        raise no_gensim(f"{config.kind} needs gensim, which cannot be imported: {error}") from error
    settings: dict[str, Any] = {
        "vector_size": config.size, "window": config.window, "min_count": config.min_count, "workers": 1,
        "sg": int(config.skipgram), "negative": config.negative, "sample": config.sample, "alpha": config.learning_rate,
        # crc32 is stable, while Python's hash differs between interpreters
        "epochs": config.epochs, "seed": config.seed, "hashfxn": lambda text: zlib.crc32(text.encode("utf-8")),
    }  # fmt: skip
    if config.kind == "word2vec":
        return models.Word2Vec(**settings)
    return models.FastText(**settings, min_n=config.min_n, max_n=config.max_n, bucket=config.buckets)


def _too_rare(least: int) -> InputError:
    if least == 1:
        return InputError("there are no words to train on", hint="give more sentences", code="empty")
    hint = "reduce this key, or give more sentences"
    return InputError(f"no word of the sentences occurs {least} times", keys="min_count", hint=hint, code="empty")


def count_vectors(
    corpus: Corpus, size: int, window: int, min_count: int
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Return the words of a corpus, most frequent first, and their PPMI vectors [words, size] float32.

    Let M have the entries max(0, log(p(w, c) / (p(w) p(c)))) for words w and contexts c that are at most ``window``
    words apart in a sentence. p(c) is smoothed with the exponent 0.75. With the truncated singular value decomposition
    U S Vᵀ of M, the vectors are U √S (Levy, Goldberg & Dagan 2015, section 3.3).

    If M has fewer than ``size`` singular values, the remaining dimensions are 0, so that vectors of two languages have
    the same size. The sign of a dimension makes its largest absolute value positive. Words rarer than ``min_count`` are
    left out, also as contexts. Memory grows with the number of pairs of nearby types.

    Raises:
        InputError: No word is frequent enough, or no two words occur together more often than by chance.
    """
    types = Column.of(corpus.form.names or ())  # a table of words may have duplicates
    names, words, sentence = types.names or (), types.codes[corpus.form.codes], corpus.sentence_of_word
    near = csr_array((len(names), len(names)), dtype=np.float64)  # counts of one word before another
    for away in range(1, window + 1):
        here = sentence[:-away] == sentence[away:]
        pairs = words[:-away][here], words[away:][here]
        near = near + coo_array((np.ones(len(pairs[0])), pairs), shape=near.shape).tocsr()
    frequency = np.bincount(words, minlength=len(names))
    order = np.argsort(-frequency, kind="stable")
    kept = order[frequency[order] >= min_count]
    if not len(kept):
        raise _too_rare(min_count)
    table = _ppmi(csr_array((near + near.T)[kept][:, kept]))
    if not table.nnz:
        reason = "no two words of the sentences occur near each other more often than by chance"
        raise InputError(reason, hint="give more sentences", code="empty")
    return tuple(names[i] for i in kept.tolist()), _singular(table, size)


def _ppmi(near: csr_array) -> csr_array:
    """Return max(0, log(p(w, c) / (p(w) p(c)))) for nearby words w and c, with a smoothed p(c)."""
    found = near.tocoo()
    of_word, of_context = near.sum(1), near.sum(0) ** SMOOTHING
    share = found.data / (of_word[found.row] * (of_context[found.col] / of_context.sum()))
    positive = share > 1
    at = found.row[positive], found.col[positive]
    return coo_array((np.log(share[positive]), at), shape=near.shape).tocsr()


def _singular(table: csr_array, size: int) -> NDArray[np.float32]:
    """Return the left singular vectors times the root of their singular values, largest first, [words, size]."""
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
