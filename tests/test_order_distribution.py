"""The distribution over all orders against brute force, the drawn orders against the distribution."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from synthlang.corpus import Corpus
from synthlang.order.distribution import BagCache, distribution
from synthlang.order.model import OrderModel
from synthlang.order.nodes import Nodes, find_nodes
from synthlang.order.permutations import all_orders
from synthlang.rng import uniform
from synthlang.trees import Forest
from tests.order_cases import (
    UNDERSCORES,
    features,
    mixed,
    node_sentence,
    probabilities,
    random_model,
    reference_items,
    weights_of,
)


def nodes_of_sentences(sentences):
    """The nodes at the roots of one-node sentences, all with the same number of items."""
    corpus = Corpus.of(sentences)
    (group,) = find_nodes(corpus, Forest.of(corpus), corpus.columns["head"].codes == 0).values()
    order = np.argsort(group.head)  # as the sentences
    return Nodes(group.rows[order], group.types[order], group.source[order], group.names)


def compare(p, nodes, row, expected):
    """All probabilities of one node against {order of source items: p}."""
    n = nodes.types.shape[1]
    assert len(p) == math.factorial(n) == len(expected)
    for order, value in zip(nodes.source[row][all_orders(n).orders].tolist(), p, strict=True):
        assert abs(value - expected[tuple(order)]) < 1e-9


def compare_all(of_class, sentences, weights):
    """All probabilities of one-node sentences against the reference, whose weights are found by their strings."""
    corpus = Corpus.of(sentences)
    for nodes in find_nodes(corpus, Forest.of(corpus), corpus.columns["head"].codes == 0).values():
        found = of_class.probabilities(nodes)
        for row, sentence in enumerate(corpus.sentence_of_word[nodes.head].tolist()):
            compare(found[row], nodes, row, probabilities(reference_items(sentences[sentence]), weights))


@pytest.mark.parametrize(("node", "n"), [("N", 2), ("V", 3), ("N", 4), ("V", 5), ("N", 6), ("V", 6), ("V", 7)])
def test_probabilities_equal_brute_force(node, n):
    rng = np.random.default_rng(n)
    model, substrate = random_model(n), random_model(n + 10)
    tags = {7: ("NOUN", "ADP")}.get(n, ("NOUN", "VERB", "ADP"))  # few labels: bags with equal items too
    sentences = [node_sentence(rng, node, n, tags, ("nsubj", "case")) for _ in range(1 if n >= 6 else 4)]
    nodes = nodes_of_sentences(sentences)
    w = mixed(model.weights[node], substrate.weights[node], 0.05)
    alone = distribution(model)[node].probabilities(nodes)
    both = distribution(model, substrate)[node].probabilities(nodes, temperature=0.7)
    for row, sentence in enumerate(sentences):
        if n < 6 or node == "N":
            compare(alone[row], nodes, row, probabilities(reference_items(sentence), model.weights[node]))
        if n < 6 or node == "V":
            compare(both[row], nodes, row, probabilities(reference_items(sentence), w, 0.7))
    assert np.allclose(alone.sum(axis=1), 1.0, atol=1e-12)


def test_two_schemes_are_mixed():
    """One corpus is read by a model with v1 labels and by one with v2 labels."""
    sentence = node_sentence(np.random.default_rng(3), "V", 4, ("NOUN",), ("obj", "obl"))
    v2 = random_model(4)
    weights = {"PRE_dobj_@": 0.7, "BI_nmod_dobj": -1.1, "HI_BOS_NOUN&dobj_NOUN&nmod": 0.4}
    of_class = distribution(OrderModel(labels="ud1", weights={"V": weights}), v2, 0.4)["V"]
    named = {f.replace("dobj", "obj").replace("nmod", "obl"): w for f, w in weights.items()}
    compare_all(of_class, [sentence], mixed(named, v2.weights["V"], 0.4))
    assert [scheme for _, scheme in of_class.parts] == ["ud1", "ud2"]


def test_eight_items_are_a_distribution_too():
    sentence = node_sentence(np.random.default_rng(0), "V", 8)
    model = random_model(3)
    nodes = nodes_of_sentences([sentence])
    p = distribution(model)["V"].probabilities(nodes)[0]
    assert abs(p.sum() - 1.0) < 1e-12
    # the ratio of two orders needs no sum over the 40,320
    items, w = reference_items(sentence), model.weights["V"]
    rows = [0, 17, 5000, 40319]
    orders = nodes.source[0][all_orders(8).orders[rows]].tolist()
    scores = [sum(w.get(f, 0.0) * c for f, c in features([items[i] for i in order]).items()) for order in orders]
    for row, score in zip(rows[1:], scores[1:], strict=True):
        assert math.isclose(math.log(p[row] / p[rows[0]]), score - scores[0], abs_tol=1e-9)


# --- labels that hold ``_``, the separator of features: features are plain strings


def sentences_with(seed, sizes, node="V"):
    rng = np.random.default_rng(seed)
    return [node_sentence(rng, node, n, *UNDERSCORES) for n in sizes]


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from("NV"))
def test_probabilities_equal_brute_force_by_strings(seed, node):
    sentences = sentences_with(seed, [2, 3, 4, 4, 5], node)
    weights = weights_of(sentences, seed)
    compare_all(distribution(OrderModel(weights={node: weights}), labels="faithful")[node], sentences, weights)


def test_a_string_of_two_readings_counts_for_both():
    rows: dict[str, Any] = {"form": list("wxyz"), "upos": ["VERB", "A", "A", "A"], "head": [0, 1, 1, 1]}
    sentences = [{**rows, "deprel": ["root", *arcs]} for arcs in (("a", "b_c", "a_b"), ("a_b", "c", "x"))]
    weights = {"PRE_a_b_c": 1.25}
    compare_all(distribution(OrderModel(weights={"V": weights}))["V"], sentences, weights)


# --- the best order, the drawn one


def test_without_weights_all_orders_are_equally_likely_and_the_best_is_that_of_the_text():
    rng = np.random.default_rng(1)
    nodes = nodes_of_sentences([node_sentence(rng, "N", 4) for _ in range(20)])
    of_class = distribution(OrderModel(weights={"N": {}}))["N"]
    assert np.allclose(of_class.probabilities(nodes), 1 / 24)
    orders = all_orders(4).orders[of_class.best(nodes)]
    assert (np.take_along_axis(nodes.source, orders, axis=1) == np.arange(4)).all()


def test_the_best_order_is_the_most_probable_one_and_ties_go_to_the_text():
    rng = np.random.default_rng(2)
    model = random_model(5)
    of_class = distribution(model)["V"]
    for n in (2, 3, 5):
        sentences = [node_sentence(rng, "V", n, ("NOUN",), ("obj", "case")) for _ in range(10)]
        nodes = nodes_of_sentences(sentences)
        best = of_class.best(nodes)
        for row, sentence in enumerate(sentences):
            p = probabilities(reference_items(sentence), model.weights["V"])
            most = max(p.values())
            expected = min(order for order, value in p.items() if value > most - 1e-9)
            assert tuple(nodes.source[row][all_orders(n).orders[best[row]]]) == expected


def test_extreme_weights_do_not_overflow():
    model = OrderModel(weights={"V": {"PRE_obj_@": 499.0, "PRE_nsubj_@": -499.0}})
    rows: dict[str, Any] = {"form": list("abc"), "upos": ["NOUN", "VERB", "NOUN"], "head": [2, 0, 2]}
    nodes = nodes_of_sentences([{**rows, "deprel": ["nsubj", "x", "obj"]}])
    for temperature in (1.0, 1e-3):
        p = distribution(model)["V"].probabilities(nodes, temperature)[0]
        assert math.isclose(p.max(), 1.0) and np.isfinite(p).all()


@pytest.mark.parametrize(("n", "node"), [(3, "N"), (4, "V"), (5, "N")])
def test_drawn_orders_follow_the_distribution_and_a_wrong_one_is_noticed(n, node):
    draws = 10_000
    sentence = node_sentence(np.random.default_rng(n), node, n)
    nodes = nodes_of_sentences([sentence] * draws)
    of_class = distribution(random_model(n + 20))[node]
    u = uniform(7, np.arange(draws))
    p = of_class.probabilities(nodes_of_sentences([sentence]), 2.0)[0]
    often = p * draws >= 5
    expected = np.append(p[often], p[~often].sum()) * draws

    def p_value(temperature):
        found = np.bincount(of_class.sample(nodes, u, temperature), minlength=len(p))
        cells = np.append(found[often], found[~often].sum())
        return chisquare(cells[expected > 0], expected[expected > 0]).pvalue

    assert p_value(2.0) > 1e-3
    assert p_value(1.5) < 1e-6  # positive control: draws at another temperature do not pass


def test_a_drawn_order_depends_on_nothing_but_its_node():
    rng = np.random.default_rng(4)
    for n, count in ((3, 300), (6, 100), (7, 60)):
        sentences = [node_sentence(rng, "V", n) for _ in range(count)]
        of_class = distribution(random_model(n), random_model(n + 1))["V"]
        nodes = nodes_of_sentences(sentences)
        u = uniform(1, np.arange(count))
        together = of_class.sample(nodes, u)
        scores = np.concatenate([s for _, s in of_class.log_scores(nodes.types, nodes.names)])
        for first in range(0, count, 37):
            part = nodes_of_sentences(sentences[first : first + 37])
            some = of_class.sample(part, u[first : first + 37])
            assert (nodes.source[first : first + 37] == part.source).all()
            assert (some == together[first : first + 37]).all()
            alone = np.concatenate([s for _, s in of_class.log_scores(part.types, part.names)])
            assert (alone == scores[first : first + 37]).all()  # bit for bit


def test_bags_are_told_apart_for_any_number_of_names():
    types = np.asarray([[5, 1], [2, 9], [5, 1], [2, 8]])
    for count in (10, 2**32):
        nodes = Nodes(types, types, types, range(count))  # type: ignore[arg-type]  # only their number counts
        found, which = nodes.distinct()
        assert (found[which] == types).all() and len(found) == 3


def drawn(of_class, sentences, temperature=1.0, first=0):
    """The orders drawn for one-node sentences, as source positions by sentence."""
    corpus = Corpus.of(sentences, first)
    orders = {}
    for nodes in find_nodes(corpus, Forest.of(corpus), corpus.columns["head"].codes == 0).values():
        u = uniform(3, corpus.ids[corpus.sentence_of_word[nodes.head]])
        for row, order in zip(corpus.sentence_of_word[nodes.head], of_class.sample(nodes, u, temperature), strict=True):
            orders[int(row) + first] = int(order)
    return orders


@settings(max_examples=6)
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


def test_memory_is_bounded_however_many_nodes_there_are():
    rng = np.random.default_rng(6)
    of_class = distribution(random_model(8))["V"]
    nodes = nodes_of_sentences([node_sentence(rng, "V", 7) for _ in range(2000)])  # 10 million orders: 80 MB at once
    all_orders(7)
    tracemalloc.start()
    of_class.sample(nodes, uniform(0, np.arange(2000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


def test_probabilities_are_right_to_a_billionth_up_to_the_largest_weight():
    rng = np.random.default_rng(7)
    sentence = node_sentence(rng, "V", 6, ("NOUN", "ADP"), ("nsubj", "case"))
    # all weights are near the limit, yet the differences of orders are small: no probability is 0 or 1
    weights = {f: 499.99 - abs(w) if f[:2] != "HI" else w for f, w in random_model(12).weights["V"].items()}
    few = {"NOUN", "ADP", "nsubj", "case", "@VERB", "@"}
    names = itertools.product(("BI", "PRE", "BFR", "AFT", "BTW"), few, few)
    weights |= {"_".join(name): 499.99 - abs(float(rng.normal())) / 4 for name in names}
    weights = {f: w for f, w in weights.items() if "&" not in f and ("BOS" not in f and "EOS" not in f)}
    nodes = nodes_of_sentences([sentence])
    p = distribution(OrderModel(weights={"V": weights}))["V"].probabilities(nodes)[0]
    assert 1e-6 < p.max() < 0.999
    compare(p, nodes, 0, probabilities(reference_items(sentence), weights))
