"""Trees of a batch: validity, projectivity, sizes and layouts against slow references."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.sources.conllu import tree_problem
from synthlang.trees import Forest


def corpus_of(*heads):
    return Corpus.of([{"form": [f"w{i}" for i in range(len(h))], "head": list(h)} for h in heads])


def descendants(head, word):
    """The words (1-based) of a subtree."""
    return {word}.union(*(descendants(head, w) for w, h in enumerate(head, 1) if h == word))


def projective(head):
    return all(max(d) - min(d) + 1 == len(d) for d in (descendants(head, w) for w in range(1, len(head) + 1)))


def layout(head, rank, own, word):
    """The subtree of a word in the order of its items, recursively."""
    items = [(rank[w - 1], w, w) for w, h in enumerate(head, 1) if h == word] + [(own[word - 1], word, None)]
    result: list[int] = []
    for _, item, subtree in sorted(items, key=lambda i: i[:2]):
        result += [item] if subtree is None else layout(head, rank, own, item)
    return result


@st.composite
def trees(draw):
    """A random tree, projective or not: each word hangs on one that came before in a random order."""
    count = draw(st.integers(1, 9))
    order = draw(st.permutations(range(1, count + 1)))
    head = [0] * count
    for i, word in enumerate(order[1:], 1):
        head[word - 1] = order[draw(st.integers(0, i - 1))]
    return head


def test_a_tree_by_hand():
    forest = Forest.of(corpus_of([2, 3, 0, 3], [], [0]))
    assert forest.parent.tolist() == [1, 2, -1, 2, -1]
    assert forest.depth.tolist() == [2, 1, 0, 1, 0]
    assert forest.size.tolist() == [1, 2, 4, 1, 1]
    assert forest.is_tree.tolist() == forest.is_projective.tolist() == [True, True, True]
    # the verb last, its subject's article behind the noun
    rank, own = np.array([9.0, 0, 0, 1, 0]), np.array([0.0, 1, 5, 0, 0])
    assert forest.linearise(rank, own).tolist() == [1, 0, 3, 2, 4]


@settings(max_examples=100)
@given(st.lists(trees(), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_against_slow_references(heads, random):
    corpus = corpus_of(*heads)
    forest = Forest.of(corpus)
    assert forest.is_tree.all()
    assert forest.is_projective.tolist() == [projective(h) for h in heads]
    assert forest.size.tolist() == [len(descendants(h, w)) for h in heads for w in range(1, len(h) + 1)]
    rows = np.arange(len(forest.parent))
    kept = forest.linearise(rows.astype(float), rows.astype(float))
    assert (kept == rows)[np.repeat(forest.is_projective, corpus.lengths)].all()
    rank = np.array([random.random() for _ in rows])
    own = np.array([random.random() for _ in rows])
    expected = []
    for start, head in zip(corpus.offsets[:-1].tolist(), heads, strict=True):
        part = slice(start, start + len(head))
        expected += [start + w - 1 for w in layout(head, rank[part], own[part], head.index(0) + 1)]
    assert forest.linearise(rank, own).tolist() == expected


@settings(max_examples=100)
@given(st.lists(st.lists(st.integers(-1, 7), max_size=6), min_size=1, max_size=5))
def test_what_is_no_tree_is_marked_and_kept(heads):
    corpus = corpus_of(*heads)
    forest = Forest.of(corpus)
    assert forest.is_tree.tolist() == [not h or tree_problem(h) is None for h in heads]
    rank = np.zeros(len(forest.parent)) - np.arange(len(forest.parent))
    rows = np.arange(len(rank))
    moved = forest.linearise(rank, rank)
    assert sorted(moved.tolist()) == rows.tolist()
    assert (moved == rows)[~np.repeat(forest.is_tree, corpus.lengths)].all()
