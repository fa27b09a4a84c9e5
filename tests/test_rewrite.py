"""Corpus and Rewrite: labels follow origin, for every composition, against a loop over words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.corpus import Column, Corpus, concatenate
from synthlang.rewrite import INSERTED, Rewrite

UPOS = ["NOUN", "VERB", "ADP"]
NER = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@st.composite
def sentences(draw, max_words=7):
    """A labelled sentence with a random tree (heads form a single-rooted tree)."""
    n = draw(st.integers(1, max_words))
    order = draw(st.permutations(range(n)))
    heads = [0] * n
    for i, node in enumerate(order[1:], start=1):
        heads[node] = order[draw(st.integers(0, i - 1))] + 1
    return {
        "form": draw(st.lists(st.sampled_from(["a", "b", "c", ".", "!"]), min_size=n, max_size=n)),
        "upos": draw(st.lists(st.sampled_from(UPOS), min_size=n, max_size=n)),
        "head": heads,
        "ner": draw(st.lists(st.sampled_from(NER), min_size=n, max_size=n)),
    }


@st.composite
def corpora(draw):
    return Corpus.of(draw(st.lists(sentences(), min_size=1, max_size=5)), first=draw(st.integers(0, 1000)))


@st.composite
def rewrites(draw, corpus):
    """A random rewrite: words dropped, moved, repeated never, inserted sometimes."""
    origins, lengths = [], []
    for length in corpus.lengths.tolist():
        kept = [i for i in draw(st.permutations(range(length))) if draw(st.booleans())]
        for place in draw(st.lists(st.integers(0, len(kept)), max_size=2)):
            kept.insert(place, INSERTED)
        origins += kept
        lengths.append(len(kept))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Rewrite(offsets, np.asarray(origins, np.int32), Column.of([f"w{i}" for i in range(len(origins))]))


@given(st.data())
def test_apply_equals_a_loop_over_words(data):
    corpus = data.draw(corpora())
    rewrite = data.draw(rewrites(corpus))
    result = rewrite.apply(corpus)
    for row, (before, after) in enumerate(zip(corpus, result, strict=True)):
        origin = rewrite.source_index[rewrite.offsets[row] : rewrite.offsets[row + 1]].tolist()
        heads = before.columns["head"]
        for j, source in enumerate(origin):
            if source == INSERTED:
                assert after.columns["upos"][j] == "_"
                assert after.columns["head"][j] == -1
                assert after.columns["ner"][j] == "O"
                continue
            assert after.columns["upos"][j] == before.columns["upos"][source]
            assert after.columns["ner"][j][1:] == before.columns["ner"][source][1:]
            head = heads[source]
            expected = 0 if head == 0 else origin.index(head - 1) + 1 if head - 1 in origin else -1
            assert after.columns["head"][j] == expected


@given(st.data())
def test_composition_is_application_twice(data):
    corpus = data.draw(corpora())
    first = data.draw(rewrites(corpus))
    middle = first.apply(corpus)
    second = data.draw(rewrites(middle))
    once, twice = first.then(second).apply(corpus), second.apply(middle)
    assert [s.columns["upos"] for s in once] == [s.columns["upos"] for s in twice]
    assert [s.words for s in once] == [s.words for s in twice]
    composed = first.then(second)
    for row in range(len(corpus)):
        a = first.source_index[first.offsets[row] : first.offsets[row + 1]]
        b = second.source_index[second.offsets[row] : second.offsets[row + 1]]
        expected = [INSERTED if j == INSERTED else int(a[j]) for j in b]
        assert composed.source_index[composed.offsets[row] : composed.offsets[row + 1]].tolist() == expected


@pytest.mark.parametrize(
    ("tags", "order", "expected"),
    [
        (["B-PER", "I-PER", "O"], [2, 1, 0], ["O", "B-PER", "I-PER"]),
        (["B-PER", "I-PER", "O"], [1, 2, 0], ["B-PER", "O", "B-PER"]),  # torn apart: two entities
        (["B-PER", "B-PER", "O"], [1, 0, 2], ["B-PER", "B-PER", "O"]),  # neighbours stay two
        (["I-LOC", "I-PER", "I-PER"], [2, 1, 0], ["B-PER", "I-PER", "B-LOC"]),  # IOB1 is repaired
        (["B-LOC", "I-LOC", "B-LOC"], [2, 0, 1], ["B-LOC", "B-LOC", "I-LOC"]),
    ],
)
def test_bio_stays_legal(tags, order, expected):
    corpus = Corpus.of([{"form": ["x", "y", "z"], "ner": tags}])
    assert Rewrite.reorder(corpus, np.asarray(order)).apply(corpus)[0].columns["ner"] == expected


@given(st.lists(corpora(), min_size=1, max_size=4), st.integers(0, 8), st.integers(0, 8))
def test_joining_and_slicing_keep_sentences(parts, start, stop):
    joined = concatenate(parts)
    everything = [s for part in parts for s in part]
    assert list(joined) == everything
    assert list(joined.between(start, stop)) == everything[start:stop]


def pieces(tags_before, origin):
    """For each mention the number of pieces it came to, by a loop."""
    spans, current = [], None
    for i, tag in enumerate(tags_before):
        if tag == "O":
            current = None
        elif tag[0] == "B" or current is None or tags_before[i - 1][2:] != tag[2:]:
            current = {i}
            spans.append(current)
        else:
            current.add(i)
    result = []
    for span in spans:
        inside = [o in span for o in origin]
        result.append(sum(now and not before for before, now in zip([False, *inside], inside, strict=False)))
    return result


@given(st.data())
def test_dropped_sentences_and_torn_mentions_equal_a_loop(data):
    corpus = data.draw(corpora())
    first = data.draw(rewrites(corpus))
    rows = np.asarray([i for i in data.draw(st.permutations(range(len(corpus)))) if data.draw(st.booleans())], np.int64)
    whole, part = first.apply(corpus), first.take(rows)
    result = part.apply(corpus)
    assert [s.columns for s in result] == [whole[i].columns for i in rows]
    assert result.ids.tolist() == corpus.ids[rows].tolist()
    assert [s.columns for s in part.source(corpus)] == [corpus[i].columns for i in rows]
    torn = []
    for i, before in zip(range(len(part)), part.source(corpus), strict=True):
        origin = part.source_index[part.offsets[i] : part.offsets[i + 1]].tolist()
        torn.append(sum(n > 1 for n in pieces(before.columns["ner"], origin)))
    assert part.split_mentions(corpus, "ner").tolist() == torn
    # a second rewrite of what is left, which drops sentences too
    second = data.draw(rewrites(result))
    again = np.arange(len(result))[::-2].astype(np.int64)
    composed, one_by_one = part.then(second.take(again)).apply(corpus), second.take(again).apply(result)
    for name in ("form", "upos"):  # tags of spans differ where a mention is torn apart and joined again
        assert [s.columns[name] for s in composed] == [s.columns[name] for s in one_by_one]
    assert composed.ids.tolist() == one_by_one.ids.tolist()


def test_counts_add_up():
    corpus = Corpus.of_words([["a"], ["b"]])
    one = Rewrite.identity(corpus)
    first = Rewrite(one.offsets, one.source_index, one.form, None, {"x": 1, "y": 2})
    second = Rewrite(one.offsets, one.source_index, one.form, None, {"y": 3})
    assert first.then(second).counts == {"x": 1, "y": 5}
