"""Shards and dictionaries: right, deterministic, refused when damaged."""

import numpy as np
import pytest

from synthlang.dictionary import DictionarySpec, draw, read_dictionary, trained_types, write_dictionary
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.scripts import SCRIPTS
from synthlang.shards import read_shards, shards_fingerprint, write_shards
from synthlang.sources import open_source
from synthlang.vocabulary import train_vocabulary

SOURCE = "builtin:mini-english?types=500&sentences=4500&dev=50&test=50"


@pytest.fixture(scope="module")
def source():
    return open_source(SOURCE)


@pytest.fixture(scope="module")
def vocabulary(source):
    return train_vocabulary(source.batches("dev"), 320)


@pytest.fixture(scope="module")
def shards(source, vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for name in ("parent", "trans+perm"):
        write_shards(source, "dev", parse_language(name), vocabulary, folder / name)
    return folder


def test_shards_hold_the_encoded_sentences(source, vocabulary, shards):
    language = parse_language("trans+perm")
    read = read_shards(shards / "trans+perm")
    tokenizer = vocabulary.tokenizer(language.script)
    texts = [t for batch in source.batches("dev") for t in language.derive(batch).texts()]
    assert len(read) == len(texts) == 50
    for row, text in enumerate(texts):
        ids = read.tokens[read.offsets[row] : read.offsets[row + 1]].tolist()
        assert ids == tokenizer.encode(text, add_special_tokens=False).ids
    assert np.array_equal(read.counts, np.bincount(read.tokens, minlength=2 * vocabulary.size))


def test_shards_of_the_id_route_agree(vocabulary, shards):
    """Transliteration moves every id of the parent by V, reordering keeps their number."""
    parent, derived = read_shards(shards / "parent"), read_shards(shards / "trans+perm")
    assert np.array_equal(parent.counts, derived.counts[vocabulary.size :])
    assert derived.counts[: vocabulary.size].sum() == 0


def test_damaged_shards_are_refused(source, vocabulary, tmp_path):
    write_shards(source, "dev", PARENT, vocabulary, tmp_path / "s")
    data = bytearray((tmp_path / "s" / "tokens.bin").read_bytes())
    data[10] ^= 1
    (tmp_path / "s" / "tokens.bin").write_bytes(data)
    with pytest.raises(InputError, match="differs from its manifest"):
        read_shards(tmp_path / "s")


def test_shards_are_named_by_all_that_matters(source, vocabulary):
    names = {
        shards_fingerprint(source, split, parse_language(lang), vocabulary)
        for split in ("dev", "test")
        for lang in ("inv", "perm")
    }
    assert len(names) == 4


COUNTS = np.asarray([9, 9, 9, 9, 9, 100, 50, 0, 25, 25, 0, 10, 5, 1])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"coverage": 0.25, "by": "type", "order": "frequent"}, [5, 6]),
        ({"coverage": 0.0}, []),
        ({"coverage": 1.0}, [5, 6, 8, 9, 11, 12, 13]),
        # 216 running tokens: 100 are 46 %, 150 are 69 %
        ({"coverage": 0.45, "by": "token", "order": "frequent"}, [5]),
        ({"coverage": 0.5, "by": "token", "order": "frequent"}, [5, 6]),
        ({"coverage": 1.0, "by": "token", "order": "frequent"}, [5, 6, 8, 9, 11, 12, 13]),
    ],
)
def test_dictionaries_by_hand(spec, expected):
    assert draw(DictionarySpec(**spec), COUNTS).tolist() == expected


def test_a_uniform_dictionary_is_uniform_seeded_and_nested():
    counts = np.ones(2000, np.int64)
    small, large = (set(draw(DictionarySpec(coverage=c), counts).tolist()) for c in (0.25, 0.5))
    assert len(small) == round(0.25 * 1995)
    assert small < large
    assert small != set(draw(DictionarySpec(coverage=0.25, seed=1), counts).tolist())
    assert abs(np.mean(sorted(small)) - 1002) < 80


def test_a_saved_dictionary_pairs_copies(vocabulary, shards, tmp_path):
    script = SCRIPTS["cyrillic"]
    counts = read_shards(shards / "parent").counts
    spec = DictionarySpec(coverage=0.5)
    write_dictionary(spec, counts, "parent", vocabulary, tmp_path / "d", script)
    pairs, manifest = read_dictionary(tmp_path / "d")
    assert (pairs[:, 1] - pairs[:, 0] == vocabulary.size).all()
    assert manifest["share_of_types"] == pytest.approx(0.5, abs=0.01)
    assert set(pairs[:, 0].tolist()) <= set(trained_types(counts).tolist())
    for line in (tmp_path / "d" / "dictionary.tsv").read_text().split("\n")[:40]:
        if line and "�" not in line:  # a lone byte of a longer character cannot be shown
            left, right = line.split("\t")
            assert script.encode(left) == right
