"""Questions on contexts, each with exactly one answer span or none.

A context has a few sentences of one or two facts. Most facts share the verb, the subject or the object with another
fact, exchange its roles or deny it. The words of a question therefore occur in several sentences, and only the roles
identify the answer. An unanswerable question also consists of words of the context.

A fact is stored as roles. It may answer a question if it has the same verb and polarity and the requested role, and
shares a head word with each other role of the question. Tense, adjectives, prepositions and determiners are ignored, so
that even a careless reader finds no second answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from synthlang.corpus import Sentence
from synthlang.sources.mini_english.draw import indirect
from synthlang.sources.mini_english.entries import Clause, Noun, NounPhrase
from synthlang.sources.mini_english.facts import WHEN, WHERE, facts, overlap, words_of
from synthlang.sources.mini_english.nli import swapped
from synthlang.sources.mini_english.realise import Columns, Node, Span, columns_of, realise, sentence_node
from synthlang.sources.mini_english.source import MiniEnglish
from synthlang.sources.mini_english.world import Context

QUESTIONS = 2  # questions on one context
UNANSWERABLE = 0.15
LONGEST = 3  # words of an answer
CONTEXT, ASKED = 20, 8  # words of a context and of a question
TRIES = 60  # attempts at a question before another context is drawn
EASY = 0.35  # share that is kept of the questions whose answer is in the most similar sentence
ADVERBS = ("where", "when", "how")


@dataclass(frozen=True)
class Answer:
    """Span of the answer to a question in the context.

    Attributes:
        sentence: Index of the sentence in the context, from 0.
        start: Index of the first word of the answer in the sentence, from 0.
        stop: Index after the last word of the answer.
    """

    sentence: int
    start: int
    stop: int


@dataclass(frozen=True)
class Question:
    """A question on a context.

    Attributes:
        sentence: The annotated question.
        answer: Span of the answer, or None if the context has no answer.
    """

    sentence: Sentence
    answer: Answer | None


@dataclass(frozen=True)
class Paragraph:
    """The annotated sentences of a context and the questions on them."""

    sentences: tuple[Sentence, ...]
    questions: tuple[Question, ...]


Roles = dict[str, frozenset[str]]  # the words that identify each role
Asked = tuple[Columns, Answer | None]


@dataclass(frozen=True, slots=True)
class _Query:
    """A question for the role ``asked``. ``stated`` is the clause of the question, and ``roles`` are its roles."""

    stated: Clause
    asked: str
    roles: Roles


@dataclass(frozen=True)
class _Told:
    """A fact in a context, with its roles, the number and words of its sentence, and the tree node of its predicate."""

    fact: Clause
    roles: Roles
    sentence: int
    words: frozenset[str]
    node: Node

    def may_answer(self, query: _Query) -> bool:
        """Return whether the fact may answer the question (see the top of the module)."""
        if _said(self.fact) != _said(query.stated):
            return False
        known = all(words & self.roles.get(name, frozenset()) for name, words in query.roles.items())
        return query.asked in self.roles and known


def paragraphs(source: MiniEnglish, split: str, count: int) -> Iterator[Paragraph]:
    """Yield contexts with ``count`` questions in total: QUESTIONS on each context, or fewer on the last one.

    Context i and its questions are a function of (types, seed, zipf, split, i). The sentences of the context have the
    id i. The ids of questions count through the split from 0.

    Raises:
        InputError: The source has no such split.
    """
    for index, c in source.contexts(split, -(-count // QUESTIONS), "questions"):
        whole = _paragraph(c, index, source.morphology)
        yield replace(whole, questions=whole.questions[: count - index * QUESTIONS])


def _paragraph(c: Context, index: int, more: Sequence[str]) -> Paragraph:
    while True:  # this ends, because most contexts allow questions
        sentences, told = _context(c, more)
        found = _questions(c, told, more) if sum(len(s["form"]) for s in sentences) <= CONTEXT else None
        if found is not None:
            numbered = enumerate(found, start=index * QUESTIONS)
            questions = tuple(Question(Sentence(n, columns), answer) for n, (columns, answer) in numbered)
            return Paragraph(tuple(Sentence(index, columns) for columns in sentences), questions)


def _context(c: Context, more: Sequence[str]) -> tuple[list[Columns], list[_Told]]:
    """Draw the sentences of a context, and return them with the facts in each sentence."""
    left = facts(c, 2 + int(c.draw() * 2))
    sentences: list[Columns] = []
    told: list[_Told] = []
    while left:
        plan, second = left.pop(0), left.pop(0) if len(left) > 1 and c.chance(0.1) else None
        link = c.weighted("joined")
        whole = plan
        if second is not None and link in ("and", "but"):
            whole = replace(plan, conjunct=(link, second))
        elif second is not None:
            whole = replace(plan, adverbial=(link, second), adverbial_first=c.chance(0.4))
        root = sentence_node(whole)
        sentences.append(columns_of(root, more))
        words = frozenset(sentences[-1]["form"])
        told.append(_Told(plan, _roles(plan), len(sentences) - 1, words, root))
        if second is not None:
            inner = next(child for child in root.children if child.deprel in ("conj", "advcl"))
            told.append(_Told(second, _roles(second), len(sentences) - 1, words, inner))
    return sentences, told


def _questions(c: Context, told: Sequence[_Told], more: Sequence[str]) -> list[Asked] | None:
    found: list[Asked] = []
    for _ in range(QUESTIONS):
        make = _unanswered if c.chance(UNANSWERABLE) else _answered
        tries = (make(c, told, more) for _ in range(TRIES))
        short = (new for new in tries if new is not None and len(new[0]["form"]) <= ASKED)
        question = next((new for new in short if not any(_alike(new, old) for old in found)), None)
        if question is None:
            return None
        found.append(question)
    return found


def _alike(one: Asked, other: Asked) -> bool:
    """Return True if two questions have the same words or the same answer."""
    return one[0]["form"] == other[0]["form"] or (one[1] is not None and one[1] == other[1])


def _answered(c: Context, told: Sequence[_Told], more: Sequence[str]) -> Asked | None:
    """Draw a question that exactly one fact may answer, or return None if this draw has no result.

    A question is often dropped if the sentence of the answer shares more words with it than any other sentence.
    """
    mine, asked = c.one(told), c.weighted("asked")
    if asked not in mine.roles:
        return None
    query = _query(c, mine.fact, asked)
    if query is None or sum(other.may_answer(query) for other in told) != 1:
        return None
    start, stop = _span(mine, asked)
    if stop - start > LONGEST:
        return None
    columns = _worded(c, query, mine.fact, more)
    words = frozenset(columns["form"])
    shared = len(words & mine.words)
    hard = any(len(words & other.words) >= shared for other in told if other.sentence != mine.sentence)
    return (columns, Answer(mine.sentence, start, stop)) if hard or c.chance(EASY) else None


def _unanswered(c: Context, told: Sequence[_Told], more: Sequence[str]) -> Asked | None:
    """Draw a question that no fact may answer, or return None if this draw has no result."""
    mine, asked = c.one(told).fact, c.weighted("asked")
    other = _changed(c, mine, [t.fact for t in told], asked)
    if other is None or (asked in ("subject", "object") and asked not in _roles(other)):
        return None
    query = _query(c, other, asked)
    if query is None or any(t.may_answer(query) for t in told):
        return None
    return _worded(c, query, other, more), None


def _span(told: _Told, asked: str) -> Span:
    """Return the span of the answer in its sentence, with a preposition for "where" and "when"."""
    plan = told.fact
    if asked in ("subject", "object"):
        voice = (
            {"subject": "obl:agent", "object": "nsubj:pass"} if plan.passive else {"subject": "nsubj", "object": "obj"}
        )
        names = [voice[asked]]
    else:
        names = [f"obl {p}" for p, _ in plan.obliques if _role(p) == asked]
        names.append(f"advmod {plan.manner if asked == 'how' else plan.time}")
    found = next(child for child in told.node.children if child.relation in names)
    return found.extent(("case",) if asked == "subject" else ())


# --- the content of questions


def _roles(plan: Clause) -> Roles:
    named = {"subject": plan.subject, "object": plan.object, "recipient": plan.recipient}
    named |= {_role(preposition): phrase for preposition, phrase in plan.obliques}
    found = {name: words_of(phrase) for name, phrase in named.items() if phrase is not None}
    return found | {name: frozenset((word,)) for name, word in (("when", plan.time), ("how", plan.manner)) if word}


def _said(plan: Clause) -> tuple[str, bool]:
    """Return the verb or the adjective, and True if it is negated."""
    return plan.verb.base if plan.adjective is None else plan.adjective.form, plan.negated


def _role(preposition: str) -> str:
    return "where" if preposition in WHERE else "when" if preposition in WHEN else preposition


def _query(c: Context, fact: Clause, asked: str) -> _Query | None:
    """Return a question for a role of a fact, perhaps in fewer and simpler phrases, or None if this is impossible."""
    if (fact.kind == "adjective" or fact.negated) and asked != "subject":
        return None
    stated = replace(
        fact,
        subject=None if asked == "subject" else _simpler(c, fact.subject),
        object=None if asked == "object" else _simpler(c, fact.object),
        recipient=_simpler(c, fact.recipient),
        obliques=tuple(
            (p, simple)
            for p, phrase in fact.obliques
            if _role(p) != asked and c.chance(0.45) and (simple := _simpler(c, phrase)) is not None
        ),
        time=fact.time if asked != "when" and c.chance(0.4) else "",
        manner=fact.manner if asked != "how" and c.chance(0.3) else "",
    )
    return _Query(stated, asked, _roles(stated))


def _simpler(c: Context, phrase: NounPhrase | None) -> NounPhrase | None:
    if phrase is None or not isinstance(phrase.head, Noun):
        return phrase
    simple = replace(phrase, adjectives=(), degree="") if c.chance(0.5) else phrase
    loose = simple.determiner in ("a", "some", "") and simple.owner is None
    return replace(simple, determiner="the") if loose and c.chance(0.6) else simple


def _worded(c: Context, query: _Query, fact: Clause, more: Sequence[str]) -> Columns:
    plan, asked = replace(query.stated, mood="question"), query.asked
    phrase = fact.subject if asked == "subject" else fact.object
    person = phrase is not None and phrase.sense in "pg"
    plan.question_word = asked if asked in ADVERBS else "who" if person else "what"
    if asked == "subject":
        plan.gap, plan.agreement, plan.passive = "subject", "is", False
    elif asked == "object":
        turned = plan.recipient is None and not plan.progressive and c.chance(0.3)
        plan.gap, plan.agreement, plan.passive, plan.agent = ("subject" if turned else "object"), "is", turned, turned
    elif plan.passive and c.chance(0.5):
        plan.passive = plan.agent = False
    return realise(indirect(c, plan) if c.chance(0.15) else plan, more)


def _changed(c: Context, fact: Clause, context: Sequence[Clause], asked: str) -> Clause | None:
    """Change a fact into a similar clause in words of the context, or return None if this is impossible."""
    kind = c.weighted("change")
    if (asked in _roles(fact)) == (kind == "missing"):
        return None
    match kind:
        case "swap":
            return swapped(fact)
        case "not":
            return replace(fact, negated=not fact.negated)
        case "verb":
            return _other_verb(c, fact, context)
        case "phrase":
            return _other_phrase(c, fact, context, asked)
    return fact if asked in ADVERBS else None


def _other_verb(c: Context, fact: Clause, context: Sequence[Clause]) -> Clause | None:
    """Replace the verb of a fact by a verb of the context that has the same arguments."""
    kind = ("verb", fact.object is None, fact.recipient is None)
    likes = [f for f in context if (f.kind, f.object is None, f.recipient is None) == kind and f.verb is not fact.verb]
    return replace(fact, verb=c.one(likes).verb, progressive=False) if fact.kind == "verb" and likes else None


def _other_phrase(c: Context, fact: Clause, context: Sequence[Clause], asked: str) -> Clause | None:
    """Replace the subject or object of a fact with a phrase of the context with the same sense."""
    name = "object" if asked == "subject" and fact.object is not None else "subject"
    mine: NounPhrase | None = getattr(fact, name)
    if mine is None or asked == name:
        return None
    there = frozenset[str]().union(*_roles(fact).values())
    phrases = [p for f in context for p in (f.subject, f.object, f.recipient) if p is not None]
    others = [p for p in phrases if not words_of(p) & there and p.sense == mine.sense and not overlap(p, mine)]
    other = c.one(others) if others else None
    if other is None:
        return None
    return replace(fact, object=other) if name == "object" else replace(fact, subject=other)
