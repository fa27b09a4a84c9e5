"""What the lexicon holds: nouns, verbs with their frames, adjectives, adverbs, names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A common noun; a mass noun has no plural."""

    singular: str
    plural: str
    sense: str
    topic: int

    @property
    def mass(self) -> bool:
        """Whether it cannot be counted."""
        return not self.plural


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands with a verb: kind (in tr di cc xc aj), senses of its slots, its own prepositions."""

    kind: str
    subject: str
    object: str = ""
    prepositions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its five forms."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    topic: int  # -1: any
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective, the senses of the nouns it goes with, and its antonym."""

    form: str
    senses: str
    antonym: str
    topic: int


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """A manner adverb and its antonym."""

    form: str
    antonym: str
    topic: int


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A name of one or more words: of a place, an organisation, or a given name or surname.

    ``joined``: "compound" (head last), "flat" (head first) or "of" (University of Oslo).
    """

    words: tuple[str, ...]
    kind: str  # PER LOC ORG
    sense: str  # p l g
    topic: int
    joined: str = "flat"


Entry = Noun | Verb | Adjective | Manner | Name


def forms_of(entry: Entry) -> tuple[str, ...]:
    """The word forms an entry adds to the lexicon ("of" and other function words apart)."""
    match entry:
        case Noun():
            return tuple(dict.fromkeys(f for f in (entry.singular, entry.plural) if f))
        case Verb():
            return tuple(dict.fromkeys((entry.base, entry.third, entry.past, entry.participle, entry.gerund)))
        case Name():
            return tuple(dict.fromkeys(word for word in entry.words if word != "of"))
        case _:
            return (entry.form,)


def tags_of(entry: Entry) -> str:
    """The universal POS tag of an entry's words."""
    match entry:
        case Noun():
            return "NOUN"
        case Verb():
            return "VERB"
        case Adjective():
            return "ADJ"
        case Manner():
            return "ADV"
        case Name():
            return "PROPN"
