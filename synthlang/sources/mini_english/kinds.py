"""Inference from what a noun names: who saw a dog saw an animal, who saw no animal saw no dog.

That dogs are animals stands in no sentence of the corpus: it shows in the company that the noun keeps, which a model
has to have learned before. Nouns of training pairs are never those of dev and test (``World.held_out``), so that no
list of nouns learned in training helps.

A pair has a word X and the name K of a kind as objects of one verb. The hypothesis is drawn the same way under every
label, and the premise makes the label true. A hypothesis that denies something has an adjunct, so that what is denied
without it may entail it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from synthlang.sources.mini_english.draw import definite, noun_phrase
from synthlang.sources.mini_english.entries import Clause, Noun, NounPhrase
from synthlang.sources.mini_english.world import Context, Use

ALIKE = frozenset("pa")  # people and animals do and suffer the same: hardly to be told apart by their company
OUTSIDE = 0.75  # neutral: how often X is no K
TRIES = 20  # to find a noun


def kind_pair(c: Context, label: str, split: str) -> tuple[Clause, Clause] | None:
    """Premise and hypothesis, None if this draw gave none.

    The premise that tells most asserts X, or denies K. If X is a K it entails the hypothesis on the other noun of the
    same polarity and contradicts that of the other polarity; if not, it says nothing of it. Where no such premise is of
    the label, it is about the noun of the hypothesis itself; a neutral one may say less: assert K, or deny X.
    """
    use = c.use("verb", "tr")
    assert use is not None
    kind_asked, positive = c.chance(0.5), c.chance(0.5)  # of the hypothesis
    inside = label != "neutral" or not c.chance(OUTSIDE)
    nouns = _nouns(c, use, split, kind_asked, inside)
    told = None if nouns is None else _told(c, use, {noun.singular for noun in nouns})
    if nouns is None or told is None:
        return None
    asked, other = nouns
    telling = kind_asked  # the polarity of the premise that tells most
    hypothesis = told.of(asked, positive, not positive)
    if label == "neutral" and inside:
        return told.of(other, not telling, c.chance(0.5)), hypothesis
    alike = positive == telling if label == "neutral" else label == "entailment"
    if (positive == telling) == alike:
        return told.of(other, telling, c.chance(0.5) if alike else not positive), hypothesis
    return told.of(asked, positive == alike, positive == alike), hypothesis


@dataclass(frozen=True)
class _Told:
    """A clause without its object, and its adjunct."""

    plan: Clause
    adjunct: tuple[str, NounPhrase]

    def of(self, noun: Noun, positive: bool, whole: bool) -> Clause:
        """What it says of an object: that it is so or not so, with the adjunct (``whole``) or without."""
        determiner = "a" if not noun.mass else "some" if positive else "any"
        obliques = (self.adjunct,) if whole else ()
        return replace(
            self.plan, object=NounPhrase(noun, determiner=determiner), obliques=obliques, negated=not positive
        )


def _told(c: Context, use: Use, nouns: set[str]) -> _Told | None:
    """A clause of the verb that says nothing of some nouns; None if this draw gave none."""
    verb = use.verb
    subject = definite(noun_phrase(c, verb.base, "subject", use.frame.subject))
    link = c.adjunct(verb)
    adjunct = definite(noun_phrase(c, verb.base, link.preposition, link.senses))
    if {subject.key, adjunct.key} & nouns or subject.key == adjunct.key:
        return None
    return _Told(Clause("verb", subject, verb, past=c.chance(0.7)), (link.preposition, adjunct))


def _nouns(c: Context, use: Use, split: str, kind_asked: bool, inside: bool) -> tuple[Noun, Noun] | None:
    """The noun of the hypothesis and the other one: X and the name of its kind or, not ``inside``, of another."""
    kinds = c.world.kinds
    verb, senses = use.verb.base, "".join(sense for sense in kinds if sense in use.frame.object)
    first = c.world.nouns.draw(c, verb, "object", senses)
    if first is None:
        return None
    others = first.sense if inside else "".join(s for s in senses if s != first.sense and {s, first.sense} != ALIKE)
    if not others or len(senses) < 2:
        return None
    word = _word(c, verb, others if kind_asked else first.sense, split)
    if word is None:
        return None
    return (kinds[first.sense], word) if kind_asked else (word, kinds[c.one(others)])


def _word(c: Context, verb: str, senses: str, split: str) -> Noun | None:
    """A noun that names no kind and that items of the split may have."""
    drawn = (c.world.nouns.one(c, verb, "object", senses) for _ in range(TRIES))
    names = c.world.kinds.values()
    return next((n for n in drawn if n not in names and c.world.suits(split, n.forms)), None)
