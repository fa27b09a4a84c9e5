"""Pairs for natural language inference, true by construction.

The hypothesis is drawn the same way under every label (content family, narrow or not, with
a second clause or not); the label is in how the premise is made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.rng import key_of, permutation
from synthlang.sources.base import check_split
from synthlang.sources.mini_english import nli_change as change
from synthlang.sources.mini_english.nli_content import FAMILIES, content, downward, opposite, other_object
from synthlang.sources.mini_english.plan import Clause
from synthlang.sources.mini_english.realise import realise
from synthlang.sources.mini_english.source import MAX_WORDS, NAME, MiniEnglish
from synthlang.sources.mini_english.world import Context, context_of

LABELS = ("entailment", "neutral", "contradiction")
TRIES = 40  # to find a pair of one family before another is drawn, so families keep their shares
Pair = tuple[Clause, Clause]


@dataclass(frozen=True)
class NliPair:
    """Two annotated sentences (columns as in the corpus) and the label of the pair."""

    premise: Sentence
    hypothesis: Sentence
    label: str


def nli_pairs(source: MiniEnglish, split: str, count: int) -> Iterator[NliPair]:
    """``count`` pairs for a split, the labels in equal shares.

    Pair i is a function of (types, seed, split, i); its two sentences have the id i.
    """
    check_split(source, split, NAME)
    if count < 0:
        raise InputError(f"{NAME}: the number of inference pairs must be 0 or more, not {count}")
    return (_pair(source, split, index) for index in range(count))


def _pair(source: MiniEnglish, split: str, index: int) -> NliPair:
    order = permutation(key_of("mini-english", "nli labels", source.seed, split, index // 3), 3)
    label = LABELS[order[index % 3]]
    c = context_of(source.world, source.seed, source.types, split, index, "nli")
    while True:  # ends: each try succeeds with a fair chance
        family = c.weighted(FAMILIES)
        for _ in range(TRIES):
            plans = _plans(c, family, label)
            if plans is None:
                continue
            premise, hypothesis = realise(plans[0]), realise(plans[1])
            short = max(len(premise["form"]), len(hypothesis["form"])) <= MAX_WORDS
            if short and premise["form"] != hypothesis["form"]:
                return NliPair(Sentence(index, premise), Sentence(index, hypothesis), label)


def _plans(c: Context, family: str, label: str) -> Pair | None:
    """Premise and hypothesis as plans, or None if this draw allows none."""
    broad = content(c, family)
    if broad is None:
        return None
    make = {"entailment": _entailment, "neutral": _neutral, "contradiction": _contradiction}[label]
    pair = make(c, broad, family)
    if pair is None:
        return None
    premise, hypothesis = (_perhaps_passive(c, plan) for plan in pair)
    return _with_asides(c, premise, hypothesis, label)


def _chain(c: Context, broad: Clause, family: str) -> Pair | None:
    """(entailing, entailed): a clause and a narrower one, in the direction its polarity gives."""
    down = downward(broad)
    if c.chance(0.5):
        broad = change.narrower(c, broad, family, down) or broad
    narrow = change.narrower(c, broad, family, down)
    if narrow is None:
        return None
    return (broad, narrow) if down else (narrow, broad)


def _entailment(c: Context, broad: Clause, family: str) -> Pair | None:
    if c.chance(0.2):
        return broad, broad  # and a second clause or the passive tells them apart
    return _chain(c, broad, family)


def _neutral(c: Context, broad: Clause, family: str) -> Pair | None:
    level = c.draw()
    if level < 0.45:
        chain = _chain(c, broad, family)
        return None if chain is None else (chain[1], chain[0])
    if level < 0.6:
        other = change.swapped(broad) or other_object(c, broad)
    else:
        other = change.other_predicate(c, broad, family) or other_object(c, broad)
    return None if other is None else (broad, other)


def _contradiction(c: Context, broad: Clause, family: str) -> Pair | None:
    """What entails the clause, against its opposite; or the other way round."""
    other = opposite(c, broad, family)
    if other is None:
        return None
    chain = _chain(c, broad, family) if c.chance(0.6) else None
    strong = broad if chain is None or chain[1] is not broad else chain[0]
    return (strong, other) if c.chance(0.5) else (other, strong)


def _perhaps_passive(c: Context, plan: Clause) -> Clause:
    return (change.passive(plan) if c.chance(0.2) else None) or plan


def _with_asides(c: Context, premise: Clause, hypothesis: Clause, label: str) -> Pair:
    """Second clauses beside premise and hypothesis; they must not undo the label."""
    reason, more = (change.aside(c) if c.chance(0.2) else None for _ in range(2))
    if reason is not None:  # in the hypothesis: known from the premise if it is to follow from it
        hypothesis = change.beside(hypothesis, reason, True)
        if label == "entailment" or c.chance(0.3):
            premise = change.beside(premise, reason, True)
    if more is not None:  # in the premise alone: it only adds to what is known
        premise = change.beside(premise, more, False)
    return premise, hypothesis
