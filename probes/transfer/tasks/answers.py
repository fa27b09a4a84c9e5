"""Exact match and F1 of answers, after the normalisation of SQuAD or of MLQA.

Gold ``{"answers": [texts]}``, prediction ``{"answer": text}``, "" for none.
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
    "ar": "ال",  # anywhere in a word: the rule's other half, "white space, then it, then the start", never matches
    "hi": "",
    "zh": "",
}
"""What MLQA (Lewis et al. 2020) takes for articles; each becomes a space."""
HAN = re.compile("([\u4e00-\u9fa5])")


@dataclass(frozen=True)
class Rules:
    """How answers are compared.

    words       text → its normalised words
    filtered    SQuAD 2: a gold answer without a normalised word is none
    """

    words: Callable[[str], list[str]]
    filtered: bool


class _Deleted(dict[int, int | None]):
    """Table for str.translate that deletes punctuation: ASCII's and, if ``wide``, all of Unicode's categories P."""

    def __init__(self, wide: bool) -> None:
        super().__init__({ord(mark): None for mark in string.punctuation})
        self.wide = wide

    def __missing__(self, code: int) -> int | None:
        gone = self.wide and unicodedata.category(chr(code)).startswith("P")
        return self.setdefault(code, None if gone else code)


def rules_of(name: str) -> Rules:
    """``squad`` (v2, which scores answers as v1.1 does unless one has no normalised word) or ``mlqa-xx``."""
    if name == "squad":
        return Rules(_words(ARTICLES["en"], False, False), filtered=True)
    language = name.removeprefix("mlqa-")
    if language == name or language not in ARTICLES:
        known = ", ".join(("squad", *(f"mlqa-{code}" for code in sorted(ARTICLES))))
        raise InputError(f"there are no rules {name!r}", keys="answers", hint=f"name one of {known}", code="unknown")
    return Rules(_words(ARTICLES[language], True, language == "zh"), filtered=False)


def _words(articles: str, wide: bool, letters: bool) -> Callable[[str], list[str]]:
    """Lower case, no punctuation, no articles, white space; ``letters``: a Chinese character is a word."""
    deleted, article = _Deleted(wide), re.compile(articles) if articles else None

    def words(text: str) -> list[str]:
        text = text.lower().translate(deleted)
        text = article.sub(" ", text) if article else text
        return (HAN.sub(r" \1 ", text) if letters else text).split()

    return words


def answer_metrics(answers: str = "squad") -> dict[str, Metric]:
    """F1, exact match, both over questions with an answer, and the share of right ones over those without.

    answers   the rules of normalisation: ``squad``, ``mlqa-en`` … (see ``rules_of``). InputError for unknown ones

    The best over the gold answers counts. To say nothing is right where there is no answer, and only there.
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
    """Scores of items; ``counted``: those with an answer (True), those without (False)."""

    def scores(gold: Sequence[Any], predictions: Sequence[Any]) -> list[float]:
        return [
            _best(rules, compare, g["answers"], p["answer"]) if bool(g["answers"]) in counted else UNCOUNTED
            for g, p in zip(gold, predictions, strict=True)
        ]

    return scores


def _best(rules: Rules, compare: Compare, answers: Sequence[str], said: str) -> float:
    """Return the best score of a prediction over the gold answers.

    Without an answer the right prediction is nothing.
    """
    gold, words = [rules.words(text) for text in answers], rules.words(said)
    if rules.filtered:
        gold = [answer for answer in gold if answer]
    return max(compare(answer, words) for answer in gold) if gold else float(not words)


def _exact(gold: list[str], said: list[str]) -> float:
    return float(gold == said)


def _f1(gold: list[str], said: list[str]) -> float:
    """Of the words in common; 0 where there are none, also where both sides are empty (so has MLQA)."""
    common = sum((Counter(gold) & Counter(said)).values())
    return 2 * common / (len(gold) + len(said)) if common else 0.0
