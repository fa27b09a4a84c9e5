"""Extractive question answering: files in the JSON of SQuAD 1.1 and 2.0, data sets of the hub, the grammar.

Contexts and questions are split into words and sentences by the rules for plain text. An answer consists of the words
that its characters touch. An answer that begins or ends inside a word is widened to the word, and counted. An answer
that is not at its place in the context, or that has no word, is left out and counted. A question that loses all its
answers is left out and counted, too. A question without any answer (``is_impossible``) is kept as unanswerable. A
repeated id gets a number. An id may be an integer. A question without an id has its number as id.

On the hub (squad, squad_v2, xquad, mlqa, exported data sets) a row is a question: ``context``, ``question`` and
``answers`` with texts and their first characters, and ``id``, ``title`` and ``is_impossible`` if such columns exist.
Consecutive rows with the same context share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pydantic

from synthlang.config_errors import show_value, type_reason
from synthlang.errors import Code, InputError
from synthlang.files import json_of
from synthlang.fingerprint import fingerprint
from synthlang.sources.hub_data import STRINGS, dtype_of, is_spaced, no_columns
from synthlang.sources.mini_english.questions import Paragraph, paragraphs
from synthlang.sources.segmentation import RULES, SegmentedText
from synthlang.sources.splits import CJK
from synthlang.sources.text import digest_splits, open_bytes
from synthlang.sources.words import REMOVED, count_unseen
from synthlang.tasks.base import FileTask, HubTask, MiniEnglishTask, ReadTask, opener
from synthlang.tasks.batch import Item, ItemGroup

READER = 2  # part of the fingerprint: raise when the same bytes give other items
HUB_READER = 1  # part of the fingerprint: raise when the same rows give other items
FIELDS = ("question", "context")
CONTEXT = FIELDS.index("context")
WIDENED = "answers widened to whole words"
MISPLACED = "answers left out because the context has another text at their place"
WORDLESS = "answers left out because they have no word"
NO_ANSWER = "questions left out because none of their answers is usable"
NO_QUESTION = "questions left out because they have no word"
NO_CONTEXT = "questions left out because their context has no word"


class Question(NamedTuple):
    """A question as read.

    Attributes:
        id: Name of the question.
        text: The question.
        answers: Pairs (text, index of its first character in the context). An unanswerable question has none.
        title: Title of the article, or None if the data has no titles.
    """

    id: str
    text: str
    answers: Sequence[tuple[str, int]]
    title: str | None


class ReadQuestions(ReadTask):
    """Questions on contexts, from files or the hub."""

    kind = "spans"
    fields = FIELDS
    scheme = "qa"
    item = "question"
    answered = CONTEXT

    def _split(self, text: str) -> SegmentedText:
        return SegmentedText.spaced(text) if self.spaced else SegmentedText.of(text, bool(self.cjk))

    def _group(self, text: str, questions: Sequence[Question], counts: Counter[str]) -> Iterator[ItemGroup]:
        """Yield the group of a paragraph and its questions if it has a usable question."""
        context = self._split(text)
        counts[REMOVED] += count_unseen(text)
        if not context.words:
            counts[NO_CONTEXT] += len(questions)
            return
        usable = list(filter(None, (self._usable(question, text, context, counts) for question in questions)))
        if usable:
            texts = [(CONTEXT, context.sentences), *((0, words.sentences) for words, _, _ in usable)]
            items = (
                Item(question.id, (row, 0), None, spans, {} if question.title is None else {"title": question.title})
                for row, (_, spans, question) in enumerate(usable, start=1)
            )
            yield ItemGroup(tuple(texts), tuple(items))

    def _usable(
        self, question: Question, text: str, context: SegmentedText, counts: Counter[str]
    ) -> tuple[SegmentedText, tuple[tuple[int, int], ...], Question] | None:
        """Return the words of a question and the spans of its answers, or None if the question is unusable."""
        words = self._split(question.text)
        counts[REMOVED] += count_unseen(question.text)
        found = (_span(answer, start, text, context, counts) for answer, start in question.answers)
        spans = tuple(dict.fromkeys(filter(None, found)))  # annotators often agree, and equal spans count once
        if not words.words or (question.answers and not spans):
            counts[NO_ANSWER if words.words else NO_QUESTION] += 1
            return None
        return words, spans, question


class Answer(pydantic.BaseModel):
    """An answer in the JSON of SQuAD. ``answer_start`` is the index of its first character in the context."""

    text: str
    answer_start: int


class Asked(pydantic.BaseModel):
    """A question on a paragraph in the JSON of SQuAD."""

    id: str | int | None = None
    question: str
    answers: list[Answer] = []
    is_impossible: bool = False


class Text(pydantic.BaseModel):
    """A paragraph of an article with its questions, in the JSON of SQuAD."""

    context: str
    qas: list[Asked]


class Article(pydantic.BaseModel):
    """An article with its paragraphs, in the JSON of SQuAD."""

    title: str = ""
    paragraphs: list[Text]


class Squad(pydantic.BaseModel):
    """A file in the JSON of SQuAD. Other keys are ignored."""

    data: list[Article]


class FileQuestions(ReadQuestions, FileTask):
    """Questions of files in the JSON of SQuAD (see ``FileTask``)."""

    endings = (".json",)
    own_options = (CJK,)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the bytes of each split and the rules for words."""
        splits = digest_splits(self.files, rules=True)
        return fingerprint("squad-task", reader=READER, rules=RULES, splits=splits, **self._marks)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        with open_bytes(self.files[split]) as handle:
            raw = handle.read().removeprefix(b"\xef\xbb\xbf")  # a byte order mark, which is allowed in all text files
        try:
            squad = Squad.model_validate_json(raw, strict=True)
        except pydantic.ValidationError as error:
            json_of(raw, self.files[split])  # raises an error with the line if this is not JSON
            first = error.errors(include_url=False)[0]
            at = tuple(map(str, first["loc"]))
            code: Code = "missing" if first["type"] == "missing" else "type"
            reason = "is required" if code == "missing" else type_reason(first)
            if "id" in at:  # the only key of several types, which pydantic adds to the location
                at, reason = at[:-1], f"{show_value(first['input'])} must be a text or an integer"
            hint = "write the file in the format of SQuAD"
            raise InputError(reason, self.files[split], keys=at, hint=hint, code=code) from error
        numbers = count()
        for article in squad.data:
            for paragraph in article.paragraphs:
                questions = [_question(asked, next(numbers), article.title) for asked in paragraph.qas]
                yield from self._group(paragraph.context, questions, counts)


def _question(asked: Asked, number: int, title: str) -> Question:
    answers = [] if asked.is_impossible else [(answer.text, answer.answer_start) for answer in asked.answers]
    return Question(str(number if asked.id is None else asked.id), asked.question, answers, title)


def _span(answer: str, start: int, text: str, context: SegmentedText, counts: Counter[str]) -> tuple[int, int] | None:
    if start < 0 or not text.startswith(answer, start):
        counts[MISPLACED] += 1
        return None
    span = context.span(start, start + len(answer))
    if span is None:
        counts[WORDLESS] += 1
    elif context.is_cut(span, start, start + len(answer)):
        counts[WIDENED] += 1
    return span


class MiniEnglishQuestions(MiniEnglishTask):
    """Questions of the grammar on short contexts. About one question in eight is unanswerable."""

    kind = "spans"
    fields = FIELDS
    name = "qa:builtin:mini-english"
    version = ("mini-english-questions", 2)
    answered = CONTEXT

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:  # noqa: ARG002
        return map(_question_group, paragraphs(self.source, split, self.source.size(split)))


def _question_group(paragraph: Paragraph) -> ItemGroup:
    """Return the context and its questions. Answers are spans of words of the context."""
    starts = [0]
    for sentence in paragraph.sentences:
        starts.append(starts[-1] + len(sentence.words))
    items = []
    for row, question in enumerate(paragraph.questions, start=1):
        answer = question.answer
        at = 0 if answer is None else starts[answer.sentence]
        spans = () if answer is None else ((at + answer.start, at + answer.stop),)
        items.append(Item(str(question.sentence.id), (row, 0), None, spans))
    context = (CONTEXT, [dict(sentence.columns) for sentence in paragraph.sentences])
    questions = ((0, [dict(question.sentence.columns)]) for question in paragraph.questions)
    return ItemGroup((context, *questions), tuple(items))


NEEDED = ("context", "question", "answers")
OPTIONAL = {"id": (*STRINGS, "int32", "int64"), "title": STRINGS, "is_impossible": ("bool",)}
PARTS = ("text", "answer_start")


class HubQuestions(ReadQuestions, HubTask):
    """Questions of a data set of the hub or of a local folder (see ``HubTask``)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._columns = {column: column for column in answer_columns(self._features, self.name)}
        # Exported texts are words separated by single spaces.
        self.spaced = all(is_spaced(self._features[field]) for field in FIELDS)
        self._check_usable()

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the values in the columns that are read, and the rules for words."""
        parts = {"columns": list(self._columns), "spaced": self.spaced, "splits": self._digests()}
        return fingerprint("hub-answers", reader=HUB_READER, rules=RULES, **parts, **self._marks)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        for text, questions in groupby(self._questions(split), key=itemgetter(0)):
            yield from self._group(text, [question for _, question in questions], counts)

    def _questions(self, split: str) -> Iterator[tuple[str, Question]]:
        """Yield each row as (context, question)."""
        for number, row in self._parts(split):
            place = (split, f"row {number + 1}")
            for column in ("context", "question"):
                if row[column] is None:
                    hint = "correct or delete the row"
                    keys = (*place, column)
                    raise InputError("the value is missing", self.name, keys=keys, hint=hint, code="missing")
            try:
                listed = [] if row.get("is_impossible") else _answers(row["answers"])
            except InputError as error:
                raise error.inside(*place, path=self.name) from error
            name = number if row.get("id") is None else row["id"]
            title = None if "title" not in row else row["title"] or ""
            yield row["context"], Question(str(name), row["question"], listed, title)


def _answers(value: Any) -> list[tuple[str, int]]:
    """Return (text, start) of each answer, from a struct of lists or a list of structs."""
    found: list[Any]
    if isinstance(value, list):
        found = [[None if one is None else one[part] for one in value] for part in PARTS]
    else:
        found = [None if value is None else value[part] for part in PARTS]
    reason = ""
    if any(part is None or None in part for part in found):
        reason = f"must have a list of {PARTS[0]} and a list of {PARTS[1]} without null"
    elif len(found[0]) != len(found[1]):
        reason = f"must have equal numbers of {PARTS[0]} and {PARTS[1]}, not {len(found[0])} and {len(found[1])}"
    if reason:
        raise InputError(reason, keys="answers", hint="correct or delete the row", code="format")
    return list(zip(*found, strict=True))


def answer_columns(features: Mapping[str, Any], name: str) -> list[str]:
    """Return the names of the columns to read from a data set of questions, the required columns first.

    ``features`` maps the columns of the data set to their types. ``name`` is the data set, for the error.

    Raises:
        InputError: A required column is missing or has another type. The error lists the columns.
    """
    answers = features.get("answers")
    nested = getattr(answers, "feature", answers)  # the struct in a list of structs, or the struct of lists itself
    parts = nested if isinstance(nested, dict) else {}
    kinds = [dtype_of(getattr(parts.get(part), "feature", parts.get(part))) or "" for part in PARTS]
    known = kinds[0] in STRINGS and kinds[1].startswith(("int", "uint"))
    if not known or any(dtype_of(features.get(column)) not in STRINGS for column in NEEDED[:2]):
        raise no_columns(name, "the texts context and question, and answers with text and answer_start", features)
    return [*NEEDED, *(column for column, kinds in OPTIONAL.items() if dtype_of(features.get(column)) in kinds)]


open_questions = opener(FileQuestions, HubQuestions, MiniEnglishQuestions)
