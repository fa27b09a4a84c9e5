"""Syntactic reordering: drawn word orders against brute force, what is left alone, words without a head, bad input."""

import itertools
import json
import shutil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.language import parse_language
from synthlang.order.model import OrderModel
from synthlang.rng import key_of, uniform
from synthlang.transforms.layout import attach_inserted
from synthlang.transforms.reorder import Reorder
from synthlang.trees import Forest
from tests.annotated import annotated
from tests.order_cases import mixed, probabilities, random_corpus, random_model
from tests.refusals import refused

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
        assert rewrite.source_index[rewrite.offsets[row] : rewrite.offsets[row + 1]].tolist() == expected
        moved += expected != sorted(expected)
    assert moved > 20


SVO = (
    "he/PRON/nsubj/2 saw/VERB/root/0 the/DET/det/4 cat/NOUN/obj/2 in/ADP/case/7 the/DET/det/7 park/NOUN/nmod/4 "
    "./PUNCT/punct/2"
)
TORN = "a/NOUN/x/2 b/VERB/x/0 c/NOUN/x/4 d/NOUN/x/1"
NO_TREE = "a/NOUN/x/2 b/VERB/x/1"
LONG = "w0/VERB/root/0 w1/DET/det/3 w2/NOUN/x/1 " + " ".join(f"w{i}/ADV/x/1" for i in range(3, 9))  # w0 has eight items
SENTENCES = annotated(SVO, TORN, NO_TREE, LONG, SVO)


def by_hand(tmp_path, **options):
    """A model that puts objects first and determiners last."""
    weights: Any = {"V": {"PRE_obj_@": 40.0, "PRE_@_nsubj": 40.0, "BI_punct_EOS": 40.0, "PRE_obj_nsubj": 10.0}}
    weights["N"] = {"PRE_@_det": 40.0, "PRE_case_@": 40.0, "PRE_@_nmod": 40.0, "BI_@_det": 20.0}
    OrderModel(weights=weights).save(tmp_path / "hand.json")
    return Reorder(model=str(tmp_path / "hand.json"), **options)


def applied(transform, corpus):
    return transform.rewrite(corpus, KEY).apply(corpus).texts()


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
    assert applied(by_hand(tmp_path, **options), annotated(SVO)) == [expected]


def test_what_cannot_be_reordered_is_left_and_counted(tmp_path):
    rewrite = by_hand(tmp_path).rewrite(SENTENCES, KEY)
    assert rewrite.source_rows is None
    assert rewrite.apply(SENTENCES).texts()[1:4] == ["a b c d", "a b", "w0 w2 w1 w3 w4 w5 w6 w7 w8"]
    assert rewrite.counts == {
        "reorder: sentences left, no tree": 1,
        "reorder: sentences left, not projective": 1,
        "reorder: nodes left, more than 7 items": 1,
        "reorder: nodes reordered": 7,
    }


def test_sentences_are_dropped_and_counted(tmp_path):
    corpus = Corpus(SENTENCES.offsets, SENTENCES.columns, SENTENCES.ids + 3)
    transform = by_hand(tmp_path, policy="drop-sentence")
    rewrite = transform.rewrite(corpus, KEY)
    derived = rewrite.apply(corpus)
    assert rewrite.source_rows.tolist() == [0, 4] and derived.ids.tolist() == [3, 7]
    assert len(set(derived.texts())) == 1
    assert rewrite.counts == {
        "reorder: sentences dropped, no tree": 1,
        "reorder: sentences dropped, not projective": 1,
        "reorder: sentences dropped, a node of more than 7 items": 1,
        "reorder: nodes reordered": 6,
    }
    none = transform.model_copy(update={"strength": 0.0}).rewrite(corpus, KEY)
    assert none.source_rows is None and none.apply(corpus).texts() == corpus.texts() and not none.counts


@pytest.mark.parametrize(
    ("labels", "weights", "options", "expected"),
    [
        ("ud2", {"N": {"PRE_@_det": 40.0}}, {}, "saw cats"),  # a class without weights keeps its order
        ("ud1", {"V": {"PRE_dobj_@": 40.0}}, {"labels": "mapped"}, "cats saw"),
        ("ud1", {"V": {"PRE_dobj_@": 40.0}}, {"labels": "faithful"}, "saw cats"),
        ("ud1", {"V": {"PRE_dobj_@": 40.0}}, {"corpus_labels": "ud1"}, "saw cats"),  # obj is no v1 label
    ],
)
def test_classes_and_labels_of_the_model(tmp_path, labels, weights, options, expected):
    OrderModel(labels=labels, weights=weights).save(tmp_path / "m.json")
    transform = Reorder(model=str(tmp_path / "m.json"), choose="best", **options)
    assert applied(transform, annotated("saw/VERB/root/0 cats/NOUN/obj/1")) == [expected]


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
    places = []
    for weight in (40.0, -40.0):
        OrderModel(weights={"V": {"PRE_nsubj_@": weight}}).save(tmp_path / "m.json")
        transform = Reorder(model=str(tmp_path / "m.json"), choose="best")
        places.append(applied(transform, annotated(SVO))[0].split().index("he"))
    assert places[0] == 0 < places[1]


def test_a_shipped_model_reorders_and_has_no_inverse():
    language = parse_language({"name": "x", "transforms": [{"kind": "reorder", "model": "ga", "choose": "best"}]})
    derived = language.derive(annotated(SVO))
    assert derived.texts()[0].startswith("saw he")  # Irish: the verb first
    assert not language.invertible
    assert refused(language.invert, derived) == ("", "unsupported")


# --- words without a head

INSERTED: dict[str, Any] = {"form": "KA", "upos": "_", "deprel": "_", "head": -1}


def put_in(columns, at, new):
    """The sentence with a word at a place; heads follow their words."""
    heads = [h + 1 if h > at else h for h in columns["head"]]
    return {n: [*c[:at], new[n], *c[at:]] for n, c in {**columns, "head": heads}.items()}


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["sample", "best"]), st.sampled_from([3, 7]), st.data())
def test_the_others_get_their_order_and_inserted_words_stay_beside_their_neighbour(models, seed, choose, most, data):
    plain = random_corpus(seed, 6, 10, first=seed)
    marked, glued = [], []
    for sentence in plain:
        columns = dict(sentence.columns)
        length = len(columns["form"])
        places = sorted(data.draw(st.lists(st.integers(0, length), max_size=4)), reverse=True)
        for number, at in enumerate(places):
            columns = put_in(columns, at, {**INSERTED, "form": f"KA{len(places) - number}"})
        marked.append(columns)
        before: dict[int, list[str]] = {i: [] for i in range(length)}
        after: dict[int, list[str]] = {i: [] for i in range(length)}
        for number, at in enumerate(reversed(places), start=1):  # beside the left neighbour, at the start the right one
            (after[at - 1] if at else before[0]).append(f"KA{number}")
        glued.append((before, after))
    transform = Reorder(model=models[0][0], choose=choose, max_items=most)
    expected = transform.rewrite(plain, KEY)
    corpus = Corpus.of(marked, first=seed)
    assert Forest.of(attach_inserted(corpus)).is_projective.all()
    found = transform.rewrite(corpus, KEY)
    assert dict(found.counts) == dict(expected.counts)
    for row, (sentence, derived) in enumerate(zip(expected.apply(plain), found.apply(corpus), strict=True)):
        origin = expected.source_index[expected.offsets[row] : expected.offsets[row + 1]].tolist()
        words = [[*glued[row][0][i], w, *glued[row][1][i]] for i, w in zip(origin, sentence.words, strict=True)]
        assert derived.words == list(itertools.chain(*words))


def test_a_word_whose_head_was_left_out_keeps_what_depends_on_it(tmp_path):
    OrderModel(weights={"V": {"PRE_obj_@": 40.0}, "N": {"PRE_@_det": 40.0}}).save(tmp_path / "m.json")
    # park has lost its head; its determiner stands between it and its new one
    corpus = annotated("saw/VERB/root/0 cats/NOUN/obj/1 the/DET/det/4 park/NOUN/nmod/-1")
    transform = Reorder(model=str(tmp_path / "m.json"), choose="best")
    assert transform.rewrite(corpus, KEY).apply(corpus).texts() == ["cats park the saw"]
    start = annotated("the/DET/det/2 park/NOUN/nmod/-1 saw/VERB/root/0 cats/NOUN/obj/3")
    assert transform.rewrite(start, KEY).apply(start).texts() == ["cats park the saw"]


def test_without_a_root_there_is_no_tree(models):
    corpus = annotated("a/NOUN/obj/-1 b/VERB/x/-1", "a/NOUN/obj/2 b/VERB/x/1 ka/_/_/-1", "ka/_/_/-1")
    rewrite = Reorder(model=models[0][0]).rewrite(corpus, KEY)
    assert rewrite.counts == {"reorder: sentences left, no tree": 3}
    assert rewrite.apply(corpus).texts() == corpus.texts()


def ancestors(heads, row):
    seen = []
    while row >= 0 and row not in seen:
        seen.append(row)
        row = heads[row] - 1
    return seen


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.data())
def test_attached_words_make_a_tree_and_a_projective_one_of_a_projective_one(seed, data):
    """Cut words off their heads: whatever is cut, one tree comes of it, by the rule of the docstring."""
    whole = random_corpus(seed, 1, 10)
    heads = list(whole[0].columns["head"])
    cut = [i for i, h in enumerate(heads) if h != 0 and data.draw(st.booleans())]
    corpus = Corpus.of([{**whole[0].columns, "head": [-1 if i in cut else h for i, h in enumerate(heads)]}])
    kept = corpus[0].columns["head"]
    fixed = attach_inserted(corpus)[0].columns["head"]
    blocks = {i: [j for j in range(len(kept)) if i in ancestors(kept, j)] for i in range(len(kept))}
    root = next((i for i, h in enumerate(kept) if h == 0))
    for i, head in enumerate(kept):
        left = [j for j in range(min(blocks[i])) if kept[j] >= 0]
        right = [j for j in range(i + 1, len(kept)) if root in ancestors(kept, j)]
        expected = head if head >= 0 else 1 + (left[-1] if left else right[0])
        assert fixed[i] == expected
    assert Forest.of(attach_inserted(corpus)).is_tree.all()
