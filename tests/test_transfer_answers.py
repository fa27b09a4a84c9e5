"""Exact match and F1 of answers against plain references written from the rules of SQuAD and of MLQA."""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from probes.transfer.tasks.answers import answer_metrics, rules_of
from tests.refusals import refused

ASCII = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
ARTICLES = {
    "squad": "a an the",
    "mlqa-en": "a an the",
    "mlqa-es": "un una unos unas el la los las",
    "mlqa-de": "ein eine einen einem eines einer der die das den dem des",
    "mlqa-vi": "của là cái chiếc những",
    "mlqa-hi": "",
    "mlqa-ar": "",
    "mlqa-zh": "",
}
PIECES = {
    "squad": "the The a AN cat's cats dog-house «x» , ... U.S. don't $5 thé in",
    "mlqa-en": "the The a AN cat's cats dog-house «x» — ” U.S. in",
    "mlqa-es": "el La unas gato ¿qué? perro, los ELLA",
    "mlqa-de": "der Die das Ein Haus „Hund“ Straße eines",
    "mlqa-vi": "của Là cái mèo những chó. nhà",
    "mlqa-hi": "बिल्ली कुत्ता। का , घर",
    "mlqa-ar": "القط الكلب، في بال قط ال",
    "mlqa-zh": "北京 。 the 2008年 奥运 会 abc，d 龥",
}


def words_by_the_rules(text: str, rules: str) -> list[str]:
    """Lower case; punctuation away; articles to a space; then white space, or for Chinese character by character."""
    text = text.lower()
    wide = rules != "squad"
    text = "".join(c for c in text if c not in ASCII and not (wide and unicodedata.category(c)[0] == "P"))
    if rules == "mlqa-ar":
        return text.replace("ال", " ").split()
    if rules != "mlqa-zh":
        # an article is a run of letters and digits of its own: between « and » too, not within a word
        runs = ["".join(run) for _, run in groupby(text, key=str.isalnum)]
        return "".join(" " if run in ARTICLES[rules].split() else run for run in runs).split()
    words = [""]
    for c in text:
        if "\u4e00" <= c <= "\u9fa5":
            words += [c, ""]
        elif c.isspace():
            words.append("")
        else:
            words[-1] += c
    return [word for word in words if word]


def f1_by_the_rules(gold: list[str], said: list[str]) -> float:
    left, common = list(gold), 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def by_the_rules(gold: list[dict[str, Any]], said: list[dict[str, Any]], rules: str) -> dict[str, float]:
    scores: dict[str, list[float]] = {
        name: [] for name in ("f1", "exact_match", "f1_has_answer", "exact_match_has_answer", "no_answer")
    }
    for g, p in zip(gold, said, strict=True):
        words, answers = words_by_the_rules(p["answer"], rules), [words_by_the_rules(a, rules) for a in g["answers"]]
        if rules == "squad":  # version 2 leaves out gold answers without a word
            answers = [a for a in answers if a]
        if answers:
            f1, exact = max(f1_by_the_rules(a, words) for a in answers), float(words in answers)
        else:
            f1 = exact = float(not words)
        scores["f1"].append(f1)
        scores["exact_match"].append(exact)
        if g["answers"]:
            scores["f1_has_answer"].append(f1)
            scores["exact_match_has_answer"].append(exact)
        else:
            scores["no_answer"].append(exact)
    return {name: 100 * float(np.mean(values)) if values else 0.0 for name, values in scores.items()}


def random_case(rng: np.random.Generator, rules: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    pieces = PIECES[rules].split()

    def text(shortest: int) -> str:
        return str(rng.choice([" ", "  ", "", "\u00a0"])).join(
            rng.choice(pieces, int(rng.integers(shortest, 5))).tolist()
        )

    gold, said = [], []
    for _ in range(int(rng.integers(1, 8))):
        answers = [text(1) for _ in range(int(rng.integers(0, 4)))]
        gold.append({"answers": answers})
        known = answers and rng.random() < 0.4
        said.append({"answer": str(rng.choice(answers)).upper() if known else text(0)})
    return gold, said


@pytest.mark.parametrize("rules", ARTICLES)
def test_equals_the_rules_on_random_cases(rules: str) -> None:
    rng = np.random.default_rng(list(ARTICLES).index(rules))
    metrics, between = answer_metrics(rules), 0
    for _ in range(200):
        gold, said = random_case(rng, rules)
        expected = by_the_rules(gold, said, rules)
        assert {name: metric(gold, said) for name, metric in metrics.items()} == pytest.approx(expected), (gold, said)
        between += 0 < expected["exact_match"] < expected["f1"] < 100
    assert between > 10


@pytest.mark.parametrize(
    ("rules", "text", "words"),
    [
        ("squad", "The U.S.'s  «a» Theatre, an", ["uss", "«", "»", "theatre"]),
        ("squad", "a-the", ["athe"]),  # punctuation goes before articles
        ("mlqa-en", "The “a” cat—dog", ["catdog"]),
        ("mlqa-es", "¿El gato, de las Casas?", ["gato", "de", "casas"]),
        ("mlqa-de", "Das Haus der Straße", ["haus", "straße"]),
        ("mlqa-vi", "Những con mèo của tôi", ["con", "mèo", "tôi"]),
        ("mlqa-hi", "बिल्ली।", ["बिल्ली"]),
        ("mlqa-ar", "القط وفي المنزل", ["قط", "وفي", "منزل"]),
        ("mlqa-zh", "在2008年，Beijing 举行", ["在", "2008", "年", "beijing", "举", "行"]),
    ],
)
def test_normalisation_by_hand(rules: str, text: str, words: list[str]) -> None:
    assert rules_of(rules).words(text) == words


@pytest.mark.parametrize(
    ("rules", "answers", "said", "exact", "f1"),
    [
        ("squad", ["the black cat", "a dog"], "Dog!", 100, 100),
        ("squad", ["the black cat"], "black dog", 0, 50),
        ("squad", ["cat cat dog"], "cat cat cat", 0, 200 / 3),
        ("squad", [], "", 100, 100),
        ("squad", [], "the", 100, 100),
        ("squad", [], "cat", 0, 0),
        ("squad", ["cat"], "", 0, 0),
        # an answer that is an article alone: none for SQuAD 2; MLQA finds it exactly but without a word in common
        ("squad", ["the"], "A", 100, 100),
        ("squad", ["the", "cat"], "", 0, 0),
        ("mlqa-en", ["the"], "A", 100, 0),
        ("mlqa-en", ["the", "cat"], "", 100, 0),
    ],
)
def test_answers_by_hand(rules: str, answers: list[str], said: str, exact: float, f1: float) -> None:
    metrics = answer_metrics(rules)
    found = [metrics[name]([{"answers": answers}], [{"answer": said}]) for name in ("exact_match", "f1")]
    assert found == pytest.approx([exact, f1])


@pytest.mark.parametrize("name", ["mlqa-fr", "mlqa", "mlqa-", "SQuAD", ""])
def test_unknown_rules_are_an_error(name: str) -> None:
    assert refused(answer_metrics, name) == ("score.answers", "unknown")
