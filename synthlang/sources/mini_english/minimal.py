"""Minimal pairs of the grammar: a sentence and an ungrammatical variant of it, which differ in exactly one place.

The place is a word with another form, two neighbours in the other order, an additional word or a missing word. Words
that both sentences have are annotated as in the grammatical sentence. A transform that reads trees therefore treats
both sentences alike.

    agreement         the keys to the door are old .      the keys to the door is old .
    case              she saw him .                       she saw he .
    argument order    she saw him .                       she him saw .
    determiners       she saw these dogs .                she saw this dogs .
    relative clauses  the book which she read is old .    the book which she read it is old .
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from synthlang.sources.base import MORPHOLOGY
from synthlang.sources.mini_english.draw import relative_clause, verbal
from synthlang.sources.mini_english.entries import HE, SHE, STATIVE, THEY, WE, Clause, I, NounPhrase, Pronoun, Verb
from synthlang.sources.mini_english.morphology import feats_of, lemma_of
from synthlang.sources.mini_english.realise import POSSESSIVES, Columns, Node, columns_of, sentence_node
from synthlang.sources.mini_english.source import MiniEnglish
from synthlang.sources.mini_english.world import Context

OTHER_NUMBER = {"is": "are", "was": "were", "has": "have", "does": "do"}
OTHER_NUMBER |= {plural: singular for singular, plural in OTHER_NUMBER.items()}
OF_PLURALS = {"this": "these", "that": "those", "every": "many"}  # determiners of singular and of plural nouns
OTHER_DETERMINER = OF_PLURALS | {plural: singular for singular, plural in OF_PLURALS.items()}
OTHER_PRONOUN = {"who": "which", "which": "who"}
CASED = (I, WE, THEY, HE, SHE)  # pronouns whose subject and object have different forms
TRIES = 20  # attempts to find a noun that can be counted


@dataclass(frozen=True)
class MinimalPair:
    """A grammatical sentence and an ungrammatical variant of the same sentence.

    Attributes:
        good: Columns of the grammatical sentence.
        bad: Columns of the ungrammatical sentence.
        phenomenon: One of PHENOMENA.
        paradigm: The paradigm, a subdivision of the phenomenon and a key of PARADIGMS.
    """

    good: Columns
    bad: Columns
    phenomenon: str
    paradigm: str


Sides = tuple[Columns, Columns]
T = TypeVar("T")


class _NoResultError(Exception):
    """A draw has no result. The pair is then drawn again."""


def _some(drawn: T | None) -> T:
    if drawn is None:
        raise _NoResultError
    return drawn


def minimal_pairs(source: MiniEnglish, split: str, count: int) -> Iterator[MinimalPair]:
    """Yield ``count`` pairs, with the paradigms in turn. Pair i is a function of (types, seed, zipf, split, i).

    Raises:
        InputError: The source has no such split.
    """
    for index, c in source.contexts(split, count, "minimal"):
        paradigm, (phenomenon, draw) = tuple(PARADIGMS.items())[index % len(PARADIGMS)]
        good, bad = ({name: side[name] for name in source.columns} for side in _sides(c, draw))
        yield MinimalPair(good, bad, phenomenon, paradigm)


def _sides(c: Context, draw: Callable[[Context], Sides]) -> Sides:
    while True:  # this ends, because most draws have a result
        with suppress(_NoResultError):
            return draw(c)


# --- one paradigm each


def _simple_agreement(c: Context) -> Sides:
    return _wrong_number_of(_predicate_of(c, _subject(c)))


def _agreement_across_phrase(c: Context) -> Sides:
    """Draw a pair whose subject has a phrase that ends in a noun of the other number."""
    subject = _subject(c)
    link = _some(c.world.modifiers.draw(c, subject.key, "preposition", subject.sense))
    inner = _countable(c, subject.key, link.preposition, link.senses, not subject.plural)
    if inner.key == subject.key:
        raise _NoResultError
    subject.prepositional = ((link.preposition, inner),)
    return _wrong_number_of(_predicate_of(c, subject))


def _agreement_across_relative(c: Context) -> Sides:
    """Draw a pair whose subject has a relative clause with a noun of the other number."""
    subject = _subject(c)
    gap = "object" if c.chance(0.5) else "subject"
    inner = _some(relative_clause(c, subject, gap))
    if gap == "subject" and inner.object is None:
        raise _NoResultError
    frame = next(frame for frame in inner.verb.frames if frame.kind == "tr")
    slot, senses = ("subject", frame.subject) if gap == "object" else ("object", frame.object)
    other = _countable(c, inner.verb.base, slot, senses, not subject.plural)
    inner.subject, inner.object = (other, None) if gap == "object" else (None, other)
    inner.past, inner.obliques, inner.manner = True, (), ""
    subject.relative = inner
    return _wrong_number_of(_predicate_of(c, subject))


def _case(slot: str) -> Callable[[Context], Sides]:
    """Return the paradigm in which a pronoun in the slot, subject or object, has the case of the other slot."""

    def draw(c: Context) -> Sides:
        pronoun, _, node, good = _with_pronoun(c, slot)
        return good, _replaced(good, node, pronoun.object if slot == "subject" else pronoun.subject)

    return draw


def _order(slot: str) -> Callable[[Context], Sides]:
    """Return the paradigm in which the verb and the pronoun in the slot change places."""

    def draw(c: Context) -> Sides:
        _, root, node, good = _with_pronoun(c, slot)
        if abs(node.place - root.place) != 1:
            raise _NoResultError
        return good, _swapped(good, min(node.place, root.place))

    return draw


def _determiner_number(c: Context) -> Sides:
    determiner = c.one(tuple(OTHER_DETERMINER))
    node, good = _with_determiner(c, determiner, determiner not in OF_PLURALS)
    return good, _replaced(good, node, OTHER_DETERMINER[determiner])


def _missing_determiner(c: Context) -> Sides:
    node, good = _with_determiner(c, c.one(("the", "a")), plural=False)
    return good, _deleted(good, node)


def _relative_pronoun(c: Context) -> Sides:
    """Draw a pair with a wrong relative pronoun: "which" for a person, or "who" for a thing."""
    _, node, good = _with_relative(c, "object" if c.chance(0.4) else "subject", past=True)
    marker = _some(next((child for child in node.left if child.form in OTHER_PRONOUN), None))
    return good, _replaced(good, marker, OTHER_PRONOUN[marker.form])


def _relative_gap(c: Context) -> Sides:
    """Draw a pair in which a pronoun fills the gap of a relative clause."""
    subject, node, good = _with_relative(c, "object", past=True)
    person = c.one(("him", "her")) if subject.sense == "p" else "it"
    return good, _inserted(good, node.place, "them" if subject.plural else person)


def _relative_agreement(c: Context) -> Sides:
    """Draw a pair with a relative clause whose verb does not agree with its noun."""
    subject, node, good = _with_relative(c, "subject", past=False)
    assert subject.relative is not None, "as it was drawn"
    return _wrong_number(good, node, subject.relative.verb)


PARADIGMS: dict[str, tuple[str, Callable[[Context], Sides]]] = {
    "simple_agreement": ("agreement", _simple_agreement),
    "agreement_across_phrase": ("agreement", _agreement_across_phrase),
    "agreement_across_relative": ("agreement", _agreement_across_relative),
    "subject_case": ("case", _case("subject")),
    "object_case": ("case", _case("object")),
    "subject_verb_order": ("argument order", _order("subject")),
    "verb_object_order": ("argument order", _order("object")),
    "determiner_number": ("determiners", _determiner_number),
    "missing_determiner": ("determiners", _missing_determiner),
    "relative_pronoun": ("relative clauses", _relative_pronoun),
    "relative_gap": ("relative clauses", _relative_gap),
    "relative_agreement": ("relative clauses", _relative_agreement),
}
"""The phenomenon of each paradigm, and the function that draws its two sides."""
PHENOMENA = tuple(sorted({phenomenon for phenomenon, _ in PARADIGMS.values()}))


# --- phrases and clauses


def _countable(c: Context, head: str, slot: str, senses: str, plural: bool) -> NounPhrase:
    """Draw a definite noun whose forms show its number, for a slot of a word."""
    drawn = (c.world.nouns.draw(c, head, slot, senses) for _ in range(TRIES))
    noun = _some(next((noun for noun in drawn if noun is not None and noun.plural not in ("", noun.singular)), None))
    return NounPhrase(noun, plural=plural, determiner="the" if c.chance(0.75) else c.one(POSSESSIVES))


def _subject(c: Context) -> NounPhrase:
    return _countable(c, str(c.topic), "subject", "pa", c.chance(0.5))


def _predicate_of(c: Context, subject: NounPhrase) -> Clause:
    """Draw a predicate in the present, or in the past with "be", for a subject."""
    plan = verbal(c, _some(c.use("verb", "in tr", subject.sense, head=subject.key)), subject)
    plan.passive = False
    _present(c, plan)
    return plan


def _present(c: Context, plan: Clause) -> None:
    """Draw a form of the verb that agrees with its subject."""
    plan.perfect = c.chance(0.25)
    plan.progressive = not plan.perfect and plan.verb.base not in STATIVE and c.chance(0.35)
    plan.past = plan.progressive and c.chance(0.5)


def _with_pronoun(c: Context, slot: str) -> tuple[Pronoun, Node, Node, Columns]:
    """Draw a sentence in the simple past with a pronoun in a slot, subject or object.

    The result is the pronoun, the root, the node of the pronoun and the sentence.
    """
    pronoun = c.one(CASED)
    phrase = NounPhrase(pronoun)
    use = _some(c.use("verb", "in tr", "p") if slot == "subject" else c.use("verb", "tr", taken="p"))
    plan = verbal(c, use, phrase if slot == "subject" else _countable(c, use.verb.base, "subject", "pa", c.chance(0.5)))
    plan.past, plan.passive = True, False
    if slot == "object":
        plan.object = phrase
    root, columns = _realised(plan)
    return pronoun, root, _child(root, "nsubj" if slot == "subject" else "obj"), columns


def _with_determiner(c: Context, determiner: str, plural: bool) -> tuple[Node, Columns]:
    """Draw a sentence whose object has a determiner, and return the determiner and the sentence."""
    use = _some(c.use("verb", "tr"))
    subject = _countable(c, use.verb.base, "subject", use.frame.subject, c.chance(0.5))
    phrase = _countable(c, use.verb.base, "object", use.frame.object, plural)
    plan = verbal(c, use, subject)
    phrase.determiner = determiner
    plan.object, plan.past, plan.passive = phrase, True, False
    root, columns = _realised(plan)
    return _child(_child(root, "obj"), "det"), columns


def _with_relative(c: Context, gap: str, past: bool) -> tuple[NounPhrase, Node, Columns]:
    """Draw a sentence whose subject has a relative clause, and return the subject, the inner verb and the sentence."""
    subject = _subject(c) if c.chance(0.5) else _countable(c, str(c.topic), "thing", "tfg", c.chance(0.5))
    inner = _some(relative_clause(c, subject, gap))
    if past:
        inner.past = True
    else:
        _present(c, inner)
    subject.relative = inner
    plan = _predicate_of(c, subject)
    plan.past, plan.perfect, plan.progressive = True, False, False
    root, columns = _realised(plan)
    return subject, _child(_child(root, "nsubj"), "acl:relcl"), columns


# --- trees and columns


def _realised(plan: Clause) -> tuple[Node, Columns]:
    root = sentence_node(plan)
    return root, columns_of(root, MORPHOLOGY)


def _child(node: Node, deprel: str) -> Node:
    return next(child for child in node.children if child.deprel == deprel)


def _wrong_number_of(plan: Clause) -> Sides:
    root, good = _realised(plan)
    return _wrong_number(good, root, plan.verb)


def _wrong_number(good: Columns, predicate: Node, verb: Verb) -> Sides:
    """Give the other number to the auxiliary of a predicate, or to the verb itself if it has none.

    There is no result if the other form could be a past form ("she puts", "she put").
    """
    auxiliary = next((child for child in predicate.left if child.upos == "AUX"), None)
    if auxiliary is not None:
        return good, _replaced(good, auxiliary, OTHER_NUMBER[auxiliary.form])
    if verb.base == verb.past:
        raise _NoResultError
    return good, _replaced(good, predicate, verb.base if predicate.form == verb.third else verb.third)


def _replaced(columns: Columns, node: Node, form: str) -> Columns:
    forms = list(columns["form"])
    forms[node.place - 1] = form
    return {**columns, "form": forms}


def _swapped(columns: Columns, place: int) -> Columns:
    """Exchange the form at the 1-based ``place`` with the next form."""
    forms = list(columns["form"])
    forms[place - 1 : place + 1] = forms[place - 1 : place + 1][::-1]
    return {**columns, "form": forms}


def _inserted(columns: Columns, place: int, pronoun: str) -> Columns:
    """Insert a pronoun after the word at the 1-based ``place`` as its object."""
    row = {"form": pronoun, "upos": "PRON", "head": place, "deprel": "obj", "ner": "O"}
    row |= {"feats": feats_of(pronoun, "PRON"), "lemma": lemma_of(pronoun, "PRON")}
    heads = [head + (head > place) for head in columns["head"]]
    shifted = {**columns, "head": heads}
    return {name: [*values[:place], row[name], *values[place:]] for name, values in shifted.items()}


def _deleted(columns: Columns, node: Node) -> Columns:
    """Delete a word without dependents."""
    place = node.place
    heads = [head - (head > place) for head in columns["head"]]
    shifted = {**columns, "head": heads}
    return {name: [*values[: place - 1], *values[place:]] for name, values in shifted.items()}
