"""Exact match and F1 of answers: gold {"answers": [texts]}, prediction {"answer": text}, "" for none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from probes.transfer.metrics.items import UNCOUNTED, item_metric
from probes.transfer.metrics.metric import Metric
from probes.transfer.metrics.normal import Rules, rules_of

Compare = Callable[[list[str], list[str]], float]


def answer_metrics(answers: str = "squad") -> dict[str, Metric]:
    """F1, exact match, both over questions with an answer, and the share of right ones over those without.

    answers   the rules of normalisation: ``squad``, ``mlqa-en`` … (see ``rules_of``). InputError for unknown ones

    The best over the gold answers counts. To say nothing is right where there is no answer, and only there.
    """
    rules = rules_of(answers)
    compares: dict[str, Compare] = {"f1": _f1, "exact_match": _exact}
    metrics: dict[str, Metric] = {}
    for name, compare in compares.items():
        metrics[name] = item_metric(name, _scores(rules, compare, (True, False)))
    for name, compare in compares.items():
        metrics[f"{name}_has_answer"] = item_metric(f"{name}_has_answer", _scores(rules, compare, (True,)))
    metrics["no_answer"] = item_metric("no_answer", _scores(rules, _exact, (False,)))
    return metrics


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
    """The best score of what was said over the gold answers; without one the right thing to say is nothing."""
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
