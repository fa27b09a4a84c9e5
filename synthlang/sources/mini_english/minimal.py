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
from dataclasses import dataclass

from synthlang.sources.base import MORPHOLOGY
from synthlang.sources.mini_english.draw import relative_clause, verbal
from synthlang.sources.mini_english.entries import HE, SHE, STATIVE, THEY, WE, Clause, I, NounPhrase, Verb
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


def minimal_pairs(source: MiniEnglish, split: str, count: int) -> Iterator[MinimalPair]:
    """Yield ``count`` pairs, with the paradigms in turn. Pair i is a function of (types, seed, zipf, split, i).

    Raises:
        InputError: The source has no such split.
    """
    for index, c in source.contexts(split, count, "minimal"):
        paradigm, (phenomenon, draw) = tuple(PARADIGMS.items())[index % len(PARADIGMS)]
        while (sides := draw(c)) is None:  # this ends, because most draws have a result
            pass
        good, bad = ({name: side[name] for name in source.columns} for side in sides)
        yield MinimalPair(good, bad, phenomenon, paradigm)


# --- one paradigm each


def _simple_agreement(c: Context) -> Sides | None:
    plan = _predicate_of(c, _subject(c))
    return None if plan is None else _wrong_number_of(plan)


def _agreement_across_phrase(c: Context) -> Sides | None:
    """Draw a pair whose subject has a phrase that ends in a noun of the other number."""
    subject = _subject(c)
    if subject is None:
        return None
    link = c.world.modifiers.draw(c, subject.key, "preposition", subject.sense)
    inner = None if link is None else _countable(c, subject.key, link.preposition, link.senses, not subject.plural)
    if link is None or inner is None or inner.key == subject.key:
        return None
    subject.prepositional = ((link.preposition, inner),)
    plan = _predicate_of(c, subject)
    return None if plan is None else _wrong_number_of(plan)


def _agreement_across_relative(c: Context) -> Sides | None:
    """Draw a pair whose subject has a relative clause with a noun of the other number."""
    subject = _subject(c)
    gap = "object" if c.chance(0.5) else "subject"
    inner = None if subject is None else relative_clause(c, subject, gap)
    if subject is None or inner is None or (gap == "subject" and inner.object is None):
        return None
    frame = next(frame for frame in inner.verb.frames if frame.kind == "tr")
    slot, senses = ("subject", frame.subject) if gap == "object" else ("object", frame.object)
    other = _countable(c, inner.verb.base, slot, senses, not subject.plural)
    if other is None:
        return None
    inner.subject, inner.object = (other, None) if gap == "object" else (None, other)
    inner.past, inner.obliques, inner.manner = True, (), ""
    subject.relative = inner
    plan = _predicate_of(c, subject)
    return None if plan is None else _wrong_number_of(plan)


def _case(slot: str) -> Callable[[Context], Sides | None]:
    """Return the paradigm in which a pronoun in the slot, subject or object, has the case of the other slot."""

    def draw(c: Context) -> Sides | None:
        pronoun = c.one(CASED)
        plan = _about(c, NounPhrase(pronoun), slot)
        if plan is None:
            return None
        root, good = _realised(plan)
        wrong = pronoun.object if slot == "subject" else pronoun.subject
        return good, _replaced(good, _child(root, "nsubj" if slot == "subject" else "obj"), wrong)

    return draw


def _order(slot: str) -> Callable[[Context], Sides | None]:
    """Return the paradigm in which the verb and the pronoun in the slot change places."""

    def draw(c: Context) -> Sides | None:
        plan = _about(c, NounPhrase(c.one(CASED)), slot)
        if plan is None:
            return None
        root, good = _realised(plan)
        word = _child(root, "nsubj" if slot == "subject" else "obj")
        if abs(word.place - root.place) != 1:
            return None
        return good, _swapped(good, min(word.place, root.place))

    return draw


def _determiner_number(c: Context) -> Sides | None:
    determiner = c.one(tuple(OTHER_DETERMINER))
    found = _with_determiner(c, determiner, determiner not in OF_PLURALS)
    if found is None:
        return None
    node, good = found
    return good, _replaced(good, node, OTHER_DETERMINER[determiner])


def _missing_determiner(c: Context) -> Sides | None:
    found = _with_determiner(c, c.one(("the", "a")), plural=False)
    if found is None:
        return None
    node, good = found
    return good, _deleted(good, node)


def _relative_pronoun(c: Context) -> Sides | None:
    """Draw a pair with a wrong relative pronoun: "which" for a person, or "who" for a thing."""
    found = _with_relative(c, "object" if c.chance(0.4) else "subject", past=True)
    if found is None:
        return None
    _, node, good = found
    marker = next((child for child in node.left if child.form in OTHER_PRONOUN), None)
    return None if marker is None else (good, _replaced(good, marker, OTHER_PRONOUN[marker.form]))


def _relative_gap(c: Context) -> Sides | None:
    """Draw a pair in which a pronoun fills the gap of a relative clause."""
    found = _with_relative(c, "object", past=True)
    if found is None:
        return None
    subject, node, good = found
    person = c.one(("him", "her")) if subject.sense == "p" else "it"
    return good, _inserted(good, node.place, "them" if subject.plural else person)


def _relative_agreement(c: Context) -> Sides | None:
    """Draw a pair with a relative clause whose verb does not agree with its noun."""
    found = _with_relative(c, "subject", past=False)
    if found is None:
        return None
    subject, node, good = found
    assert subject.relative is not None, "as it was drawn"
    return _wrong_number(good, node, subject.relative.verb)


PARADIGMS: dict[str, tuple[str, Callable[[Context], Sides | None]]] = {
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
"""The phenomenon of each paradigm, and the function that draws its two sides, or None if a draw has no result."""
PHENOMENA = tuple(sorted({phenomenon for phenomenon, _ in PARADIGMS.values()}))


# --- phrases and clauses


def _countable(c: Context, head: str, slot: str, senses: str, plural: bool) -> NounPhrase | None:
    """Draw a definite noun whose forms show its number, for a slot of a word, or return None if none is found."""
    drawn = (c.world.nouns.draw(c, head, slot, senses) for _ in range(TRIES))
    noun = next((noun for noun in drawn if noun is not None and noun.plural not in ("", noun.singular)), None)
    if noun is None:
        return None
    return NounPhrase(noun, plural=plural, determiner="the" if c.chance(0.75) else c.one(POSSESSIVES))


def _subject(c: Context) -> NounPhrase | None:
    return _countable(c, str(c.topic), "subject", "pa", c.chance(0.5))


def _predicate_of(c: Context, subject: NounPhrase | None) -> Clause | None:
    """Draw a predicate in the present, or in the past with "be", for a subject, or return None if none fits."""
    use = None if subject is None else c.use("verb", "in tr", subject.sense, head=subject.key)
    if subject is None or use is None:
        return None
    plan = verbal(c, use, subject)
    plan.passive = False
    _present(c, plan)
    return plan


def _present(c: Context, plan: Clause) -> None:
    """Draw a form of the verb that agrees with its subject."""
    plan.perfect = c.chance(0.25)
    plan.progressive = not plan.perfect and plan.verb.base not in STATIVE and c.chance(0.35)
    plan.past = plan.progressive and c.chance(0.5)


def _about(c: Context, phrase: NounPhrase, slot: str) -> Clause | None:
    """Draw a clause in the simple past with a person in a slot, or return None if no verb fits."""
    use = c.use("verb", "in tr", "p") if slot == "subject" else c.use("verb", "tr", taken="p")
    if use is None:
        return None
    plan = verbal(c, use, phrase if slot == "subject" else _countable(c, use.verb.base, "subject", "pa", c.chance(0.5)))
    plan.past, plan.passive = True, False
    if slot == "object":
        plan.object = phrase
    return None if plan.subject is None else plan


def _with_determiner(c: Context, determiner: str, plural: bool) -> tuple[Node, Columns] | None:
    """Draw a sentence whose object has a determiner, and return the determiner and the sentence."""
    use = c.use("verb", "tr")
    subject = None if use is None else _countable(c, use.verb.base, "subject", use.frame.subject, c.chance(0.5))
    phrase = None if use is None else _countable(c, use.verb.base, "object", use.frame.object, plural)
    if use is None or subject is None or phrase is None:
        return None
    plan = verbal(c, use, subject)
    phrase.determiner = determiner
    plan.object, plan.past, plan.passive = phrase, True, False
    root, columns = _realised(plan)
    return _child(_child(root, "obj"), "det"), columns


def _with_relative(c: Context, gap: str, past: bool) -> tuple[NounPhrase, Node, Columns] | None:
    """Draw a sentence whose subject has a relative clause, and return the subject, the inner verb and the sentence."""
    subject = _subject(c) if c.chance(0.5) else _countable(c, str(c.topic), "thing", "tfg", c.chance(0.5))
    inner = None if subject is None else relative_clause(c, subject, gap)
    if subject is None or inner is None:
        return None
    if past:
        inner.past = True
    else:
        _present(c, inner)
    subject.relative = inner
    plan = _predicate_of(c, subject)
    if plan is None:
        return None
    plan.past, plan.perfect, plan.progressive = True, False, False
    root, columns = _realised(plan)
    return subject, _child(_child(root, "nsubj"), "acl:relcl"), columns


# --- trees and columns


def _realised(plan: Clause) -> tuple[Node, Columns]:
    root = sentence_node(plan)
    return root, columns_of(root, MORPHOLOGY)


def _child(node: Node, deprel: str) -> Node:
    return next(child for child in node.children if child.deprel == deprel)


def _wrong_number_of(plan: Clause) -> Sides | None:
    root, good = _realised(plan)
    return _wrong_number(good, root, plan.verb)


def _wrong_number(good: Columns, predicate: Node, verb: Verb) -> Sides | None:
    """Give the other number to the auxiliary of a predicate, or to the verb itself if it has none.

    The result is None if the other form could be a past form ("she puts", "she put").
    """
    auxiliary = next((child for child in predicate.left if child.upos == "AUX"), None)
    if auxiliary is not None:
        return good, _replaced(good, auxiliary, OTHER_NUMBER[auxiliary.form])
    if verb.base == verb.past:
        return None
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
