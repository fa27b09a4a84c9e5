"""Transforms of every kind in any order: labels, trees and counts stay right, the same in every batch."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Column, Corpus
from synthlang.language import bind_language, parse_language
from synthlang.sources import open_source
from synthlang.trees import Forest

STEPS: list[dict[str, Any]] = [
    {"kind": "transliterate", "strength": 0.6},
    {"kind": "transliterate", "strength": 0.5, "by": "token", "order": "frequent", "script": "hangul"},
    {"kind": "invert", "chunk": 4},
    {"kind": "permute", "window": 3, "strength": 0.5},
    {"kind": "typology", "order": "VOS", "adposition": "postposition", "article": "after"},
    {"kind": "typology", "head_direction": "final", "strength": 0.7},
    {"kind": "mark", "case": {"nsubj": "ka", "obj": "o"}, "as_words": True},
    {"kind": "mark", "agreement": {"NOUN": "t"}, "after_verb": {"word": "P"}, "separator": "~"},
    {"kind": "mark", "drop": ["articles"], "case": {"obl": "ni"}},
    {"kind": "code_switch", "batch_sentences": 50, "coverage": 0.5},
    {"kind": "reorder", "model": "fr"},
]
ORDERS = st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=5, unique=True).filter(
    lambda order: not {0, 1} <= set(order)  # a language is transliterated at most once
)


@pytest.fixture(scope="module")
def source():
    return open_source("builtin:mini-english?types=500&sentences=200&dev=0&test=0")


@pytest.fixture(scope="module")
def batch(source):
    corpus = next(source.batches("train"))
    numbers = np.arange(len(corpus.form.codes), dtype=np.int32)
    return Corpus(corpus.offsets, {**corpus.columns, "number": Column(numbers)}, corpus.ids)


@settings(max_examples=60)
@given(ORDERS, st.integers(0, 3))
def test_labels_and_trees_follow_their_words(source, batch, order, seed):
    steps = [STEPS[i] for i in order]
    language = bind_language(parse_language({"name": "x", "seed": seed, "transforms": steps}), source)
    rewrite = language.rewrite(batch)
    derived = rewrite.apply(batch)
    assert "parent" not in derived.columns and rewrite.kept is None
    number = derived.columns["number"].codes
    inserted = number == -1
    assert (inserted == (rewrite.origin == -1)).all()
    parent_of = rewrite.origin + np.repeat(batch.offsets[:-1], derived.lengths)
    assert (number[~inserted] == parent_of[~inserted]).all()
    assert len(set(number[~inserted].tolist())) == (~inserted).sum()  # no word twice
    for name in ("upos", "deprel"):
        values, before = derived.columns[name].values(), batch.columns[name].values()
        assert all(v == ("_" if n < 0 else before[n]) for v, n in zip(values, number.tolist(), strict=True))
    # the head of every word that is left is the same word as before
    head, old = derived.columns["head"].codes, batch.columns["head"].codes
    rows = np.repeat(derived.offsets[:-1], derived.lengths) + head - 1
    old_rows = np.repeat(batch.offsets[:-1], batch.lengths) + old - 1
    assert (head[inserted] == -1).all() and (head[~inserted] >= 0).all()
    hanging = head > 0
    assert (number[rows[hanging]] == old_rows[number[hanging]]).all()
    assert ((head == 0)[~inserted] == (old[number[~inserted]] == 0)).all()
    # 50 divides 100, so a batch may be cut there
    parts = [s.words for i in (0, 100) for s in language.derive(batch.between(i, i + 100))]
    assert [s.words for s in derived] == parts
    if language.invertible:
        assert language.invert(derived).texts() == batch.texts()


PAIRS = [pair for pair in itertools.permutations(range(len(STEPS)), 2) if set(pair) != {0, 1}]


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_in_both_orders(source, batch, pair):
    steps = [STEPS[i] for i in pair]
    both = bind_language(parse_language({"name": "x", "transforms": steps}), source)
    part = batch.between(0, 50)
    first = bind_language(parse_language({"name": "x", "transforms": steps[:1]}), source)
    assert both.derive(part).texts() != part.texts()
    # the second one does something after the first, whatever that is; but a code switch has nothing to put in where no
    # word is transliterated, and the order model knows nothing of sentences with words that are in no tree
    idle = steps[1]["kind"] == "code_switch" and steps[0]["kind"] != "transliterate"
    if not idle and not (steps[1]["kind"] == "reorder" and "as_words" in steps[0]):
        assert both.derive(part).texts() != first.derive(part).texts()


def test_typology_moves_sentences_that_have_inserted_words(batch):
    """Words that ``mark`` inserted have no head, yet the sentence is still a tree to the next transform."""
    steps = [STEPS[6], {"kind": "typology", "order": "VSO"}]
    rewrite = parse_language({"name": "x", "transforms": steps}).rewrite(batch)
    assert rewrite.counts["typology: sentences laid out"] == len(batch)
    assert Forest.of(batch).is_projective.all()
    alone = parse_language({"name": "x", "transforms": steps[1:]}).rewrite(batch)
    assert rewrite.origin[rewrite.origin >= 0].tolist() == alone.origin.tolist()
