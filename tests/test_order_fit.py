"""Fitting order models: likelihood and gradient against brute force, a planted model, baselines, evaluation."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from synthlang.corpus import Corpus
from synthlang.order.distribution import distribution
from synthlang.order.evaluate import Direction, closeness, evaluate
from synthlang.order.fit import Bags, Design, fit, frequent_ngrams, maximise
from synthlang.order.model import OrderModel, read_model
from synthlang.order.nodes import nodes_of
from synthlang.transforms.reorder import Reorder
from tests.order_cases import (
    UNDERSCORES,
    features,
    node_sentence,
    probabilities,
    random_corpus,
    random_model,
    reference_items,
)
from tests.refusals import refused

OBJECT_FIRST: dict[str, Any] = {"form": ["a", "b"], "upos": ["NOUN", "VERB"], "head": [2, 0], "deprel": ["obj", "root"]}
OBJECT_LAST: dict[str, Any] = {"form": ["b", "a"], "upos": ["VERB", "NOUN"], "head": [0, 1], "deprel": ["root", "obj"]}
NOUN: dict[str, Any] = {"form": ["a", "b"], "upos": ["DET", "NOUN"], "head": [2, 0], "deprel": ["det", "root"]}


def sentences_of(node, sizes, seed, **labels):
    rng = np.random.default_rng(seed)
    return [node_sentence(rng, node, n, **labels) for n in sizes]


def bags_of(corpus, node, most_items=6):
    return [Bags.of(nodes) for nodes in nodes_of(corpus, node, most_items).values()]


def design_of(corpus, node, most_items=6, share=1.0):
    bags = bags_of(corpus, node, most_items)
    return Design(bags, frequent_ngrams(bags, share))


@pytest.mark.parametrize(
    ("node", "labels"),
    [
        ("N", {"arcs": ("nsubj", "case")}),
        ("V", {"arcs": ("nsubj", "case")}),
        ("V", dict(zip(("tags", "arcs"), UNDERSCORES, strict=True))),  # a name of several readings
    ],
)
def test_likelihood_and_gradient_equal_brute_force(node, labels):
    sentences = sentences_of(node, [2, 3, 3, 4, 5], 0, **labels)
    design = design_of(Corpus.of(sentences), node)
    weights = np.random.default_rng(1).normal(size=len(design.features))
    named = dict(zip(design.features, weights.tolist(), strict=True))
    expected_value = 0.0
    slope: Counter[Any] = Counter()
    for sentence in sentences:
        items = reference_items(sentence)
        p = probabilities(items, named)
        expected_value += math.log(p[tuple(range(len(items)))])
        slope.update(features(items))
        for order, value in p.items():
            slope.update({f: -value * c for f, c in features([items[i] for i in order]).items()})
    value, gradient = design.log_likelihood(weights)
    assert math.isclose(value, expected_value, rel_tol=1e-12)
    for name, found in zip(design.features, gradient.tolist(), strict=True):
        assert abs(found - slope[name]) < 1e-9
    # nothing that could matter is missing: every other feature has the same value in all orders or is a rare n-gram
    for name, by_name in slope.items():
        assert name in named or name.startswith("HI_") or abs(by_name) < 1e-9


def test_chunks_change_nothing(monkeypatch):
    corpus = Corpus.of(sentences_of("N", [5] * 30 + [6] * 10, 4))
    whole = design_of(corpus, "N")
    monkeypatch.setattr("synthlang.order.fit.CHUNK", 720)
    parts = design_of(corpus, "N")
    weights = np.random.default_rng(5).normal(size=len(whole.features))
    assert whole.features == parts.features
    for a, b in zip(whole.log_likelihood(weights), parts.log_likelihood(weights), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_a_planted_model_is_found(tmp_path):
    truth = random_model(0)
    truth = OrderModel(weights={c: {f: w for f, w in ws.items() if f[:2] != "HI"} for c, ws in truth.weights.items()})
    truth.save(tmp_path / "t.json")
    transform = Reorder(model=str(tmp_path / "t.json"), labels="faithful")
    few = ("nsubj", "case")
    train, test = (moved(transform, random_corpus(s, n, 9, first=9000 * s, arcs=few)) for s, n in ((1, 2500), (2, 300)))
    found = fit(train, "planted", l2=(1.0,), most_items=4)
    true, ours = (evaluate(m, test, train, 4)["all"] for m in (truth, found))
    assert ours["uniform"] < ours["direction"] < ours["model"] < true["model"] + 0.01
    # most of what can be known is found: the share of the way from no knowledge to the truth
    assert (ours["model"] - ours["uniform"]) / (true["model"] - true["uniform"]) > 0.8
    again = fit(train, "planted", l2=(1.0,), most_items=4)
    assert again.weights == found.weights and again.content == found.content


def test_the_prior_is_chosen_on_other_trees():
    train, other = random_corpus(3, 80, 9), random_corpus(4, 60, 9)  # orders without any rule
    chosen = fit(train, "x", (0.1, 30.0), other, most_items=3)
    assert chosen.fit["l2"] == 30.0
    tried = dict(map(tuple, chosen.fit["tried"]))
    alone = fit(train, "x", (0.1,), most_items=3)
    assert tried[0.1] == evaluate(alone, other, labels="faithful")["all"]["model"] < tried[30.0]


def test_maximise_reports_and_stops_at_the_maximum():
    design = design_of(Corpus.of(sentences_of("V", [4] * 20, 6)), "V")
    seen = []
    weights, steps = maximise(design, 1.0, report=lambda *a: seen.append(a))
    assert np.abs(design.log_likelihood(weights)[1] - weights).max() < 1e-2
    assert [s[1] for s in seen[:-1]] == list(range(1, steps + 1)) and seen[-1][1] == seen[-1][2]


def test_frequent_ngrams_are_those_of_the_text():
    sentences = sentences_of("N", [3, 4, 4, 5], 7, arcs=("case",))
    found: Counter[str] = Counter()
    for sentence in sentences:
        found.update({f: c for f, c in features(reference_items(sentence)).items() if f.startswith("HI_")})
    count = {f: c for f, c in found.items() if set(f.split("_")[1:]) != {"EOS"}}
    bags = bags_of(Corpus.of(sentences), "N")
    every, some = frequent_ngrams(bags, 1.0), frequent_ngrams(bags)
    assert sorted(every) == sorted(count)
    assert some == every[: len(some)] and len(some) == math.ceil(0.1 * len(count))
    assert min(count[f] for f in some) >= max(c for f, c in count.items() if f not in some)


def test_direction_by_hand():
    rows: dict[str, Any] = {"form": list("abc"), "upos": ["NOUN", "VERB", "NOUN"], "head": [2, 0, 2]}
    rows["deprel"] = ["nsubj", "root", "obj"]
    nodes = nodes_of(Corpus.of([rows, rows]), "V", 7)
    side = Direction.of(nodes.values())
    assert (side.left, side.right) == ({("VERB", "nsubj"): 2}, {("VERB", "obj"): 2})
    assert side.p_left(("VERB", "nsubj")) == 0.75 and side.p_left(("VERB", "iobj")) == 0.5
    np.testing.assert_allclose(side.log_likelihood(nodes[3]), 2 * [2 * math.log(0.75)])
    total = 0.0  # the probabilities of all orders of a node add up to 1
    for order in itertools.permutations(range(3)):
        place = {old: new for new, old in enumerate(order)}
        other = {k: [rows[k][i] for i in order] for k in ("form", "upos", "deprel")}
        other["head"] = [0 if rows["head"][i] == 0 else place[rows["head"][i] - 1] + 1 for i in order]
        total += math.exp(side.log_likelihood(nodes_of(Corpus.of([other]), "V", 7)[3])[0])
    assert math.isclose(total, 1.0)


def test_evaluation_of_no_knowledge_is_that_of_uniform_orders():
    corpus = random_corpus(9, 50, 9)
    scores = evaluate(OrderModel(weights={"N": {}, "V": {}}), corpus, corpus)
    for score in scores.values():
        assert score["model"] == score["uniform"] and score["best"] == 1.0  # ties go to the order of the text
    assert scores["all"]["nodes"] == scores["N"]["nodes"] + scores["V"]["nodes"]
    assert evaluate(OrderModel(weights={"V": {}}), Corpus.of([NOUN]))["V"] == {"nodes": 0, "items": 0}


def test_evaluation_equals_brute_force():
    sentences = sentences_of("V", [2, 3, 4, 5], 10)
    model = random_model(11)
    p = [probabilities(reference_items(s), model.weights["V"])[tuple(range(len(s["form"])))] for s in sentences]
    score = evaluate(model, Corpus.of(sentences))["V"]
    assert abs(score["model"] - np.mean(np.log(p))) < 1e-4
    assert abs(score["model_item"] - np.sum(np.log(p)) / 14) < 1e-4


@pytest.mark.parametrize(
    ("options", "place", "code"),
    [
        ({"l2": (0.0,)}, "l2", "range"),
        ({"l2": (1.0, 2.0)}, "l2", "missing"),
        ({"most_items": 1}, "max_items", "range"),
    ],
)
def test_bad_settings(options, place, code):
    assert refused(fit, random_corpus(0, 20), "x", **options) == (place, code)


@pytest.mark.parametrize(
    ("row", "there", "missing", "tag"), [(NOUN, "N", "V", "VERB"), (OBJECT_LAST, "V", "N", "NOUN")]
)
def test_a_class_that_the_treebank_does_not_have_is_reported_and_left_out(row, there, missing, tag):
    seen: list[Any] = []
    model = fit(Corpus.of([row] * 3), "x", report=lambda *a: seen.append(a))
    assert model.classes == (there,) and missing not in model.fit and model.fit[there]["nodes"] == 3
    assert [s for s in seen if s[0].endswith(f", {missing}") and f"no node with a {tag}" in s[3]]
    alone: dict[str, Any] = {"form": ["a"], "upos": ["NOUN"], "head": [0], "deprel": ["root"]}
    assert refused(fit, Corpus.of([alone]), "x") == ("", "empty")


def test_labels_with_underscores_are_learnt_and_come_back_from_the_file(tmp_path):
    corpus = Corpus.of([{**OBJECT_FIRST, "deprel": ["obl:because_of", "root"]}] * 30)
    model = fit(corpus, "x", (0.1,))
    assert model.weights["V"]["PRE_obl:because_of_@"] > 0 > model.weights["V"]["PRE_NOUN&obl:because_of_@VERB&@"] * -1
    model.save(tmp_path / "m.json.gz")
    back = read_model(tmp_path / "m.json.gz")
    assert back.weights == model.weights and back.content == model.content
    nodes = nodes_of(corpus, "V", 7)[2]
    assert distribution(back)["V"].best(nodes).tolist() == [1] * 30
    assert distribution(back)["V"].probabilities(nodes)[0, 1] > 0.9
    many = fit(random_corpus(3, 80, 8, arcs=UNDERSCORES[1]), "x", (0.3,), most_items=4)
    assert OrderModel.model_validate(many.model_dump()).content == many.content
    assert any("nmod:because_of" in name for name in many.weights["V"])


def moved(transform, corpus):
    return transform.rewrite(corpus, 0).apply(corpus)


def test_a_language_comes_closer_to_its_superstrate(tmp_path):
    rng = np.random.default_rng(0)
    arcs = ("nsubj", "obj", "advmod")

    def clause(before):
        parts = [a for a in arcs if a in before] + ["root"] + [a for a in arcs if a not in before]
        head = [0 if a == "root" else parts.index("root") + 1 for a in parts]
        tags = ["VERB" if a == "root" else "NOUN" for a in parts]
        return {"form": ["x"] * 4, "upos": tags, "head": head, "deprel": parts}

    svo = Corpus.of([clause({"nsubj", *({"advmod"} if rng.random() < 0.5 else ())}) for _ in range(200)])
    sov = Corpus.of([clause({"nsubj", "obj", *({"advmod"} if rng.random() < 0.9 else ())}) for _ in range(200)])
    fit(sov, "sov", (0.1,)).save(tmp_path / "sov.json")
    result = closeness(svo, moved(Reorder(model=str(tmp_path / "sov.json")), svo), sov)
    assert result["relations"] == 3
    assert result["before"] > 0.4 and result["after"] < 0.1
    by_arc = {row["arc"]: row for row in result["pairs"]}
    assert by_arc["obj"]["parent"] == 0.0 and by_arc["obj"]["target"] == 1.0 and by_arc["obj"]["reordered"] > 0.95
    assert closeness(svo, svo, sov, enough=1000)["before"] is None
