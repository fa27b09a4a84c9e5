"""Extractive question answering in data sets of the hub or a local folder: squad, squad_v2, xquad, mlqa, exported ones.

A row is a question: ``context``, ``question`` and ``answers`` with the texts and the characters
they start at, and ``id``, ``title``, ``is_impossible`` where there are such columns. Rows that
follow each other on the same context share it. The rules for answers are those of squad.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import because
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
from synthlang.sources.words import RULES, Words
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.build import Group, batches_of_groups, unique_ids
from synthlang.tasks.hub import HubTask
from synthlang.tasks.squad import CONTEXT, FIELDS, Question, group_of

READER = 1  # part of the fingerprint: count up when the same rows give other items
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
            "hub-answers", reader=READER, rules=RULES, columns=self._reads, spaced=self._spaced, splits=splits
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
