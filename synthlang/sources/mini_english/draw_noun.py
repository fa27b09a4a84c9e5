"""Draw noun phrases: a head by the preferences of its slot, then its modifiers by those of the head."""

from __future__ import annotations

from synthlang.sources.mini_english import closed
from synthlang.sources.mini_english.entries import Name, Noun
from synthlang.sources.mini_english.plan import Entity, NounPhrase
from synthlang.sources.mini_english.world import Context

PRONOUN_SHARE = {"subject": 0.3, "object": 0.13, "recipient": 0.45, "oblique": 0.06}
NAME_SHARE = {"p": 0.3, "l": 0.45, "g": 0.55}
PEOPLE = (("she", 0.23), ("he", 0.23), ("I", 0.17), ("they", 0.14), ("we", 0.09), ("you", 0.1), ("someone", 0.04))
THINGS = (("it", 0.62), ("this", 0.14), ("that", 0.14), ("something", 0.1))
BY_SUBJECT = {pronoun.subject: pronoun for pronoun in closed.PRONOUNS}
POSSESSIVE = (("her", 0.24), ("his", 0.24), ("my", 0.18), ("their", 0.15), ("our", 0.1), ("your", 0.06), ("its", 0.03))
SINGULAR = (
    *(("the", 0.44), ("a", 0.28), ("poss", 0.11), ("owner", 0.06), ("this", 0.04), ("that", 0.02)),
    *(("every", 0.03), ("no", 0.02)),
)
PLURAL = (
    *(("the", 0.34), ("", 0.2), ("poss", 0.1), ("number", 0.12), ("some", 0.08), ("these", 0.05), ("those", 0.03)),
    *(("many", 0.04), ("no", 0.02), ("all", 0.02)),
)
MASS = (("the", 0.4), ("", 0.25), ("some", 0.15), ("poss", 0.12), ("this", 0.04), ("no", 0.04))
NUMBERS = tuple(zip(closed.NUMERALS[1:], (0.3, 0.22, 0.14, 0.1, 0.07, 0.06, 0.04, 0.03, 0.04), strict=True))


def noun_phrase(c: Context, head: str, slot: str, senses: str, room: int) -> NounPhrase:
    """A phrase for the slot of a head word; ``room`` is how deep modifiers may nest."""
    role = slot if slot in PRONOUN_SHARE else "oblique"
    if c.chance(PRONOUN_SHARE[role]):
        return NounPhrase(BY_SUBJECT[c.weighted(PEOPLE if "p" in senses else THINGS)])
    noun = c.world.nouns.draw(c.draw, c.topic, head, slot, senses)
    if noun is None:
        return NounPhrase(closed.IT)
    if noun.sense in NAME_SHARE and c.chance(NAME_SHARE[noun.sense]):
        return NounPhrase(entity(c, head, slot, noun.sense))
    phrase = modified(c, noun, room)
    if phrase.determiner == "no" and role == "oblique":  # "before no harvest" is no English
        phrase.determiner = "the"
    return phrase


def entity(c: Context, head: str, slot: str, sense: str) -> Entity:
    """A name for a slot; a person has a given name, a surname or both."""
    if sense == "p":
        given = c.world.given.draw(c.draw, c.topic, head, slot, "")
        assert given is not None
        if c.chance(0.5):
            return Entity(given.words, "PER", "p", "flat")
        surname = c.world.surnames.draw(c.draw, c.topic, given.words[0], "surname", "")
        assert surname is not None
        return Entity(surname.words if c.chance(0.15) else given.words + surname.words, "PER", "p", "flat")
    names = c.world.places if sense == "l" else c.world.organisations
    name = names.draw(c.draw, c.topic, head, slot, "")
    assert isinstance(name, Name)
    return Entity(name.words, name.kind, sense, name.joined)


def modified(c: Context, noun: Noun, room: int) -> NounPhrase:
    """A common noun with determiner and modifiers."""
    plural = not noun.mass and c.chance(c.world.plural_share[noun])
    phrase = NounPhrase(noun, plural)
    _determine(c, phrase, noun, room)
    if c.chance(0.26):
        _add_adjective(c, phrase, noun)
    if room > 0 and c.chance(0.07):
        phrase.compound = c.world.nouns.draw(c.draw, c.topic, noun.singular, "compound", "tilfe")
        if phrase.compound is noun:
            phrase.compound = None
    if room > 0 and c.chance(0.2):
        _add_prepositional(c, phrase, noun, room)
    if room > 0 and c.chance(0.06):
        other = noun_phrase(c, noun.singular, "conjunct", noun.sense, 0)
        if other.key != phrase.key and not isinstance(other.head, closed.Pronoun):
            phrase.conjunct = ("or" if c.chance(0.15) else "and", other)
    return phrase


def _determine(c: Context, phrase: NounPhrase, noun: Noun, room: int) -> None:
    choice = c.weighted(MASS if noun.mass else PLURAL if phrase.plural else SINGULAR)
    if choice == "poss":
        phrase.determiner = c.weighted(POSSESSIVE)
    elif choice == "number":
        phrase.numeral = c.weighted(NUMBERS)
        phrase.determiner = "the" if c.chance(0.2) else ""
    elif choice == "owner":
        phrase.determiner = "the"
        if room > 0:
            owner = noun_phrase(c, noun.singular, "owner", "pg", 0)
            if not isinstance(owner.head, closed.Pronoun) and not owner.plural:
                phrase.determiner, phrase.owner = "", owner
    else:
        phrase.determiner = choice


def _add_adjective(c: Context, phrase: NounPhrase, noun: Noun) -> None:
    first = c.world.adjectives.draw(c.draw, c.topic, noun.singular, "amod", noun.sense)
    if first is None:
        return
    phrase.adjectives = (first,)
    if c.chance(0.12):
        second = c.world.adjectives.draw(c.draw, c.topic, noun.singular, "amod", noun.sense)
        if second is not None and second is not first and second.form != first.antonym:
            phrase.adjectives = (first, second)
    elif c.chance(0.1) and phrase.determiner != "no":
        phrase.degree = "very" if c.chance(0.7) else "really"


def _add_prepositional(c: Context, phrase: NounPhrase, noun: Noun, room: int) -> None:
    link = c.world.modifiers.draw(c.draw, c.topic, noun.singular, "preposition", noun.sense)
    if link is None:
        return
    inner = noun_phrase(c, noun.singular, link.preposition, link.senses, room - 1)
    if inner.key != noun.singular:
        phrase.prepositional = ((link.preposition, inner),)
