"""Extractive question answering: files in the JSON of SQuAD 1.1 and 2.0, data sets of the hub, the grammar.

Contexts and questions are split into words and sentences by the rules for plain text. An answer is the words that its
characters touch: one that begins or ends inside a word is widened to it, and counted. An answer that is not at its
place, or without a word, is left out and counted, and so is a question that loses all its answers. A question that has
none (``is_impossible``) stays: it cannot be answered. An id that comes again gets a number.

On the hub (squad, squad_v2, xquad, mlqa, exported ones) a row is a question: ``context``, ``question`` and ``answers``
with the texts and the characters they start at, and ``id``, ``title``, ``is_impossible`` where there are such columns.
Rows that follow each other on the same context share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from synthlang.errors import InputError
from synthlang.files import json_of, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import because, check_split
from synthlang.sources.hub_data import (
    STRINGS,
    by_split,
    described,
    digest_values,
    dtype_of,
    is_spaced,
    load_data,
    rows_of,
)
from synthlang.sources.mini_english.questions import Paragraph, paragraphs
from synthlang.sources.text import digest_splits, files_by_split, open_bytes
from synthlang.sources.words import RULES, Words
from synthlang.tasks.base import FileTask, HubTask, MiniEnglishTask, TaskSet, built_in
from synthlang.tasks.batch import Group, Item, TaskBatch, batches_of_groups, unique_ids

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


def open_questions(_: str, rest: str) -> TaskSet:
    """The questions of the built-in grammar, of the hub or of JSON files."""
    if rest.startswith("builtin:"):
        return MiniEnglishQuestions(built_in(rest))
    return HubAnswers(rest.removeprefix("hf:")) if rest.startswith("hf:") else SquadTask(rest)


class Question(NamedTuple):
    """A question as it is read: its answers are (text, the character of the context it starts at)."""

    id: str
    text: str
    answers: Sequence[tuple[str, int]]
    title: str | None


class SquadTask(FileTask):
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


class MiniEnglishQuestions(MiniEnglishTask):
    """Extractive question answering: several questions on a context; a quarter of them have no answer in it."""

    kind = "spans"
    fields = FIELDS
    name = "qa:builtin:mini-english"
    version = ("mini-english-questions", 1)
    answered = CONTEXT

    def _groups(self, split: str) -> Iterator[Group]:
        return map(_question_group, paragraphs(self.source, split, self.source.size(split)))


def _question_group(paragraph: Paragraph) -> Group:
    """The context and then its questions; answers counted in the words of the context."""
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
    return Group((context, *questions), tuple(items))


V = TypeVar("V", str, int, bool)
NAMES = {str: "a text", int: "a whole number", bool: "true or false"}


def read_json_input(path: Path) -> Mapping[str, Any]:
    """The JSON object that a file holds; a byte order mark may stand before it, as before any text that is read."""
    with open_bytes(path) as handle:
        raw = handle.read()
    data = json_of(raw, path, "utf-8-sig")
    if not isinstance(data, dict):
        raise InputError("must hold a JSON object {…} at the top", path)
    return data


def value_of(data: Mapping[str, Any], key: str, kind: type[V], where: str, path: Path) -> V:
    """The value at ``key`` if it is of that type, else InputError with the place in the file."""
    value = data.get(key)
    if type(value) is not kind:
        found = "there is none" if key not in data else f"it is {str(value)[:40]!r}"
        raise InputError(f"{where or 'the file'}: {key!r} must be {NAMES[kind]}; {found}", path)
    if isinstance(value, str) and not _is_text(value):
        raise InputError(f"{where}: {key!r} holds half of a surrogate pair, which is no character", path)
    return value


def items_of(data: Mapping[str, Any], key: str, where: str, path: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The objects of the list at ``key``, each with its place, such as ``data[0].paragraphs[3]``."""
    values = data.get(key)
    if not isinstance(values, list):
        raise InputError(f"{where or 'the file'}: {key!r} must be a list", path)
    for index, value in enumerate(values):
        place = f"{where}.{key}[{index}]" if where else f"{key}[{index}]"
        if not isinstance(value, dict):
            raise InputError(f"{place}: must be an object", path)
        yield value, place


def _is_text(value: str) -> bool:
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in value)


HUB_READER = 1  # part of the fingerprint: count up when the same rows give other items
NEEDED = ("context", "question", "answers")
OPTIONAL = {"id": (*STRINGS, "int32", "int64"), "title": STRINGS, "is_impossible": ("bool",)}
PARTS = ("text", "answer_start")


class HubAnswers(HubTask):
    """Questions of a data set; what cannot be reached or understood is an InputError here."""

    kind = "spans"
    fields = FIELDS

    def __init__(self, name: str) -> None:
        self.name = f"qa:hf:{name}"
        self._data = by_split(load_data(name), f"hf:{name}")
        features = next(iter(self._data.values())).features
        self._reads = answer_columns(features, self.name)
        # whether the texts are words with one space between each two, as exported ones are
        self._spaced = all(is_spaced(features[field]) for field in FIELDS)
        for split in self._data:
            counts: Counter[str] = Counter()
            if next(self._groups(split, counts), None) is None:
                raise InputError(f"{self.name}: the split {split} holds no question that can be used{because(counts)}")

    @cached_property
    def fingerprint(self) -> str:
        """Of the values in the columns that are read and the rules for words."""
        splits = {split: digest_values(data, self._reads) for split, data in self._data.items()}
        return fingerprint(
            "hub-answers", reader=HUB_READER, rules=RULES, columns=self._reads, spaced=self._spaced, splits=splits
        )

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The questions of a split in order, those of a paragraph together."""
        self.check(split)
        counts: Counter[str] = Counter()
        return batches_of_groups(unique_ids(self._groups(split, counts), counts), (), counts, CONTEXT)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[Group]:
        split_text = Words.spaced if self._spaced else Words.of
        for text, questions in groupby(self._questions(split), key=itemgetter(0)):
            yield from group_of(text, [question for _, question in questions], counts, split_text)

    def _questions(self, split: str) -> Iterator[tuple[str, Question]]:
        """Each row as (context, question)."""
        for number, values in enumerate(rows_of(self._data[split], self._reads)):
            row = dict(zip(self._reads, values, strict=True))
            where = f"{self.name}: row {number + 1} of the split {split}"
            for column in ("context", "question"):
                if row[column] is None:
                    raise InputError(f"{where}: there is no {column}")
            listed = [] if row.get("is_impossible") else _answers(row["answers"], where)
            name = number if row.get("id") is None else row["id"]
            title = None if "title" not in row else row["title"] or ""
            yield row["context"], Question(str(name), row["question"], listed, title)


def _answers(value: Any, where: str) -> list[tuple[str, int]]:
    """(text, start) of each answer, from a struct of lists or a list of structs."""
    found: list[Any]
    if isinstance(value, list):
        found = [[None if one is None else one[part] for one in value] for part in PARTS]
    else:
        found = [None if value is None else value[part] for part in PARTS]
    if any(part is None or None in part for part in found) or len(found[0]) != len(found[1]):
        raise InputError(f"{where}: 'answers' must have as many of {' as of '.join(PARTS)}, and none of them empty")
    return list(zip(*found, strict=True))


def answer_columns(features: Mapping[str, Any], name: str) -> list[str]:
    """The columns to read, or InputError that names the columns there are."""
    answers = features.get("answers")
    nested = getattr(answers, "feature", answers)  # of a list of structs, or the struct of lists itself
    parts = nested if isinstance(nested, dict) else {}
    kinds = [dtype_of(getattr(parts.get(part), "feature", parts.get(part))) or "" for part in PARTS]
    known = kinds[0] in STRINGS and kinds[1].startswith(("int", "uint"))
    if not known or any(dtype_of(features.get(column)) not in STRINGS for column in NEEDED[:2]):
        raise InputError(
            f"{name}: needs the texts context and question, and answers with text and answer_start;"
            f" it has {described(features)}"
        )
    return [*NEEDED, *(column for column, kinds in OPTIONAL.items() if dtype_of(features.get(column)) in kinds)]
