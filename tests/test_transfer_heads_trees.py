"""Maximum spanning arborescences with one child of the root, against all trees."""

import itertools
import time
from functools import cache

import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest

from probes.transfer.tasks import arborescence as module
from probes.transfer.tasks.arborescence import arborescence, arborescences
from synthlang.errors import InputError

INF = np.inf


def _reaches_root(heads):
    for first in range(1, len(heads) + 1):
        word, seen = first, set()
        while word:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word - 1]
    return True


@cache
def all_trees(n):
    """[trees, n] every tree over n words with one child of the root."""
    found = [
        heads for heads in itertools.product(range(n + 1), repeat=n) if heads.count(0) == 1 and _reaches_root(heads)
    ]
    return np.array(found)


def score_of(scores, trees):
    return scores[np.arange(scores.shape[0]), trees].sum(axis=-1)


def random_scores(kind, n, rng):
    if kind == "floats":
        return rng.normal(size=(n, n + 1))
    if kind == "ties":
        return rng.integers(0, 3, size=(n, n + 1)).astype(float)
    if kind == "roots":  # every word likes the root best: the one child decides
        scores = rng.integers(-9, 9, size=(n, n + 1)).astype(float)
        scores[:, 0] += 100
        return scores
    if kind == "huge":  # a penalty added to such scores would round their digits away
        scores = rng.integers(-5, 6, size=(n, n + 1)).astype(float)
        scores[:, 0] += 2.0**52
        return scores
    if kind == "cycles":  # nested cycles: neighbours, then pairs of neighbours, like each other best
        words = np.arange(1, n + 1)
        near = 8.0 - 3 * np.abs(words[:, None] - np.arange(n + 1))
        near[:, 0] = -30
        return near + rng.integers(-2, 3, size=(n, n + 1))
    scores = rng.integers(-4, 5, size=(n, n + 1)).astype(float)
    scores[rng.random(scores.shape) < 0.45] = -INF
    return scores


def test_number_of_trees():
    """Cayley: n^(n − 1) rooted trees over n words."""
    assert [len(all_trees(n)) for n in range(1, 7)] == [n ** (n - 1) for n in range(1, 7)]


@pytest.mark.parametrize("kind", ["floats", "ties", "roots", "huge", "cycles", "forbidden"])
def test_all_trees(kind):
    rng, found, refused = np.random.default_rng(3), 0, 0
    for n in range(1, 7):
        for _ in range(60 if n == 6 else 200):
            scores = random_scores(kind, n, rng)
            best = score_of(scores, all_trees(n)).max()
            if best == -INF:
                refused += 1
                with pytest.raises(InputError, match="no tree"):
                    arborescence(scores)
                continue
            heads = arborescence(scores)
            found += 1
            assert list(heads).count(0) == 1 and _reaches_root(list(heads))
            if kind == "floats":
                assert score_of(scores, heads) == pytest.approx(best, abs=1e-12)
            else:
                assert score_of(scores, heads) == best
            np.testing.assert_array_equal(arborescence(scores.copy()), heads)
    assert found + refused == 1060
    assert (refused > 100 and found > 300) if kind == "forbidden" else not refused


def test_cases_need_the_algorithm():
    """The best heads of these cases are mostly no tree: cyclic, or with several children of the root."""
    rng = np.random.default_rng(3)
    cyclic = sum(not _reaches_root(list(random_scores("cycles", 6, rng).argmax(axis=1))) for _ in range(100))
    several = sum((random_scores("roots", 6, rng).argmax(axis=1) == 0).sum() > 1 for _ in range(100))
    assert cyclic > 50 and several == 100


def test_longer_sentences_against_networkx():
    """One root by NetworkX: the best over each word as the only child of the root."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        n = 9
        scores = rng.normal(size=(n, n + 1)) + 4 * (rng.random((n, n + 1)) < 0.1)
        best = -INF
        for child in range(1, n + 1):
            graph = networkx.DiGraph()
            graph.add_edge(0, child, weight=scores[child - 1, 0])
            graph.add_weighted_edges_from(
                (head, word, scores[word - 1, head])
                for word in range(1, n + 1)
                for head in range(1, n + 1)
                if head != word
            )
            tree = networkx.maximum_spanning_arborescence(graph)
            best = max(best, tree.size(weight="weight"))
        assert score_of(scores, arborescence(scores)) == pytest.approx(best, abs=1e-9)


def test_batch_and_padding():
    """Rows of a batch are those alone; NaN and infinities beyond a length are not read."""
    rng, lengths = np.random.default_rng(8), [4, 0, 6, 1, 5]
    scores = rng.normal(size=(5, 6, 7))
    alone = [arborescence(table[:n, : n + 1]) for table, n in zip(scores, lengths, strict=True)]
    for table, n in zip(scores, lengths, strict=True):
        table[n:], table[:, n + 1 :] = np.nan, INF
    before = scores.copy()
    together = arborescences(scores, lengths)
    assert [heads.tolist() for heads in together] == [heads.tolist() for heads in alone]
    assert [len(heads) for heads in together] == lengths
    np.testing.assert_array_equal(scores, before)
    assert [len(heads) for heads in arborescences(np.zeros((2, 0, 1)), [0, 0])] == [0, 0]


def test_first_of_equals():
    """All arcs alike: the result is fixed, and words under themselves are no choice however good."""
    scores = np.zeros((3, 4))
    scores[[0, 1, 2], [1, 2, 3]] = 50
    assert arborescence(scores).tolist() == arborescence(np.zeros((3, 4))).tolist()
    assert arborescence([[3.0, np.nan]]).tolist() == [0]


def test_trees_are_seen_at_once(monkeypatch):
    """Best heads that are a tree, a long chain too, cost no search; other rows of the batch do."""
    searched: list[int] = []

    def search(scores):
        searched.append(len(scores))
        return np.zeros(0, np.int64)

    monkeypatch.setattr(module, "_best_tree", search)
    scores, words = np.zeros((4, 9, 10)), np.arange(9)
    scores[:, words, words] = 1  # each word under the one before it, the first under the root
    scores[1, 4, [0, 4]] = 2, 0  # a second child of the root
    scores[2, 3, [8, 3]] = 2, 0  # a cycle
    scores[3, 8, 0] = 2  # a second child, beyond the length
    found = arborescences(scores, [9, 9, 9, 8])
    assert found[0].tolist() == words.tolist() and found[3].tolist() == words[:8].tolist()
    assert searched == [9, 9]


@pytest.mark.parametrize("bad", [np.nan, INF])
def test_scores_that_are_no_numbers(bad):
    scores = np.zeros((3, 4))
    scores[1, 3] = bad
    with pytest.raises(InputError, match="diverged"):
        arborescence(scores)


@pytest.mark.parametrize("kind", ["floats", "cycles", "roots"])
def test_speed(kind):
    """A sentence of 100 words; the bound is several times what was measured."""
    scores = random_scores(kind, 100, np.random.default_rng(1))
    arborescence(scores)
    start = time.process_time()
    heads = arborescence(scores)
    assert time.process_time() - start < 0.05
    assert list(heads).count(0) == 1 and _reaches_root(list(heads))
