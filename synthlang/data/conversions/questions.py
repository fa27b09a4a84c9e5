"""Questions with answers in a paragraph, from Parquet files to the JSON of SQuAD."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from synthlang.data.conversions.base import Given, SplitConverter, rows, written
from synthlang.data.sources import OTHER
from synthlang.errors import InputError

COLUMNS = ("id", "context", "question", "answers")


class QuestionTable(SplitConverter):
    """Write a JSON file in the format of SQuAD 1.1 for each split.

    Consecutive rows with the same context become one paragraph with several questions.
    """

    kind: Literal["questions"]
    """Questions, from Parquet."""
    prefix: str = ""
    """Beginning of the ids of the rows to keep (default: all rows)."""

    def run(self, given: Given, out: Path, names: Sequence[str]) -> dict[str, int]:
        del names
        for split, pattern in self.splits.items():
            found = rows(given.matching(pattern), COLUMNS, given.report)
            kept = (row for row in found if str(row[0]).startswith(self.prefix))
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
                raise InputError(reason, given.matching(pattern)[0], hint=OTHER, code="empty")
        return {}


def _paragraphs(found: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for context, group in groupby(found, key=lambda row: row[1]):
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
