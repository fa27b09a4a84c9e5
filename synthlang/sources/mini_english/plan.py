"""What a sentence says, before it is put into words: phrases and clauses.

A plan can be changed (a modifier dropped, a clause negated) and realised again, which is
how pairs for inference are made.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthlang.sources.mini_english.entries import Adjective, Noun, Pronoun, Verb


@dataclass(slots=True)
class Entity:
    """A name in a sentence; ``joined`` as in entries.Name."""

    words: tuple[str, ...]
    kind: str
    sense: str
    joined: str


Head = Noun | Entity | Pronoun


@dataclass(slots=True)
class NounPhrase:
    """A noun, name or pronoun and what modifies it."""

    head: Head
    plural: bool = False
    determiner: str = ""
    numeral: str = ""
    exactly: bool = False
    adjectives: tuple[Adjective, ...] = ()
    degree: str = ""
    compound: Noun | None = None
    owner: NounPhrase | None = None
    prepositional: tuple[tuple[str, NounPhrase], ...] = ()
    relative: Clause | None = None
    conjunct: tuple[str, NounPhrase] | None = None

    @property
    def sense(self) -> str:
        if isinstance(self.head, Pronoun):
            return "p" if self.head.person else "t"
        return self.head.sense

    @property
    def key(self) -> str:
        """The head as a word, for preferences."""
        if isinstance(self.head, Noun):
            return self.head.singular
        return self.head.words[0] if isinstance(self.head, Entity) else self.head.subject

    @property
    def agreement(self) -> str:
        """The form of "be" it takes: am, is, are."""
        if self.conjunct is not None and self.conjunct[0] == "and":
            return "are"
        if isinstance(self.head, Pronoun):
            return "am" if self.head.first else "are" if self.head.plural else "is"
        return "are" if self.plural else "is"


@dataclass(slots=True)
class Clause:
    """A predicate with its arguments. ``kind``: verb, adjective, nominal (copula) or exist.

    ``subject`` None: an imperative, an infinitive, a second conjunct, or a gap.
    ``gap``: the slot a relative word fills; ``marker``: that word (may be empty).
    """

    kind: str
    subject: NounPhrase | None = None
    verb: Verb | None = None
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    recipient_last: bool = False  # "gave it to her"
    obliques: tuple[tuple[str, NounPhrase], ...] = ()
    adjective: Adjective | None = None
    degree: str = ""
    nominal: NounPhrase | None = None
    complement: Clause | None = None
    complement_mark: str = ""  # that, to
    manner: str = ""
    frequency: str = ""
    time: str = ""
    adverbial: tuple[str, Clause] | None = None
    adverbial_first: bool = False
    conjunct: tuple[str, Clause] | None = None
    past: bool = False
    modal: str = ""
    perfect: bool = False
    progressive: bool = False
    negated: bool = False
    passive: bool = False
    agent: bool = False  # a passive names its agent
    agreement: str = "is"  # of the subject, when the clause itself has none
    gap: str = ""  # subject, object
    marker: str = ""
    mood: str = "declarative"  # question, imperative
    question_word: str = ""  # who what as gap; where when why how as adverb
    please: bool = False
