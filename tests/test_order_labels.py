"""Labels that hold ``_``, the separator of features: features are plain strings."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.order.distribution import distribution
from synthlang.order.fit import fit
from synthlang.order.items import parse_feature, readings
from synthlang.order.model import OrderModel, import_orm, read_model
from synthlang.order.nodes import find_nodes
from synthlang.order.permutations import all_orders
from synthlang.order.training import Design, bags_of, frequent_ngrams, nodes_of
from synthlang.trees import Forest
from tests.order_cases import node_sentence, random_corpus, reference_items
from tests.order_reference import features, probabilities

# of the same pieces, so that a feature's name has several readings that occur together
ARCS = ("a", "b", "a_b", "b_a", "_", "nmod:because_of", "of", "x_EOS")
TAGS = ("NOUN", "_", "N_a", "a")


def weights_of(sentences, seed, share=0.7):
    """Random weights for most features that some order of the sentences has."""
    rng = np.random.default_rng(seed)
    names: dict[str, None] = {}
    for sentence in sentences:
        items = reference_items(sentence)
        for order in itertools.permutations(items):
            names.update(dict.fromkeys(features(order)))
    kept = [name for name in names if set(name.split("_")[1:]) != {"EOS"} and rng.random() < share]
    return {name: float(rng.normal()) for name in kept}


def compare(of_class, corpus, sentences, weights):
    """All probabilities of one-node sentences against the reference, whose weights are found by their strings."""
    for n, nodes in find_nodes(corpus, Forest.of(corpus), corpus.columns["head"].codes == 0).items():
        found = of_class.probabilities(nodes)
        for row, sentence in enumerate(corpus.sentence_of_word[nodes.head].tolist()):
            expected = probabilities(reference_items(sentences[sentence]), weights)
            for order, p in zip(nodes.source[row][all_orders(n).orders].tolist(), found[row], strict=True):
                assert abs(p - expected[tuple(order)]) < 1e-9


def sentences_with(seed, sizes, node="V", arcs=ARCS, tags=TAGS):
    rng = np.random.default_rng(seed)
    return [node_sentence(rng, node, n, tags, arcs) for n in sizes]


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from("NV"))
def test_probabilities_equal_brute_force_by_strings(seed, node):
    sentences = sentences_with(seed, [2, 3, 4, 4, 5], node)
    weights = weights_of(sentences, seed)
    model = OrderModel(weights={node: weights})
    compare(distribution(model, labels="faithful")[node], Corpus.of(sentences), sentences, weights)


def test_six_items_and_a_mix_of_two_models():
    sentences = sentences_with(1, [6])
    one, other = weights_of(sentences, 2, 0.5), weights_of(sentences, 3, 0.5)
    model, substrate = (OrderModel(weights={"V": w}) for w in (one, other))
    mixed = {f: 0.75 * one.get(f, 0.0) + 0.25 * other.get(f, 0.0) for f in {*one, *other}}
    compare(distribution(model, substrate, 0.25)["V"], Corpus.of(sentences), sentences, mixed)


def test_a_string_of_two_readings_counts_for_both():
    rows: dict[str, Any] = {"form": list("wxyz"), "upos": ["VERB", "A", "A", "A"], "head": [0, 1, 1, 1]}
    sentence = {**rows, "deprel": ["root", "a", "b_c", "a_b"]}
    weights = {"PRE_a_b_c": 1.25}
    corpus = Corpus.of([sentence, {**sentence, "deprel": ["root", "a_b", "c", "x"]}])
    compare(
        distribution(OrderModel(weights={"V": weights}))["V"], corpus, [corpus[0].columns, corpus[1].columns], weights
    )


def test_names_that_occur_later_change_nothing_before():
    batches = [sentences_with(seed, [3, 4, 5]) for seed in range(4)]
    weights = weights_of(list(itertools.chain(*batches)), 9)
    together = distribution(OrderModel(weights={"V": weights}))["V"]
    for sentences in [*batches, *batches]:
        compare(together, Corpus.of(sentences), sentences, weights)


def test_likelihood_and_gradient_of_a_fit_equal_brute_force():
    sentences = sentences_with(4, [2, 3, 3, 4, 5], arcs=("a", "b", "a_b", "b_a"), tags=("T", "T_a"))
    bags = [bags_of(nodes) for nodes in nodes_of(Corpus.of(sentences), "V", 6).values()]
    design = Design(bags, frequent_ngrams(bags, 1.0))
    assert len(set(design.features)) == len(design.features)
    weights = np.random.default_rng(5).normal(size=len(design.features))
    named = dict(zip(design.features, weights.tolist(), strict=True))
    value, slope = 0.0, Counter[Any]()
    for sentence in sentences:
        items = reference_items(sentence)
        p = probabilities(items, named)
        value += math.log(p[tuple(range(len(items)))])
        slope.update(features(items))
        for order, share in p.items():
            slope.update({f: -share * c for f, c in features([items[i] for i in order]).items()})
    found, gradient = design.log_likelihood(weights)
    assert math.isclose(found, value, rel_tol=1e-12)
    for name, by_name in zip(design.features, gradient.tolist(), strict=True):
        assert abs(by_name - slope[name]) < 1e-9
    for name, by_name in slope.items():
        assert name in named or name.startswith("HI_") or abs(by_name) < 1e-9


def test_a_fitted_model_has_weights_for_such_labels_and_comes_back_from_its_file(tmp_path):
    first: dict[str, Any] = {"form": ["x", "y"], "upos": ["NOUN", "VERB"], "head": [2, 0]}
    corpus = Corpus.of([{**first, "deprel": ["obl:because_of", "root"]}] * 30)
    model = fit(corpus, "x", (0.1,))
    assert model.weights["V"]["PRE_obl:because_of_@"] > 0 > model.weights["V"]["PRE_NOUN&obl:because_of_@VERB&@"] * -1
    model.save(tmp_path / "m.json.gz")
    back = read_model(tmp_path / "m.json.gz")
    assert back.weights == model.weights and back.content == model.content
    nodes = nodes_of(corpus, "V", 7)[2]
    assert distribution(back)["V"].best(nodes).tolist() == [1] * 30
    assert distribution(back)["V"].probabilities(nodes)[0, 1] > 0.9


def test_any_treebank_of_such_labels_can_be_fitted_and_used():
    corpus = random_corpus(3, 80, 8, arcs=ARCS)
    model = fit(corpus, "x", (0.3,), most_items=4)
    again = OrderModel.model_validate(model.model_dump())
    assert again.content == model.content
    assert any("nmod:because_of" in name for name in model.weights["V"])


def test_more_names_than_a_model_can_have_are_an_error_before_the_fit(monkeypatch):
    monkeypatch.setattr("synthlang.order.training.MOST_NAMES", 20)
    with pytest.raises(InputError, match=r"x: the items .* have \d+ different names; a model can have 20"):
        fit(random_corpus(3, 80, 8, arcs=ARCS), "x")
    monkeypatch.undo()
    monkeypatch.setattr("synthlang.order.tables.MOST_NAMES", 5)
    sentences = sentences_with(0, [5])
    weights = weights_of(sentences, 0)
    with pytest.raises(InputError, match="knows more than 5 names"):
        compare(distribution(OrderModel(weights={"V": weights}))["V"], Corpus.of(sentences), sentences, weights)


def test_a_released_model_with_such_labels_is_imported(tmp_path):
    for node in "NV":
        (tmp_path / f"x@{node}.orm").write_text("PRE_nmod:because_of_@ 1.5\nHI_BOS_NOUN&nmod:of_x_@VERB&@ 2.0\n")
    model = import_orm(tmp_path / "x@N.orm", tmp_path / "x@V.orm", "x")
    assert model.weights["V"] == {"PRE_nmod:because_of_@": 1.5, "HI_BOS_NOUN&nmod:of_x_@VERB&@": 2.0}


@pytest.mark.parametrize(
    ("name", "odd", "expected"),
    [
        ("PRE_a_b_c", ("b_c", "a_b"), [("a", "b_c"), ("a_b", "c")]),
        ("PRE_a_b_c", (), []),
        ("PRE_a_b", ("a_b",), [("a", "b")]),
        ("BI_BOS_a_b", ("a_b",), [("BOS", "a_b")]),
        ("PRE___@", ("_",), [("_", "@")]),
        ("HI_A&x_b_C&d_E&f", ("A&x_b",), [("A&x_b", "C&d", "E&f")]),
        ("HI_A&x_b_C&d_E&f", ("b_C&d",), [("A&x", "b_C&d", "E&f")]),
        ("HI_BOS__&__@X&@", ("_&_",), [("BOS", "_&_", "@X&@")]),
        ("HI_A&a_B&b_C&c_EOS", ("C&c_EOS",), [("A&a", "B&b", "C&c", "EOS"), ("A&a", "B&b", "C&c_EOS")]),
    ],
)
def test_readings_by_hand(name, odd, expected):
    assert [feature.tokens for feature in readings(name, odd)] == expected
    parse_feature(name)


@pytest.mark.parametrize("name", ["PRE_a_b_c", "PRE___@", "HI_A&x_b_C&d_E&f", "HI_BOS__&__@X&@", "BI_a_b_EOS"])
def test_names_with_several_readings_are_legal(name):
    assert parse_feature(name) is None


def test_many_underscores_are_no_burden():
    assert parse_feature("PRE" + "_a" * 3000) is None
    name = "HI_A&" + "_".join("a" * 400) + "_B&" + "_".join("a" * 400) + "_C&c"
    assert parse_feature(name) is None and not list(readings(name, ()))
    with pytest.raises(ValueError, match="3 to 5"):
        parse_feature("HI_A&" + "_a" * 3000)
