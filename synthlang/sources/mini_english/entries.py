"""Words of the open classes and pronouns, and phrases and clauses before they are realised.

A clause can be changed (for example negated) and realised again, which gives pairs for inference and questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthlang.strict_yaml import read_yaml

GRAMMAR: dict[str, Any] = read_yaml(Path(__file__).with_name("grammar.yaml"))
SENSE_OF = {"PER": "p", "LOC": "l", "ORG": "g"}  # kind of name → sense
STATIVE = frozenset(GRAMMAR["stative"].split())


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A common noun.

    Attributes:
        singular: The singular form.
        plural: The plural form, or "" for a mass noun.
        sense: Sense of the noun, one letter as in words.yaml.
        topic: Number of the topic in which the noun is frequent.
    """

    singular: str
    plural: str
    sense: str
    topic: int

    @property
    def mass(self) -> bool:
        """True if the noun cannot be counted."""
        return not self.plural

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(form for form in (self.singular, self.plural) if form))


@dataclass(frozen=True, slots=True)
class Frame:
    """The arguments of a verb. Each sense is one letter, as in words.yaml.

    Attributes:
        kind: in (intransitive), tr (transitive), di (with a recipient), cc (with a clause), xc (with an infinitive) or
            aj (with an adjective).
        subject: Senses that the subject may have.
        object: Senses that the object may have.
        prepositions: Pairs of a preposition and the senses that its noun may have.
    """

    kind: str
    subject: str
    object: str = ""
    prepositions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its five forms (go goes went gone going).

    Attributes:
        base: Base form, as in "go".
        third: Third person singular of the present, as in "goes".
        past: Past tense, as in "went".
        participle: Past participle, as in "gone".
        gerund: Form with -ing, as in "going".
        topic: Number of the topic in which the verb is frequent, or −1 for any topic.
        frames: Combinations of arguments that the verb takes.
    """

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    topic: int = -1  # -1: any
    frames: tuple[Frame, ...] = ()

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.base, self.third, self.past, self.participle, self.gerund)))


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective, or an adverb of manner.

    Attributes:
        form: The word.
        senses: Senses of the nouns that an adjective may modify, or "" for an adverb.
        antonym: The word of opposite meaning, or "" for none.
        topic: Number of the topic in which the word is frequent.
    """

    form: str
    senses: str
    antonym: str
    topic: int

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.form,)


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A name of a person, a place or an organisation, of one or more words.

    Attributes:
        words: The words of the name.
        kind: PER for a person, LOC for a place, ORG for an organisation.
        topic: Number of the topic in which the name is frequent, or −1 for any topic.
        joined: "compound" (head last), "flat" (head first), "of" (University of Oslo), or "head" for a word that heads
            longer names, such as "Bank".
    """

    words: tuple[str, ...]
    kind: str  # PER LOC ORG
    topic: int = -1
    joined: str = "flat"

    @property
    def sense(self) -> str:
        return SENSE_OF[self.kind]

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for word in self.words if word != "of"))


Entry = Noun | Verb | Adjective | Name


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A pronoun with its cases and the agreement of the verb.

    Attributes:
        subject: Form as a subject.
        object: Form as an object.
        agreement: Form of "be" after the pronoun: am, is, are.
        person: True if the pronoun stands for a person.
        grammatical: Grammatical person of the verb, 1 to 3.
    """

    subject: str
    object: str
    agreement: str = "is"
    person: bool = True
    grammatical: int = 3  # person of the verb

    @property
    def is_personal(self) -> bool:
        """True for I, you, he, …, and False for this, that, someone and something."""
        return self.subject != self.object or self.subject in ("you", "it")


I = Pronoun("I", "me", "am", grammatical=1)  # noqa: E741
YOU, WE = Pronoun("you", "you", "are", grammatical=2), Pronoun("we", "us", "are", grammatical=1)
THEY = Pronoun("they", "them", "are")
HE, SHE, SOMEONE = Pronoun("he", "him"), Pronoun("she", "her"), Pronoun("someone", "someone")
IT, THIS, THAT, SOMETHING = (Pronoun(word, word, person=False) for word in ("it", "this", "that", "something"))
PRONOUNS = {p.subject: p for p in (I, YOU, WE, THEY, HE, SHE, SOMEONE, IT, THIS, THAT, SOMETHING)}


@dataclass(slots=True)
class NounPhrase:
    """A noun, name or pronoun with its modifiers. A modifier that is "", empty or None is missing.

    Attributes:
        head: The noun, name or pronoun.
        plural: True for a noun in the plural.
        determiner: Article, demonstrative, quantifier or possessive.
        numeral: A number word, such as "two".
        exactly: True for "exactly" before the numeral.
        adjectives: Adjectives in the order of the words.
        degree: Adverb of the first adjective, such as "very".
        compound: Noun before the head, as in "apple tree".
        owner: Phrase with "'s" before the head.
        prepositional: Pairs of a preposition and its phrase, after the head.
        relative: Relative clause of the head.
        conjunct: Conjunction and the phrase that it joins.
    """

    head: Noun | Name | Pronoun
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
        """The word of the head, whose preferences decide which words are drawn with it."""
        if isinstance(self.head, Noun):
            return self.head.singular
        return self.head.words[0] if isinstance(self.head, Name) else self.head.subject

    @property
    def agreement(self) -> str:
        """The form of "be" in the present that agrees with the phrase: am, is, are."""
        if self.conjunct is not None and self.conjunct[0] == "and":
            return "are"
        if isinstance(self.head, Pronoun):
            return self.head.agreement
        return "are" if self.plural else "is"

    @property
    def person(self) -> int:
        """Person of the verb. The lowest person of the phrases that "and" joins decides."""
        own = self.head.grammatical if isinstance(self.head, Pronoun) else 3
        joined = self.conjunct is not None and self.conjunct[0] == "and"
        return min(own, self.conjunct[1].person) if joined and self.conjunct is not None else own


NO_VERB = Verb("", "", "", "", "")


@dataclass(slots=True)
class Clause:
    """A predicate with its arguments. A part that is "" or None is missing.

    Attributes:
        kind: verb, adjective ("is old"), nominal ("is a teacher") or exist ("there is").
        subject: Subject, or None for an imperative, an infinitive, a second conjunct, or a gap.
        verb: The verb of the kind ``verb``.
        object: Direct object. It is the subject of a passive.
        recipient: Indirect object.
        recipient_last: True for "to" and the recipient after the object ("gave it to her").
        obliques: Pairs of a preposition and its phrase, after the objects.
        adjective: Adjective of the kind ``adjective``, or of a verb such as "seem".
        degree: Adverb of the adjective, such as "very".
        nominal: Noun phrase of the kind ``nominal``.
        complement: Embedded clause, finite or an infinitive.
        complement_mark: Word before the complement: that, to (for an infinitive) or "".
        manner: Adverb of manner.
        frequency: Adverb of frequency, such as "never".
        time: Adverb of time, such as "today".
        adverbial: Conjunction and clause, such as "because" and its clause.
        adverbial_first: True for the adverbial clause before the main clause.
        conjunct: Conjunction, such as "and", and a second predicate or clause.
        past: True for the past tense.
        modal: Modal verb.
        perfect: True for the perfect.
        progressive: True for the progressive.
        negated: True for "not".
        passive: True for the passive voice.
        agent: True if a passive names its agent ("by Anna").
        agreement: Form of "be" in the present (am, is, are) for a clause without a subject.
        person: Person of the verb, 1 to 3, for a clause without a subject.
        gap: Role that the question word or relative word fills: subject, object or "".
        marker: Relative word, such as "who".
        mood: declarative, question or imperative.
        question_word: "who" or "what" for a gap, or "where", "when", "why" or "how" for an adverb.
        please: True for "please" at the start.
    """

    kind: str
    subject: NounPhrase | None = None
    verb: Verb = NO_VERB  # for the kind "verb"
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
    agreement: str = "is"  # agreement with the subject if the clause itself has none
    person: int = 3  # person of the verb if the clause itself has no subject
    gap: str = ""  # subject, object
    marker: str = ""
    mood: str = "declarative"  # question, imperative
    question_word: str = ""  # who what as gap; where when why how as adverb
    please: bool = False
