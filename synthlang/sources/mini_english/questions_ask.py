"""What is asked of facts, which facts may answer it, and how it is put into words.

Who did what is kept as roles. A fact may answer a question if it is of the same verb and
polarity, has the role that is asked for, and shares a word of the head with each role that the
question states; tense, adjectives, prepositions and determiners are looked over, so that a
question is asked only where not even a careless reader finds a second answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from synthlang.sources.mini_english.entries import Noun
from synthlang.sources.mini_english.indirect import indirect
from synthlang.sources.mini_english.nli_change import swapped
from synthlang.sources.mini_english.plan import Clause, NounPhrase
from synthlang.sources.mini_english.questions_facts import WHEN, WHERE, other_phrase, words_of
from synthlang.sources.mini_english.world import Context

ASKED = (("subject", 0.36), ("object", 0.26), ("where", 0.18), ("when", 0.12), ("how", 0.08))
CHANGES = (("phrase", 0.45), ("swap", 0.2), ("verb", 0.17), ("missing", 0.08), ("not", 0.1))
ADVERBS = ("where", "when", "how")
Roles = dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of which state of affairs: ``stated`` is a fact without the role ``asked``, of these roles."""

    stated: Clause
    asked: str
    roles: Roles


def roles(plan: Clause) -> Roles:
    """What a clause says of whom: role → the words it is known by."""
    found: Roles = {}
    for name, phrase in (("subject", plan.subject), ("object", plan.object), ("recipient", plan.recipient)):
        if phrase is not None:
            found[name] = words_of(phrase)
    for preposition, phrase in plan.obliques:
        found[role_of(preposition)] = words_of(phrase)
    if plan.time:
        found["when"] = frozenset((plan.time,))
    if plan.manner:
        found["how"] = frozenset((plan.manner,))
    return found


def role_of(preposition: str) -> str:
    """Where, when, or a role of its own."""
    return "where" if preposition in WHERE else "when" if preposition in WHEN else preposition


def may_answer(query: Query, fact: Clause, said: Roles) -> bool:
    """Whether a fact, whose roles are ``said``, could be taken for an answer."""
    if said_of(fact) != said_of(query.stated) or fact.negated != query.stated.negated:
        return False
    return query.asked in said and all(words & said.get(name, frozenset()) for name, words in query.roles.items())


def said_of(plan: Clause) -> str:
    """The verb or the adjective."""
    return plan.verb.base if plan.verb is not None else plan.adjective.form if plan.adjective is not None else ""


def query_of(c: Context, fact: Clause, asked: str) -> Query | None:
    """Ask for a role of a fact; adjuncts may be left out, phrases may become simpler. None: it cannot be asked."""
    if (fact.kind == "adjective" or fact.negated) and asked != "subject":
        return None
    stated = replace(
        fact,
        subject=None if asked == "subject" else _simpler(c, fact.subject),
        object=None if asked == "object" else _simpler(c, fact.object),
        recipient=_simpler(c, fact.recipient),
        obliques=tuple(
            (p, simple)
            for p, phrase in fact.obliques
            if role_of(p) != asked and c.chance(0.45) and (simple := _simpler(c, phrase)) is not None
        ),
        time=fact.time if asked != "when" and c.chance(0.4) else "",
        manner=fact.manner if asked != "how" and c.chance(0.3) else "",
    )
    return Query(stated, asked, roles(stated))


def changed(c: Context, fact: Clause, context: Sequence[Clause], asked: str) -> Clause | None:
    """A state of affairs like that of a fact, of words of the context, that may be nowhere in it."""
    kind = c.weighted(CHANGES)
    if (asked in roles(fact)) == (kind == "missing"):
        return None
    if kind == "swap":
        return swapped(fact)
    if kind == "not":
        return replace(fact, negated=not fact.negated)
    if kind == "verb":
        return _other_verb(c, fact, context)
    if kind == "phrase":
        return _other_phrase(c, fact, context, asked)
    return fact if asked in ADVERBS else None


def worded(c: Context, query: Query, person: bool) -> Clause:
    """The question as a clause; ``person``: "who" and not "what"."""
    plan, asked = replace(query.stated, mood="question"), query.asked
    plan.question_word = asked if asked in ADVERBS else "who" if person else "what"
    if asked == "subject":
        plan.gap, plan.agreement, plan.passive = "subject", "is", False
    elif asked == "object":
        turned = plan.recipient is None and not plan.progressive and c.chance(0.3)
        plan.gap, plan.agreement, plan.passive, plan.agent = ("subject" if turned else "object"), "is", turned, turned
    elif plan.passive and c.chance(0.5):
        plan.passive = plan.agent = False
    return indirect(c, plan)[0] if c.chance(0.15) else plan


def _simpler(c: Context, phrase: NounPhrase | None) -> NounPhrase | None:
    """The phrase, perhaps without adjectives and with "the"."""
    if phrase is None or not isinstance(phrase.head, Noun):
        return phrase
    simple = replace(phrase, adjectives=(), degree="") if c.chance(0.5) else phrase
    loose = simple.determiner in ("a", "some", "") and simple.owner is None
    return replace(simple, determiner="the") if loose and c.chance(0.6) else simple


def _other_verb(c: Context, fact: Clause, context: Sequence[Clause]) -> Clause | None:
    """The same of another verb of the context that takes the same arguments."""
    kind = (fact.object is None, fact.recipient is None)
    verbs = [
        f.verb
        for f in context
        if f.verb is not None and f.verb is not fact.verb and (f.object is None, f.recipient is None) == kind
    ]
    if fact.verb is None or not verbs:
        return None
    return replace(fact, verb=verbs[int(c.draw() * len(verbs))], progressive=False)


def _other_phrase(c: Context, fact: Clause, context: Sequence[Clause], asked: str) -> Clause | None:
    """The same with another subject or object of the context."""
    name = "object" if asked == "subject" and fact.object is not None else "subject"
    mine = fact.object if name == "object" else fact.subject
    if mine is None or asked == name:
        return None
    phrases = [p for f in context for p in (f.subject, f.object, f.recipient) if p is not None]
    there = frozenset[str]().union(*roles(fact).values())
    other = other_phrase(c, mine, [p for p in phrases if not words_of(p) & there])
    if other is None:
        return None
    return replace(fact, object=other) if name == "object" else replace(fact, subject=other)
