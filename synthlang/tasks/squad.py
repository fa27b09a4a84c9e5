"""Extractive question answering in the JSON of SQuAD 1.1 and 2.0.

Contexts and questions are split into words and sentences by the rules for plain text. An
answer is the words that its characters touch: one that begins or ends inside a word is
widened to it, and counted. An answer that is not at its place, or without a word, is left out
and counted, and so is a question that loses all its answers. A question that has none
(``is_impossible``) stays: it cannot be answered. An id that comes again gets a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import because, check_split
from synthlang.sources.text import digest_splits, files_by_split
from synthlang.sources.words import RULES, Words
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.build import Group, Item, batches_of_groups, unique_ids
from synthlang.tasks.json_input import items_of, read_json_input, value_of

READER = 2  # part of the fingerprint: count up when the same bytes give other items
ENDINGS = (".json",)
FIELDS = ("question", "context")
CONTEXT = FIELDS.index("context")
WIDENED = "answers widened to whole words"
MISPLACED = "answers left out, the context has another text at their place"
WORDLESS = "answers left out, no word in them"
NO_ANSWER = "questions left out, no answer of theirs can be used"
NO_QUESTION = "questions left out, without a word"
NO_CONTEXT = "questions left out, their context has no word"
Split = Callable[[str], Words]


class Question(NamedTuple):
    """A question as it is read: its answers are (text, the character of the context it starts at)."""

    id: str
    text: str
    answers: Sequence[tuple[str, int]]
    title: str | None


class SquadTask(TaskSet):
    """Questions on paragraphs; a wrong path is an InputError here, a wrong file when it is reached."""

    kind = "spans"
    fields = FIELDS

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.name = f"qa:{path}"
        self.files = files_by_split(self.path, ENDINGS)
        for file in self.files.values():
            counts: Counter[str] = Counter()
            if next(read_groups(file, counts), None) is None:
                raise InputError(f"holds no question that can be used{because(counts)}", file)

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split and the rules for words."""
        return fingerprint("squad-task", reader=READER, rules=RULES, splits=digest_splits(self.files))

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there is a file for."""
        return tuple(self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        """Words only."""
        return (FORM,)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The questions of a split in order, those of a paragraph together."""
        check_split(self.as_source(), split, self.name)
        counts: Counter[str] = Counter()
        return batches_of_groups(unique_ids(read_groups(self.files[split], counts), counts), (), counts, CONTEXT)


def read_groups(path: Path, counts: Counter[str]) -> Iterator[Group]:
    """A group for each paragraph with a usable question: the context, then the questions."""
    for article, where in items_of(read_json_input(path), "data", "", path):
        title = value_of(article, "title", str, where, path) if "title" in article else ""
        for paragraph, place in items_of(article, "paragraphs", where, path):
            text = value_of(paragraph, "context", str, place, path)
            questions = (_question(data, title, spot, path) for data, spot in items_of(paragraph, "qas", place, path))
            yield from group_of(text, list(questions), counts)


def _question(data: Mapping[str, Any], title: str, where: str, path: Path) -> Question:
    name = value_of(data, "id", str, where, path)
    question = value_of(data, "question", str, where, path)
    impossible = "is_impossible" in data and value_of(data, "is_impossible", bool, where, path)
    listed = [] if impossible or "answers" not in data else items_of(data, "answers", where, path)
    answers = [
        (value_of(answer, "text", str, place, path), value_of(answer, "answer_start", int, place, path))
        for answer, place in listed
    ]
    return Question(name, question, answers, title)


def group_of(
    text: str, questions: Sequence[Question], counts: Counter[str], split: Split = Words.of
) -> Iterator[Group]:
    """The group of a paragraph, if a question on it can be used; ``counts`` takes what cannot."""
    context = split(text)
    if not context.words:
        counts[NO_CONTEXT] += len(questions)
        return
    usable = list(filter(None, (_placed(question, text, context, counts, split) for question in questions)))
    if usable:
        texts = [(CONTEXT, context.sentences), *((0, words.sentences) for words, _, _ in usable)]
        items = (
            Item(question.id, (row, 0), None, spans, {} if question.title is None else {"title": question.title})
            for row, (_, spans, question) in enumerate(usable, start=1)
        )
        yield Group(tuple(texts), tuple(items))


def _placed(
    question: Question, text: str, context: Words, counts: Counter[str], split: Split
) -> tuple[Words, tuple[tuple[int, int], ...], Question] | None:
    """The words of a question and the spans of its answers; None if it cannot be used."""
    words = split(question.text)
    found = (_span(answer, start, text, context, counts) for answer, start in question.answers)
    spans = tuple(dict.fromkeys(filter(None, found)))  # annotators often agree: the same span counts once
    if not words.words or (question.answers and not spans):
        counts[NO_ANSWER if words.words else NO_QUESTION] += 1
        return None
    return words, spans, question


def _span(answer: str, start: int, text: str, context: Words, counts: Counter[str]) -> tuple[int, int] | None:
    if start < 0 or not text.startswith(answer, start):
        counts[MISPLACED] += 1
        return None
    span = context.span(start, start + len(answer))
    if span is None:
        counts[WORDLESS] += 1
    elif context.is_cut(span, start, start + len(answer)):
        counts[WIDENED] += 1
    return span
