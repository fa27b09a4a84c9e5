"""Alignment error rate against sets, gold files of both countings, what is left out and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.statistics import alignment_interval
from synthlang.parallel.error_rates import alignment_errors, error_rate, read_gold
from synthlang.parallel.links import Links
from tests.refusals import refusal

PAIR = st.tuples(st.integers(0, 4), st.integers(0, 4))
SENTENCES = st.lists(st.tuples(st.sets(PAIR), st.sets(PAIR), st.sets(PAIR)), min_size=1, max_size=6)


def links(sentences, sure=None):
    """Links from sets of pairs; those in ``sure`` are sure (default: all)."""
    rows = [(i, a, b, sure is None or (a, b) in sure[i]) for i, pairs in enumerate(sentences) for a, b in pairs]
    table = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3)
    return Links.build(table[:, 0], table[:, 1], table[:, 2], np.array([row[3] for row in rows], bool), len(sentences))


@given(SENTENCES)
@settings(max_examples=60)
def test_all_scores_are_those_of_sets(sentences):
    found, sure, others = zip(*sentences, strict=True)
    possible = [s | p for s, p in zip(sure, others, strict=True)]
    gold = links(possible, sure)
    got = alignment_errors(links(found, [set()] * len(found)), gold)  # whether a found link is sure does not matter
    a, s = sum(map(len, found)), sum(map(len, sure))
    in_sure = sum(len(x & y) for x, y in zip(found, sure, strict=True))
    in_possible = sum(len(x & y) for x, y in zip(found, possible, strict=True))
    p, r = in_possible / a if a else None, in_sure / s if s else None
    f1 = None if p is None or r is None else 2 * p * r / (p + r) if p + r else 0
    expected: Any = {
        "aer": 1 - (in_sure + in_possible) / (a + s) if a + s else None,
        "precision": p,
        "recall": r,
        "f1": f1,
    }
    assert got.scores == {name: value if value is None else pytest.approx(value) for name, value in expected.items()}
    if a and s and all(x == y for x, y in zip(sure, possible, strict=True)):
        assert got.scores["f1"] == pytest.approx(1 - expected["aer"])  # all gold links are sure
    kept = [i for i, points in enumerate(possible) if points]
    skipped = alignment_errors(links(found), gold, blank="skip")
    assert skipped.sums.tolist() == got.sums[kept].tolist() and skipped.skipped == len(found) - len(kept)


def test_by_hand():
    gold = links([{(0, 0), (1, 1), (1, 2)}], [{(0, 0), (1, 1)}])
    got = alignment_errors(links([{(0, 0), (1, 2), (2, 2)}]), gold)
    # |A| = 3, |S| = 2, |A ∩ S| = 1, |A ∩ P| = 2
    assert got.sums.tolist() == [[3, 2, 1, 2]]
    assert got.to_json() == {
        **{"aer": pytest.approx(1 - 3 / 5), "precision": pytest.approx(2 / 3), "recall": 0.5},
        **{"f1": pytest.approx(4 / 7), "links": 3, "sure": 2, "links_sure": 1, "links_possible": 2},
        **{"pairs": 1, "skipped": 0},
    }


def test_sums_of_pairs_are_for_a_bootstrap():
    random = np.random.default_rng(0)
    gold = links([{(i, i) for i in range(10)} for _ in range(60)])
    found = links([{(i, i if random.random() < 0.8 else i + 20) for i in range(10)} for _ in range(60)])
    got = alignment_errors(found, gold)
    bounds = alignment_interval(got.sums)
    aer = got.scores["aer"]
    assert bounds is not None and aer is not None
    assert bounds[0] < aer < bounds[1] < bounds[0] + 0.1
    assert error_rate(got.sums).shape == (60,)
    assert alignment_interval(got.sums[:1]) is None
    assert alignment_interval(np.array([[0, 0, 0, 0], [1, 1, 1, 1]])) is None  # a draw of the first alone has no rate


LENGTHS = np.array([2, 1]), np.array([2, 1])


def put(folder, text):
    path = folder / "gold"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("text", "first", "sure", "outside"), [
    ("1-1 2p2\n1-1\n", 1, [True, False, True], 0),
    ("0-0 1p1\n0-0\n", 0, [True, False, True], 0),
    ("0-0 1p1\n0-0\n", None, [True, False, True], 0),
    ("0p0 0-0\n0-0\n", None, [True, True], 0),  # sure and possible: sure
    ("1-1 3-1 1-9\n1-2\n", 1, [True], 3),
])  # fmt: skip
def test_gold_counts_from_0_or_1(tmp_path, text, first, sure, outside):
    gold = read_gold(put(tmp_path, text), *LENGTHS, first)
    assert gold.links.sure.tolist() == sure and gold.outside == outside
    assert gold.links.of_pair(0)[0] == (0, 0) and gold.blank.tolist() == [False, len(sure) == 1]


def test_reversed_gold(tmp_path):
    lengths = np.array([3]), np.array([1])
    path = put(tmp_path, "0-0 0p2\n")
    gold = read_gold(path, *lengths, swapped=True)
    assert gold.links.of_pair(0) == [(0, 0), (2, 0)] and gold.links.sure.tolist() == [True, False]
    assert read_gold(path, *lengths).outside == 1


@pytest.mark.parametrize(("text", "first", "line", "code"), [
    ("1-1\n1-1\n", None, None, "missing"),
    ("0-0\n", 0, None, "conflict"),
    ("0-0\n\n\n", 0, None, "conflict"),
    ("0-0\n0-0\n", 1, 1, "range"),
    ("\n\n", None, None, "empty"),
    ("5-5\n7-7\n", 0, None, "empty"),
    ("0-0\n0~0\n", 0, 2, "format"),
])  # fmt: skip
def test_gold_that_is_refused(tmp_path, text, first, line, code):
    error = refusal(read_gold, put(tmp_path, text), *LENGTHS, first)
    assert (error.line, error.code) == (line, code)
    assert "--links-first" not in error.hint and ("--gold-reversed" in error.hint) is (text == "5-5\n7-7\n")
