"""Distributions kept from earlier batches: they change nothing, and they need no more memory than they may."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.order.distribution import ENTRY_BYTES, BagCache, distribution
from synthlang.order.nodes import find_nodes
from synthlang.rng import uniform
from synthlang.trees import Forest
from tests.order_cases import node_sentence, random_model


def drawn(of_class, sentences, temperature=1.0, first=0):
    """The orders drawn for one-node sentences, as source positions by sentence."""
    corpus = Corpus.of(sentences, first)
    orders = {}
    for nodes in find_nodes(corpus, Forest.of(corpus), corpus.columns["head"].codes == 0).values():
        u = uniform(3, corpus.ids[corpus.sentence_of_word[nodes.head]])
        for row, order in zip(corpus.sentence_of_word[nodes.head], of_class.sample(nodes, u, temperature), strict=True):
            orders[int(row) + first] = int(order)
    return orders


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([32_000_000, 7_000, 0]))
def test_the_orders_are_those_without_a_cache(seed, most_bytes):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, 60)
    sentences = [node_sentence(rng, "V", int(n), ("NOUN", "ADP"), ("nsubj", "case")) for n in sizes]
    model = random_model(seed % 5)
    warm = distribution(model)["V"]
    object.__setattr__(warm, "_cache", BagCache(most_bytes))
    for turn, temperature in enumerate((1.0, 2.0, 1.0)):
        for first in range(0, 60, 20):
            part = sentences[first : first + 20]
            rng.shuffle(part)  # other names first, other numbers of the items
            cold = distribution(model)["V"]
            assert drawn(warm, part, temperature, turn * 100 + first) == drawn(
                cold, part, temperature, turn * 100 + first
            )
            assert warm._cache.bytes <= most_bytes
    assert bool(len(warm._cache)) == (most_bytes > 0)


def test_a_bag_that_came_before_is_not_computed_again(monkeypatch):
    rng = np.random.default_rng(0)
    sentences = [node_sentence(rng, "V", int(n)) for n in (2, 4, 6, 6)]
    of_class = distribution(random_model(0))["V"]
    once = drawn(of_class, sentences)
    asked: list[int] = []
    plain = type(of_class).log_scores

    def counting(self, types, names):
        asked.append(len(types))
        return plain(self, types, names)

    monkeypatch.setattr(type(of_class), "log_scores", counting)
    assert drawn(of_class, sentences[::-1])[0] in range(720) and drawn(of_class, sentences) == once
    assert sum(asked) == 0
    drawn(of_class, [node_sentence(rng, "V", 7)])  # too many orders to keep
    drawn(of_class, sentences, 1.5)
    assert sum(asked) == 1 + len(sentences)


def test_what_was_not_asked_for_longest_goes_first():
    row = np.arange(6.0)
    cache = BagCache(3 * (row.nbytes + ENTRY_BYTES))
    for key in (b"a", b"b", b"c"):
        cache.put(key, row)
    assert cache.get(b"a") is not None
    cache.put(b"d", row)
    assert cache.get(b"b") is None and len(cache) == 3
    assert all(cache.get(key) is not None for key in (b"a", b"c", b"d"))
    cache.clear()
    assert len(cache) == 0 and cache.bytes == 0 and cache.get(b"a") is None


def test_a_kept_row_does_not_keep_its_matrix():
    cache, matrix = BagCache(), np.zeros((100, 6))
    cache.put(b"a", matrix[3])
    kept = cache.get(b"a")
    assert kept is not None and kept.base is None and kept.nbytes == 48


def test_item_numbers_are_bounded(monkeypatch):
    monkeypatch.setattr("synthlang.order.distribution.MOST_ITEM_TYPES", 10)
    rng = np.random.default_rng(1)
    warm = distribution(random_model(1))["V"]
    for batch in range(5):
        arcs = tuple(f"x{batch}{i}" for i in range(8))
        part = [node_sentence(rng, "V", 4, arcs=arcs) for _ in range(10)]
        assert drawn(warm, part) == drawn(distribution(random_model(1))["V"], part)
        assert len(warm._cache) <= 10


def test_keys_are_of_items_and_temperature():
    cache = BagCache()
    names, other = (("A", "x"), ("B", "y")), (("B", "y"), ("A", "x"))
    (key,) = cache.keys(np.asarray([[0, 1]]), names, 1.0)
    assert cache.keys(np.asarray([[1, 0]]), other, 1.0) == [key]
    assert cache.keys(np.asarray([[0, 1]]), other, 1.0) != [key] != cache.keys(np.asarray([[0, 1]]), names, 2.0)
    assert len({*cache.keys(np.asarray([[0, 1], [0, 0], [1, 1]]), names, 1.0)}) == 3
