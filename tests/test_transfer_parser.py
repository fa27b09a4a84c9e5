"""The biaffine parser against its equations, and trees with one root."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from probes.transfer.batch import NO_LABEL
from probes.transfer.config import HeadConfig
from probes.transfer.tasks.parsing import SLOPE, ParserHead
from tests.head_cases import batch_of, prefix, train
from tests.test_transfer_heads_trees import all_trees, score_of

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


def test_root_relation_changes_something():
    states, batch = torch.randn(20, 7, 6, generator=torch.Generator().manual_seed(2)), batch_of(prefix([6] * 20))
    free, bound = _head().decode(states, batch), _head(1).decode(states, batch)
    assert [[arc[0] for arc in row] for row in free] == [[arc[0] for arc in row] for row in bound]
    assert all((above == 0) == (relation == 1) for row in bound for above, relation in row)
    assert not all((above == 0) == (relation == 1) for row in free for above, relation in row)


def test_padding_does_not_matter():
    head = _head()
    states, heads, relations = torch.randn(1, 9, 6), torch.randint(0, 1, (1, 8)), torch.randint(0, 3, (1, 8))
    wide = batch_of(prefix([4], 8), heads=heads, relations=relations)
    narrow = batch_of(prefix([4]), heads=heads[:, :4], relations=relations[:, :4])
    torch.testing.assert_close(head.loss(states, wide), head.loss(states[:, :5], narrow))
    assert head.decode(states, wide) == head.decode(states[:, :5], narrow)


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


@pytest.mark.parametrize("shuffled", [False, True])
def test_learns(shuffled):
    torch.manual_seed(1)
    config = HeadConfig(dropout=0.1, arc=32, relation=16)
    head = ParserHead(hidden=2 * KEYS, relations=2, config=config)
    states, batch = train(head, lambda generator: _draw(generator, shuffled), 150)
    found = torch.tensor(head.decode(states, batch))
    right = (found[:, :, 0] == batch.targets["heads"]) & (found[:, :, 1] == batch.targets["relations"])
    if shuffled:
        assert float(right.float().mean()) < 0.4
    else:
        assert float(right.float().mean()) > 0.98
