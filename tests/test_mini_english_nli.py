"""Inference pairs: balanced, annotated, true, and not to be guessed from the hypothesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from math import log
from typing import Any

from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.entries import HE, SHE, Clause, NounPhrase
from synthlang.sources.mini_english.lexicon import inflected
from synthlang.sources.mini_english.nli import LABELS, NliPair, downward, negated, nli_pairs, opposite, passive, swapped
from synthlang.sources.mini_english.realise import realise


@cache
def pairs() -> tuple[NliPair, ...]:
    return tuple(nli_pairs(MiniEnglish(), "train", 3000))


def text(plan: Clause) -> str:
    return " ".join(realise(plan)["form"])


def guessing_accuracy(features: Callable[[NliPair], set[Any]]) -> float:
    """Naive Bayes on a set of features of each pair, trained on two thirds."""
    train, test = pairs()[:2000], pairs()[2000:]
    seen = {label: Counter[object]() for label in LABELS}
    for pair in train:
        seen[pair.label].update(features(pair))
    return sum(
        max(LABELS, key=lambda k: sum(log((seen[k][f] + 1) / 700) for f in features(pair))) == pair.label
        for pair in test
    ) / len(test)


def test_labels_are_balanced_in_an_order_that_tells_nothing() -> None:
    assert Counter(p.label for p in pairs()) == dict.fromkeys(LABELS, 1000)
    assert len({tuple(p.label for p in pairs()[i : i + 3]) for i in range(0, 300, 3)}) == 6


def test_the_two_sentences_differ() -> None:
    assert all(p.premise.words != p.hypothesis.words for p in pairs())


def test_the_hypothesis_alone_does_not_give_the_label() -> None:
    by_words = guessing_accuracy(lambda p: set(p.hypothesis.words))
    by_length = guessing_accuracy(lambda p: {len(p.hypothesis.words)})
    assert by_words < 0.45 and by_length < 0.45
    for word in ("not", "no", "never", "exactly", "although"):
        shares = Counter(p.label for p in pairs() if word in p.hypothesis.words)
        assert max(shares.values()) < 2.2 * min(shares[k] for k in LABELS), word
    assert guessing_accuracy(lambda p: {p.label}) == 1.0  # the guesser works


def test_the_pair_gives_the_label_away_where_it_should() -> None:
    """Of plain pairs that differ in "not" alone, all are contradictions."""
    plain = [
        p
        for p in pairs()
        if set(p.premise.words) ^ set(p.hypothesis.words) == {"not"}
        and p.premise.words.count("not") + p.hypothesis.words.count("not") == 1
    ]
    assert len(plain) > 10 and {p.label for p in plain} == {"contradiction"}


def test_dropping_a_modifier_follows_the_polarity() -> None:
    """Pairs that differ by one word added: entailed by the longer one, or under negation by the shorter."""
    checked = 0
    for p in pairs():
        longer, shorter = sorted((p.premise, p.hypothesis), key=lambda s: -len(s.words))
        extra = Counter(longer.words) - Counter(shorter.words)
        kinds = {longer.columns["deprel"][longer.words.index(w)] for w in extra}
        if len(longer.words) == len(shorter.words) + 1 and extra.total() == 1 and kinds == {"amod"}:
            down = bool({"not", "no", "never"} & set(shorter.words))
            subject = longer.words.index(next(iter(extra))) < longer.columns["head"].index(0)
            if p.label == "contradiction" or "although" in longer.words or subject or "by" in longer.words:
                continue
            entailed = (longer is p.premise) != down
            assert p.label == ("entailment" if entailed else "neutral"), (p.premise.text, p.hypothesis.text)
            checked += 1
    assert checked > 20


def test_changes_by_hand() -> None:
    c = MiniEnglish().world.context("train", 0, "test")
    plan = Clause("verb", NounPhrase(SHE), inflected("see"), object=NounPhrase(HE), past=True)
    assert text(plan) == "she saw him ."
    turned, other = passive(plan), swapped(plan)
    assert turned is not None and text(turned) == "he was seen by her ."
    assert other is not None and text(other) == "he saw her ."
    assert text(negated(plan)) == "she did not see him ." and downward(negated(plan)) and not downward(plan)
    against = opposite(c, negated(plan), "polarity")
    assert against is not None and text(against) == text(plan)
