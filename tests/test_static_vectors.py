"""Word vectors: files in word2vec's text format, the folder, sentence augmentation; training is in its own file."""

import gzip
from pathlib import Path

import pytest
import torch

from probes.static.vectors import StaticVectors, augmented, read_vec
from synthlang.corpus import Corpus
from tests.refusals import refusal, refused

GOOD = "3 2\nthe 1 -0.5\ncat 2e-1 3 \n,  0 0\n"


def vectors(words: str, width: int = 4, seed: int = 0) -> StaticVectors:
    generator = torch.Generator().manual_seed(seed)
    names = tuple(words.split())
    return StaticVectors(names, torch.randn(len(names), width, generator=generator))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_file_is_read(tmp_path, zipped, ending):
    path = tmp_path / "words.vec"
    raw = GOOD.replace(",  0 0", ", 0 0").replace("\n", ending).encode()
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    read = read_vec(path)
    assert read.words == ("the", "cat", ",") and read.vectors.dtype == torch.float32
    torch.testing.assert_close(read.vectors, torch.tensor([[1, -0.5], [0.2, 3], [0, 0]]))
    assert read.facts == {"source": "file", "duplicates": 0, "zeros": 1}
    assert read_vec(path, words=2).words == ("the", "cat")
    path.write_bytes(path.read_bytes() if zipped else raw.rstrip())
    assert read_vec(path, words=9).words == read.words


def test_odd_words_stay_whole(tmp_path):
    path = tmp_path / "w.vec"
    odd = ["a\u00a0b", "New York", "2012", "\u2028", "１", "-", "\ufeffx"]
    path.write_text(f"{len(odd)} 3\n" + "".join(f"{word} 1 2 3\n" for word in odd), encoding="utf-8")
    assert read_vec(path).words == tuple(odd)


def test_of_a_word_that_comes_twice_the_first_counts(tmp_path):
    path = tmp_path / "w.vec"
    path.write_text("5 1\na 0\na 1\nb 2\na 3\nb 4\n")
    read = read_vec(path)
    assert read.words == ("a", "b") and read.vectors.tolist() == [[0.0], [2.0]]
    assert read.facts["duplicates"] == 3 and read.facts["zeros"] == 1


BAD_FILES = [
    ("", None, "empty"),
    ("the 1 2\n", 1, "format"),
    ("-3 2\n", 1, "format"),
    ("0 2\n", 1, "range"),
    ("999999999 999999999\n", 1, "resources"),
    ("2 2\na 1 2\nb 1\n", 3, "format"),
    ("2 2\na 1 2\n\nb 1 2\n", 3, "format"),
    ("1 2\na 1 x\n", 2, "format"),
    ("1 2\n1 2\n", 2, "format"),
    ("1 2\n 1 2\n", 2, "format"),
    ("1 1\na x\n", 2, "format"),
    ("1 2\na 1\t2 3\n", 2, "format"),
    ("1 3\na 1  2\n", 2, "format"),
    ("1 2\na nan 1\n", 2, "range"),
    ("1 2\na 1e39 1\n", 2, "range"),
    ("2 2\na 1 2\n", None, "damaged"),
    ("1 2\na 1 2\nb 1 2\n", 3, "format"),
]


@pytest.mark.parametrize(("text", "line", "code"), BAD_FILES)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, line, code):
    path = tmp_path / "w.vec"
    path.write_text(text)
    assert refused(read_vec, path) == ("w.vec" if line is None else f"w.vec:{line}", code)


def test_bad_bytes_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "w.vec"
    refusal(read_vec, path)
    path.write_bytes(b"2 2\na 1 2\n\xff 1 2\n")
    assert refusal(read_vec, path).line == 3
    path.write_bytes(b"\x80\x04\x95pickled")
    refusal(read_vec, path)
    whole = gzip.compress(b"99 2\n" + b"".join(b"w%d %d 1\n" % (i, i * i) for i in range(99)))
    path.write_bytes(whole)
    assert len(read_vec(path).words) == 99
    for damaged in (whole[:-12], whole[:20] + b"xxxx" + whole[24:], gzip.compress(b"1 1\n\xff 1\n")):
        path.write_bytes(damaged)
        refusal(read_vec, path)
    refusal(read_vec, tmp_path)

    def locked(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", locked)
    refusal(read_vec, path)


def test_rows_are_found():
    read = vectors("the cat , ran")
    assert read.rows_of(["cat", "dog", "the"]).tolist() == [1, -1, 0] and read.rows_of([]).shape == (0,)
    corpus = Corpus.of_words([["the", "dog"], [], ["ran", ",", "the"]])
    assert read.rows_of_column(corpus.form).tolist() == [0, -1, 3, 2, 0]
    assert read.rows_of_column(Corpus.of_words([]).form).shape == (0,)
    assert torch.equal(read.mapped(lambda rows: rows * 2).vectors, read.vectors * 2)


SENTENCES = [["the", "cat", "ran"], [], ["dog"], ["cat", "dog", "the", ","], [","]]


@pytest.mark.parametrize("at_a_time", [1, 2, 500])
@pytest.mark.parametrize("pools", [("mean", "max", "min"), ("mean",), (), ("min", "mean")])
def test_a_word_is_augmented_by_its_sentence(at_a_time, pools, monkeypatch):
    """Against Cao et al. 2020, section 3.4, word by word."""
    monkeypatch.setattr("probes.static.vectors.SENTENCES", at_a_time)
    static = vectors("the cat , ran")
    got = torch.cat(list(augmented(static, Corpus.of_words(SENTENCES), pools)))
    functions = {"mean": lambda r: r.mean(0), "max": lambda r: r.max(0).values, "min": lambda r: r.min(0).values}
    expected = []
    for sentence in SENTENCES:
        rows = [static.vectors[static.words.index(word)] for word in sentence if word in static.words]
        for word in sentence:
            if word in static.words:
                own = static.vectors[static.words.index(word)]
                expected.append(torch.cat([own, *(functions[pool](torch.stack(rows)) for pool in pools)]))
            else:
                expected.append(torch.zeros(4 * (1 + len(pools))))
    torch.testing.assert_close(got, torch.stack(expected))
    assert got.shape == (9, 4 * (1 + len(pools)))
    assert (got != 0).any(1).tolist() == [word not in ("dog",) for sentence in SENTENCES for word in sentence]
