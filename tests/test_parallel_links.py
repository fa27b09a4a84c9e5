"""Word alignments: links, Pharaoh files, symmetrisation against brute force, parallel text, gold links."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.language import PARENT, bind_language, parse_language
from synthlang.parallel.aligners import METHODS, symmetrise
from synthlang.parallel.links import Links, concatenate_links, read_pharaoh, write_pharaoh
from synthlang.parallel.pairs import gold_links
from synthlang.parallel.text import read_joint, read_parallel
from synthlang.rewrite import Rewrite
from synthlang.sources import open_source
from tests.refusals import refused

POINTS = st.lists(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12), min_size=1, max_size=4)


def pairs_of(links):
    return [set(links.of_pair(i)) for i in range(len(links))]


@given(POINTS)
def test_links_hold_what_they_are_given(sets):
    links = Links.of(sets)
    assert pairs_of(links) == sets
    assert [links.of_pair(i) for i in range(len(links))] == [sorted(s) for s in sets]
    rows = np.asarray([len(sets) - 1, 0], np.int64)
    assert pairs_of(links.take(rows)) == [sets[-1], sets[0]]
    assert pairs_of(concatenate_links([links, links])) == sets * 2


@given(POINTS)
def test_one_to_one_is_what_counting_says(sets):
    for found, points in zip(pairs_of(Links.of(sets).one_to_one()), sets, strict=True):
        left, right = [a for a, _ in points], [b for _, b in points]
        assert found == {(a, b) for a, b in points if left.count(a) == 1 == right.count(b)}


@given(POINTS)
def test_links_outside_are_dropped_and_counted(sets):
    left, right = np.full(len(sets), 3), np.full(len(sets), 4)
    kept, dropped = Links.of(sets).within(left, right)
    inside = [{(a, b) for a, b in s if a < 3 and b < 4} for s in sets]
    assert pairs_of(kept) == inside
    assert dropped == sum(map(len, sets)) - sum(map(len, inside))


def plain_symmetrisation(forward, reverse, method):
    """Symmetrise by matrices and full scans, as the heuristics are usually printed."""
    size = 6
    matrix = np.zeros((size, size), bool)
    union = forward | reverse
    for a, b in union if method == "union" else forward & reverse:
        matrix[a, b] = True
    if method in ("union", "intersection"):
        return {(int(a), int(b)) for a, b in np.argwhere(matrix)}
    added = True
    while added:
        added = False
        for a in range(size):
            for b in range(size):
                if not matrix[a, b]:
                    continue
                for da, db in [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]:
                    p, q = a + da, b + db
                    if (p, q) in union and not matrix[p, q] and not (matrix[p].any() and matrix[:, q].any()):
                        matrix[p, q] = added = True
    for links in (forward, reverse) if method != "grow-diag" else ():
        for a in range(size):
            for b in range(size):
                free = [not matrix[a].any(), not matrix[:, b].any()]
                if (a, b) in links and (all(free) if method == "grow-diag-final-and" else any(free)):
                    matrix[a, b] = True
    return {(int(a), int(b)) for a, b in np.argwhere(matrix)}


def test_symmetrisation_equals_full_scans():
    generator = random.Random(0)
    every = [(a, b) for a in range(6) for b in range(6)]
    cases = [(set(generator.sample(every, 9)), set(generator.sample(every, 9))) for _ in range(600)]
    forward, reverse = (Links.of([case[i] for case in cases]) for i in (0, 1))
    found = {method: pairs_of(symmetrise(forward, reverse, method)) for method in METHODS}
    for method in METHODS:
        assert found[method] == [plain_symmetrisation(a, b, method) for a, b in cases], method
    sizes = {method: sum(map(len, found[method])) for method in METHODS}
    assert len(set(sizes.values())) == len(METHODS)  # the cases tell them apart
    assert sizes["intersection"] < sizes["grow-diag"] < sizes["grow-diag-final-and"] < sizes["grow-diag-final"]
    assert sizes["grow-diag-final"] < sizes["union"]


@pytest.mark.parametrize("first", [0, 1])
def test_pharaoh_files(tmp_path, first):
    path = tmp_path / "links.txt"
    path.write_text("2-3 1p1 1-1\n\n3p2\n", encoding="utf-8")
    links = read_pharaoh(path, first)
    assert pairs_of(links) == [{(2 - first, 3 - first), (1 - first, 1 - first)}, set(), {(3 - first, 2 - first)}]
    assert links.sure.tolist() == [True, True, False]  # sure and possible: sure
    write_pharaoh(tmp_path / "again.txt", links)
    assert (tmp_path / "again.txt").read_text(encoding="utf-8") == ("1-1 2-3\n\n3p2\n", "0-0 1-2\n\n2p1\n")[first]


@pytest.mark.parametrize(
    ("text", "first", "place", "code"),
    [
        ("0-0\n1-x\n", 0, "links.txt:2", "format"),
        ("0–0\n", 0, "links.txt:1", "format"),
        ("-1-0\n", 0, "links.txt:1", "format"),
        ("0-0 1\n", 0, "links.txt:1", "format"),
        ("1-1\n0-1\n", 1, "links.txt:2", "range"),
        ("9999999999-1\n", 0, "links.txt:1", "format"),
    ],
)
def test_bad_pharaoh_files(tmp_path, text, first, place, code):
    path = tmp_path / "links.txt"
    path.write_text(text, encoding="utf-8")
    assert refused(read_pharaoh, path, first) == (place, code)


def test_parallel_text(tmp_path):
    (tmp_path / "a").write_text("Un chat, noir.\n\nOui\n", encoding="utf-8")
    (tmp_path / "b").write_text("A cat, black.\nNo\nYes\n", encoding="utf-8")
    text = read_parallel(tmp_path / "a", tmp_path / "b")
    assert text.left.texts() == ["Un chat, noir.", "", "Oui"]
    rules = read_parallel(tmp_path / "a", tmp_path / "b", "rules")
    assert rules.right.texts()[0] == "A cat , black ."
    assert len({text.fingerprint, rules.fingerprint}) == 2
    (tmp_path / "j").write_text("Un chat, noir. ||| A cat, black.\n ||| No\nOui ||| Yes\n", encoding="utf-8")
    joint = read_joint(tmp_path / "j")
    assert (joint.left.texts(), joint.right.texts()) == (text.left.texts(), text.right.texts())


def test_bad_parallel_text(tmp_path):
    (tmp_path / "a").write_text("x\ny\n", encoding="utf-8")
    (tmp_path / "b").write_text("x\n", encoding="utf-8")
    assert refused(read_parallel, tmp_path / "a", tmp_path / "b") == ("a", "conflict")
    (tmp_path / "j").write_text("x ||| y\nx y\n", encoding="utf-8")
    assert refused(read_joint, tmp_path / "j") == ("j:2", "format")
    (tmp_path / "k").write_text("x ||| y ||| z\n", encoding="utf-8")
    assert refused(read_joint, tmp_path / "k") == ("k:1", "format")
    assert refused(read_parallel, tmp_path / "none", tmp_path / "b") == ("none", "missing")


def test_gold_links_follow_the_origins():
    """Inserted, repeated and left-out words, and a sentence that one side drops; against plain comparison."""
    corpus = Corpus.of_words([["a", "b", "c"], ["d"], ["e", "f"]])
    names = corpus.form

    def rewrite(origins, kept):
        offsets = np.concatenate([[0], np.cumsum([len(o) for o in origins])]).astype(np.int64)
        origin = np.asarray([x for o in origins for x in o], np.int32)
        form = names.take(np.zeros(len(origin), np.int64))
        return Rewrite(offsets, origin, form, np.asarray(kept, np.int64))

    left = rewrite([[2, -1, 0, 0], [0], [1, 0]], [0, 1, 2])
    right = rewrite([[1, 0], [0, 2, -1]], [2, 0])
    one, other, links = gold_links(corpus, left, right)
    assert one.ids.tolist() == other.ids.tolist() == [0, 2]
    assert pairs_of(links) == [{(0, 1), (2, 0), (3, 0)}, {(0, 0), (1, 1)}]


@pytest.mark.parametrize("name", ["trans+inv", "perm", "trans:0.5"])
def test_gold_links_of_languages(name):
    source = open_source("builtin:mini-english?types=500&sentences=60")
    language = bind_language(parse_language(name), source)
    [batch] = source.batches("train")
    left, right, links = gold_links(batch, language.rewrite(batch), PARENT.rewrite(batch))
    assert len(left) == len(right) == len(links) == 60
    written: dict[str, set[str]] = {}
    for i in range(60):
        words, parents = left[i].words, right[i].words
        assert sorted(b for _, b in links.of_pair(i)) == list(range(len(parents)))
        for a, b in links.of_pair(i):
            written.setdefault(parents[b], set()).add(words[a])
    # the same word of the parent is always written the same, and another word otherwise
    assert all(len(forms) == 1 for forms in written.values())
    assert len({min(forms) for forms in written.values()}) == len(written)
