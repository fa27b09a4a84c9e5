"""Training of word vectors by gensim: what it learns, the same bytes every time, what is refused."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from probes.static.settings import StaticConfig
from probes.static.training import LONGEST, train_vectors
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.rng import integers, key_of

ROOT = Path(__file__).parents[1]
needs_gensim = pytest.mark.skipif(
    importlib.util.find_spec("gensim") is None, reason="gensim is not installed: pip install 'synthlang[probe]'"
)
SMALL = StaticConfig(size=16, epochs=4, min_count=2, buckets=500, window=3, seed=3)


def sentences(count: int = 600) -> list[list[str]]:
    """Two topics that share no word."""
    draws = integers(key_of("topics"), 10, np.arange(count * 6)).reshape(count, 6).tolist()
    names = ("alpha", "omega")
    return [[f"{names[i % 2]}{draw}" for draw in row] for i, row in enumerate(draws)]


def batches() -> list[Corpus]:
    whole = sentences()
    return [Corpus.of_words(whole[:250]), Corpus.of_words(whole[250:], 250)]


def topics_apart(rows: torch.Tensor, words: tuple[str, ...]) -> float:
    """How much nearer, by cosine, words of one topic are than words of two."""
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
    learned = train_vectors(config, batches, report=lambda task, done, total, note: calls.append((done, total)))
    assert sorted(learned.words) == sorted({word for sentence in sentences() for word in sentence})
    assert learned.vectors.shape == (20, 16) and topics_apart(learned.vectors, learned.words) > 0.3
    assert learned.facts["sentences"] == 600 and learned.facts["tokens"] == 3600
    assert learned.facts["settings"]["kind"] == kind and learned.facts["source"].startswith("gensim 4")
    assert calls == [(i, 13) for i in range(14)]
    counts = [sum(sentence.count(word) for sentence in sentences()) for word in learned.words]
    assert counts == sorted(counts, reverse=True)


@needs_gensim
def test_it_is_the_same_twice_and_another_with_another_seed():
    first, second = (train_vectors(SMALL, batches) for _ in range(2))
    assert first.words == second.words and torch.equal(first.vectors, second.vectors)
    other = train_vectors(SMALL.model_copy(update={"seed": 4}), batches)
    assert other.words == first.words and not torch.equal(other.vectors, first.vectors)


@needs_gensim
def test_the_same_bytes_in_an_interpreter_with_other_hashes(tmp_path):
    code = """
import sys
from pathlib import Path
from tests.test_static_training import save_both
save_both(Path(sys.argv[1]))
"""
    save_both(tmp_path / "here")
    paths = ":".join([str(ROOT), *filter(None, sys.path)])
    environment = {"PYTHONHASHSEED": str(1 + hash("a") % 1000), "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, str(tmp_path / "there")]
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    here, there = (sorted(path for path in (tmp_path / name).rglob("*.*")) for name in ("here", "there"))
    assert len(here) == len(there) == 4
    assert [file.read_bytes() for file in here] == [file.read_bytes() for file in there]


def save_both(folder: Path) -> None:
    for kind in ("fasttext", "word2vec"):
        learned = train_vectors(SMALL.model_copy(update={"kind": kind}), batches)
        folder.mkdir(exist_ok=True)
        (folder / f"{kind}.vectors").write_bytes(learned.vectors.numpy().tobytes())
        (folder / f"{kind}.json").write_text(json.dumps([learned.words, dict(learned.facts)]))


@needs_gensim
def test_rare_words_are_left_out_and_words_beside_the_corpus_get_their_parts():
    rare = [*sentences(), ["alphabet", "alphabet0"]]
    learned = train_vectors(SMALL, lambda: [Corpus.of_words(rare)], also=["alphabet", "alpha0", "ω", "alphabet"])
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
    learned = train_vectors(SMALL, lambda: [Corpus.of_words([long, []])])
    assert set(learned.words) == {"a", "b", "c"} and learned.facts["tokens"] == LONGEST + 5
    assert learned.facts["sentences"] == 2  # of gensim: the parts


@needs_gensim
def test_a_corpus_without_frequent_words_is_refused():
    corpora: list[list[Corpus]] = [[], [Corpus.of_words([])], [Corpus.of_words([["a", "b"]])]]
    for corpus in corpora:
        with pytest.raises(InputError, match="no word of the corpus occurs 2 times"):
            train_vectors(SMALL, corpus.copy)


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="max_n is 3, smaller than min_n, 4"):
        train_vectors(StaticConfig(min_n=4, max_n=3), batches)
    with pytest.raises(InputError, match="use fasttext"):
        train_vectors(StaticConfig(kind="word2vec"), batches, also=["x"])
    for bad in ({"size": 0}, {"seed": -1}, {"seed": 2**32}, {"kind": "glove"}, {"workers": 2}):
        with pytest.raises(ValueError, match="validation error"):
            StaticConfig.model_validate(bad)


def test_without_gensim_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r'needs gensim: pip install "synthlang\[probe\]"'):
        train_vectors(SMALL, batches)
