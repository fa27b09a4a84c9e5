"""Dictionaries over two vocabularies and precision at k, against plain loops and on a real dictionary."""

import numpy as np
import pytest

from probes.maps.translation_set import translation_set
from synthlang.errors import InputError
from synthlang.muse import read_muse
from synthlang.rng import integers, key_of, permutation
from tests.real_data import DATA

PAIRS = [("cat", "chat"), ("dog", "chien"), ("cat", "matou"), ("cat", "chat"), ("sky", "ciel"), ("cat", "xx"),
         ("zz", "ciel"), ("sea", "yy")]  # fmt: skip
SOURCE = {"dog": 0, "sky": 1, "cat": 2, "sea": 3}
TARGET = {"chien": 5, "ciel": 4, "matou": 1, "chat": 0}


def test_pairs_become_rows_and_unknown_words_are_counted():
    held = translation_set(PAIRS, SOURCE, TARGET)
    assert held.queries.tolist() == [2, 0, 1] and held.offsets.tolist() == [0, 2, 3, 4]
    assert held.answers.tolist() == [0, 1, 5, 4]
    assert held.pairs().tolist() == [[2, 0], [2, 1], [0, 5], [1, 4]]
    assert held.to_json() == {
        "queries": 3, "coverage": 60.0, "pairs": 7, "known": 4, "words": 5, "unknown_source": 1, "unknown_target": 2,
        "unanswered": 1,
    }  # fmt: skip


def test_any_translation_is_right():
    held = translation_set(PAIRS, SOURCE, TARGET)
    neighbours = np.array([[1, 0, 5], [4, 5, 0], [0, 1, -1]])
    assert held.hits(neighbours).tolist() == [[True, True, True], [False, True, True], [False, False, False]]
    assert held.precision(neighbours, (1, 2, 3)) == pytest.approx({"p@1": 100 / 3, "p@2": 200 / 3, "p@3": 200 / 3})
    assert not held.hits(np.full((3, 2), -1)).any()


def test_it_is_what_a_plain_loop_counts():
    key = key_of("translations")
    draws = integers(key, 40, np.arange(400)).reshape(200, 2).tolist()
    pairs = [(f"s{a}", f"t{b}") for a, b in draws]
    source = {f"s{i}": int(row) for i, row in enumerate(permutation(key, 30))}
    target = {f"t{i}": int(row) for i, row in enumerate(permutation(key + 1, 35))}
    held = translation_set(pairs, source, target)
    neighbours = np.stack([permutation(key + 2 + i, 35)[:10] for i in range(len(held.queries))])
    known = {a for a, b in pairs if a in source and b in target}
    words = [word for word in dict.fromkeys(a for a, _ in pairs) if word in known]
    assert held.queries.tolist() == [source[word] for word in words]
    for k in (1, 3, 10):
        right = 0
        for word, row in zip(words, neighbours.tolist(), strict=True):
            gold = {target[b] for a, b in pairs if a == word and b in target}
            right += bool(gold & set(row[:k]))
        assert held.precision(neighbours, (k,)) == {f"p@{k}": pytest.approx(100 * right / len(words))}
        assert 0 < right < len(words)


def test_what_is_refused():
    for pairs in ([], [("x", "y")], [("cat", "xx"), ("zz", "chat")]):
        with pytest.raises(InputError, match=f"none of the {len(pairs)} pairs"):
            translation_set(pairs, SOURCE, TARGET)
    held = translation_set(PAIRS, SOURCE, TARGET)
    for at in ((0,), (1, 4), ()):
        with pytest.raises(InputError, match="there are 3"):
            held.precision(np.zeros((3, 3), np.int64), at)


@pytest.mark.skipif(not (DATA / "muse_dict").is_dir(), reason="the MUSE dictionaries are not there")
@pytest.mark.parametrize("language", ["de", "es", "fr", "ru"])
def test_a_real_dictionary(language):
    pairs = read_muse(DATA / "muse_dict" / f"en-{language}.5000-6500.txt")
    source, target = ({word: row for row, word in enumerate(dict.fromkeys(side))} for side in zip(*pairs, strict=True))
    held = translation_set(pairs, source, target)
    said = held.to_json()
    assert said["queries"] == said["words"] == 1500 and said["known"] == said["pairs"] == len(pairs)
    assert said["unknown_source"] == said["unknown_target"] == said["unanswered"] == 0
    last = held.answers[held.offsets[1:] - 1]
    assert held.precision(last[:, None], (1,)) == {"p@1": 100.0}
    assert held.precision((last[:, None] + 1) % len(target), (1,))["p@1"] < 50
