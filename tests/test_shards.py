"""Shards: what the tokenizer gives for each sentence, which sentence it is, refused when damaged or another's."""

import errno
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from synthlang.corpus import Corpus
from synthlang.language import PARENT, parse_language
from synthlang.rewrite import Rewrite
from synthlang.shards import NpyWriter, read_shards, shards_fingerprint, write_shards
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.vocabularies import VocabularySpec, build_id_space
from synthlang.vocabulary import Encoded
from tests.refusals import refused

SOURCE = "builtin:mini-english?types=500&sentences=300&dev=50&test=50"


@pytest.fixture(scope="module")
def source():
    return open_source(SOURCE)


@pytest.fixture(scope="module")
def space(source, tmp_path_factory):
    named = [(name, source, parse_language(name)) for name in ("parent", "trans+perm")]
    return build_id_space(VocabularySpec(size=320), named, Store(tmp_path_factory.mktemp("store")))[0]


@pytest.fixture(scope="module")
def shards(source, space, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for member in space.languages:
        write_shards(source, "dev", parse_language(member.name), member, folder / member.name)
    return folder


def test_shards_hold_the_encoded_sentences(source, space, shards):
    language, member = parse_language("trans+perm"), space.languages[1]
    read = read_shards(shards / "trans+perm", shards_fingerprint(source, "dev", language, member))
    texts = [t for batch in source.batches("dev") for t in language.derive(batch).texts()]
    assert len(read) == len(texts) == 50
    for row, text in enumerate(texts):
        ids = read.tokens[read.offsets[row] : read.offsets[row + 1]].tolist()
        assert ids == member.tokenizer.encode(text, add_special_tokens=False).ids
    assert read.sentence_ids.tolist() == list(range(50))
    assert np.array_equal(read.counts, np.bincount(read.tokens, minlength=member.size))
    assert len(read.counts) == member.size


def test_reading_maps_and_does_not_load(shards):
    read = read_shards(shards / "parent")
    for array in (read.tokens, read.offsets, read.sentence_ids):
        assert type(array) is np.ndarray, "the map's own class is slow to index"
        assert isinstance(array.base, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@dataclass(frozen=True)
class Lengths:
    """A tokenizer of its own: a word's only token is ``first`` plus its number of letters, a word ``-`` has none."""

    first: int = 10
    fingerprint: str = "lengths"

    @property
    def size(self):
        return self.first + 10

    def encode(self, corpus):
        ids = [[] if word == "-" else [self.first + len(word)] for word in corpus.form.values()]
        offsets = np.cumsum([0, *map(len, ids)])
        return Encoded(np.asarray([i for word in ids for i in word], np.int64), offsets.astype(np.int64))


def lengths(first=10) -> Any:
    return Lengths(first)


class Gaps:
    """Sentences of which some were left out, in two batches."""

    fingerprint, splits, columns = "gaps", ("train",), ("form",)
    sentences: tuple[list[str], ...] = (["a", "bb"], ["-"], ["ccc"], ["a", "-", "bb", "a"], [])

    def __init__(self, *batches):
        self.given = batches

    def batches(self, split):
        whole = Corpus.of_words(self.sentences)
        yield from (whole.take(np.asarray(rows, np.int64)) for rows in self.given)


@pytest.mark.parametrize(("first", "dtype"), [(10, "<u2"), (65_526, "<u2"), (65_527, "<u4"), (1_000_000, "<u4")])
def test_sentences_keep_their_numbers_and_large_ids_fit(first, dtype, tmp_path):
    tokenizer = lengths(first)
    write_shards(Gaps([1, 3], [4, 2]), "train", PARENT, tokenizer, tmp_path / "s")
    read = read_shards(tmp_path / "s")
    assert read.tokens.dtype == dtype
    assert read.tokens.tolist() == [first + n for n in (1, 2, 1, 3)]
    assert read.offsets.tolist() == [0, 0, 3, 3, 4]
    assert read.sentence_ids.tolist() == [1, 3, 4, 2]
    assert read.counts[first + 1 : first + 4].tolist() == [2, 1, 1]
    assert read.offsets.dtype == read.sentence_ids.dtype == read.counts.dtype == np.int64


@pytest.mark.parametrize("parts", [[], [[]], [[0]], [[1, 2], [], [2**62]], [range(100_000), range(5)]])
def test_an_array_that_grows_has_the_bytes_of_numpy(parts, tmp_path):
    with NpyWriter(tmp_path / "ours.npy") as ours:
        for part in parts:
            ours.append(np.asarray(part, np.int64))
    whole = np.concatenate([np.zeros(0, np.int64), *(np.asarray(part, np.int64) for part in parts)])
    np.save(tmp_path / "theirs.npy", whole)
    assert len(ours) == len(whole)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


class FirstOnly:
    """A language that leaves out every sentence of a batch but the first."""

    name, fingerprint = "first", "first"

    def rewrite(self, corpus):
        taken = Rewrite.identity(corpus).take(np.zeros(1, np.int64))
        return replace(taken, counts={"sentences dropped": len(corpus) - 1} if len(corpus) > 1 else {})


def test_what_the_language_left_out_is_counted_over_all_batches(tmp_path):
    first: Any = FirstOnly()
    write_shards(Gaps([1, 3, 0], [4], [2, 4]), "train", first, lengths(), tmp_path / "s")
    read = read_shards(tmp_path / "s")
    assert read.sentence_ids.tolist() == [1, 4, 2] and read.reasons == {"sentences dropped": 3}
    write_shards(Gaps([1, 3], [4]), "train", PARENT, lengths(), tmp_path / "all")
    assert read_shards(tmp_path / "all").reasons == {}


@pytest.mark.parametrize(
    ("change", "place", "code"),
    [
        ({"fingerprint": "other"}, "s", "changed"),
        ({"format": 1}, "s", "format"),
        ('"x"', "manifest.json", "format"),
        ("{}", "manifest.json", "format"),
    ],
)
def test_shards_of_another_tokenizer_or_format_are_refused(change, place, code, tmp_path):
    source, tokenizer = Gaps([0, 3]), lengths()
    expected = shards_fingerprint(source, "train", PARENT, tokenizer)
    write_shards(source, "train", PARENT, tokenizer, tmp_path / "s")
    read_shards(tmp_path / "s", expected)
    path = tmp_path / "s" / "manifest.json"
    is_change = isinstance(change, dict)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}) if is_change else change)
    assert refused(read_shards, tmp_path / "s", expected) == (place, code)


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert refused(write_shards, Gaps([0, 3]), "train", PARENT, lengths(), tmp_path / "s") == ("s", "resources")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["tokens.bin", "offsets.npy", "sentence_ids.npy", "counts.npy"])
def test_damaged_shards_are_refused_and_so_are_none(name, tmp_path):
    write_shards(Gaps([0, 3]), "train", PARENT, lengths(), tmp_path / "s")
    path = tmp_path / "s" / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for change in (path.unlink, lambda: None):
        assert refused(read_shards, tmp_path / "s") == (name, "damaged")
        change()
    assert refused(write_shards, Gaps([], []), "train", PARENT, lengths(), tmp_path / "t") == ("", "empty")
    assert not (tmp_path / "t").exists()
    write_shards(Gaps([1, 4]), "train", PARENT, lengths(), tmp_path / "u")  # two sentences without a token
    assert (len(read_shards(tmp_path / "u")), len(read_shards(tmp_path / "u").tokens)) == (2, 0)
