"""Training of word vectors: what gensim learns, the same bytes every time; counts against dense counting."""

import importlib.util
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from probes.static.settings import StaticConfig
from probes.static.training import LONGEST, count_vectors, train_vectors
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.rng import key_of, uniform
from tests.refusals import refused

ROOT = Path(__file__).parents[1]
needs_gensim = pytest.mark.skipif(
    importlib.util.find_spec("gensim") is None, reason="gensim is not installed: pip install 'synthlang-study[probe]'"
)
SMALL = StaticConfig(size=16, epochs=4, min_count=2, buckets=500, window=3, seed=3)
COUNTS = StaticConfig(kind="ppmi", size=8, window=2, min_count=2)


def sentences(count: int = 600) -> list[list[str]]:
    """Two topics that share no word."""
    draws = (10 * uniform(key_of("topics"), np.arange(count * 6))).astype(int).reshape(count, 6).tolist()
    names = ("alpha", "omega")
    return [[f"{names[i % 2]}{draw}" for draw in row] for i, row in enumerate(draws)]


CORPUS = Corpus.of_words(sentences())


def topics_apart(rows: torch.Tensor, words: tuple[str, ...]) -> float:
    """Return the mean cosine of words of one topic minus that of words of two topics."""
    unit = torch.nn.functional.normalize(rows, dim=1)
    near = unit @ unit.T
    first = torch.tensor([word.startswith("a") for word in words])
    same = first[:, None] == first
    other = ~torch.eye(len(words), dtype=torch.bool)
    return float(near[same & other].mean() - near[~same].mean())


@needs_gensim
@pytest.mark.parametrize("kind", ["fasttext", "word2vec"])
@pytest.mark.parametrize("skipgram", [True, False])
def test_words_of_a_topic_come_together(kind, skipgram):
    config = SMALL.model_copy(update={"kind": kind, "epochs": 12, "skipgram": skipgram, "learning_rate": 0.1})
    calls: list[tuple[int, int]] = []
    learned = train_vectors(config, CORPUS, report=lambda task, done, total, note: calls.append((done, total)))
    assert sorted(learned.words) == sorted({word for sentence in sentences() for word in sentence})
    assert learned.vectors.shape == (20, 16) and topics_apart(learned.vectors, learned.words) > 0.3
    assert learned.facts["sentences"] == 600 and learned.facts["tokens"] == 3600
    assert learned.facts["settings"]["kind"] == kind and learned.facts["source"].startswith("gensim 4")
    assert calls == [(i, 13) for i in range(14)]
    counts = [sum(sentence.count(word) for sentence in sentences()) for word in learned.words]
    assert counts == sorted(counts, reverse=True)


@needs_gensim
def test_the_same_bytes_in_an_interpreter_with_other_hashes_and_others_with_another_seed():
    here = digest()
    paths = ":".join([str(ROOT), *filter(None, sys.path)])
    changed = {"PYTHONHASHSEED": str(1 + hash("a") % 1000), "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    environment = os.environ | changed  # the same BLAS: OPENBLAS_CORETYPE chooses kernels that round otherwise
    command = [sys.executable, "-c", "from tests.test_static_training import digest; print(digest())"]
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == here, done.stderr[-2000:]
    assert digest(seed=4) != here


def digest(**changed) -> str:
    learned = [train_vectors(SMALL.model_copy(update={"kind": k, **changed}), CORPUS) for k in ("fasttext", "word2vec")]
    return sha256(b"".join(one.vectors.numpy().tobytes() + repr(one.words).encode() for one in learned)).hexdigest()


@needs_gensim
def test_rare_words_are_left_out_and_words_beside_the_corpus_get_their_parts():
    rare = [*sentences(), ["alphabet", "alphabet0"]]
    learned = train_vectors(SMALL, Corpus.of_words(rare), also=["alphabet", "alpha0", "ω", "alphabet"])
    assert "alphabet0" not in learned.index and learned.words[-2:] == ("alphabet", "ω") and learned.facts["also"] == 2
    assert len(learned.words) == 22 and bool((learned.vectors[-2] != 0).any())
    unit = torch.nn.functional.normalize(learned.vectors, dim=1)
    near = unit[learned.index["alphabet"]] @ unit.T
    alphas = [near[row] for word, row in learned.index.items() if word.startswith("alpha") and word != "alphabet"]
    omegas = [near[row] for word, row in learned.index.items() if word.startswith("omega")]
    assert float(torch.stack(alphas).mean()) > float(torch.stack(omegas).mean())


@needs_gensim
def test_a_sentence_that_gensim_would_cut_is_read_to_its_end():
    long = ["a", "b"] * (LONGEST // 2) + ["c"] * 5
    learned = train_vectors(SMALL, Corpus.of_words([long, []]))
    assert set(learned.words) == {"a", "b", "c"} and learned.facts["tokens"] == LONGEST + 5
    assert learned.facts["sentences"] == 2  # of gensim: the parts


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
    words, vectors = count_vectors(Corpus.of_words(text), size, window, least)
    expected_words, expected = dense(text, size, window, least)
    assert list(words) == expected_words and vectors.shape == (len(words), size)
    width = expected.shape[1]
    assert width < size or size < len(words), "one case is wider than the table"
    assert not vectors[:, width:].any()
    found = vectors[:, :width].astype(np.float64)
    assert np.abs(found - expected * np.sign((found * expected).sum(0))).max() < 1e-5
    assert (found[np.abs(found).argmax(0), np.arange(width)] >= 0).all()


def test_counts_learn_what_stands_together_and_are_the_same_twice():
    first, second = (train_vectors(COUNTS, CORPUS) for _ in range(2))
    assert first.words == second.words and torch.equal(first.vectors, second.vectors)
    assert topics_apart(first.vectors, first.words) > 0.5
    assert first.facts["settings"] == {"kind": "ppmi", "size": 8, "window": 2, "min_count": 2}


NO_VECTORS = [
    (COUNTS, [["a", "b"]], "min_count"),
    (COUNTS, [], "min_count"),
    (COUNTS.model_copy(update={"min_count": 1}), [], ""),
    (COUNTS, [["a"], ["a"]], ""),
    pytest.param(SMALL, [], "min_count", marks=needs_gensim),
    pytest.param(SMALL, [["a", "b"]], "min_count", marks=needs_gensim),
]


@pytest.mark.parametrize(("config", "text", "place"), NO_VECTORS)
def test_a_corpus_that_gives_no_vectors_is_refused(config, text, place):
    assert refused(train_vectors, config, Corpus.of_words(text)) == (place, "empty")


def test_the_place_of_bad_lengths_is_the_key_that_was_given():
    assert refused(parse, StaticConfig, {"min_n": 9}) == ("min_n", "range")
    assert refused(parse, StaticConfig, {"min_n": 4, "max_n": 3}) == ("max_n", "range")


def test_bad_settings_and_no_gensim_are_refused(monkeypatch):
    for bad in (
        {"size": 0},
        {"seed": -1},
        {"seed": 2**32},
        {"kind": "glove"},
        {"workers": 2},
        {"min_n": 4, "max_n": 3},
    ):
        with pytest.raises(ValueError, match="validation error"):
            StaticConfig.model_validate(bad)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert refused(train_vectors, SMALL, CORPUS) == ("kind", "extra")
