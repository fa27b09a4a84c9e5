"""Trees with one root against all trees, and the biaffine parser against its equations."""

from __future__ import annotations

import itertools
import math
from functools import cache

import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from probes.transfer.config import HeadConfig
from probes.transfer.tasks.arborescence import arborescences
from probes.transfer.tasks.base import NO_LABEL
from probes.transfer.tasks.parsing import SLOPE, ParserHead
from tests.refusals import refused
from tests.test_transfer_heads import batch_of, prefix, trained

INF = np.inf


def arborescence(scores):
    """Return the arborescence of one sentence."""
    scores = np.asarray(scores, float)
    return arborescences(scores[None], [len(scores)])[0]


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
    assert kind == "cycles"  # nested cycles: neighbours, then pairs of neighbours, like each other best
    words = np.arange(1, n + 1)
    near = 8.0 - 3 * np.abs(words[:, None] - np.arange(n + 1))
    near[:, 0] = -30
    return near + rng.integers(-2, 3, size=(n, n + 1))


def test_number_of_trees():
    """Cayley: n^(n − 1) rooted trees over n words."""
    assert [len(all_trees(n)) for n in range(1, 7)] == [n ** (n - 1) for n in range(1, 7)]


@pytest.mark.parametrize("kind", ["floats", "ties", "roots", "huge", "cycles"])
def test_all_trees(kind):
    rng = np.random.default_rng(3)
    for n in range(1, 7):
        for _ in range(30 if n == 6 else 80):
            scores = random_scores(kind, n, rng)
            best = score_of(scores, all_trees(n)).max()
            heads = arborescence(scores)
            assert list(heads).count(0) == 1 and _reaches_root(list(heads))
            if kind == "floats":
                assert score_of(scores, heads) == pytest.approx(best, abs=1e-12)
            else:
                assert score_of(scores, heads) == best
            np.testing.assert_array_equal(arborescence(scores.copy()), heads)


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


def test_first_of_equals():
    """All arcs alike: the result is fixed, and words under themselves are no choice however good."""
    scores = np.zeros((3, 4))
    scores[[0, 1, 2], [1, 2, 3]] = 50
    assert arborescence(scores).tolist() == arborescence(np.zeros((3, 4))).tolist()
    assert arborescence([[3.0, np.nan]]).tolist() == [0]


@pytest.mark.parametrize("bad", [np.nan, INF, -INF])
def test_scores_that_are_no_numbers(bad):
    scores = np.zeros((3, 4))
    scores[1, 3] = bad
    assert refused(arborescence, scores) == ("", "failed")


CONFIG = HeadConfig(dropout=0.0, arc=5, relation=4)


def _head(root_relation=None, relations=3, seed=0):
    """Random weights everywhere, so that the best heads are often no tree."""
    torch.manual_seed(seed)
    head = ParserHead(hidden=6, relations=relations, config=CONFIG, root_relation=root_relation).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head


def _mlp(mlp, state):
    return F.leaky_relu(mlp.linear.weight @ state + mlp.linear.bias, SLOPE)


def _one(vector):
    return torch.cat([vector, torch.ones(1)])


def _arc(head, states, word, above):
    """Equation 6, for word ``word`` (1-based) under ``above`` (0: the root)."""
    h = _mlp(head.arc_head, states[above])
    return float(_mlp(head.arc_dependent, states[word]) @ head.arc[:-1] @ h + head.arc[-1] @ h)


def _relation(head, states, word, above):
    d, h = _one(_mlp(head.relation_dependent, states[word])), _one(_mlp(head.relation_head, states[above]))
    return [float(d @ head.relation[r] @ h) for r in range(head.relations)]


def _nll(scores, gold):
    return math.log(sum(math.exp(score) for score in scores)) - scores[gold]


@torch.no_grad()
def test_loss():
    head, lengths = _head(), [4, 2, 0]
    states, mask = torch.randn(3, 5, 6), prefix(lengths, 4)
    heads = torch.tensor([[2, 0, NO_LABEL, 3], [0, 1, 1, 1], [0, 0, 0, 0]])
    relations = torch.tensor([[1, NO_LABEL, 2, 0], [2, 2, 1, 1], [0, 0, 0, 0]])
    arcs, labels = [], []
    for row, length in enumerate(lengths):
        for word in range(1, length + 1):
            gold, label = int(heads[row, word - 1]), int(relations[row, word - 1])
            if gold < 0:
                continue
            others = [above for above in range(length + 1) if above != word]
            arcs.append(_nll([_arc(head, states[row], word, above) for above in others], others.index(gold)))
            if label >= 0:
                labels.append(_nll(_relation(head, states[row], word, gold), label))
    assert (len(arcs), len(labels)) == (5, 4)
    loss = head.loss(states, batch_of(mask, heads=heads, relations=relations))
    assert float(loss) == pytest.approx(np.mean(arcs) + np.mean(labels), rel=1e-4)


@pytest.mark.parametrize("root_relation", [None, 1])
@torch.no_grad()
def test_decode(root_relation):
    """The best of all trees, then the best relation of each arc; the root's own relation is nobody else's."""
    head, lengths = _head(root_relation), [5, 1, 0, 3, 5, 4, 5, 2]
    states = torch.randn(8, 6, 6)
    found = head.decode(states, batch_of(prefix(lengths)))
    greedy = 0
    for row, length in enumerate(lengths):
        assert len(found[row]) == length
        if not length:
            continue
        words = range(1, length + 1)
        scores = np.array([[_arc(head, states[row], w, a) for a in range(length + 1)] for w in words])
        scores[np.arange(length), words] = -np.inf
        trees = all_trees(length)
        tree = trees[score_of(scores, trees).argmax()]
        greedy += tree.tolist() == scores.argmax(axis=1).tolist()
        for word, above, (own_head, own_relation) in zip(words, tree, found[row], strict=True):
            best = np.array(_relation(head, states[row], word, above))
            if root_relation is not None:
                best[np.arange(3) != 1 if above == 0 else 1] = -np.inf
            assert (own_head, own_relation) == (above, best.argmax())
    assert greedy < 7


KEYS = 8


def _draw(generator, shuffled=False):
    """Each word has a key of its own and that of its head; the relation is which half the head's key is in."""
    rows, words = 24, 6
    keys = torch.rand(rows, KEYS, generator=generator).argsort(dim=1)[:, : words + 1]
    # random trees: each word of a random order hangs under an earlier one, the first one under the root
    heads = torch.zeros(rows, words, dtype=torch.int64)
    order = torch.rand(rows, words, generator=generator).argsort(dim=1) + 1
    for place in range(1, words):
        above = torch.randint(0, place, (rows, 1), generator=generator)
        heads.scatter_(1, order[:, place, None] - 1, order.gather(1, above))
    pointer = torch.cat([torch.zeros(rows, 1, dtype=torch.int64), keys.gather(1, heads)], dim=1)
    states = torch.cat([F.one_hot(keys, KEYS), F.one_hot(pointer, KEYS)], dim=2).float()
    relations = (keys.gather(1, heads) >= KEYS // 2).long()
    if shuffled:
        heads, relations = heads[torch.randperm(rows, generator=generator)], 1 - relations.roll(1, 0)
    return states, batch_of(prefix([words] * rows), heads=heads, relations=relations)


def test_learns():
    for shuffled, low, high in ((False, 0.98, 1.0), (True, 0.0, 0.4)):
        torch.manual_seed(1)
        head = ParserHead(hidden=2 * KEYS, relations=2, config=HeadConfig(dropout=0.1, arc=32, relation=16))
        found, gold = trained(head, _draw, shuffled, 100)
        right = torch.tensor(found) == torch.stack([gold["heads"], gold["relations"]], dim=2)
        assert low <= float(right.all(dim=2).float().mean()) <= high
