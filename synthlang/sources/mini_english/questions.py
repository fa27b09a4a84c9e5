"""Questions on contexts, answered by construction: one span of the context answers, or none does.

A context is a few sentences of one or two facts. Most facts share the verb, the subject or the object with another
one, turn it round or deny it, so that the words of a question stand in several sentences and who did what decides. A
question that cannot be answered is made of the words of the context too.

Who did what is kept as roles. A fact may answer a question if it is of the same verb and polarity, has the role that is
asked for, and shares a word of the head with each role that the question states; tense, adjectives, prepositions and
determiners are looked over, so that a question is asked only where not even a careless reader finds a second answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.sources.base import check_split
from synthlang.sources.mini_english.draw import indirect
from synthlang.sources.mini_english.entries import Noun
from synthlang.sources.mini_english.facts import WHEN, WHERE, facts, other_phrase, words_of
from synthlang.sources.mini_english.nli import swapped
from synthlang.sources.mini_english.plan import Clause, NounPhrase
from synthlang.sources.mini_english.realise import columns_of, realise, sentence_node
from synthlang.sources.mini_english.source import MAX_WORDS, NAME, MiniEnglish
from synthlang.sources.mini_english.tree import Columns, Node, Span, children, dependent, extent
from synthlang.sources.mini_english.world import Context, context_of

ASKED = (("subject", 0.36), ("object", 0.26), ("where", 0.18), ("when", 0.12), ("how", 0.08))
CHANGES = (("phrase", 0.45), ("swap", 0.2), ("verb", 0.17), ("missing", 0.08), ("not", 0.1))
ADVERBS = ("where", "when", "how")
Roles = dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of which state of affairs: ``stated`` is a fact without the role ``asked``, of these roles."""

    stated: Clause
    asked: str
    roles: Roles


def roles(plan: Clause) -> Roles:
    """What a clause says of whom: role → the words it is known by."""
    found: Roles = {}
    for name, phrase in (("subject", plan.subject), ("object", plan.object), ("recipient", plan.recipient)):
        if phrase is not None:
            found[name] = words_of(phrase)
    for preposition, phrase in plan.obliques:
        found[role_of(preposition)] = words_of(phrase)
    if plan.time:
        found["when"] = frozenset((plan.time,))
    if plan.manner:
        found["how"] = frozenset((plan.manner,))
    return found


def role_of(preposition: str) -> str:
    """Where, when, or a role of its own."""
    return "where" if preposition in WHERE else "when" if preposition in WHEN else preposition


def may_answer(query: Query, fact: Clause, said: Roles) -> bool:
    """Whether a fact, whose roles are ``said``, could be taken for an answer."""
    if said_of(fact) != said_of(query.stated) or fact.negated != query.stated.negated:
        return False
    return query.asked in said and all(words & said.get(name, frozenset()) for name, words in query.roles.items())


def said_of(plan: Clause) -> str:
    """The verb or the adjective."""
    return plan.verb.base if plan.verb is not None else plan.adjective.form if plan.adjective is not None else ""


def query_of(c: Context, fact: Clause, asked: str) -> Query | None:
    """Ask for a role of a fact; adjuncts may be left out, phrases may become simpler. None: it cannot be asked."""
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
            if role_of(p) != asked and c.chance(0.45) and (simple := _simpler(c, phrase)) is not None
        ),
        time=fact.time if asked != "when" and c.chance(0.4) else "",
        manner=fact.manner if asked != "how" and c.chance(0.3) else "",
    )
    return Query(stated, asked, roles(stated))


def changed(c: Context, fact: Clause, context: Sequence[Clause], asked: str) -> Clause | None:
    """A state of affairs like that of a fact, of words of the context, that may be nowhere in it."""
    kind = c.weighted(CHANGES)
    if (asked in roles(fact)) == (kind == "missing"):
        return None
    if kind == "swap":
        return swapped(fact)
    if kind == "not":
        return replace(fact, negated=not fact.negated)
    if kind == "verb":
        return _other_verb(c, fact, context)
    if kind == "phrase":
        return _other_phrase(c, fact, context, asked)
    return fact if asked in ADVERBS else None


def worded(c: Context, query: Query, person: bool) -> Clause:
    """The question as a clause; ``person``: "who" and not "what"."""
    plan, asked = replace(query.stated, mood="question"), query.asked
    plan.question_word = asked if asked in ADVERBS else "who" if person else "what"
    if asked == "subject":
        plan.gap, plan.agreement, plan.passive = "subject", "is", False
    elif asked == "object":
        turned = plan.recipient is None and not plan.progressive and c.chance(0.3)
        plan.gap, plan.agreement, plan.passive, plan.agent = ("subject" if turned else "object"), "is", turned, turned
    elif plan.passive and c.chance(0.5):
        plan.passive = plan.agent = False
    return indirect(c, plan)[0] if c.chance(0.15) else plan


def _simpler(c: Context, phrase: NounPhrase | None) -> NounPhrase | None:
    """The phrase, perhaps without adjectives and with "the"."""
    if phrase is None or not isinstance(phrase.head, Noun):
        return phrase
    simple = replace(phrase, adjectives=(), degree="") if c.chance(0.5) else phrase
    loose = simple.determiner in ("a", "some", "") and simple.owner is None
    return replace(simple, determiner="the") if loose and c.chance(0.6) else simple


def _other_verb(c: Context, fact: Clause, context: Sequence[Clause]) -> Clause | None:
    """The same of another verb of the context that takes the same arguments."""
    kind = (fact.object is None, fact.recipient is None)
    verbs = [
        f.verb
        for f in context
        if f.verb is not None and f.verb is not fact.verb and (f.object is None, f.recipient is None) == kind
    ]
    if fact.verb is None or not verbs:
        return None
    return replace(fact, verb=verbs[int(c.draw() * len(verbs))], progressive=False)


def _other_phrase(c: Context, fact: Clause, context: Sequence[Clause], asked: str) -> Clause | None:
    """The same with another subject or object of the context."""
    name = "object" if asked == "subject" and fact.object is not None else "subject"
    mine = fact.object if name == "object" else fact.subject
    if mine is None or asked == name:
        return None
    phrases = [p for f in context for p in (f.subject, f.object, f.recipient) if p is not None]
    there = frozenset[str]().union(*roles(fact).values())
    other = other_phrase(c, mine, [p for p in phrases if not words_of(p) & there])
    if other is None:
        return None
    return replace(fact, object=other) if name == "object" else replace(fact, subject=other)


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
