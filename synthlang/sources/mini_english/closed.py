"""The closed classes: every function word, and how it is tagged where it stands."""

from __future__ import annotations

from dataclasses import dataclass


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
