"""Syntactic reordering: drawn word orders against brute force, what is left alone, fingerprints, bad input."""

import itertools
import json
import shutil
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.order.model import OrderModel
from synthlang.rng import key_of, uniform
from synthlang.transforms.reorder import Reorder
from tests.order_cases import random_corpus, random_model
from tests.order_reference import mixed, probabilities

CLASS = {"NOUN": "N", "PROPN": "N", "PRON": "N", "VERB": "V"}
KEY = 99


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Paths of two random models, and their weights."""
    folder = tmp_path_factory.mktemp("models")
    found = []
    for seed in (0, 1):
        model = random_model(seed)
        model.save(folder / f"{seed}.json.gz")
        found.append((str(folder / f"{seed}.json.gz"), model.weights))
    return found


def expected_order(sentence, weights, temperature=1.0, most=7):
    """The word order (source indices) that the rules give, node by node, by brute force."""
    upos, arc, head = (sentence.columns[c] for c in ("upos", "deprel", "head"))

    def lay_out(node):
        dependents = [i for i, h in enumerate(head) if h == node + 1]
        items = sorted([*dependents, node])
        if upos[node] in CLASS and 2 <= len(items) <= most:
            canonical = [node, *sorted(dependents, key=lambda i: (upos[i], arc[i], i))]
            named = [(upos[i], arc[i], i == node) for i in canonical]
            p = probabilities(named, weights[CLASS[upos[node]]], temperature)
            u = uniform(key_of("order", KEY), sentence.id, node)[0]
            total = 0.0
            for order in itertools.permutations(range(len(canonical))):
                total += p[order]
                if total > u:
                    break
            items = [canonical[i] for i in order]
        return [w for item in items for w in ([item] if item == node else lay_out(item))]

    return lay_out(head.index(0)) if head else []


@pytest.mark.parametrize("substrate", [False, True])
def test_the_drawn_word_order_equals_brute_force(models, substrate):
    (path, weights), (other, other_weights) = models
    options = {"substrate": other, "substrate_weight": 0.3, "temperature": 1.5} if substrate else {}
    transform = Reorder(model=path, labels="faithful", max_items=6, **options)
    corpus = random_corpus(7, 60, 12, first=40)
    w = {c: mixed(weights[c], other_weights[c], 0.3) for c in "NV"} if substrate else weights
    rewrite = transform.rewrite(corpus, KEY)
    moved = 0
    for row, sentence in enumerate(corpus):
        expected = expected_order(sentence, w, 1.5 if substrate else 1.0, most=6)
        assert rewrite.origin[rewrite.offsets[row] : rewrite.offsets[row + 1]].tolist() == expected
        moved += expected != sorted(expected)
    assert moved > 20


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(0, 1), st.sampled_from(["sample", "best"]), st.booleans())
def test_trees_strengths_and_batches(models, seed, strength, choose, nouns):
    transform = Reorder(model=models[0][0], strength=strength, choose=choose, nouns=nouns)
    corpus = random_corpus(seed, 12, first=seed)
    full = transform.model_copy(update={"strength": 1.0}).rewrite(corpus, KEY)
    rewrite = transform.rewrite(corpus, KEY)
    derived = rewrite.apply(corpus)
    # any cut into batches gives the same
    cut = seed % 12
    parts = [transform.rewrite(corpus.between(*span), KEY) for span in ((0, cut), (cut, 12))]
    assert np.concatenate([p.origin for p in parts]).tolist() == rewrite.origin.tolist()
    counts = Counter(parts[0].counts) + Counter(parts[1].counts)
    assert counts == Counter(rewrite.counts)
    for row, (before, after) in enumerate(zip(corpus, derived, strict=True)):
        origin = rewrite.origin[rewrite.offsets[row] : rewrite.offsets[row + 1]].tolist()
        assert sorted(origin) == list(range(len(origin)))
        # a stronger language does what a weaker one did
        assert origin in (list(range(len(origin))), full.origin[full.offsets[row] : full.offsets[row + 1]].tolist())
        for j, source in enumerate(origin):  # every word keeps its label and its head
            head = before.columns["head"][source]
            assert after.columns["deprel"][j] == before.columns["deprel"][source]
            assert after.columns["head"][j] == (0 if head == 0 else origin.index(head - 1) + 1)


def test_strength_zero_is_the_identity_and_a_part_is_a_part(models):
    corpus = random_corpus(1, 2000, 8)
    transform = Reorder(model=models[0][0])
    changed = {}
    for strength in (0.0, 0.4, 1.0):
        rewrite = transform.model_copy(update={"strength": strength}).rewrite(corpus, KEY)
        word = rewrite.origin != corpus.position
        changed[strength] = set(corpus.sentence_of_word[word].tolist())
    assert not changed[0.0] and changed[0.4] < changed[1.0]
    assert 0.35 < len(changed[0.4]) / len(changed[1.0]) < 0.45


SVO: dict[str, Any] = {  # he saw the cat in the park .
    "form": ["he", "saw", "the", "cat", "in", "the", "park", "."],
    "upos": ["PRON", "VERB", "DET", "NOUN", "ADP", "DET", "NOUN", "PUNCT"],
    "head": [2, 0, 4, 2, 7, 7, 4, 2],
    "deprel": ["nsubj", "root", "det", "obj", "case", "det", "nmod", "punct"],
}
TORN: dict[str, Any] = {
    "form": list("abcd"),
    "upos": ["NOUN", "VERB", "NOUN", "NOUN"],
    "head": [2, 0, 4, 1],
    "deprel": ["x"] * 4,
}
NO_TREE: dict[str, Any] = {"form": list("ab"), "upos": ["NOUN", "VERB"], "head": [2, 1], "deprel": ["x", "x"]}
LONG: dict[str, Any] = {  # eight items at w0; the noun has a determiner
    "form": [f"w{i}" for i in range(9)],
    "upos": ["VERB", "DET", "NOUN"] + ["ADV"] * 6,
    "head": [0, 3, 1, 1, 1, 1, 1, 1, 1],
    "deprel": ["root", "det"] + ["x"] * 7,
}


def by_hand(tmp_path, **options):
    """A model that puts objects first and determiners last."""
    weights: Any = {"V": {"PRE_obj_@": 40.0, "PRE_@_nsubj": 40.0, "BI_punct_EOS": 40.0, "PRE_obj_nsubj": 10.0}}
    weights["N"] = {"PRE_@_det": 40.0, "PRE_case_@": 40.0, "PRE_@_nmod": 40.0, "BI_@_det": 20.0}
    OrderModel(weights=weights).save(tmp_path / "hand.json")
    return Reorder(model=str(tmp_path / "hand.json"), **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "cat the in park the saw he ."),
        ({"choose": "best"}, "cat the in park the saw he ."),
        ({"nouns": False}, "the cat in the park saw he ."),
        ({"verbs": False}, "he saw cat the in park the ."),
        ({"max_items": 3}, "he saw cat the in park the ."),
    ],
)
def test_by_hand(tmp_path, options, expected):
    corpus = Corpus.of([SVO])
    assert by_hand(tmp_path, **options).rewrite(corpus, KEY).apply(corpus).texts() == [expected]


def test_what_cannot_be_reordered_is_left_and_counted(tmp_path):
    corpus = Corpus.of([SVO, TORN, NO_TREE, LONG, SVO])
    rewrite = by_hand(tmp_path).rewrite(corpus, KEY)
    assert rewrite.kept is None
    expected = [" ".join(TORN["form"]), " ".join(NO_TREE["form"]), "w0 w2 w1 w3 w4 w5 w6 w7 w8"]
    assert rewrite.apply(corpus).texts()[1:4] == expected
    assert rewrite.counts == {
        "reorder: sentences left, no tree": 1,
        "reorder: sentences left, not projective": 1,
        "reorder: nodes left, more than 7 items": 1,
        "reorder: nodes reordered": 7,
    }


def test_sentences_are_dropped_and_counted(tmp_path):
    corpus = Corpus.of([SVO, TORN, NO_TREE, LONG, SVO], first=3)
    transform = by_hand(tmp_path, policy="drop-sentence")
    rewrite = transform.rewrite(corpus, KEY)
    derived = rewrite.apply(corpus)
    assert rewrite.kept.tolist() == [0, 4] and derived.ids.tolist() == [3, 7]
    assert len(set(derived.texts())) == 1
    assert rewrite.counts == {
        "reorder: sentences dropped, no tree": 1,
        "reorder: sentences dropped, not projective": 1,
        "reorder: sentences dropped, a node of more than 7 items": 1,
        "reorder: nodes reordered": 6,
    }
    none = transform.model_copy(update={"strength": 0.0}).rewrite(corpus, KEY)
    assert none.kept is None and none.apply(corpus).texts() == corpus.texts() and not none.counts


def test_a_class_without_weights_keeps_its_order(tmp_path):
    OrderModel(weights={"N": {"PRE_@_det": 40.0}}).save(tmp_path / "n.json")
    corpus = Corpus.of([SVO])
    derived = Reorder(model=str(tmp_path / "n.json"), choose="best").rewrite(corpus, KEY).apply(corpus)
    assert derived.texts()[0].split()[:2] == ["he", "saw"]


def test_labels_are_mapped_to_the_scheme_of_the_model(tmp_path):
    weights: Any = {"V": {"PRE_dobj_@": 40.0}}
    OrderModel(labels="ud1", weights=weights).save(tmp_path / "v1.json")
    rows: dict[str, Any] = {
        "form": ["saw", "cats"],
        "upos": ["VERB", "NOUN"],
        "head": [0, 1],
        "deprel": ["root", "obj"],
    }
    corpus = Corpus.of([rows])
    moved = {}
    for labels in ("mapped", "faithful"):
        transform = Reorder(model=str(tmp_path / "v1.json"), labels=labels, choose="best")
        moved[labels] = transform.rewrite(corpus, KEY).apply(corpus).texts()[0]
    assert moved == {"mapped": "cats saw", "faithful": "saw cats"}
    v1 = Reorder(model=str(tmp_path / "v1.json"), corpus_labels="ud1", choose="best")
    assert v1.rewrite(corpus, KEY).apply(corpus).texts() == ["saw cats"]  # obj is no v1 label


def test_the_fingerprint_is_of_the_models_content(models, tmp_path):
    path, other = models[0][0], models[1][0]
    shutil.copy(path, tmp_path / "copy.json.gz")

    def fingerprint(**options):
        spec = {"name": "x", "transforms": [{"kind": "reorder", **options}]}
        return parse_language(spec).fingerprint

    assert fingerprint(model=path) == fingerprint(model=str(tmp_path / "copy.json.gz"))
    different = [{}, {"model": path}, {"model": other}, {"model": path, "substrate": other}]
    different += [{"model": path, k: v} for k, v in [("labels", "faithful"), ("choose", "best"), ("temperature", 2.0)]]
    assert len({fingerprint(**o) for o in different}) == len(different)
    assert json.dumps(Reorder(model=path).identity()).count("json") == 0


def test_a_model_that_changes_on_disk_is_read_again(tmp_path):
    corpus = Corpus.of([SVO])
    texts = []
    for weight in (40.0, -40.0):
        OrderModel(weights={"V": {"PRE_nsubj_@": weight}}).save(tmp_path / "m.json")
        transform = Reorder(model=str(tmp_path / "m.json"), choose="best")
        texts.append(transform.rewrite(corpus, KEY).apply(corpus).texts()[0].split().index("he"))
    assert texts[0] == 0 and texts[1] > 0


def test_a_shipped_model_reorders_and_has_no_inverse():
    language = parse_language({"name": "x", "transforms": [{"kind": "reorder", "model": "ga", "choose": "best"}]})
    corpus = Corpus.of([SVO])
    derived = language.derive(corpus)
    assert derived.texts()[0].startswith("saw he")  # Irish: the verb first
    assert not language.invertible
    with pytest.raises(InputError, match="no inverse"):
        language.invert(derived)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"model": "klingon"}, r"klingon.* is none of de, en, fr, ga"),
        ({"substrate": "klingon"}, r"klingon.* is none of de, en, fr, ga"),
        ({"temperature": 0.0}, "temperature"),
        ({"substrate_weight": 1.5}, "substrate_weight"),
        ({"max_items": 9}, "max_items"),
        ({"max_items": 1}, "max_items"),
        ({"policy": "drop"}, "policy"),
        ({"nouns": False, "verbs": False}, "nothing would be reordered"),
        ({"strength": 2.0}, "strength"),
    ],
)
def test_bad_options(options, reason):
    with pytest.raises(InputError, match=reason):
        parse(Reorder, {"kind": "reorder", **options})


def test_missing_columns_and_no_words(models):
    transform = Reorder(model=models[0][0])
    with pytest.raises(InputError, match="needs the column 'upos'"):
        transform.rewrite(Corpus.of_words([["a", "b"]]), KEY)
    empty = random_corpus(0, 3).between(0, 0)
    assert len(transform.rewrite(empty, KEY)) == 0
    one = random_corpus(0, 1, longest=2)
    assert transform.rewrite(one, KEY).origin.tolist() == [0] and not transform.rewrite(one, KEY).counts
