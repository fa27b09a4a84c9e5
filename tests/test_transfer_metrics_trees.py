"""Attachment scores against the rules of CoNLL 2018, reimplemented over aligned words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from probes.transfer.metrics import tree_metrics

RELATIONS = ("nsubj", "nsubj:pass", "obl", "obl:tmod", "obl:agent", "punct", "root")
Trees = list[list[list[Any]]]


def random_case(seed: int) -> tuple[Trees, Trees]:
    rng = np.random.default_rng(seed)
    gold: Trees = []
    said: Trees = []
    for length in rng.integers(1, 9, int(rng.integers(1, 5))).tolist():
        heads = rng.integers(0, length + 1, length)
        found = np.where(rng.random(length) < 0.6, heads, rng.integers(-1, length + 1, length))
        names = rng.integers(0, len(RELATIONS), (2, length))
        names[1] = np.where(rng.random(length) < 0.5, names[0], names[1])
        upos = rng.choice(["NOUN", "PUNCT"], length)
        gold.append([[int(h), RELATIONS[r], str(u)] for h, r, u in zip(heads, names[0], upos, strict=True)])
        said.append([[int(h), RELATIONS[r] if h >= 0 else ""] for h, r in zip(found, names[1], strict=True)])
    return gold, said


def conll2018(gold: Trees, said: Trees, attributes: str, punctuation: bool = True) -> float:
    """F1 over aligned words. With gold words every word is aligned with itself, and a head stands for the word
    aligned with it. ``attributes``: what must be equal besides the head."""
    keys = {
        "": lambda word: (),
        "universal": lambda word: (word[1].split(":")[0],),
        "whole": lambda word: (word[1],),
    }
    key = keys[attributes]
    gold_words = system_words = correct = 0
    for right, found in zip(gold, said, strict=True):
        for word, guess in zip(right, found, strict=True):
            if not punctuation and word[2] == "PUNCT":
                continue
            gold_words += 1
            system_words += 1
            correct += guess[0] != -1 and (word[0], *key(word)) == (guess[0], *key(guess))
    precision, recall = (correct / n if n else 0.0 for n in (system_words, gold_words))
    return 100 * 2 * precision * recall / (precision + recall) if correct else 0.0


def test_equals_the_rules_of_conll_2018_on_a_thousand_random_cases() -> None:
    metrics = tree_metrics()
    ways = {"las": "universal", "uas": "", "las_subtypes": "whole"}
    kinds = set()
    for seed in range(1000):
        gold, said = random_case(seed)
        scores = {name: metric(gold, said) for name, metric in metrics.items()}
        expected = {name: conll2018(gold, said, way) for name, way in ways.items()}
        expected |= {f"{name}_without_punct": conll2018(gold, said, way, False) for name, way in ways.items()}
        assert scores == pytest.approx(expected), seed
        kinds.add(len({round(score, 6) for score in scores.values()}))
    assert max(kinds) == 6  # no two of the scores are the same thing


GOLD: Trees = [[[2, "nsubj:pass", "NOUN"], [0, "root", "VERB"], [2, "punct", "PUNCT"]]]


def test_by_hand() -> None:
    said: Trees = [[[2, "nsubj"], [-1, ""], [2, "punct"]]]
    scores = {name: metric(GOLD, said) for name, metric in tree_metrics().items()}
    third = 100 / 3
    full = {"las": 2 * third, "uas": 2 * third, "las_subtypes": third}
    assert scores == pytest.approx(
        full | {"las_without_punct": 50, "uas_without_punct": 50, "las_subtypes_without_punct": 0}
    )


def test_the_main_metric_counts_punctuation_or_not() -> None:
    assert next(iter(tree_metrics())) == "las"
    assert next(iter(tree_metrics(punctuation=False))) == "las_without_punct"
    assert set(tree_metrics()) == set(tree_metrics(punctuation=False))


def test_a_word_that_was_not_read_is_an_error_and_one_without_gold_head_does_not_count() -> None:
    for name, metric in tree_metrics().items():
        assert metric([[[-1, "_", "X"], [0, "root", "X"]]], [[[-1, "_"], [0, "root"]]]) == 100, name
        assert metric([[[1, "_", "X"], [0, "root", "X"]]], [[[-1, "_"], [0, "root"]]]) == 50, name


def test_only_punctuation_gives_nothing_to_find() -> None:
    metrics = tree_metrics()
    assert metrics["uas_without_punct"]([[[0, "root", "PUNCT"]]], [[[0, "root"]]]) == 0
    assert metrics["uas"]([[[0, "root", "PUNCT"]]], [[[0, "root"]]]) == 100
