"""Classified pairs of texts, minimal pairs, questions and running text, from Parquet files with a row for each item."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from synthlang.data.conversions.base import Given, SplitConverter, one_line, splits_of, written
from synthlang.data.sources import OTHER
from synthlang.errors import InputError

CLASSIFIED = ("premise", "hypothesis", "label")
MINIMAL = ("sentence_good", "sentence_bad", "linguistics_term", "UID", "pair_id")
QUESTIONS = ("id", "context", "question", "answers")


class ClassifiedPairs(SplitConverter):
    """Write a tab-separated file with premise, hypothesis and label for each split."""

    kind: Literal["nli"]
    """Pairs of texts with a class, from Parquet."""
    labels: tuple[str, ...] = ("entailment", "neutral", "contradiction")
    """The names of the classes 0, 1, …. Any other number is no gold label."""

    def run(self, given: Given, out: Path) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for split, rows in self.tables(given, CLASSIFIED):
            with written(out / f"{split}.tsv") as handle:
                handle.write("\t".join(CLASSIFIED) + "\n")
                for premise, hypothesis, label in rows:
                    known = isinstance(label, int) and 0 <= label < len(self.labels)
                    counts["pairs without a gold label"] += not known
                    name = self.labels[label] if known else "-"
                    handle.write(f"{one_line(premise)}\t{one_line(hypothesis)}\t{name}\n")
        return +counts


class MinimalPairs(SplitConverter):
    """Write a tab-separated file with both sentences, phenomenon, paradigm and id for each split."""

    kind: Literal["minimal"]
    """Minimal pairs with the columns of BLiMP, from Parquet."""

    def run(self, given: Given, out: Path) -> dict[str, int]:
        for split, rows in self.tables(given, MINIMAL):
            with written(out / f"{split}.tsv") as handle:
                handle.write("\t".join(MINIMAL) + "\n")
                handle.writelines("\t".join(map(one_line, values)) + "\n" for values in rows)
        return {}


class QuestionTable(SplitConverter):
    """Write a JSON file in the format of SQuAD 1.1 for each split.

    Consecutive rows with the same context become one paragraph with several questions.
    """

    kind: Literal["questions"]
    """Questions, from Parquet."""
    prefix: str = ""
    """Beginning of the ids of the rows to keep (default: all rows)."""

    def run(self, given: Given, out: Path) -> dict[str, int]:
        for split, rows in self.tables(given, QUESTIONS):
            kept = (row for row in rows if str(row[0]).startswith(self.prefix))
            with written(out / f"{split}.json") as handle:
                count = 0
                handle.write('{"version": "1.1", "data": [')
                for paragraph in _paragraphs(kept):
                    article = {"title": str(count), "paragraphs": [paragraph]}
                    handle.write((",\n" if count else "\n") + json.dumps(article, ensure_ascii=False))
                    count += 1
                handle.write("\n]}\n")
            if not count:
                whose = f" whose id begins with {self.prefix!r}" if self.prefix else ""
                reason = f"the split {split} has no question{whose}"
                raise InputError(reason, given.matching(self.splits[split])[0], hint=OTHER, code="empty")
        return {}


def _paragraphs(rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for context, group in groupby(rows, key=lambda row: row[1]):
        questions = [
            {
                "id": str(name),
                "question": question,
                "answers": [
                    {"text": text, "answer_start": start}
                    for text, start in zip(answers["text"], answers["answer_start"], strict=True)
                ],
            }
            for name, _, question, answers in group
        ]
        yield {"context": context, "qas": questions}


class RunningText(SplitConverter):
    """Write the paragraphs of documents, one on each line, without empty lines."""

    kind: Literal["text"]
    """Documents, from Parquet."""
    column: str = "text"
    """The column of the documents."""
    held_out: int | None = Field(default=None, ge=2)
    """Put each N-th document of the split train into valid (default: none)."""
    documents: int | None = Field(default=None, ge=1)
    """Number of documents to read from the start (default: all)."""

    @model_validator(mode="after")
    def _check(self) -> RunningText:
        if self.held_out is not None and list(self.splits) != ["train"]:
            reason = "documents can be held out only if train is the only split"
            raise InputError(reason, keys="held_out", hint="leave this key out", code="conflict")
        return self

    @property
    def written_splits(self) -> tuple[str, ...]:
        return splits_of([*self.splits, *(["valid"] if self.held_out else [])])

    def run(self, given: Given, out: Path) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for split, rows in self.tables(given, [self.column]):
            with ExitStack() as stack:
                handles = [stack.enter_context(written(out / f"{split}.txt"))]
                if self.held_out:
                    handles.append(stack.enter_context(written(out / "valid.txt")))
                for number, (text,) in enumerate(rows):
                    if number == self.documents:
                        break
                    is_held_out = self.held_out is not None and number % self.held_out == self.held_out - 1
                    lines = [clean for line in str(text or "").split("\n") if (clean := one_line(line))]
                    counts["documents without text"] += not lines
                    if lines:
                        handles[is_held_out].write("\n".join(lines) + "\n")
        return +counts
