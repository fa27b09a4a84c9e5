"""Changes that keep a known relation: a narrower clause, its passive, a second clause beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from synthlang.sources.mini_english.closed import Pronoun
from synthlang.sources.mini_english.draw_clause import clause, verbal
from synthlang.sources.mini_english.draw_noun import noun_phrase
from synthlang.sources.mini_english.entries import Noun
from synthlang.sources.mini_english.nli_content import DEFINITE, content, definite, downward
from synthlang.sources.mini_english.plan import Clause, NounPhrase
from synthlang.sources.mini_english.world import Context

Change = Callable[[Context, Clause], Clause | None]


def narrower(c: Context, plan: Clause, family: str, down: bool) -> Clause | None:
    """A clause whose state of affairs is a special case of ``plan``'s.

    Where nothing is above it that turns the direction, it entails ``plan``; under "not",
    "never" and "no" ``plan`` entails it. "exactly three" and "every" allow few changes.
    """
    changes: list[Change] = []
    assert plan.subject is not None
    if family != "number" and plan.kind == "verb":
        changes += [_with_oblique, _with_manner] if family != "manner" else [_with_oblique]
        changes += [_with_object_adjective]
    if plan.kind == "adjective":
        changes += [_with_degree]
    quantified = plan.subject.determiner
    if quantified in ("a", "no") or (quantified in DEFINITE and not down):
        changes += [_with_subject_adjective]
    first = int(c.draw() * max(1, len(changes)))
    for change in changes[first:] + changes[:first]:
        narrow = change(c, plan)
        if narrow is not None:
            return narrow
    return None


def _with_oblique(c: Context, plan: Clause) -> Clause | None:
    assert plan.verb is not None
    link = c.world.adjuncts.draw(c.draw, c.topic, plan.verb.base, "adjunct", "")
    assert link is not None
    if plan.obliques:
        return None
    phrase = definite(noun_phrase(c, plan.verb.base, link.preposition, link.senses, 0))
    return replace(plan, obliques=((link.preposition, phrase),))


def _with_manner(c: Context, plan: Clause) -> Clause | None:
    assert plan.verb is not None
    manner = c.world.manners.draw(c.draw, c.topic, plan.verb.base, "manner", "")
    return None if plan.manner or manner is None else replace(plan, manner=manner.form)


def _with_degree(c: Context, plan: Clause) -> Clause | None:
    return None if plan.degree else replace(plan, degree="very" if c.chance(0.7) else "really")


def _with_object_adjective(c: Context, plan: Clause) -> Clause | None:
    known = plan.object is not None and plan.object.determiner in DEFINITE
    if plan.object is None or (known and downward(plan)):
        return None
    narrow = _with_adjective(c, plan.object)
    return None if narrow is None else replace(plan, object=narrow)


def _with_subject_adjective(c: Context, plan: Clause) -> Clause | None:
    assert plan.subject is not None
    narrow = _with_adjective(c, plan.subject)
    if narrow is not None and plan.adjective is not None:
        about = (plan.adjective.form, plan.adjective.antonym)
        if narrow.adjectives[0].form in about:
            return None
    return None if narrow is None else replace(plan, subject=narrow)


def _with_adjective(c: Context, phrase: NounPhrase) -> NounPhrase | None:
    if not isinstance(phrase.head, Noun) or phrase.adjectives:
        return None
    adjective = c.world.adjectives.draw(c.draw, c.topic, phrase.head.singular, "amod", phrase.head.sense)
    return None if adjective is None else replace(phrase, adjectives=(adjective,))


def passive(plan: Clause) -> Clause | None:
    """The passive of a clause, if its meaning is the same: a known object, no quantifier."""
    noun, subject = plan.object, plan.subject
    if plan.verb is None or noun is None or subject is None or plan.recipient is not None or plan.frequency:
        return None
    known = not isinstance(noun.head, Noun) or noun.determiner in DEFINITE or noun.owner is not None
    if not known or subject.determiner in ("no", "every", "a") or plan.progressive:
        return None
    return replace(plan, passive=True, agent=True)


def swapped(plan: Clause) -> Clause | None:
    """Subject and object in each other's place, if both are people or groups."""
    if plan.object is None or plan.subject is None or plan.kind != "verb":
        return None
    people = plan.subject.sense == plan.object.sense and plan.subject.sense in "pag"
    return replace(plan, subject=plan.object, object=plan.subject) if people else None


def other_predicate(c: Context, plan: Clause, family: str) -> Clause | None:
    """Something else about the same subject, of the same family and polarity."""
    other = content(c, family)
    if other is None or plan.subject is None or other.subject is None or other.kind != plan.kind:
        return None
    same = other.adjective is not None and plan.adjective is not None
    if same and plan.adjective and other.adjective:
        if other.adjective.form in (plan.adjective.form, plan.adjective.antonym):
            return None
        if plan.subject.sense not in other.adjective.senses:
            return None
    if plan.verb is not None:
        use = c.world.uses.draw(c.draw, c.topic, plan.verb.base, "other", f"in tr|{plan.subject.sense}|")
        if use is None or use.verb is plan.verb or family != "polarity":
            return None
        other = verbal(c, use, plan.subject, 0)
        other.passive = False
        if other.object is not None:
            other.object = definite(other.object)
        other.obliques = tuple((p, definite(phrase)) for p, phrase in other.obliques)
    return replace(other, subject=plan.subject, past=plan.past, negated=plan.negated)


def beside(plan: Clause, second: Clause, first: bool) -> Clause:
    """``plan`` with "although …" before it, or with a second clause after it.

    Both say no more and no less than the two clauses together, so the result entails ``plan``.
    """
    if first:
        return replace(plan, adverbial=("although", second), adverbial_first=True)
    return replace(plan, conjunct=("and", second))


def aside(c: Context) -> Clause:
    """A short clause to stand beside another."""
    while True:
        plan = clause(c, 0)
        if plan.subject is not None and not (isinstance(plan.subject.head, Pronoun) and plan.kind == "exist"):
            return plan
