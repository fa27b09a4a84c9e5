"""Inference from what a noun names: who saw a dog saw an animal, who saw no animal saw no dog.

That dogs are animals stands in no sentence of the corpus: it shows in the company that the noun keeps, which a model
has to have learned before. Nouns of training pairs are never those of dev and test (``World.held_out``), so that no
list of nouns learned in training helps.

A pair has a word X and the name K of a kind in the same place. The hypothesis is drawn the same way under every label,
and the premise makes the label true. A hypothesis that says that something is not so has an adjunct, so that what says
less may entail it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from synthlang.sources.mini_english.draw import definite, noun_phrase
from synthlang.sources.mini_english.entries import GRAMMAR, Clause, Noun, NounPhrase
from synthlang.sources.mini_english.world import Context, Use

KINDS: dict[str, str] = GRAMMAR["kinds"]  # sense → the noun that names its kind
ALIKE = frozenset("pa")  # kinds that hardly differ in their company: never one against the other
OUTSIDE = 0.75  # neutral: how often X is no K
TRIES = 20  # to find a noun
Say = Callable[[Noun, bool, bool], Clause]


def kind_pair(c: Context, label: str, split: str) -> tuple[Clause, Clause] | None:
    """Premise and hypothesis, None if this draw gave none.

    The premise that tells most says so of X, or denies it of K. If X is a K it entails the hypothesis on the other noun
    of the same polarity, and contradicts that of the other; if not, it says nothing of it. Where no such premise is of
    the label, it is about the noun of the hypothesis itself; a neutral one may say less: of K that it is so, or deny X.
    """
    use = c.use("verb", "tr")
    assert use is not None
    slot = "object"
    kind_asked, positive = c.chance(0.5), c.chance(0.5)  # of the hypothesis
    inside = label != "neutral" or not c.chance(OUTSIDE)
    nouns = _nouns(c, use, slot, split, kind_asked, inside)
    say = None if nouns is None else _sayer(c, use, slot, nouns)
    if nouns is None or say is None:
        return None
    asked, other = nouns
    telling = kind_asked  # the polarity of the premise that tells most: on X if the kind is asked for
    hypothesis = say(asked, positive, not positive)
    alike = positive == telling if label == "neutral" else label == "entailment"
    if label == "neutral" and inside:
        return say(other, not telling, c.chance(0.5)), hypothesis
    if (positive == telling) == alike:
        return say(other, telling, c.chance(0.5) if alike else not positive), hypothesis
    return say(asked, positive == alike, positive == alike), hypothesis


def _nouns(c: Context, use: Use, slot: str, split: str, kind_asked: bool, inside: bool) -> tuple[Noun, Noun] | None:
    """The noun of the hypothesis and the other one: X and the name of its kind or, not ``inside``, of another."""
    verb, senses = use.verb.base, [sense for sense in KINDS if sense in getattr(use.frame, slot)]
    first = c.world.nouns.draw(c, verb, slot, "".join(senses))
    if first is None or len(senses) < 2:
        return None
    others = [s for s in senses if (s == first.sense if inside else not ALIKE.issuperset((s, first.sense)))]
    others = [s for s in others if inside or s != first.sense]
    if not others:
        return None
    if kind_asked:
        word = _word(c, verb, slot, "".join(others), split)
        return None if word is None else (_name(c, first.sense), word)
    word = _word(c, verb, slot, first.sense, split)
    return None if word is None else (word, _name(c, c.one(others)))


def _name(c: Context, sense: str) -> Noun:
    return next(noun for noun in c.world.lexicon.nouns if noun.singular == KINDS[sense])


def _word(c: Context, verb: str, slot: str, senses: str, split: str) -> Noun | None:
    """A noun that names no kind and that items of the split may have."""
    drawn = (c.world.nouns.one(c, verb, slot, senses) for _ in range(TRIES))
    names = KINDS.values()
    return next((n for n in drawn if n.singular not in names and c.world.suits(split, n.forms)), None)


def _sayer(c: Context, use: Use, slot: str, nouns: tuple[Noun, Noun]) -> Say | None:
    """What says a clause of a noun in the slot: that it is so or not, with its adjunct or without."""
    verb = use.verb
    plan = Clause("verb", None, verb, past=c.chance(0.7))
    taken = {noun.singular for noun in nouns}
    rest = [name for name in ("subject", "object") if name != slot and getattr(use.frame, name)]
    for name in rest:
        phrase = definite(noun_phrase(c, verb.base, name, getattr(use.frame, name)))
        setattr(plan, name, phrase)
        taken.add(phrase.key)
    link = c.adjunct(verb)
    adjunct = definite(noun_phrase(c, verb.base, link.preposition, link.senses))
    if len(taken) < 2 + len(rest) or adjunct.key in taken:
        return None

    def say(noun: Noun, positive: bool, whole: bool) -> Clause:
        some = "some" if noun.mass else "a"
        denied = "no" if slot == "subject" else "any" if noun.mass else "a"
        phrase = NounPhrase(noun, determiner=some if positive else denied)
        obliques = ((link.preposition, adjunct),) if whole else ()
        made = replace(plan, obliques=obliques, negated=slot == "object" and not positive)
        return replace(made, subject=phrase) if slot == "subject" else replace(made, object=phrase)

    return say
