"""What sentences are made of: nouns, verbs with their frames, adjectives, adverbs, names; and the closed classes."""

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


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun: its cases and what the verb agrees with."""

    subject: str
    object: str
    possessive: str
    plural: bool = False  # takes plural agreement
    first: bool = False  # "am"
    person: bool = True


I = Pronoun("I", "me", "my", first=True)  # noqa: E741
YOU = Pronoun("you", "you", "your", plural=True)
HE = Pronoun("he", "him", "his")
SHE = Pronoun("she", "her", "her")
IT = Pronoun("it", "it", "its", person=False)
WE = Pronoun("we", "us", "our", plural=True)
THEY = Pronoun("they", "them", "their", plural=True)
SOMEONE = Pronoun("someone", "someone", "")
THIS = Pronoun("this", "this", "", person=False)
THAT = Pronoun("that", "that", "", person=False)
NOTHING = Pronoun("something", "something", "", person=False)
PRONOUNS = (HE, SHE, I, THEY, WE, YOU, IT, SOMEONE, THIS, THAT, NOTHING)

DETERMINERS = ("the", "a", "some", "this", "that", "these", "those", "every", "no", "many", "any", "all")
POSSESSIVES = ("my", "your", "his", "her", "its", "our", "their")
NUMERALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MODALS = ("will", "can", "must", "may", "should", "would", "could", "might")
BE = ("be", "am", "is", "are", "was", "were", "been", "being")
HAVE = ("have", "has", "had")
DO = ("do", "does", "did")
PREPOSITIONS = (
    *("of", "in", "to", "with", "on", "at", "from", "by", "for", "about", "near", "after"),
    *("before", "behind", "during", "through", "into", "without", "like"),
)
MARKS = ("because", "when", "if", "while", "although", "before", "after", "since")
CONJUNCTIONS = ("and", "or", "but")
ADVERBS = (
    *("very", "quite", "too", "really", "always", "never", "often", "sometimes", "usually", "exactly", "there"),
    *("yesterday", "today", "tomorrow", "here", "now", "soon", "again", "where", "why", "when", "how"),
)
OTHERS = {
    "that": ("SCONJ", "DET", "PRON"),
    "to": ("PART", "ADP"),
    "not": ("PART",),
    "'s": ("PART",),
    "an": ("DET",),
    "there": ("PRON", "ADV"),
    "who": ("PRON",),
    "which": ("PRON",),
    "what": ("PRON",),
    "please": ("INTJ",),
    "yes": ("INTJ",),
    ".": ("PUNCT",),
    "?": ("PUNCT",),
    "!": ("PUNCT",),
    ",": ("PUNCT",),
}


def closed_forms() -> dict[str, set[str]]:
    """Every closed-class form with its universal POS tags."""
    forms: dict[str, set[str]] = {}

    def add(words: tuple[str, ...], tag: str) -> None:
        for word in words:
            forms.setdefault(word, set()).add(tag)

    for pronoun in PRONOUNS:
        add((pronoun.subject, pronoun.object), "PRON")
    add(POSSESSIVES, "PRON")
    add(DETERMINERS, "DET")
    add(NUMERALS, "NUM")
    add((*MODALS, *BE, *HAVE, *DO), "AUX")
    add(("is", "are", "was", "were", "be", "been"), "VERB")  # existential "there is"
    add(PREPOSITIONS, "ADP")
    add(MARKS, "SCONJ")
    add(CONJUNCTIONS, "CCONJ")
    add(ADVERBS, "ADV")
    for word, tags in OTHERS.items():
        forms.setdefault(word, set()).update(tags)
    return forms
