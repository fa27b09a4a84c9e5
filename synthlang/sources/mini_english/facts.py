"""Facts of a context for questions: plain clauses, most of which resemble another fact of the context."""

from __future__ import annotations

from dataclasses import replace

from synthlang.sources.mini_english.draw import noun_phrase
from synthlang.sources.mini_english.entries import STATIVE, Clause, Frame, Name, Noun, NounPhrase, Pronoun
from synthlang.sources.mini_english.nli import swapped
from synthlang.sources.mini_english.world import ADJUNCTS, Context, Use

TRIES = 5
WHERE = ("to", "in", "at", "near", "behind", "on")
WHEN = ("after", "before", "during")
INHERITS = 0.6  # share of facts that have the adjuncts and the tense of the fact they resemble


def facts(c: Context, count: int) -> list[Clause]:
    """Draw ``count`` facts in random order, most of which resemble another of these facts."""
    found = [_fresh(c)]
    while len(found) < count:
        base = c.one(found)
        new = _lookalike(c, base)
        if c.chance(INHERITS) and new.kind == base.kind == "verb":
            new.obliques, new.time, new.manner = base.obliques, base.time, base.manner
            new.past, new.modal, new.perfect = base.past, base.modal, base.perfect
            new.progressive = base.progressive and not new.passive and new.verb.base not in STATIVE
        if not any(_same(new, old) for old in found):
            found.append(new)
    keys = [c.draw() for _ in found]
    return [found[i] for i in sorted(range(count), key=keys.__getitem__)]


def words_of(phrase: NounPhrase) -> frozenset[str]:
    """Return the words that identify a phrase, which are its noun or each word of its name."""
    return frozenset(phrase.head.forms if isinstance(phrase.head, Name) else (phrase.key,))


def overlap(one: NounPhrase, other: NounPhrase) -> bool:
    """Return whether two phrases share a word that identifies them (see ``words_of``)."""
    return bool(words_of(one) & words_of(other))


def _same(one: Clause, other: Clause) -> bool:
    """Return whether two facts differ at most in polarity, tense and the details of their phrases."""
    if one.verb is not other.verb or one.adjective is not other.adjective or one.manner != other.manner:
        return False
    if [p for p, _ in one.obliques] != [p for p, _ in other.obliques] or one.time != other.time:
        return False
    pairs = [(one.subject, other.subject), (one.object, other.object)]
    pairs += [(a, b) for (_, a), (_, b) in zip(one.obliques, other.obliques, strict=True)]
    return all(a is b is None or (a is not None and b is not None and overlap(a, b)) for a, b in pairs)


def _fresh(c: Context) -> Clause:
    if c.chance(0.12):
        return _adjectival(c, _named(c, "be", "subject", "patfl"))
    return _fact(c, _use(c, "in tr tr di"))


def _use(c: Context, kinds: str, sense: str = "", taken: str = "") -> Use:
    return c.use("verb", kinds, sense, taken) or _use(c, "in tr di")


def _fact(c: Context, use: Use, subject: NounPhrase | None = None, taken: NounPhrase | None = None) -> Clause:
    """Draw a statement with the arguments of a verb, at most one adjunct of each kind, and a tense."""
    verb, frame = use.verb, use.frame
    plan = Clause("verb", subject or _named(c, verb.base, "subject", frame.subject), verb)
    if frame.kind in ("tr", "di"):
        plan.object = taken or _named(c, verb.base, "object", frame.object, plan.subject)
    if frame.kind == "di":
        plan.recipient = _named(c, verb.base, "recipient", "pg", plan.subject)
    _adjuncts(c, plan, frame)
    _tense(c, plan)
    if frame.kind == "tr" and not plan.progressive:
        plan.passive = plan.agent = c.chance(0.2)
    if plan.negated and plan.object is not None and plan.object.determiner == "some":
        plan.object = replace(plan.object, determiner="the")  # a copy, since another fact may use the phrase too
    return plan


def _named(c: Context, head: str, slot: str, senses: str, other: NounPhrase | None = None) -> NounPhrase:
    """Draw a noun phrase without a pronoun and, if possible, without the words of ``other``."""
    phrase = noun_phrase(c, head, slot, senses)
    tries = 0
    while isinstance(phrase.head, Pronoun) or (other is not None and tries < TRIES and overlap(phrase, other)):
        phrase = noun_phrase(c, head, slot, senses)  # this ends, because the lexicon has nouns of every sense
        tries += 1
    if isinstance(phrase.head, Noun):
        phrase.determiner = "the" if phrase.determiner == "no" else phrase.determiner
        if c.chance(0.08):
            owner = _named(c, phrase.key, "owner", "p")
            if isinstance(owner.head, Name):
                phrase.determiner, phrase.numeral, phrase.owner = "", "", owner
    return phrase


def _adjectival(c: Context, subject: NounPhrase) -> Clause:
    adjective = c.world.adjectives.one(c, subject.key, "amod", subject.sense)
    subject, degree = replace(subject, adjectives=()), c.weighted("state")
    return Clause("adjective", subject, adjective=adjective, degree=degree, past=c.chance(0.6), negated=c.chance(0.15))


def _adjuncts(c: Context, plan: Clause, frame: Frame) -> None:
    base = plan.verb.base
    if c.chance(0.5):
        own = [(p, "".join(s for s in senses if s in "lt")) for p, senses in frame.prepositions if p in WHERE]
        own = [(p, senses) for p, senses in own if senses]
        usual = [(p, senses) for p, senses in ADJUNCTS if p in WHERE and senses == "l"]
        preposition, senses = c.one(own if own and c.chance(0.7) else usual)
        plan.obliques += ((preposition, _named(c, base, preposition, senses)),)
    if c.chance(0.12):
        plan.obliques += (("with", _named(c, base, "with", "p")),)
    if c.chance(0.25):
        preposition = c.one(WHEN)
        plan.obliques += ((preposition, _named(c, base, preposition, "e")),)
    elif c.chance(0.2):
        plan.time = "yes"  # a word by the tense
    if base not in STATIVE and c.chance(0.2):
        plan.manner = c.manner(plan.verb).form


def _tense(c: Context, plan: Clause) -> None:
    level = c.draw()
    plan.past, plan.modal = level < 0.6, "will" if level > 0.88 else ""
    plan.perfect = 0.52 < level < 0.68
    plan.progressive = c.chance(0.08) and not plan.perfect and plan.verb.base not in STATIVE
    plan.negated = c.chance(0.1)
    if plan.time:
        plan.time = c.weighted("time ahead" if plan.modal else "time of fact")
        if plan.time == "yesterday" and (plan.perfect or not plan.past):
            plan.time = "today"


def _lookalike(c: Context, base: Clause) -> Clause:
    """Draw a fact that usually shares words with ``base`` but has another meaning."""
    kind, subject = c.weighted("lookalike"), base.subject
    assert subject is not None
    if kind == "fresh":
        return _fresh(c)
    if base.adjective is not None:
        return _like_adjectival(c, base, subject, kind)
    frame_kind = "di" if base.recipient is not None else "tr" if base.object is not None else "in"
    use = Use(base.verb, next(f for f in base.verb.frames if f.kind == frame_kind), base.verb.topic)
    if kind in ("swap", "verb"):
        turned = swapped(base) if kind == "swap" else None
        return _fact(c, use) if turned is None else _fact(c, use, turned.subject, turned.object)
    if kind == "subject":
        return _fact(c, _use(c, "in tr", subject.sense), subject)
    if kind == "object" and base.object is not None:
        return _fact(c, _use(c, "tr", "", base.object.sense), None, base.object)
    other = _fact(c, use, subject if kind == "again" else None, base.object)
    other.negated = other.negated if kind == "again" else not base.negated
    return other


def _like_adjectival(c: Context, base: Clause, subject: NounPhrase, kind: str) -> Clause:
    """Draw the same subject with another adjective, or another subject with the opposite polarity."""
    if kind in ("subject", "object"):
        return _adjectival(c, subject)
    senses = base.adjective.senses if base.adjective is not None else ""
    other = _named(c, "be", "subject", "".join(s for s in senses if s in "patfl") or "p")
    return replace(base, subject=replace(other, adjectives=()), negated=not base.negated)
