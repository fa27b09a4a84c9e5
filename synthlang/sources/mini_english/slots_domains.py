"""What utterances are about: domains of requests, the arguments of their verbs and the slots these fill.

The slot of a phrase is decided by the domain, the preposition and the sense of the noun together:
"from Anna" is who sells or sends, "from Oslo" is where one sets off; "to Oslo" and "to the party"
are a destination and an event, "to Anna" a recipient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synthlang.sources.mini_english.closed import WE, YOU, I, Pronoun
from synthlang.sources.mini_english.draw_noun import noun_phrase
from synthlang.sources.mini_english.entries import Noun, Verb
from synthlang.sources.mini_english.plan import Clause, NounPhrase
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
