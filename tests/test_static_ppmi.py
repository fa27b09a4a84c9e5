"""Word vectors from counts: against dense counting, what they learn, what is refused."""

import numpy as np
import pytest
import torch

from probes.static.ppmi import count_vectors
from probes.static.settings import StaticConfig
from probes.static.training import train_vectors
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from tests.test_static_training import batches, sentences, topics_apart

SMALL = StaticConfig(kind="ppmi", size=8, window=2, min_count=2)


def dense(text, size, window, least):
    """Words by falling frequency, the first seen first among equals; the vectors with their columns' signs open."""
    counts: dict[str, int] = {}
    for words in text:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    kept = [word for word in sorted(counts, key=lambda word: -counts[word]) if counts[word] >= least]
    near = np.zeros((len(kept), len(kept)))
    for words in text:
        for i, word in enumerate(words):
            for j, other in enumerate(words):
                if i != j and abs(i - j) <= window and word in kept and other in kept:
                    near[kept.index(word), kept.index(other)] += 1
    p = near / near.sum()
    context = near.sum(0) ** 0.75 / (near.sum(0) ** 0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.nan_to_num(np.maximum(np.log(p / (p.sum(1, keepdims=True) * context)), 0), nan=0.0)
    left, values, _ = np.linalg.svd(table)
    return kept, (left * np.sqrt(values))[:, :size]


def drawn(count=80, types=25):
    draw = np.random.default_rng(0)
    return [[f"w{int(i * i / types)}" for i in draw.integers(types, size=draw.integers(1, 9))] for _ in range(count)]


@pytest.mark.parametrize(("size", "window", "least"), [(5, 1, 1), (8, 3, 2), (40, 2, 3)])
def test_it_is_dense_counting(size, window, least):
    text = drawn()
    words, vectors = count_vectors([Corpus.of_words(text[:30]), Corpus.of_words(text[30:], 30)], size, window, least)
    expected_words, expected = dense(text, size, window, least)
    assert list(words) == expected_words and vectors.shape == (len(words), size)
    width = expected.shape[1]
    assert width < size or size < len(words), "one case is wider than the table"
    assert not vectors[:, width:].any()
    found = vectors[:, :width].astype(np.float64)
    assert np.abs(found - expected * np.sign((found * expected).sum(0))).max() < 1e-5
    assert (found[np.abs(found).argmax(0), np.arange(width)] >= 0).all()


def test_it_learns_what_stands_together_and_is_the_same_twice():
    first, second = (train_vectors(SMALL, batches) for _ in range(2))
    assert first.words == second.words and torch.equal(first.vectors, second.vectors)
    assert topics_apart(first.vectors, first.words) > 0.5
    assert first.facts["settings"] == {"kind": "ppmi", "size": 8, "window": 2, "min_count": 2}
    whole = train_vectors(SMALL, lambda: [Corpus.of_words(sentences())])
    assert whole.words == first.words and torch.allclose(whole.vectors, first.vectors, atol=1e-5)


def test_what_has_no_vectors_is_refused():
    for text, message in (
        ([["a", "b"]], "no word of the corpus occurs 2 times"),
        ([], "no word of the corpus occurs 2 times"),
        ([["a"], ["a"]], "no two words of the corpus stand near each other"),
    ):
        with pytest.raises(InputError, match=message):
            train_vectors(SMALL, [Corpus.of_words(text)].copy)
    with pytest.raises(InputError, match="have no vector with ppmi; use fasttext"):
        train_vectors(SMALL, batches, also=["x"])
    assert not SMALL.needs_gensim and StaticConfig().needs_gensim
