"""What the sentences of an inference pair say: content families, each closed under contradiction.

A family is drawn before the label, and its opposite is of the same family, so the words of
a hypothesis tell little about the label ("not" stands under every label alike).
"""

from __future__ import annotations

from dataclasses import replace

from synthlang.sources.mini_english import closed
from synthlang.sources.mini_english.closed import Pronoun
from synthlang.sources.mini_english.draw_clause import STATIVE, verbal
from synthlang.sources.mini_english.draw_noun import modified, noun_phrase
from synthlang.sources.mini_english.entries import Noun
from synthlang.sources.mini_english.plan import Clause, NounPhrase
from synthlang.sources.mini_english.world import Context

FAMILIES = (
    *(("polarity", 0.4), ("adjective", 0.18), ("manner", 0.1), ("number", 0.1), ("frequency", 0.1)),
    ("quantifier", 0.12),
)
DEFINITE = ("the", "my", "your", "his", "her", "its", "our", "their", "this", "that")
VAGUE = (closed.SOMEONE, closed.THIS, closed.THAT, closed.NOTHING)


def content(c: Context, family: str) -> Clause | None:
    """A plain clause of a family, or None if this draw gave none."""
    if family == "adjective":
        return _adjective(c)
    kinds = "tr" if family == "number" else "in tr tr di"
    use = c.world.uses.draw(c.draw, c.topic, str(c.topic), "verb", f"{kinds}||")
    assert use is not None
    plan = verbal(c, use, noun_phrase(c, use.verb.base, "subject", use.frame.subject, 0), 0)
    assert plan.subject is not None
    plan.passive, plan.past = False, c.chance(0.7)
    plan.progressive = use.verb.base not in STATIVE and family in ("polarity", "quantifier") and c.chance(0.15)
    plan.subject = definite(plan.subject)
    if plan.object is not None:
        plan.object = _plain(plan.object)
    plan.obliques = tuple((preposition, definite(phrase)) for preposition, phrase in plan.obliques)
    return _of_family(c, plan, family)


def _of_family(c: Context, plan: Clause, family: str) -> Clause | None:  # noqa: PLR0911 - a case each
    subject, noun = plan.subject, plan.object
    assert subject is not None
    if family == "polarity":
        return negated(plan) if c.chance(0.5) else plan
    if family == "manner":
        with_antonym = [m for m in c.world.lexicon.manners if m.antonym in c.world.lexicon.tags]
        return replace(plan, manner=with_antonym[int(c.draw() * len(with_antonym))].form)
    if family == "frequency":
        return replace(plan, frequency="never" if c.chance(0.5) else "always", progressive=False)
    if family == "number":
        if noun is None or not isinstance(noun.head, Noun) or noun.head.mass:
            return None
        counted = replace(noun, determiner="", owner=None, plural=True, numeral=number(c), exactly=True)
        return replace(plan, object=counted)
    if not isinstance(subject.head, Noun) or subject.head.mass:
        return None
    determiner = c.weighted((("no", 0.5), ("a", 0.25), ("every", 0.25)))
    return replace(plan, subject=replace(subject, determiner=determiner, owner=None, plural=False))


def _adjective(c: Context) -> Clause | None:
    """ "The soup is (not) hot", of an adjective that has an antonym."""
    subject = definite(noun_phrase(c, "be", "subject", "patflgie", 0))
    adjective = c.world.adjectives.draw(c.draw, c.topic, subject.key, "amod", subject.sense)
    if adjective is None or adjective.antonym not in c.world.lexicon.tags or adjective in subject.adjectives:
        return None
    opposed = any(other.antonym == adjective.form for other in subject.adjectives)
    plan = Clause("adjective", subject, adjective=adjective, past=c.chance(0.5), negated=c.chance(0.35))
    return None if opposed else plan


def opposite(c: Context, plan: Clause, family: str) -> Clause | None:  # noqa: PLR0911 - a case each
    """A clause of the family that cannot be true together with ``plan``."""
    if family == "polarity":
        return replace(plan, negated=False, object=_unnegated(plan.object)) if plan.negated else negated(plan)
    if family == "adjective":
        if plan.negated or c.chance(0.35):
            return replace(plan, negated=not plan.negated)
        others = (a for a in c.world.lexicon.adjectives if plan.adjective and a.form == plan.adjective.antonym)
        return replace(plan, adjective=next(others, None))
    if family == "manner":
        others_ = (m.antonym for m in c.world.lexicon.manners if m.form == plan.manner)
        return replace(plan, manner=next(others_))
    if family == "frequency":
        return replace(plan, frequency="always" if plan.frequency == "never" else "never")
    if family == "number":
        assert plan.object is not None
        other = number(c)
        return None if other == plan.object.numeral else replace(plan, object=replace(plan.object, numeral=other))
    assert plan.subject is not None
    positive = "a" if c.chance(0.5) else "every"
    determiner = positive if plan.subject.determiner == "no" else "no"
    return replace(plan, subject=replace(plan.subject, determiner=determiner))


def downward(plan: Clause) -> bool:
    """Whether what is said of more is said of less: under "not", "never" and "no"."""
    no_subject = plan.subject is not None and plan.subject.determiner == "no"
    return plan.negated or plan.frequency == "never" or no_subject


def negated(plan: Clause) -> Clause:
    """The clause with "not"; "some" becomes "any"."""
    noun = plan.object
    if noun is not None and noun.determiner == "some":
        noun = replace(noun, determiner="any")
    return replace(plan, negated=True, object=noun)


def _unnegated(noun: NounPhrase | None) -> NounPhrase | None:
    return replace(noun, determiner="some") if noun is not None and noun.determiner == "any" else noun


def number(c: Context) -> str:
    """A numeral from two to seven."""
    return closed.NUMERALS[1 + int(c.draw() * 6)]


def definite(phrase: NounPhrase) -> NounPhrase:
    """The same phrase of something known, without numeral."""
    if isinstance(phrase.head, Pronoun):
        vague = phrase.head in VAGUE
        return NounPhrase(closed.SHE if phrase.head.person else closed.IT) if vague else phrase
    if not isinstance(phrase.head, Noun):
        return phrase
    known = phrase.determiner in DEFINITE or phrase.owner is not None
    return replace(phrase, determiner=phrase.determiner if known else "the", numeral="")


def _plain(phrase: NounPhrase) -> NounPhrase:
    """An object that is known, or one of "a", "some" or nothing before it."""
    return phrase if phrase.determiner in ("a", "some", "") and not phrase.numeral else definite(phrase)


def other_object(c: Context, plan: Clause) -> Clause | None:
    """The clause of another object."""
    if plan.object is None or not isinstance(plan.object.head, Noun) or plan.verb is None:
        return None
    noun = c.world.nouns.draw(c.draw, c.topic, plan.verb.base, "object", plan.object.sense)
    if noun is None or noun is plan.object.head or noun.mass != plan.object.head.mass:
        return None
    fresh = modified(c, noun, 0)
    changed = replace(plan.object, head=noun, adjectives=fresh.adjectives, degree="", compound=None, prepositional=())
    return replace(plan, object=changed)
