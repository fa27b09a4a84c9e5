"""Reordering sentences with words that have no head: inserted ones, and those whose head was left out."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.language import parse_language
from synthlang.order.model import OrderModel
from synthlang.transforms.layout import attach_inserted
from synthlang.transforms.reorder import Reorder
from synthlang.trees import Forest
from tests.annotated import annotated
from tests.order_cases import random_corpus, random_model

KEY = 99
INSERTED: dict[str, Any] = {"form": "KA", "upos": "_", "deprel": "_", "head": -1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.json.gz"
    random_model(4).save(path)
    return str(path)


def put_in(columns, at, new):
    """The sentence with a word at a place; heads follow their words."""
    heads = [h + 1 if h > at else h for h in columns["head"]]
    return {n: [*c[:at], new[n], *c[at:]] for n, c in {**columns, "head": heads}.items()}


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["sample", "best"]), st.sampled_from([3, 7]), st.data())
def test_the_others_get_their_order_and_inserted_words_stay_beside_their_neighbour(model, seed, choose, most, data):
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
    transform = Reorder(model=model, choose=choose, max_items=most)
    expected = transform.rewrite(plain, KEY)
    corpus = Corpus.of(marked, first=seed)
    found = transform.rewrite(corpus, KEY)
    assert dict(found.counts) == dict(expected.counts)
    for row, (sentence, derived) in enumerate(zip(expected.apply(plain), found.apply(corpus), strict=True)):
        origin = expected.origin[expected.offsets[row] : expected.offsets[row + 1]].tolist()
        words = [[*glued[row][0][i], w, *glued[row][1][i]] for i, w in zip(origin, sentence.words, strict=True)]
        assert derived.words == list(itertools.chain(*words))


@pytest.mark.parametrize("policy", ["skip-node", "drop-sentence"])
def test_inserted_words_do_not_count(tmp_path, policy):
    OrderModel(weights={"V": {"PRE_obj_@": 40.0}}).save(tmp_path / "m.json")
    corpus = annotated("a/VERB/root/0 ka/_/_/-1 b/NOUN/obj/1 ka/_/_/-1 ka/_/_/-1 c/NOUN/obj/1")
    transform = Reorder(model=str(tmp_path / "m.json"), max_items=3, policy=policy, choose="best")
    rewrite = transform.rewrite(corpus, KEY)
    assert rewrite.counts == {"reorder: nodes reordered": 1}
    assert rewrite.apply(corpus).texts() == ["b ka ka c a ka"]


def runs(words, particles):
    """{word: the particles right after it}."""
    result: dict[str, list[str]] = {}
    word = ""
    for w in words:
        word = word if w in particles else w
        result.setdefault(word, []).extend([w] if w in particles else [])
    return result


def test_mark_then_reorder_is_reorder_with_the_markers(model):
    spec: list[dict[str, Any]] = [{"kind": "mark", "case": {"obj": "KA", "nsubj": "GA"}, "as_words": True}]
    spec[0]["after_verb"] = {"word": "LE", "distance": 1}
    corpus = random_corpus(5, 200, 9)
    marked = parse_language({"name": "x", "transforms": spec}).derive(corpus)
    transform = Reorder(model=model)
    both, alone = (transform.rewrite(c, KEY).apply(c) for c in (marked, corpus))
    particles = ("KA", "GA", "LE")
    count = sum(w in particles for sentence in both for w in sentence.words)
    assert count == sum(w in particles for sentence in marked for w in sentence.words) > 200
    moved = 0
    for found, expected, before in zip(both, alone, marked, strict=True):
        assert [w for w in found.words if w not in particles] == expected.words
        moved += found.words != before.words
        assert runs(found.words, particles) == runs(before.words, particles)
    assert moved > 100


def test_a_word_whose_head_was_left_out_keeps_what_depends_on_it(tmp_path):
    OrderModel(weights={"V": {"PRE_obj_@": 40.0}, "N": {"PRE_@_det": 40.0}}).save(tmp_path / "m.json")
    # park has lost its head; its determiner stands between it and its new one
    corpus = annotated("saw/VERB/root/0 cats/NOUN/obj/1 the/DET/det/4 park/NOUN/nmod/-1")
    transform = Reorder(model=str(tmp_path / "m.json"), choose="best")
    assert transform.rewrite(corpus, KEY).apply(corpus).texts() == ["cats park the saw"]
    start = annotated("the/DET/det/2 park/NOUN/nmod/-1 saw/VERB/root/0 cats/NOUN/obj/3")
    assert transform.rewrite(start, KEY).apply(start).texts() == ["cats park the saw"]


def test_without_a_root_there_is_no_tree(model):
    corpus = annotated("a/NOUN/obj/-1 b/VERB/x/-1", "a/NOUN/obj/2 b/VERB/x/1 ka/_/_/-1", "ka/_/_/-1")
    rewrite = Reorder(model=model).rewrite(corpus, KEY)
    assert rewrite.counts == {"reorder: sentences left, no tree": 3}
    assert rewrite.apply(corpus).texts() == corpus.texts()


def ancestors(heads, row):
    seen = []
    while row >= 0 and row not in seen:
        seen.append(row)
        row = heads[row] - 1
    return seen


@settings(max_examples=150)
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


def test_scrambled_heads_never_crash(model):
    rng = np.random.default_rng(0)
    for n in range(1, 12):
        rows: Any = {"form": list("abcdefghijkl")[:n], "upos": ["NOUN"] * n, "deprel": ["x"] * n}
        corpus = Corpus.of([{**rows, "head": rng.integers(-1, n + 1, n).tolist()} for _ in range(50)])
        rewrite = Reorder(model=model).rewrite(corpus, KEY)
        for row in range(50):
            origin = rewrite.origin[rewrite.offsets[row] : rewrite.offsets[row + 1]]
            assert sorted(origin.tolist()) == list(range(n))
