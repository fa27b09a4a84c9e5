"""What is done with a content: a request, its cancelling, a reminder, a message, a question.

The intent of a request is its domain; all else is known by how the clauses are put together, so the
same verb stands under most intents: "buy two apples !", "tell me to buy two apples !" (remind), "tell
Anna to buy two apples !" (tell), "I do not want to buy two apples ." (cancel), "did Anna buy two
apples ?" (check), "tell me who bought two apples !" (ask_person).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synthlang.sources.mini_english.closed import WE, YOU, I
from synthlang.sources.mini_english.draw_clause import clause as statement
from synthlang.sources.mini_english.indirect import TELL, indirect, verb_of
from synthlang.sources.mini_english.plan import Clause
from synthlang.sources.mini_english.slots_domains import DOMAINS, PLACES, Content, content, mention
from synthlang.sources.mini_english.slots_forms import (
    can_you,
    command,
    command_or_can_you,
    duty,
    may_i,
    one_of,
    over,
    us,
    wish,
    without_mirrors,
)
from synthlang.sources.mini_english.world import Context

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
