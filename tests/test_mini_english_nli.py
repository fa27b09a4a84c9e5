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


def guessing_accuracy(features: Callable[[NliPair], set[Any]]) -> float:
    """Naive Bayes on a set of features of each pair, trained on two thirds."""
    train, test = pairs()[:2000], pairs()[2000:]
    seen = {label: Counter[object]() for label in LABELS}
    for pair in train:
        seen[pair.label].update(features(pair))

    def guess(pair: NliPair) -> str:
        return max(LABELS, key=lambda k: sum(log((seen[k][f] + 1) / 700) for f in features(pair)))

    return sum(guess(pair) == pair.label for pair in test) / len(test)


def test_labels_are_balanced_in_an_order_that_tells_nothing() -> None:
    assert Counter(p.label for p in pairs()) == dict.fromkeys(LABELS, 1000)
    assert len({tuple(p.label for p in pairs()[i : i + 3]) for i in range(0, 300, 3)}) == 6
    assert all(p.premise.words != p.hypothesis.words for p in pairs())


def test_the_hypothesis_alone_does_not_give_the_label() -> None:
    assert guessing_accuracy(lambda p: set(p.hypothesis.words)) < 0.45
    assert guessing_accuracy(lambda p: {len(p.hypothesis.words)}) < 0.45
    for word in ("not", "no", "never", "thing", "person"):
        shares = Counter(p.label for p in pairs() if word in p.hypothesis.words)
        assert max(shares.values()) < 2.2 * min(shares[k] for k in LABELS), word
    assert guessing_accuracy(lambda p: {p.label}) == 1.0  # the guesser works


def test_dropping_a_modifier_follows_the_polarity() -> None:
    """Pairs that differ by one word added: entailed by the longer one, or under negation by the shorter."""
    checked = 0
    for p in pairs():
        longer, shorter = sorted((p.premise, p.hypothesis), key=lambda s: -len(s.words))
        extra = list((Counter(longer.words) - Counter(shorter.words)).elements())
        at = longer.words.index(extra[0]) if len(extra) == 1 == len(longer.words) - len(shorter.words) else -1
        if at < 0 or longer.columns["deprel"][at] != "amod" or p.label == "contradiction":
            continue
        if at > longer.columns["head"].index(0) and not {"although", "by"} & set(longer.words):  # not of the subject
            down = bool({"not", "no", "never"} & set(shorter.words))
            entailed = (longer is p.premise) != down
            assert p.label == ("entailment" if entailed else "neutral"), (p.premise.text, p.hypothesis.text)
            checked += 1
    assert checked > 20


def test_changes_by_hand() -> None:
    plan = Clause("verb", NounPhrase(SHE), inflected("see"), object=NounPhrase(HE), past=True)
    against = opposite(MiniEnglish().world.context("train", 0, "test"), negated(plan), "polarity")
    made = [plan, passive(plan), swapped(plan), negated(plan), against]
    assert [" ".join(realise(p)["form"]) for p in made if p is not None] == [
        *("she saw him .", "he was seen by her .", "he saw her .", "she did not see him .", "she saw him ."),
    ]
    assert downward(negated(plan)) and not downward(plan)


def kind_pairs(split: str) -> list[tuple[str, str, str, list[bool]]]:
    """Label and what each sentence has that the other has not, of pairs in which one has the name of a kind."""
    names = {noun.singular for noun in MiniEnglish().world.kinds.values()}
    found = []
    for p in pairs() if split == "train" else nli_pairs(MiniEnglish(), split, 600):
        objects = [
            [w for w, relation in zip(s.words, s.columns["deprel"], strict=True) if relation == "obj"]
            for s in (p.premise, p.hypothesis)
        ]
        if [len(o) for o in objects] == [1, 1] and objects[0] != objects[1] and names & {*objects[0], *objects[1]}:
            denied = ["not" in s.words for s in (p.premise, p.hypothesis)]
            found.append((p.label, objects[0][0], objects[1][0], denied))
    return found


def test_pairs_of_kinds_are_true_by_the_senses_of_their_nouns() -> None:
    lexicon, kinds = MiniEnglish().lexicon, MiniEnglish().world.kinds
    sense = {noun.singular: noun.sense for noun in lexicon.nouns}
    names = {noun.singular for noun in kinds.values()}
    checked = Counter[str]()
    for label, premise, hypothesis, denied in kind_pairs("train"):
        if (premise in names and hypothesis in names) or not {premise, hypothesis} <= sense.keys():
            continue  # not made by ``kind_pair``: any object may be "a thing"
        same, telling = sense[premise] == sense[hypothesis], denied[0] == (premise in names)
        alike = denied[0] == denied[1]
        expected = "neutral" if not (same and telling) else "entailment" if alike else "contradiction"
        checked[expected if label == expected else f"{label}, not {expected}"] += 1
    assert min(checked[label] for label in LABELS) > 150
    assert sum(n for name, n in checked.items() if name not in LABELS) < 0.01 * sum(checked.values()), checked


def test_nouns_of_kinds_in_test_are_in_no_training_pair_of_kinds() -> None:
    world = MiniEnglish().world
    names = {noun.singular for noun in world.kinds.values()}
    words = {
        split: {w for _, *pair, _ in kind_pairs(split) if names & {*pair} for w in pair} - names
        for split in ("train", "test")
    }
    assert len(words["train"]) > 40 and len(words["test"]) > 15
    assert len(words["train"] & world.held_out) <= 2 and len(words["test"] & world.held_out) > 15


def test_overlap_of_words_tells_little() -> None:
    """Words of one sentence alone, how many are shared, and where there is a "not"."""

    def overlap(p: NliPair) -> set[Any]:
        a, b = set(p.premise.words), set(p.hypothesis.words)
        denied = tuple(w in s for s in (a, b) for w in ("not", "no", "never"))
        return {("premise", len(a - b)), ("hypothesis", len(b - a)), ("denied", denied)}

    assert guessing_accuracy(lambda p: set(p.premise.words)) < 0.48
    assert guessing_accuracy(lambda p: {f for f in overlap(p) if f[0] != "denied"}) < 0.66
    assert guessing_accuracy(overlap) < 0.76
