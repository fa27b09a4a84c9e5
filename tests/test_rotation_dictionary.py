"""Dictionaries over two vocabularies and precision at k, against plain loops and on a real dictionary."""

import numpy as np
import pytest

from probes.rotation.dictionary import translation_set
from synthlang.rng import key_of, permutation, uniform

PAIRS = [("cat", "chat"), ("dog", "chien"), ("cat", "matou"), ("cat", "chat"), ("sky", "ciel"), ("cat", "xx"),
         ("zz", "ciel"), ("sea", "yy")]  # fmt: skip
SOURCE = {"dog": 0, "sky": 1, "cat": 2, "sea": 3}
TARGET = {"chien": 5, "ciel": 4, "matou": 1, "chat": 0}


def test_pairs_become_rows_and_unknown_words_are_counted():
    translations = translation_set(PAIRS, SOURCE, TARGET)
    assert translations.queries.tolist() == [2, 0, 1] and translations.offsets.tolist() == [0, 2, 3, 4]
    assert translations.answers.tolist() == [0, 1, 5, 4]
    assert translations.pairs().tolist() == [[2, 0], [2, 1], [0, 5], [1, 4]]
    assert translations.to_json() == {
        "queries": 3, "coverage": 60.0, "pairs": 7, "known": 4, "words": 5, "unknown_source": 1, "unknown_target": 2,
        "unanswered": 1,
    }  # fmt: skip


def precision(translations, neighbours, at, candidates=35):
    """Without ties."""
    scores = np.broadcast_to(-np.arange(float(neighbours.shape[1])), neighbours.shape)
    return translations.precision(neighbours, scores, np.zeros(len(translations.answers)), candidates, at)


@pytest.mark.parametrize("candidates", [7, 25])
def test_ties_earn_what_chance_gives_them(candidates):
    """Integer scores with many ties, against orders drawn at random; of 25, the nearest do not fit into the list."""
    random = np.random.default_rng(candidates)
    queries, top = 12, min(10, candidates)
    pairs = [(f"s{q}", f"t{a}") for q in range(queries) for a in random.choice(candidates, 2, replace=False)]
    translations = translation_set(pairs, {f"s{q}": q for q in range(queries)}, {f"t{a}": a for a in range(candidates)})
    table = random.integers(0, 4, (queries, candidates)).astype(float)
    table[: queries // 2] = np.minimum(table[: queries // 2], 1)  # of 25, more than 10 are nearest
    order = np.argsort(-table, axis=1, kind="stable")[:, :top]
    answers = [{int(t[1:]) for s, t in pairs if s == f"s{q}"} for q in range(queries)]
    row, column = translations.pairs().T
    best = table == table.max(1, keepdims=True)
    credit = best[row, column] / best.sum(1)[row]
    for k in (1, 3):
        got = translations.earned(order, np.take_along_axis(table, order, 1), k, credit)
        drawn = np.zeros(queries)
        rounds = 4000
        for _ in range(rounds):
            near = np.lexsort((random.random(table.shape), -table), axis=1)[:, :k]
            drawn += [bool(answers[q] & set(near[q].tolist())) for q in range(queries)]
        # ties below the nearest that reach over the end of the list are cut there
        whole = np.array([(t >= np.sort(t)[-k]).sum() <= top or b.sum() >= k for t, b in zip(table, best, strict=True)])
        assert whole.sum() > 5
        np.testing.assert_allclose(got[whole], drawn[whole] / rounds, atol=0.035)
        assert ((got > 0) & (got < 1)).any()


def test_it_is_what_a_plain_loop_counts():
    key = key_of("translations")
    draws = (40 * uniform(key, np.arange(400))).astype(int).reshape(200, 2).tolist()
    pairs = [(f"s{a}", f"t{b}") for a, b in draws]
    source = {f"s{i}": int(row) for i, row in enumerate(permutation(key, 30))}
    target = {f"t{i}": int(row) for i, row in enumerate(permutation(key + 1, 35))}
    translations = translation_set(pairs, source, target)
    neighbours = np.stack([permutation(key + 2 + i, 35)[:10] for i in range(len(translations.queries))])
    known = {a for a, b in pairs if a in source and b in target}
    words = [word for word in dict.fromkeys(a for a, _ in pairs) if word in known]
    assert translations.queries.tolist() == [source[word] for word in words]
    for k in (1, 3, 10):
        right = 0
        for word, row in zip(words, neighbours.tolist(), strict=True):
            gold = {target[b] for a, b in pairs if a == word and b in target}
            right += bool(gold & set(row[:k]))
        assert precision(translations, neighbours, (k,)) == {f"p@{k}": pytest.approx(100 * right / len(words))}
        assert 0 < right < len(words)
    every = precision(translations, neighbours, (10,))["p@10"]
    assert precision(translations, neighbours, (5, 20), candidates=10)["p@20"] == every  # all of them are listed
    with pytest.raises(AssertionError):
        precision(translations, neighbours, (5, 20))
