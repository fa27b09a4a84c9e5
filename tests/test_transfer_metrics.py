"""Scores of items and words against scikit-learn and by hand; what every metric must satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score  # type: ignore[import-untyped]

from probes.transfer.metrics import (
    ItemMetric,
    Metric,
    answer_metrics,
    class_metrics,
    frame_metrics,
    span_metrics,
    token_f1,
    token_metrics,
    tree_metrics,
)

CLASSES = tuple("ABCDEFGH")


def cut(labels: list[str], rng: np.random.Generator) -> list[list[str]]:
    """The labels in sentences, some of them empty."""
    borders = np.sort(rng.integers(0, len(labels) + 1, 4)).tolist()
    return [labels[a:b] for a, b in zip([0, *borders], [*borders, len(labels)], strict=True)]


def labels_of(seed: int) -> tuple[list[str], list[str]]:
    """Gold and predicted labels, half of them right; "" predicts nothing."""
    rng = np.random.default_rng(seed)
    n, words = int(rng.integers(1, 8)), int(rng.integers(1, 40))
    gold = rng.integers(0, n, words)
    said = np.where(rng.random(words) < 0.5, gold, rng.integers(-1, n, words))
    return [CLASSES[c] for c in gold], [CLASSES[c] if c >= 0 else "" for c in said]


@pytest.mark.parametrize("seed", range(200))
def test_scores_equal_those_of_sklearn(seed: int) -> None:
    gold, said = labels_of(seed)
    macro = f1_score(gold, said, labels=np.unique(gold), average="macro", zero_division=0)
    micro = f1_score(gold, said, labels=CLASSES, average="micro", zero_division=0)
    expected = {"accuracy": 100 * accuracy_score(gold, said), "macro_f1": 100 * macro, "micro_f1": 100 * micro}
    for classes in ((), CLASSES, ("Z", "B")):
        words = {
            name: metric(cut(gold, np.random.default_rng(seed)), cut(said, np.random.default_rng(seed)))
            for name, metric in token_metrics(classes).items()
        }
        assert words == pytest.approx(expected)
        items = {name: metric(gold, said) for name, metric in class_metrics(classes).items()}
        assert items == pytest.approx({name: expected[name] for name in ("accuracy", "macro_f1")})


@pytest.mark.parametrize("seed", range(50))
def test_f1_of_tags_other_than_o_equals_sklearn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tags = np.array(["O", "B-X", "I-X", "B-Y"])
    gold, said = (tags[rng.integers(0, 4, 30)].tolist() for _ in range(2))
    micro = f1_score(gold, said, labels=tags[1:], average="micro", zero_division=0)
    assert token_f1()([gold[:7], gold[7:]], [said[:7], said[7:]]) == pytest.approx(100 * micro)


def test_scores_by_hand() -> None:
    # A: 2 right, 1 too many; B: none of 2, one of them predicted nothing
    scores = {
        name: metric([["A", "A"], ["B", "B"]], [["A", "A"], ["A", ""]]) for name, metric in token_metrics().items()
    }
    assert scores == pytest.approx({"accuracy": 50, "macro_f1": 100 * (4 / 5 + 0) / 2, "micro_f1": 100 * 4 / 7})
    assert class_metrics()["macro_f1"](["A", "A", "new"], ["A", "A", "B"]) == pytest.approx(50)


def test_what_has_no_gold_label_does_not_count() -> None:
    for metric in token_metrics().values():
        assert metric([["A", ""], [""]], [["A", "B"], ["A"]]) == 100
    for metric in class_metrics().values():
        assert metric(["A", ""], ["A", ""]) == 100
        assert metric(["A", "B"], ["", ""]) == 0


def test_every_word_needs_a_prediction() -> None:
    with pytest.raises(AssertionError, match="every word"):
        token_metrics()["accuracy"]([["A", "B"]], [["A"]])
    with pytest.raises(AssertionError):
        class_metrics()["accuracy"](["A", "B"], ["A"])


def frame(slots: str, intent: str) -> dict[str, Any]:
    return {"slots": slots.split(), "intent": intent}


FRAMES = [frame("O B-a I-a", "x"), frame("B-b O", "y"), frame("O O", "y")]


def test_frames_by_hand() -> None:
    metrics = frame_metrics()
    assert {name: metric(FRAMES, FRAMES) for name, metric in metrics.items()} == dict.fromkeys(metrics, 100.0)
    # an I after O is no mention: frame 0 stays right; frame 1 has its slot but not its intent; frame 2 one too many
    said = [frame("I-b B-a I-a", "x"), frame("B-b O", "z"), frame("B-a O", "y")]
    scores = {name: metric(FRAMES, said) for name, metric in metrics.items()}
    assert scores == pytest.approx({"slot_f1": 80, "intent_accuracy": 200 / 3, "frame_accuracy": 100 / 3})
    # repaired, that I becomes a mention of its own
    scores = {name: metric(FRAMES, said) for name, metric in frame_metrics("final-type").items()}
    assert scores == pytest.approx({"slot_f1": 200 / 3, "intent_accuracy": 200 / 3, "frame_accuracy": 0})
    # right intents and no slots at all
    nothing = [frame("O " * len(f["slots"]), f["intent"]) for f in FRAMES]
    scores = {name: metric(FRAMES, nothing) for name, metric in metrics.items()}
    assert scores == pytest.approx({"slot_f1": 0, "intent_accuracy": 100, "frame_accuracy": 100 / 3})


TAGS = [["B-X", "O"], ["O", "B-Y", "I-Y"], [], ["B-X"]]
TREES = [[[2, "det", "DET"], [0, "root", "NOUN"]], [[0, "root", "VERB"], [1, "punct", "PUNCT"]]]
ANSWERS = [{"answers": ["the cat"]}, {"answers": []}, {"answers": ["a dog", "dogs"]}]
CASES: dict[str, tuple[dict[str, Metric], list[Any], list[Any]]] = {
    "classes": (class_metrics(), ["a", "b", "a"], ["a", "a", "b"]),
    "tokens": ({**token_metrics(), "token_f1": token_f1()}, TAGS, [["B-X", "B-X"], ["O", "B-Y", "O"], [], ["O"]]),
    "spans": (span_metrics(), TAGS, [["B-X", "B-X"], ["O", "B-Y", "I-Y"], [], ["O"]]),
    "frames": (frame_metrics(), FRAMES, [FRAMES[0], frame("O O", "y"), frame("B-a O", "x")]),
    "trees": (tree_metrics(), TREES, [[[2, "amod"], [0, "root"]], [[-1, ""], [1, "punct"]]]),
    "answers": (answer_metrics(), ANSWERS, [{"answer": "cat"}, {"answer": "x"}, {"answer": ""}]),
}


@pytest.mark.parametrize("name", CASES)
def test_statistics_are_sums_over_items(name: str) -> None:
    """float64 [items, k]; scores are vectorised; an item that is drawn twice counts twice; no item gives 0."""
    metrics, gold, said = CASES[name]
    for key, metric in metrics.items():
        assert metric.name == key
        stats = metric.stats(gold, said)
        assert stats.dtype == np.float64 and stats.ndim == 2 and len(stats) == len(gold)
        assert 0 <= metric(gold, said) <= 100
        drawn = [0, 1, 1]
        assert metric([gold[i] for i in drawn], [said[i] for i in drawn]) == pytest.approx(
            float(metric.score(stats[drawn].sum(axis=0)))
        )
        assert metric.score(np.stack([stats, 2 * stats])).shape == (2, len(gold))
        assert metric([], []) == 0.0


def test_which_metrics_are_means_over_items() -> None:
    found = {key for metrics, _, _ in CASES.values() for key, m in metrics.items() if isinstance(m, ItemMetric)}
    answers = {"f1", "exact_match", "f1_has_answer", "exact_match_has_answer", "no_answer"}
    assert found == {"accuracy", "intent_accuracy", "frame_accuracy", *answers}
    assert not isinstance(token_metrics()["accuracy"], ItemMetric)
