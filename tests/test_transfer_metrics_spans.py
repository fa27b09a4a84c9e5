"""Span F1 against seqeval on random tags, and the repair rule against a plain reading of it."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

from probes.transfer.metrics import mentions_of, repaired, span_metrics
from probes.transfer.metrics.repair import Repair

TAGS = ("O", "B-A", "I-A", "B-B", "I-B", "B-C-d", "I-C-d")
Sentences = list[list[str]]


def random_case(seed: int) -> tuple[Sentences, Sentences]:
    """Sentences with any tags, legal or not; the prediction shares about half of them."""
    rng = np.random.default_rng(seed)
    gold, said = [], []
    for length in rng.integers(1, 12, int(rng.integers(1, 6))).tolist():
        right, other = rng.integers(0, len(TAGS), (2, length))
        mixed = np.where(rng.random(length) < 0.6, right, other)
        gold.append([TAGS[i] for i in right])
        said.append([TAGS[i] for i in mixed])
    return gold, said


def test_equals_seqeval_on_a_thousand_random_cases() -> None:
    above = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns where nothing was found
        for seed in range(1000):
            gold, said = random_case(seed)
            for lenient, options in ((False, {"mode": "strict", "scheme": IOB2}), (True, {})):
                expected = [
                    100 * score(gold, said, zero_division=0, **options)
                    for score in (f1_score, precision_score, recall_score)
                ]
                found = [metric(gold, said) for metric in span_metrics(lenient=lenient).values()]
                assert found == pytest.approx(expected), (seed, gold, said)
                above += 0 < expected[0] < 100
    assert above > 1000  # the cases are no trivial ones


def test_mentions_by_hand() -> None:
    tags = ["I-A", "B-A", "I-A", "I-B", "I-B", "B-B", "B-B", "I-B", "O", "I-B"]
    assert mentions_of(tags) == [(1, 3, "A"), (5, 6, "B"), (6, 8, "B")]
    assert mentions_of(tags, lenient=True) == [
        *[(0, 1, "A"), (1, 3, "A"), (3, 5, "B"), (5, 6, "B")],
        *[(6, 8, "B"), (9, 10, "B")],
    ]
    assert mentions_of([]) == []
    assert mentions_of(["", "X", "S-A", "B"]) == []  # what is no tag is outside


def test_a_mention_ends_with_its_sentence() -> None:
    """The I that opens the second sentence continues nothing."""
    scores = [metric([["B-A"], ["I-A"]], [["B-A"], ["O"]]) for metric in span_metrics().values()]
    assert scores == [100, 100, 100]


def test_the_same_words_of_another_type_are_wrong() -> None:
    f1, precision, recall = span_metrics().values()
    gold, said = [["B-A", "I-A", "O", "B-B"]], [["B-B", "I-B", "O", "B-B"]]
    assert (f1(gold, said), precision(gold, said), recall(gold, said)) == (50, 50, 50)
    assert recall(gold, [["O"] * 4]) == precision(gold, [["O"] * 4]) == 0
    assert precision([["O"] * 4], said) == 0


def plain_repair(tags: list[str]) -> list[str]:
    """Runs: from a B, or an I that follows no tag, through all I; every run has the type of its last tag."""
    runs: list[list[int]] = []
    for i, tag in enumerate(tags):
        if tag == "O":
            continue
        if tag[0] == "B" or not runs or runs[-1][-1] != i - 1:
            runs.append([])
        runs[-1].append(i)
    result = ["O"] * len(tags)
    for run in runs:
        for i in run:
            result[i] = ("B-" if i == run[0] else "I-") + tags[run[-1]].split("-", 1)[1]
    return result


def legal(tags: list[str]) -> bool:
    pairs = zip(["O", *tags], tags, strict=False)
    return all(tag[0] != "I" or (before != "O" and before[2:] == tag[2:]) for before, tag in pairs)


def test_repair_equals_a_plain_reading_of_all_short_sentences() -> None:
    changed = 0
    for length in range(6):
        for chosen in product(TAGS[:5], repeat=length):
            tags = list(chosen)
            mended = repaired(tags)
            assert mended == plain_repair(tags)
            assert legal(mended)
            assert (mended == tags) == legal(tags)
            assert repaired(tags, "none") == tags
            changed += mended != tags
    assert changed > 1000


def test_repair_of_the_papers_examples() -> None:
    assert repaired(["O", "I-X", "O"]) == ["O", "B-X", "O"]
    assert repaired(["B-X", "I-Y", "I-Z"]) == ["B-Z", "I-Z", "I-Z"]


@pytest.mark.parametrize(("repair", "score"), [("none", 0.0), ("final-type", 100.0)])
def test_repair_is_a_switch_and_leaves_gold_alone(repair: Repair, score: float) -> None:
    f1 = span_metrics(repair)["span_f1"]
    assert f1([["B-Z", "I-Z"]], [["I-X", "I-Z"]]) == score
    assert f1([["O", "I-X"]], [["O", "I-X"]]) == 0
