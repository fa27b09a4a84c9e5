"""Exact match and F1 of answers after normalisation as in SQuAD or MLQA.

A gold value has the form ``{"answers": [texts]}``, and a prediction ``{"answer": text}`` with "" for no answer.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from probes.transfer.tasks.metrics import UNCOUNTED, Metric, item_metric, named
from synthlang.errors import InputError

Compare = Callable[[list[str], list[str]], float]
ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": "ال",  # anywhere in a word; the second half of MLQA's rule never matches
    "hi": "",
    "zh": "",
}
"""Articles by language in MLQA (Lewis et al. 2020). They are replaced by spaces."""
HAN = re.compile("([\u4e00-\u9fa5])")


@dataclass(frozen=True)
class Rules:
    """Rules for the comparison of answers.

    Attributes:
        words: A function from a text to its normalised words.
        filtered: True to drop gold answers without normalised words, as in SQuAD 2.
    """

    words: Callable[[str], list[str]]
    filtered: bool


class _Deleted(dict[int, int | None]):
    """A table for str.translate that deletes ASCII punctuation, and with ``wide`` all Unicode punctuation."""

    def __init__(self, wide: bool) -> None:
        super().__init__({ord(mark): None for mark in string.punctuation})
        self.wide = wide

    def __missing__(self, code: int) -> int | None:
        gone = self.wide and unicodedata.category(chr(code)).startswith("P")
        return self.setdefault(code, None if gone else code)


def rules_of(name: str) -> Rules:
    """Return the rules with the name ``squad`` (version 2), or ``mlqa-xx`` for the language xx of MLQA.

    Raises:
        InputError: The rules are unknown.
    """
    if name == "squad":
        return Rules(_words(ARTICLES["en"], False, False), filtered=True)
    language = name.removeprefix("mlqa-")
    if language == name or language not in ARTICLES:
        known = ", ".join(("squad", *(f"mlqa-{code}" for code in sorted(ARTICLES))))
        raise InputError(f"unknown rules {name!r}", keys="score.answers", hint=f"choose from {known}", code="unknown")
    return Rules(_words(ARTICLES[language], True, language == "zh"), filtered=False)


def _words(articles: str, wide: bool, letters: bool) -> Callable[[str], list[str]]:
    """Return a function that splits a text into normalised words: lower case, no punctuation, no articles.

    With ``letters``, every Chinese character is a word.
    """
    deleted, article = _Deleted(wide), re.compile(articles) if articles else None

    def words(text: str) -> list[str]:
        text = text.lower().translate(deleted)
        text = article.sub(" ", text) if article else text
        return (HAN.sub(r" \1 ", text) if letters else text).split()

    return words


def answer_metrics(answers: str = "squad") -> dict[str, Metric]:
    """Return the metrics of answers: F1 and exact match, and accuracy over unanswerable questions.

    F1 is 2 · common words / (words of the gold answer + words of the prediction) (Rajpurkar et al. 2016). F1 and exact
    match are over all questions, and over answerable questions only (``…_has_answer``). Of several gold answers, the
    answer with the best score counts. For an unanswerable question, only an empty prediction is correct. ``answers``
    names the rules of normalisation (`rules_of`).

    Raises:
        InputError: The rules are unknown.
    """
    rules = rules_of(answers)
    scored: tuple[tuple[str, Compare, tuple[bool, ...]], ...] = (
        ("f1", _f1, (True, False)),
        ("exact_match", _exact, (True, False)),
        ("f1_has_answer", _f1, (True,)),
        ("exact_match_has_answer", _exact, (True,)),
        ("no_answer", _exact, (False,)),
    )
    return named(*(item_metric(name, _scores(rules, compare, counted)) for name, compare, counted in scored))


def _scores(
    rules: Rules, compare: Compare, counted: tuple[bool, ...]
) -> Callable[[Sequence[Any], Sequence[Any]], list[float]]:
    """Return a function that scores items. ``counted`` selects answerable (True) and unanswerable (False) items."""

    def scores(gold: Sequence[Any], predictions: Sequence[Any]) -> list[float]:
        return [
            _best(rules, compare, g["answers"], p["answer"]) if bool(g["answers"]) in counted else UNCOUNTED
            for g, p in zip(gold, predictions, strict=True)
        ]

    return scores


def _best(rules: Rules, compare: Compare, answers: Sequence[str], said: str) -> float:
    """Return the best score of a prediction over the gold answers. Without a gold answer, "" scores 1."""
    gold, words = [rules.words(text) for text in answers], rules.words(said)
    if rules.filtered:
        gold = [answer for answer in gold if answer]
    return max(compare(answer, words) for answer in gold) if gold else float(not words)


def _exact(gold: list[str], said: list[str]) -> float:
    return float(gold == said)


def _f1(gold: list[str], said: list[str]) -> float:
    """Return F1 over words. As in MLQA, it is 0 if both sides are empty."""
    common = sum((Counter(gold) & Counter(said)).values())
    return 2 * common / (len(gold) + len(said)) if common else 0.0
