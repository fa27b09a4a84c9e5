"""Typology: each value by hand, specs, composition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.language import parse_language
from synthlang.sources import open_source
from synthlang.tasks.derive import partial_rewrite
from synthlang.transforms.layout import AFTER, BEFORE, Layout, base, layout_forest
from synthlang.trees import Forest
from tests.annotated import annotated

HOUSES = (
    "the/DET/det/2 man/NOUN/nsubj/3 saw/VERB/root/0 two/NUM/nummod/6 big/ADJ/amod/6 houses/NOUN/obj/3 in/ADP/case/8 "
    "Paris/PROPN/nmod/6 ./PUNCT/punct/3"
)
OLD = "he/PRON/nsubjpass/3 was/AUX/auxpass/3 seen/VERB/root/0 in/ADP/case/5 Paris/PROPN/nmod/3 ./PUNCT/punct/3"
WILL = "she/PRON/nsubj/4 will/AUX/aux/4 have/AUX/aux/4 slept/VERB/root/0 ./PUNCT/punct/4"
OFTEN = "now/ADV/advmod/4 he/PRON/nsubj/4 often/ADV/advmod/4 saw/VERB/root/0 her/PRON/obj/4 ./PUNCT/punct/4"
SAID = "he/PRON/nsubj/2 said/VERB/root/0 that/SCONJ/mark/5 she/PRON/nsubj/5 slept/VERB/ccomp/2 ./PUNCT/punct/5"
WHO = "the/DET/det/2 man/NOUN/nsubj/5 who/PRON/nsubj/4 slept/VERB/acl:relcl/2 ran/VERB/root/0"
HIS = "his/PRON/nmod:poss/4 old/ADJ/amod/4 This/DET/det/4 cat/NOUN/nsubj/5 ran/VERB/root/0 !/PUNCT/punct/5"
TALL = "he/PRON/nsubj/3 is/AUX/cop/3 tall/ADJ/root/0 ./PUNCT/punct/3"
BOTH = "he/PRON/nsubj/2 slept/VERB/root/0 in/ADP/case/4 houses/NOUN/obl/2 and/CCONJ/cc/6 gardens/NOUN/conj/4"
EACH = (
    "he/PRON/nsubj/2 slept/VERB/root/0 in/ADP/case/4 houses/NOUN/obl/2 and/CCONJ/cc/7 in/ADP/case/7 "
    "gardens/NOUN/conj/4 )/PUNCT/punct/4 ./PUNCT/punct/4"
)
NOT_PROJECTIVE = "a/DET/det/3 b/NOUN/root/0 c/NOUN/nsubj/2 d/ADP/case/1"
NO_TREE = "a/NOUN/root/0 b/NOUN/root/0 c/ADP/case/2"

CASES = [
    ({"order": "SOV"}, HOUSES, "the man two big houses in Paris saw ."),
    ({"order": "VOS"}, HOUSES, "saw two big houses in Paris the man ."),
    ({"order": "SOV"}, OFTEN, "now he often her saw ."),
    ({"order": "VSO"}, TALL, "is tall he ."),
    ({"order": "VSO"}, OLD, "was seen he in Paris ."),  # labels of version 1
    ({"adposition": "postposition"}, HOUSES, "the man saw two big houses Paris in ."),
    ({"adposition": "postposition"}, BOTH, "he slept houses and gardens in"),
    ({"adposition": "postposition"}, EACH, "he slept houses in and gardens in ) ."),
    ({"genitive": "before"}, HOUSES, "the man saw in Paris two big houses ."),
    ({"genitive": "after"}, HIS, "old This cat his ran !"),
    ({"adjective": "after"}, HOUSES, "the man saw two houses big in Paris ."),
    ({"numeral": "after"}, HOUSES, "the man saw big houses two in Paris ."),
    ({"numeral": "after", "adjective": "after"}, HOUSES, "the man saw houses big two in Paris ."),
    ({"demonstrative": "after"}, HIS, "his old cat This ran !"),
    ({"demonstrative": "after", "demonstratives": ["the"]}, HOUSES, "man the saw two big houses in Paris ."),
    ({"article": "after"}, HOUSES, "man the saw two big houses in Paris ."),
    ({"relative_clause": "before"}, WHO, "who slept the man ran"),
    ({"subordinator": "after"}, SAID, "he said she slept that ."),
    ({"auxiliary": "after"}, WILL, "she slept have will ."),
    ({"auxiliary": "after"}, OLD, "he seen was in Paris ."),
    ({"copula": "after"}, TALL, "he tall is ."),
    ({"oblique": "before"}, BOTH, "in houses and gardens he slept"),
    ({"oblique": "before"}, OLD, "in Paris he was seen ."),
    ({"head_direction": "final"}, HOUSES, "the man in Paris two big houses saw ."),
    ({"head_direction": "final"}, SAID, "that she slept he said ."),  # the mark stays, though it hangs on "slept"
    ({"head_direction": "final", "adposition": "postposition"}, HOUSES, "the man Paris in two big houses saw ."),
    ({"head_direction": "initial"}, HOUSES, "saw houses big two Paris in man the ."),
    ({"head_direction": "initial", "order": "SVO"}, HOUSES, "man the saw houses big two Paris in ."),
    (
        {"adjective": "before", "numeral": "before", "article": "before"},
        HOUSES,
        "the man saw two big houses in Paris .",
    ),
    ({"adjective": "before", "demonstrative": "before", "genitive": "before"}, HIS, "his old This cat ran !"),
    ({"auxiliary": "before"}, WILL, "she will have slept ."),
    ({"copula": "before"}, TALL, "he is tall ."),
    ({"oblique": "after", "adposition": "preposition"}, BOTH, "he slept in houses and gardens"),
    ({"subordinator": "before"}, SAID, "he said that she slept ."),
    ({"relative_clause": "after"}, WHO, "the man who slept ran"),
    ({"order": "SOV", "strength": 0.0}, HOUSES, "the man saw two big houses in Paris ."),
    ({"adposition": "preposition"}, NOT_PROJECTIVE, "a b c d"),
    ({"adposition": "preposition"}, NO_TREE, "a b c"),
]


def typology(**options):
    return parse_language({"name": "x", "transforms": [{"kind": "typology", **options}]})


@pytest.mark.parametrize(("options", "sentence", "expected"), CASES, ids=lambda v: str(v)[:30])
def test_cases(options, sentence, expected):
    corpus = annotated(sentence)
    language = typology(**options)
    rewrite = language.rewrite(corpus)
    assert rewrite.apply(corpus).texts() == [expected]
    assert [corpus[0].words[i] for i in rewrite.source_index.tolist()] == expected.split()


def test_counts_by_reason_and_sentences_that_stay():
    corpus = annotated(HOUSES, NOT_PROJECTIVE, NO_TREE)
    assert dict(typology(order="SOV").rewrite(corpus).counts) == {
        "typology: sentences laid out": 1,
        "typology: sentences left, not projective": 1,
        "typology: sentences left, no tree": 1,
    }
    assert not typology(order="SOV", strength=0.0).rewrite(corpus).counts


def test_final_punctuation_is_attached_anew_where_its_head_moved_away():
    """The mark stays at the end and its head does not: on the root the tree is projective, and reorder takes it."""
    corpus = annotated(SAID, HIS)
    laid = typology(head_direction="final").derive(corpus)
    assert laid.texts() == ["that she slept he said .", "his old This cat ran !"]
    assert [laid[0].columns["head"][5], laid[1].columns["head"][5]] == [5, 5]
    assert Forest.of(laid).is_projective.all()
    both = [{"kind": "typology", "head_direction": "final"}, {"kind": "reorder", "model": "fr"}, {"kind": "invert"}]
    rewrite = parse_language({"name": "x", "transforms": both}).rewrite(corpus)
    assert not any("not projective" in reason for reason in rewrite.counts)
    turned = rewrite.apply(corpus)
    assert Forest.of(turned).is_tree.all()
    assert turned[0].words[turned[0].columns["head"][5] - 1] == "said"  # carried along by what comes after
    mixed = partial_rewrite(typology(head_direction="final"), corpus, np.asarray([True, False])).apply(corpus)
    assert mixed[0].columns["head"] == laid[0].columns["head"] and mixed[1].columns == corpus[1].columns


def test_it_reads_the_parents_words_and_moves_inserted_ones():
    """After a transliteration articles are still articles; a particle moves with the word it was put to."""
    steps = [{"kind": "transliterate"}, {"kind": "mark", "case": {"obj": "o"}, "as_words": True}]
    after = {"kind": "typology", "article": "after", "order": "SOV"}
    language = parse_language({"name": "x", "transforms": [*steps, after]})
    assert language.derive(annotated(HOUSES)).texts() == ["ман тхе тшо биг хоусес o ин Парис саш Ѣ"]


LABELS = ["nsubj", "obj", "case", "mark", "amod", "det", "nmod", "punct", "conj", "cc", "flat", "acl:relcl", "weird"]


@st.composite
def projective(draw, max_words=9):
    """A random projective tree with random labels."""
    n = draw(st.integers(1, max_words))
    heads = [0] * n

    def grow(rows, head):
        if rows:
            root = draw(st.sampled_from(rows))
            heads[root] = head
            for side in (rows[: rows.index(root)], rows[rows.index(root) + 1 :]):
                rest = side
                while rest:  # some consecutive subtrees
                    size = draw(st.integers(1, len(rest)))
                    grow(rest[:size], root + 1)
                    rest = rest[size:]

    grow(list(range(n)), 0)
    labels = [draw(st.sampled_from(LABELS)) for _ in range(n)]
    tags = ["PUNCT" if label == "punct" else draw(st.sampled_from(["NOUN", "VERB"])) for label in labels]
    return " ".join(f"w{i}/{u}/{d}/{h}" for i, (u, d, h) in enumerate(zip(tags, labels, heads, strict=True)))


def reference(corpus, heads, sides):
    """The documented rule, node by node. ``heads`` after the final punctuation was put on the root."""
    words = corpus[0]
    labels, tags, n = words.columns["deprel"], words.columns["upos"], len(words.words)
    trailing = {i for i in range(n) if all(tag == "PUNCT" for tag in tags[i:])}
    kids = {h: [i for i in range(n) if heads[i] == h + 1] for h in range(n)}
    levels = {"flat": 0, "amod": 1, "obj": 2, "nsubj": 3, "det": 3, "acl": 5, "conj": 8, "cc": 8}

    def lay_out(h):
        old = {
            BEFORE: [i for i in reversed(kids[h]) if i < h],  # from the head outwards
            AFTER: [i for i in kids[h] if i > h],
        }
        place = {i: p for side in old.values() for p, i in enumerate(side, start=1)}
        level: dict[int, int] = {}
        for outwards in old.values():
            for p, i in enumerate(outwards, start=1):
                rest = outwards[p:]
                if labels[i] == "punct":
                    level[i] = 10 if all(labels[j] == "punct" for j in rest) else 0
                elif labels[i] in ("case", "mark"):
                    conjuncts = [j for j in kids[h] if labels[j] in ("conj", "cc")]
                    level[i] = 7 if any(labels[k] == labels[i] for j in conjuncts for k in kids[j]) else 9
                else:
                    level[i] = levels.get(base(labels[i]), 4)
        result = {}
        for side in (BEFORE, AFTER):
            staying = [i for i in kids[h] if sides[i] == side and (i in old[side])]
            key = {i: float(place[i]) for i in staying}
            going = sorted((i for i in kids[h] if sides[i] == side and i not in old[side]), key=level.__getitem__)
            for value, group in itertools.groupby(going, key=level.__getitem__):
                lower = max((key[i] for i in key if level[i] < value), default=0.0)
                upper = min((key[i] for i in staying if level[i] > value), default=np.inf)
                for i in list(group):
                    key[i] = min(max(place[i] - 0.25, lower + 0.05), upper - 0.5) + value / 1000 + place[i] / 10**7
            result[side] = sorted(key, key=lambda i: (key[i], -i if side == BEFORE else i))
        if heads[h] == 0:
            last = sorted(i for i in kids[h] if i in trailing and labels[i] == "punct" and i > h)
            result[AFTER] = [i for i in result[AFTER] if i not in last] + last
            result[BEFORE] = [i for i in result[BEFORE] if i not in last]
        before = [w for i in reversed(result[BEFORE]) for w in lay_out(i)]
        return [*before, h, *(w for i in result[AFTER] for w in lay_out(i))]

    return lay_out(heads.index(0))


@settings(max_examples=100)
@given(projective(), st.data())
def test_the_layout_is_the_documented_rule(sentence, data):
    corpus = annotated(sentence)
    forest = layout_forest(corpus)
    layout = Layout(corpus, forest)
    sides = np.asarray([data.draw(st.sampled_from([BEFORE, AFTER])) for _ in layout.items], np.int64)
    final = layout.is_final & (forest.parent[layout.head] < 0)
    sides[final] = AFTER
    index = layout.order(layout.keys(sides), sides)
    heads = [int(p) + 1 for p in forest.parent]
    by_row = dict(zip(layout.items.tolist(), sides.tolist(), strict=True))
    assert index.tolist() == reference(corpus, heads, by_row)


@given(projective())
def test_nothing_moves_without_a_change_of_sides(sentence):
    corpus = annotated(sentence)
    layout = Layout(corpus, layout_forest(corpus))
    index = layout.order(layout.keys(layout.side), layout.side)
    assert index.tolist() == list(range(len(index)))


@pytest.fixture(scope="module")
def batch():
    return next(open_source("builtin:mini-english?types=500&sentences=1000&dev=0&test=0").batches("train"))


def moved(batch, **options):
    """(derived words as rows of the batch, place of each row, flags of words in sentences laid out)."""
    rewrite = typology(**options).rewrite(batch)
    rows = rewrite.source_index + np.repeat(batch.offsets[:-1], batch.lengths)
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    return place, layout_forest(batch).is_projective[batch.sentence_of_word]


def test_projective_trees_stay_projective(batch):
    ready = Forest.of(batch).is_projective
    for options in ({"order": "SOV"}, {"head_direction": "final"}, {"head_direction": "initial"}):
        assert Forest.of(typology(**options).derive(batch)).is_projective[ready].all()


@pytest.mark.parametrize("order", ["SOV", "SVO", "VSO", "VOS", "OVS", "OSV"])
def test_every_clause_has_the_order(batch, order):
    place, ready = moved(batch, order=order)
    parent = Forest.of(batch).parent
    letters = {"nsubj": "S", "csubj": "S", "obj": "O", "iobj": "O"}
    clauses: dict[int, list[tuple[int, str]]] = {}
    for row, label in enumerate(batch.columns["deprel"].values()):
        if base(label) in letters and parent[row] >= 0 and ready[row]:
            clauses.setdefault(int(parent[row]), []).append((int(place[row]), letters[base(label)]))
    full = 0
    for verb, items in clauses.items():
        found = "".join(letter for _, letter in sorted([*items, (int(place[verb]), "V")]))
        shown = "".join(letter for letter, _ in itertools.groupby(found))
        assert shown == "".join(letter for letter in order if letter in found)
        full += len(shown) == 3
    assert full > 100
