"""How a content is put forward: bidden, asked for, wished for; and who "I" and "you" are in it."""

from __future__ import annotations

from synthlang.sources.mini_english.closed import THEY, WE, YOU, I
from synthlang.sources.mini_english.entries import Verb
from synthlang.sources.mini_english.plan import Clause, Head, NounPhrase
from synthlang.sources.mini_english.world import Context

OURS = (("can", 0.4), ("may", 0.2), ("could", 0.2), ("should", 0.2))  # can I, can we
YOURS = (("can", 0.5), ("could", 0.3), ("will", 0.2))
DUTIES = (("must", 0.5), ("should", 0.25), ("will", 0.25))
SPEAKERS = (I, WE, YOU)


def command(c: Context, plan: Clause) -> Clause:
    """ "Go …", "please go …"."""
    plan.mood, plan.please = "imperative", c.chance(0.25)
    return plan


def may_i(c: Context, plan: Clause) -> Clause:
    """ "Can I go … ?"."""
    plan.subject, plan.mood = us(c), "question"
    plan.modal = c.weighted(OURS)
    return plan


def can_you(c: Context, plan: Clause) -> Clause:
    """ "Could you go … ?"."""
    plan.subject, plan.mood = NounPhrase(YOU), "question"
    plan.modal = c.weighted(YOURS)
    return plan


def command_or_can_you(c: Context, plan: Clause) -> Clause:
    """One of the two ways to bid the listener."""
    return command(c, plan) if c.chance(0.6) else can_you(c, plan)


def duty(c: Context, plan: Clause) -> Clause:
    """ "We must go …"."""
    plan.subject, plan.modal = us(c), c.weighted(DUTIES)
    return plan


def wish(c: Context, inner: Clause) -> Clause:
    """ "I want to …", "we would like to …"; "hope" and "plan" where the lexicon has them."""
    verbs = [verb for verb in c.world.lexicon.verbs if verb.base in ("want", "like", "hope", "plan")]
    verb = one_of(c, verbs)
    return over(Clause("verb", us(c), verb, modal="would" if verb.base == "like" else ""), inner)


def over(plan: Clause, inner: Clause) -> Clause:
    """A clause with another one as its infinitive."""
    plan.complement, plan.complement_mark = inner, "to"
    return plan


def us(c: Context) -> NounPhrase:
    """Who speaks."""
    return NounPhrase(WE if c.chance(0.25) else I)


def one_of(c: Context, verbs: list[Verb]) -> Verb:
    """One of some verbs."""
    return verbs[int(c.draw() * len(verbs))]


def without_mirrors(plan: Clause, subject: Head | None) -> None:
    """Let nobody speak of himself as of another: "I will call me" becomes "I will call you"."""
    subject = plan.subject.head if plan.subject is not None else subject
    spoken = [subject]

    def settled(phrase: NounPhrase) -> NounPhrase:
        if phrase.head not in SPEAKERS:
            return phrase
        free = [p for p in (phrase.head, I, YOU) if not any(_same(p, other) for other in spoken)][:1] or [THEY]
        spoken.append(free[0])
        return NounPhrase(free[0])

    plan.object, plan.recipient = (p if p is None else settled(p) for p in (plan.object, plan.recipient))
    plan.obliques = tuple((preposition, settled(phrase)) for preposition, phrase in plan.obliques)
    if plan.complement is not None:
        told = plan.object or plan.recipient
        without_mirrors(plan.complement, subject if told is None else told.head)
    if plan.adverbial is not None:
        without_mirrors(plan.adverbial[1], None)


def _same(one: Head, other: Head | None) -> bool:
    return one is other or (one in (I, WE) and other in (I, WE))
