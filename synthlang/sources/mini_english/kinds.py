"""Inference pairs from kinds of nouns: "she saw a dog" entails "she saw an animal", and "no animal" entails "no dog".

No sentence of the corpus states that dogs are animals. A model can only learn it from the contexts of the noun.

A pair has a noun X and the name K of a kind as objects of one verb. The noun X of a pair of dev or test is in
``World.held_out`` and is never X in training, so learning the nouns by heart does not help. The hypothesis is drawn in
the same way under every label, and the premise makes the label true. A negated hypothesis has an adjunct, so that a
negated premise without the adjunct may entail it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from synthlang.sources.mini_english.draw import definite, noun_phrase
from synthlang.sources.mini_english.entries import Clause, Noun, NounPhrase
from synthlang.sources.mini_english.world import Context, Use

ALIKE = frozenset("pa")  # people and animals occur in nearly the same contexts
OUTSIDE = 0.75  # share of neutral pairs in which X is no K
TRIES = 20  # attempts to find a noun


def kind_pair(c: Context, label: str, split: str) -> tuple[Clause, Clause] | None:
    """Draw a premise and a hypothesis with a given label, or return None if this draw has no result.

    If X is a K, a premise that asserts X or denies K decides the hypothesis about the other noun. The premise entails
    this hypothesis if both are positive or both are negated, and contradicts it otherwise. If this relation is not the
    wanted label, the premise is about the noun of the hypothesis itself. In a neutral pair, X is not a K, or the
    premise asserts K or denies X.

    Args:
        c: The context.
        label: entailment, neutral or contradiction.
        split: Name of the split, which determines the nouns that X may be.
    """
    use = c.use("verb", "tr")
    assert use is not None
    kind_asked, positive = c.chance(0.5), c.chance(0.5)  # properties of the hypothesis
    inside = label != "neutral" or not c.chance(OUTSIDE)
    nouns = _nouns(c, use, split, kind_asked, inside)
    told = None if nouns is None else _told(c, use, {noun.singular for noun in nouns})
    if nouns is None or told is None:
        return None
    asked, other = nouns
    telling = kind_asked  # the polarity of the strongest premise
    hypothesis = told.of(asked, positive, not positive)
    if label == "neutral" and inside:
        return told.of(other, not telling, c.chance(0.5)), hypothesis
    alike = positive == telling if label == "neutral" else label == "entailment"
    if (positive == telling) == alike:
        return told.of(other, telling, c.chance(0.5) if alike else not positive), hypothesis
    return told.of(asked, positive == alike, positive == alike), hypothesis


@dataclass(frozen=True)
class _Told:
    """A clause without its object, and an adjunct for it."""

    plan: Clause
    adjunct: tuple[str, NounPhrase]

    def of(self, noun: Noun, positive: bool, whole: bool) -> Clause:
        """Return the clause with an object, asserted or denied, and with the adjunct if ``whole``."""
        determiner = "a" if not noun.mass else "some" if positive else "any"
        obliques = (self.adjunct,) if whole else ()
        return replace(
            self.plan, object=NounPhrase(noun, determiner=determiner), obliques=obliques, negated=not positive
        )


def _told(c: Context, use: Use, nouns: set[str]) -> _Told | None:
    """Draw a clause of the verb that avoids ``nouns``, or return None if this draw has no result."""
    verb = use.verb
    subject = definite(noun_phrase(c, verb.base, "subject", use.frame.subject))
    link = c.adjunct(verb)
    adjunct = definite(noun_phrase(c, verb.base, link.preposition, link.senses))
    if {subject.key, adjunct.key} & nouns or subject.key == adjunct.key:
        return None
    return _Told(Clause("verb", subject, verb, past=c.chance(0.7)), (link.preposition, adjunct))


def _nouns(c: Context, use: Use, split: str, kind_asked: bool, inside: bool) -> tuple[Noun, Noun] | None:
    """Draw a noun X and the name K of a kind, and return the noun of the hypothesis first.

    K is the kind of X if ``inside``, else another kind. If ``kind_asked``, the hypothesis has K.
    """
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
    """Draw a noun that may occur in items of the split and does not name a kind."""
    drawn = (c.world.nouns.one(c, verb, "object", senses) for _ in range(TRIES))
    names = c.world.kinds.values()
    return next((n for n in drawn if n not in names and c.world.suits(split, n.forms)), None)
