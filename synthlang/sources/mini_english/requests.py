"""Utterances: what they are about (domains of requests) and what is done with it (asked for, cancelled, told, …).

The slot of a phrase is decided by the domain, the preposition and the sense of the noun together: "from Anna" is who
sells or sends, "from Oslo" is where one sets off; "to Oslo" and "to the party" are a destination and an event, "to
Anna" a recipient. The intent of a request is its domain; all else is known by how the clauses are put together, so
the same verb stands under most intents: "buy two apples !", "tell me to buy two apples !" (remind), "tell Anna to buy
two apples !" (tell), "I do not want to buy two apples ." (cancel), "did Anna buy two apples ?" (check), "tell me who
bought two apples !" (ask_person).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from synthlang.sources.mini_english.draw import TELL, indirect, noun_phrase, verb_of
from synthlang.sources.mini_english.draw import clause as statement
from synthlang.sources.mini_english.entries import THEY, WE, YOU, I, Noun, Pronoun, Verb
from synthlang.sources.mini_english.plan import Clause, Head, NounPhrase
from synthlang.sources.mini_english.world import Context

TIMES = (("today", 0.35), ("tomorrow", 0.35), ("soon", 0.15), ("now", 0.15))
US = 0.22
WHEN = (("after", 0.4), ("before", 0.35), ("during", 0.25))
PLACES = ("destination", "origin", "place", "via")  # slots that "where" asks for


@dataclass(frozen=True, slots=True)
class Adjunct:
    """A prepositional phrase: its preposition, the senses after it, the slot."""

    preposition: str
    senses: str
    slot: str


@dataclass(frozen=True, slots=True)
class Choice:
    """At most one of some adjuncts."""

    share: float
    adjuncts: tuple[Adjunct, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """What a request is about. ``verbs``: the first ones are in every lexicon; ``taken``: slot of the object."""

    verbs: tuple[str, ...]
    choices: tuple[Choice, ...]
    taken: str = ""
    senses: str = ""  # of the object
    receives: float = 0.0  # how often it has a recipient
    to: bool = False  # "gave it to her" beside "gave her it"


@dataclass(slots=True)
class Content:
    """A clause without subject and tense, and the slots of its dependents by their relation.

    ``time``: the phrase of time, which may also stand at the front of the utterance.
    """

    clause: Clause
    slots: dict[str, str] = field(default_factory=dict)
    time: str | tuple[str, NounPhrase] | None = None


_COMPANION = Choice(0.25, (Adjunct("with", "pg", "companion"),))
_PLACE = (Adjunct("in", "l", "place"), Adjunct("at", "l", "place"), Adjunct("near", "l", "place"))
DOMAINS: Mapping[str, Domain] = {
    "travel": Domain(
        ("go", "walk", "run", "come", "travel", "drive", "sail", "return", "swim"),
        (
            Choice(0.9, (Adjunct("to", "l", "destination"),) * 3 + (Adjunct("to", "e", "event"),)),
            Choice(0.45, (Adjunct("from", "l", "origin"),)),
            Choice(0.2, (Adjunct("through", "l", "via"),)),
            _COMPANION,
        ),
    ),
    "get": Domain(
        ("buy", "find", "take", "order", "borrow", "collect"),
        (
            Choice(0.6, (Adjunct("from", "pg", "sender"), Adjunct("from", "l", "origin"), *_PLACE)),
            Choice(0.35, (Adjunct("for", "pg", "recipient"), Adjunct("for", "e", "event"))),
        ),
        *("item", "ft"),
        receives=0.25,
    ),
    "send": Domain(
        ("give", "show", "send", "bring", "write", "offer", "sell"),
        (
            Choice(0.6, (Adjunct("to", "l", "destination"), Adjunct("to", "e", "event"))),
            Choice(0.4, (Adjunct("from", "pg", "sender"), Adjunct("from", "l", "origin"))),
            Choice(0.1, (Adjunct("for", "e", "event"),)),
        ),
        *("item", "ft"),
        receives=0.7,
        to=True,
    ),
    "meet": Domain(
        ("see", "help", "meet", "visit", "call", "invite", "watch", "follow"),
        (Choice(0.6, (*_PLACE, Adjunct("at", "e", "event"))), _COMPANION),
        *("contact", "pppg"),
    ),
}


def content(c: Context, name: str, without: tuple[str, ...] = ()) -> Content:
    """A clause of a domain; none of its phrases fills a slot of ``without``."""
    domain = DOMAINS[name]
    found = Content(Clause("verb", None, _verb(c, domain)))
    clause, verb = found.clause, found.clause.verb
    assert verb is not None
    if domain.taken:
        clause.object = mention(c, verb.base, "object", domain.senses)
        found.slots["obj"] = domain.taken
    takes_two = domain.to or any(frame.kind == "di" for frame in verb.frames)
    if takes_two and c.chance(domain.receives):
        clause.recipient = mention(c, verb.base, "recipient", "pg")
        heavy = clause.object is not None and isinstance(clause.object.head, Pronoun)
        clause.recipient_last = domain.to and (c.chance(0.5) or heavy)
        found.slots["obl to" if clause.recipient_last else "iobj"] = "recipient"
    for choice in domain.choices:
        _adjunct(c, found, choice, without)
    if c.chance(0.5):
        _shuffle(c, clause)
    if "time" not in without and c.chance(0.45):
        found.time = c.weighted(TIMES) if c.chance(0.6) else (c.weighted(WHEN), mention(c, "when", "after", "e"))
    return found


def mention(c: Context, head: str, slot: str, senses: str) -> NounPhrase:
    """A phrase that is a pronoun only now and then; of people one who speaks or listens more often.

    "Tell me to send Anna the letter" and "tell Anna to send me the letter" have the same words.
    """
    if "p" in senses and c.chance(US):
        return NounPhrase(YOU if c.chance(0.35) else I if c.chance(0.8) else WE)
    phrase = noun_phrase(c, head, slot, senses, 0)
    while isinstance(phrase.head, Pronoun) and c.chance(0.8):
        phrase = noun_phrase(c, head, slot, senses, 0)
    if isinstance(phrase.head, Noun):
        if phrase.determiner == "no":
            phrase.determiner = "the"
        if phrase.numeral and not phrase.determiner and c.chance(0.2):
            phrase.exactly = True
        if not phrase.adjectives and c.chance(0.12):
            other = c.world.nouns.draw(c.draw, c.topic, phrase.head.singular, "compound", "tilfe")
            phrase.compound = None if other is phrase.head else other
    return phrase


def _verb(c: Context, domain: Domain) -> Verb:
    """A verb of the domain that the lexicon has, the more frequent ones more often."""
    verbs = [verb for verb in c.world.lexicon.verbs if verb.base in domain.verbs]
    assert verbs, "the first verbs of a domain are in every lexicon"
    return verbs[int(c.draw() ** 1.5 * len(verbs))]


def _adjunct(c: Context, found: Content, choice: Choice, without: tuple[str, ...]) -> None:
    clause = found.clause
    if not c.chance(choice.share):
        return
    adjunct = choice.adjuncts[int(c.draw() * len(choice.adjuncts))]
    key = f"obl {adjunct.preposition}"
    received = clause.recipient is not None and (adjunct.slot == "recipient" or adjunct.preposition == "to")
    if adjunct.slot in without or key in found.slots or received:
        return
    assert clause.verb is not None
    phrase = mention(c, clause.verb.base, adjunct.preposition, adjunct.senses)
    clause.obliques += ((adjunct.preposition, phrase),)
    found.slots[key] = adjunct.slot


def _shuffle(c: Context, clause: Clause) -> None:
    """Turn the adjuncts round by some places: any may stand first."""
    shift = int(c.draw() * max(1, len(clause.obliques)))
    clause.obliques = clause.obliques[shift:] + clause.obliques[:shift]


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


DOMAIN_WEIGHTS = (("travel", 0.28), ("get", 0.28), ("send", 0.22), ("meet", 0.22))
ACTS = (
    *(("request", 0.48), ("tell", 0.12), ("remind", 0.09), ("cancel", 0.09)),
    *(("ask_place", 0.06), ("ask_time", 0.05), ("ask_person", 0.05), ("check", 0.06)),
)
INTENTS = tuple(sorted({*DOMAINS, *(name for name, _ in ACTS if name != "request")}))
LINKS = (("because", 0.4), ("before", 0.25), ("after", 0.15), ("when", 0.2))


@dataclass(slots=True)
class Utterance:
    """A sentence; its content is the clause ``depth`` complements below the root."""

    plan: Clause
    intent: str
    content: Content
    depth: int = 0


def utterance(c: Context) -> Utterance:
    """An utterance of an intent drawn by its weight."""
    act = c.weighted(ACTS)
    makers: dict[str, Callable[[Context], Utterance]] = {"request": _request, "cancel": _cancel, "remind": _remind}
    makers |= {"tell": _message, "check": _check}
    made = makers[act](c) if act in makers else _asked(c, act)
    message = "ccomp" in made.content.slots  # what follows one would seem to belong to it
    if c.chance(0.3) and not (message and made.plan.please):
        made.plan.adverbial = (c.weighted(LINKS), _aside(c))
        made.plan.adverbial_first = message or (not made.plan.please and c.chance(0.4))
    without_mirrors(made.plan, YOU if made.plan.mood == "imperative" else None)
    return made


def _aside(c: Context) -> Clause:
    """A second content, which gives a reason or a time of the first one."""
    found = content(c, c.weighted(DOMAIN_WEIGHTS), ("time",))
    if c.chance(0.4):
        _agent(c, found)
        _tense(c, found)
    else:
        duty(c, found.clause)
    found.clause.negated = c.chance(0.25)  # so that "not" alone cancels nothing
    return found.clause


def _request(c: Context) -> Utterance:
    name = c.weighted(DOMAIN_WEIGHTS)
    found = content(c, name)
    level = c.draw()
    if level < 0.3:
        return Utterance(command(c, found.clause), name, found)
    if level < 0.55:
        return Utterance(wish(c, found.clause), name, found, 1)
    if level < 0.8:
        return Utterance((may_i if c.chance(0.5) else can_you)(c, found.clause), name, found)
    if level < 0.9:
        return Utterance(duty(c, found.clause), name, found)
    helps = Clause("verb", None, verb_of(c.world, "help"), object=us(c))
    return Utterance(command_or_can_you(c, over(helps, found.clause)), name, found, 1)


def _cancel(c: Context) -> Utterance:
    found = _told(c) if c.chance(0.3) else _any_content(c)
    level = c.draw()
    if level < 0.4:
        plan = command(c, found.clause)
    elif level < 0.7:
        plan = wish(c, found.clause)
    else:
        plan = duty(c, found.clause)
    plan.negated = True
    return Utterance(plan, "cancel", found, int(0.4 <= level < 0.7))


def _remind(c: Context) -> Utterance:
    """ "Tell me to …", "remember to …", "do not forget to …"."""
    found = _any_content(c)
    known = [verb for verb in c.world.lexicon.verbs if verb.base in ("remember", "forget")]
    verb = one_of(c, known) if known and c.chance(0.5) else None
    if verb is None:
        tells = over(Clause("verb", None, verb_of(c.world, "tell"), recipient=us(c)), found.clause)
        return Utterance(command_or_can_you(c, tells), "remind", found, 1)
    plan = over(Clause("verb", None, verb), found.clause)
    plan = command(c, plan) if c.chance(0.6) else duty(c, plan)
    plan.negated = verb.base == "forget"
    return Utterance(plan, "remind", found, 1)


def _message(c: Context) -> Utterance:
    found, level = _told(c), c.draw()
    if level < 0.25:
        return Utterance(wish(c, found.clause), "tell", found, 1)
    plan = duty(c, found.clause) if level < 0.35 else command_or_can_you(c, found.clause)
    return Utterance(plan, "tell", found)


def _told(c: Context) -> Content:
    """Telling somebody else something: that …, to …, where …, who …."""
    receiver = mention(c, "tell", "recipient", "pg")
    while receiver.head in (I, YOU, WE):  # "tell me to" is a reminder
        receiver = mention(c, "tell", "recipient", "pg")
    level, mark = c.draw(), ""
    if level < 0.4:
        inner, mark = statement(c, 0), "that" if c.chance(0.75) else ""
        inner.negated = inner.negated or (inner.kind != "exist" and not inner.frequency and c.chance(0.25))
    elif level < 0.7:
        inner, mark = _with_time(_any_content(c)), "to"
    elif level < 0.9:
        inner = _where_or_when(c, content(c, c.weighted(DOMAIN_WEIGHTS), (*PLACES, "time")))
    else:
        found = _any_content(c)
        _who(c, found)
        inner = found.clause
    verb = next((v for v in c.world.lexicon.verbs if v.base == "ask"), None) if mark == "to" and c.chance(0.4) else None
    said = Clause("verb", None, verb or verb_of(c.world, TELL), complement=inner, complement_mark=mark)
    if verb is None:
        said.recipient = receiver
    else:
        said.object = receiver
    return Content(said, {"iobj": "recipient", "obj": "recipient", "ccomp": "message", "xcomp": "message"})


def _any_content(c: Context) -> Content:
    return content(c, c.weighted(DOMAIN_WEIGHTS))


def _asked(c: Context, intent: str) -> Utterance:
    """A question for a place, a time or a person, asked or wished for."""
    found = content(c, c.weighted(DOMAIN_WEIGHTS), {"ask_place": PLACES, "ask_time": ("time",)}.get(intent, ()))
    if intent == "ask_person":
        _who(c, found)
    else:
        found.clause = _where_or_when(c, found, "where" if intent == "ask_place" else "when")
    found.clause.mood = "question"
    if c.chance(0.4):
        plan, depth = indirect(c, found.clause)
        return Utterance(plan, intent, found, depth)
    return Utterance(found.clause, intent, found)


def _who(c: Context, found: Content) -> None:
    clause = found.clause
    if found.slots.get("obj") == "contact" and c.chance(0.5):
        _agent(c, found)
        clause.object, clause.gap = None, "object"
    else:
        clause.gap = "subject"
    clause.question_word = "who"
    _tense(c, found)


def _where_or_when(c: Context, found: Content, word: str = "") -> Clause:
    _agent(c, found)
    _tense(c, found)
    found.clause.question_word = word or ("where" if c.chance(0.6) else "when")
    return found.clause


def _check(c: Context) -> Utterance:
    """Whether something is so; of "I", "you" and "we" only what is past, as "can I …" is a request."""
    found = _told(c) if c.chance(0.25) else _any_content(c)
    _agent(c, found)
    _tense(c, found)
    subject = found.clause.subject
    if subject is not None and subject.head in (I, YOU, WE):
        found.clause.modal, found.clause.past = "", True
    found.clause.mood = "question"
    return Utterance(found.clause, "check", found)


def _agent(c: Context, found: Content) -> None:
    verb = found.clause.verb
    assert verb is not None
    found.clause.subject = mention(c, verb.base, "subject", "pg")
    found.slots["nsubj"] = "agent"


def _tense(c: Context, found: Content) -> None:
    clause, level = found.clause, c.draw()
    clause.modal = "will" if level < 0.2 else "can" if level < 0.3 else ""
    clause.past = 0.3 <= level < 0.75
    clause.perfect = 0.7 <= level < 0.8
    if clause.past and isinstance(found.time, str) and c.chance(0.6):
        found.time = "yesterday"


def _with_time(found: Content) -> Clause:
    place_time(found)
    return found.clause


def place_time(found: Content) -> None:
    """Put the phrase of time behind the other adjuncts of its clause."""
    if isinstance(found.time, str):
        found.clause.time = found.time
    elif found.time is not None:
        found.clause.obliques += (found.time,)
