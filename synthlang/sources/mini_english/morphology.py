"""Lemmas and morphological features of mini-English, in the terms of Universal Dependencies.

https://universaldependencies.org/en/feat/ describes the features of English.
"""

from __future__ import annotations

from typing import NamedTuple

IMPERATIVE, MODAL = "Mood=Imp|Person=2|VerbForm=Fin", "VerbForm=Fin"
NOT_FINITE = {"base": "VerbForm=Inf", "part": "Tense=Past|VerbForm=Part", "gerund": "Tense=Pres|VerbForm=Part"}
LEMMAS = {"an": "a", "these": "this", "those": "that"}
DETERMINERS = {
    "the": "Definite=Def|PronType=Art",
    **dict.fromkeys(("a", "an"), "Definite=Ind|PronType=Art"),
    **dict.fromkeys(("this", "that"), "Number=Sing|PronType=Dem"),
    **dict.fromkeys(("these", "those"), "Number=Plur|PronType=Dem"),
}
PRONOUNS = {
    **dict.fromkeys(("this", "that"), "Number=Sing|PronType=Dem"),
    **dict.fromkeys(("someone", "something"), "Number=Sing|PronType=Ind"),
    **dict.fromkeys(("who", "what", "which"), "PronType=Int,Rel"),
    **dict.fromkeys(("my", "our"), "Person=1|Poss=Yes|PronType=Prs"),
    "your": "Person=2|Poss=Yes|PronType=Prs",
    **dict.fromkeys(("his", "her", "its", "their"), "Person=3|Poss=Yes|PronType=Prs"),
}
CLASSES = {"NOUN": "Number=Sing", "PROPN": "Number=Sing", "ADJ": "Degree=Pos", "NUM": "NumType=Card"}


class Finite(NamedTuple):
    """Tense and agreement of a clause.

    Attributes:
        past: True for the past tense.
        agreement: The form of "be" for the subject: am, is, are.
        person: Person of the subject, 1 to 3.
    """

    past: bool
    agreement: str
    person: int

    def feats(self, need: str) -> str:
        """Return the features of the verb form ``need``: finite, base, part (past participle) or gerund."""
        if need != "finite":
            return NOT_FINITE[need]
        tense = "Past" if self.past else "Pres"
        return f"Mood=Ind|{number_of(self.agreement, self.person)}|Tense={tense}|VerbForm=Fin"


def number_of(agreement: str, person: int) -> str:
    """Return the features Number and Person of a verb or pronoun, given its form of "be" and its person, 1 to 3.

    The second person has no number, because "you are" may be singular or plural.

    >>> number_of("is", 3), number_of("are", 2)
    ('Number=Sing|Person=3', 'Person=2')
    """
    number = "" if person == 2 else "Number=Plur|" if agreement == "are" else "Number=Sing|"
    return f"{number}Person={person}"


def feats_of(form: str, upos: str) -> str:
    """Return the features that the form and the tag of a word determine, or ``_`` for none."""
    table = {"DET": DETERMINERS, "PRON": PRONOUNS}.get(upos, {})
    return table.get(form) or CLASSES.get(upos, "_")


def lemma_of(form: str, upos: str) -> str:
    """Return the lemma that the form and the tag of a word determine: "a" for "an", else usually the form itself."""
    return LEMMAS.get(form, form) if upos == "DET" else form
