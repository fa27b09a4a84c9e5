"""Word vectors trained on a corpus, the same bytes every time: fastText or word2vec by gensim, or from counts.

fastText: Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information"; word2vec: Mikolov et al. 2013.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from probes.static.ppmi import count_vectors
from probes.static.settings import StaticConfig
from probes.static.vectors import StaticVectors
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.progress import Report, silent

INSTALL = 'pip install "synthlang[probe]"'
LONGEST = 10_000  # words; gensim leaves out the rest of a longer sentence in silence


def train_vectors(
    config: StaticConfig,
    batches: Callable[[], Iterable[Corpus]],
    also: Sequence[str] = (),
    report: Report = silent,
) -> StaticVectors:
    """Vectors of the words of a corpus, the most frequent first.

    ``batches()`` gives the corpus; it is called ``epochs + 1`` times, so that memory holds a batch and the vectors.
    ``also`` are further words, say those of the test sentences: with ``fasttext`` they get the mean of their n-grams,
    unless they have a vector. A function of the corpus, its order and the settings (with one version of gensim and one
    kind of processor): one thread, and no hash that depends on the interpreter.

    Raises InputError without gensim, for a corpus in which no word is frequent enough, and if the training diverges.
    """
    if also and config.kind != "fasttext":
        raise InputError(f"words that are not in the corpus have no vector with {config.kind}; use fasttext")
    if config.max_n < config.min_n:
        raise InputError(f"max_n is {config.max_n}, smaller than min_n, {config.min_n}")
    if config.kind == "ppmi":
        return _counted(config, batches, report)
    sentences = _Sentences(batches, config.epochs + 1, report)
    model = _model(config)
    model.build_vocab(corpus_iterable=sentences)
    if not len(model.wv):
        raise InputError(f"no word of the corpus occurs {config.min_count} times; lower min_count or give more text")
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
        raise InputError("the training of word vectors has diverged; lower learning_rate")
    facts = {
        "source": f"gensim {importlib.import_module('gensim').__version__}",
        "settings": config.model_dump(mode="json"),
        "sentences": int(model.corpus_count),
        "tokens": int(model.corpus_total_words),
        "also": len(extra),
    }
    return StaticVectors((*words, *extra), torch.from_numpy(rows.copy()), facts)


def _counted(config: StaticConfig, batches: Callable[[], Iterable[Corpus]], report: Report) -> StaticVectors:
    words, vectors = count_vectors(batches(), config.size, config.window, config.min_count, report)
    settings = config.model_dump(mode="json", include={"kind", "size", "window", "min_count"})
    return StaticVectors(words, torch.from_numpy(vectors), {"source": "counts", "settings": settings})


class _Sentences:
    """The sentences of a corpus as lists of words, again for each pass."""

    def __init__(self, batches: Callable[[], Iterable[Corpus]], passes: int, report: Report) -> None:
        self._batches, self._report, self._pass = batches, report, 0
        self.passes = passes

    def __iter__(self) -> Iterator[list[str]]:
        self._report("word vectors", self._pass, self.passes, "")
        self._pass += 1
        for corpus in self._batches():
            words = corpus.form.values()
            for start, stop in pairwise(corpus.offsets.tolist()):
                for at in range(start, stop, LONGEST):
                    yield words[at : min(at + LONGEST, stop)]


def _model(config: StaticConfig) -> Any:
    """An untrained model of gensim."""
    try:
        models = importlib.import_module("gensim.models")
    except ImportError as error:
        raise InputError(f"training word vectors needs gensim: {INSTALL} ({error})") from error
    settings: dict[str, Any] = {
        "vector_size": config.size, "window": config.window, "min_count": config.min_count, "workers": 1,
        "sg": int(config.skipgram), "negative": config.negative, "sample": config.sample, "alpha": config.learning_rate,
        "epochs": config.epochs, "seed": config.seed, "hashfxn": _hash,
    }  # fmt: skip
    if config.kind == "word2vec":
        return models.Word2Vec(**settings)
    return models.FastText(**settings, min_n=config.min_n, max_n=config.max_n, bucket=config.buckets)


def _hash(text: str) -> int:
    """Of the letters only; Python's own hash differs between interpreters."""
    return zlib.crc32(text.encode("utf-8"))
