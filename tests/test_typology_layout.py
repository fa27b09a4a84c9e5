"""The layout of trees against a loop over the nodes of each sentence, written from the documented rule."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.transforms.layout import AFTER, BEFORE, Layout, attach_inserted, layout_forest
from synthlang.transforms.relations import base
from synthlang.trees import Forest
from tests.annotated import annotated

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


@settings(max_examples=200)
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


@given(projective(), st.data())
def test_inserted_words_keep_a_tree_projective(sentence, data):
    corpus = annotated(sentence)
    columns = dict(corpus[0].columns)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(columns["form"])))
        new = {"form": "ka", "upos": "_", "deprel": "_", "head": -1}
        heads = [h + 1 if h > at else h for h in columns["head"]]
        columns = {n: [*c[:at], new[n], *c[at:]] for n, c in {**columns, "head": heads}.items()}
    fixed = attach_inserted(Corpus.of([columns]))
    assert Forest.of(fixed).is_projective.all()
