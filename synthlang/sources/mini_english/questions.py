"""Questions on contexts, answered by construction: one span of the context answers, or none does.

A context is a few sentences of one or two facts. Most facts share the verb, the subject or the
object with another one, turn it round or deny it, so that the words of a question stand in
several sentences and who did what decides. A question that cannot be answered is made of the
words of the context too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.sources.base import check_split
from synthlang.sources.mini_english.parts import Span, children, dependent, extent
from synthlang.sources.mini_english.plan import Clause
from synthlang.sources.mini_english.questions_ask import (
    ASKED,
    Query,
    Roles,
    changed,
    may_answer,
    query_of,
    role_of,
    roles,
    worded,
)
from synthlang.sources.mini_english.questions_facts import facts
from synthlang.sources.mini_english.realise import columns_of, realise, sentence_node
from synthlang.sources.mini_english.source import MAX_WORDS, NAME, MiniEnglish
from synthlang.sources.mini_english.tree import Columns, Node
from synthlang.sources.mini_english.world import Context, context_of

QUESTIONS = 4  # on one context
UNANSWERABLE = 0.25
LONGEST = 5  # words of an answer
TRIES = 60  # to find a question before another context is drawn
EASY = 0.35  # how often a question stays whose answer stands in the sentence most like it
LINKS = (("and", 0.5), ("but", 0.2), ("because", 0.15), ("although", 0.15))


@dataclass(frozen=True)
class Answer:
    """Words ``start`` … ``stop`` − 1 of a sentence of the context, all counted from 0."""

    sentence: int
    start: int
    stop: int


@dataclass(frozen=True)
class Question:
    """An annotated question and its answer; None: the context has none."""

    sentence: Sentence
    answer: Answer | None


@dataclass(frozen=True)
class Paragraph:
    """The annotated sentences of a context and the questions on them."""

    sentences: tuple[Sentence, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class _Told:
    """A fact, its roles, the sentence it stands in with its words, and the node of its predicate there."""

    fact: Clause
    roles: Roles
    sentence: int
    words: frozenset[str]
    node: Node


def paragraphs(source: MiniEnglish, split: str, count: int) -> Iterator[Paragraph]:
    """Contexts with ``count`` questions in all, QUESTIONS on each but the last one.

    Context i and its questions are a function of (types, seed, split, i); i is the id of the
    sentences of the context, and questions are numbered through the split.
    """
    check_split(source, split, NAME)
    if count < 0:
        raise InputError(f"{NAME}: the number of questions must be 0 or more, not {count}")
    for index in range(-(-count // QUESTIONS)):
        whole = _paragraph(source, split, index)
        yield replace(whole, questions=whole.questions[: count - index * QUESTIONS])


def _paragraph(source: MiniEnglish, split: str, index: int) -> Paragraph:
    c = context_of(source.world, source.seed, source.types, split, index, "questions")
    while True:  # ends: most contexts have something to ask for
        sentences, told = _context(c)
        found = _questions(c, told) if max(len(s["form"]) for s in sentences) <= MAX_WORDS else None
        if found is not None:
            numbered = enumerate(found, start=index * QUESTIONS)
            questions = tuple(Question(Sentence(n, columns), answer) for n, (columns, answer) in numbered)
            return Paragraph(tuple(Sentence(index, columns) for columns in sentences), questions)


def _context(c: Context) -> tuple[list[Columns], list[_Told]]:
    """The sentences of a context, and where each fact stands."""
    left = facts(c, 4 + int(c.draw() * 4))
    sentences: list[Columns] = []
    told: list[_Told] = []
    while left:
        plan, second = left.pop(0), left.pop(0) if len(left) > 1 and c.chance(0.2) else None
        link = c.weighted(LINKS)
        if second is not None and link in ("and", "but"):
            root = sentence_node(replace(plan, conjunct=(link, second)))
        elif second is not None:
            root = sentence_node(replace(plan, adverbial=(link, second), adverbial_first=c.chance(0.4)))
        else:
            root = sentence_node(plan)
        columns = columns_of(root)
        words = frozenset(columns["form"])
        told.append(_Told(plan, roles(plan), len(sentences), words, root))
        if second is not None:
            inner = next(child for child in children(root) if child.deprel in ("conj", "advcl"))
            told.append(_Told(second, roles(second), len(sentences), words, inner))
        sentences.append(columns)
    return sentences, told


def _questions(c: Context, told: Sequence[_Told]) -> list[tuple[Columns, Answer | None]] | None:
    """QUESTIONS different questions, None if too few are found."""
    found: list[tuple[Columns, Answer | None]] = []
    for _ in range(QUESTIONS):
        make = _unanswered if c.chance(UNANSWERABLE) else _answered
        tries = (make(c, told) for _ in range(TRIES))
        question = next((new for new in tries if new is not None and not any(_alike(new, old) for old in found)), None)
        if question is None:
            return None
        found.append(question)
    return found


def _alike(one: tuple[Columns, Answer | None], other: tuple[Columns, Answer | None]) -> bool:
    """Whether two questions have the same words or the same answer."""
    return one[0]["form"] == other[0]["form"] or (one[1] is not None and one[1] == other[1])


def _answered(c: Context, told: Sequence[_Told]) -> tuple[Columns, Answer | None] | None:
    """A question that one fact answers and no other one may; None if this draw gave none.

    Where no other sentence has as many words of the question, it is often given up.
    """
    mine, asked = told[int(c.draw() * len(told))], c.weighted(ASKED)
    if asked not in mine.roles:
        return None
    query = query_of(c, mine.fact, asked)
    if query is None or sum(may_answer(query, other.fact, other.roles) for other in told) != 1:
        return None
    start, stop = _span(mine, asked)
    if stop - start > LONGEST:
        return None
    columns = _asked(c, query, mine.fact)
    words = frozenset(columns["form"])
    shared = len(words & mine.words)
    hard = any(len(words & other.words) >= shared for other in told if other.sentence != mine.sentence)
    return (columns, Answer(mine.sentence, start, stop)) if hard or c.chance(EASY) else None


def _unanswered(c: Context, told: Sequence[_Told]) -> tuple[Columns, Answer | None] | None:
    """A question that no fact may answer; None if this draw gave none."""
    mine, asked = told[int(c.draw() * len(told))].fact, c.weighted(ASKED)
    other = changed(c, mine, [t.fact for t in told], asked)
    if other is None or (asked in ("subject", "object") and asked not in roles(other)):
        return None
    query = query_of(c, other, asked)
    if query is None or any(may_answer(query, t.fact, t.roles) for t in told):
        return None
    return _asked(c, query, other), None


def _asked(c: Context, query: Query, fact: Clause) -> Columns:
    phrase = fact.subject if query.asked == "subject" else fact.object
    return realise(worded(c, query, phrase is not None and phrase.sense in "pg"))


def _span(told: _Told, asked: str) -> Span:
    """The words of a fact that answer: a phrase; with its preposition where the question is "where" or "when"."""
    plan, node = told.fact, told.node
    if asked == "subject":
        names: tuple[str, ...] = ("obl:agent",) if plan.passive else ("nsubj",)
    elif asked == "object":
        names = ("nsubj:pass",) if plan.passive else ("obj",)
    else:
        names = tuple(f"obl {p}" for p, _ in plan.obliques if role_of(p) == asked)
        names += tuple(f"advmod {word}" for word in (plan.manner if asked == "how" else plan.time,) if word)
    found = dependent(node, *names)
    assert found is not None, "a fact has the role that is asked for"
    return extent(found, ("case",) if asked == "subject" else ())
