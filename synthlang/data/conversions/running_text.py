"""Documents of running text from Parquet files to text files with a paragraph on each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from synthlang.data.conversions.base import Given, SplitConverter, one_line, rows, splits_of, written
from synthlang.errors import InputError


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

    def run(self, given: Given, out: Path, names: Sequence[str]) -> dict[str, int]:
        del names
        counts: Counter[str] = Counter()
        for split, pattern in self.splits.items():
            with ExitStack() as stack:
                handles = [stack.enter_context(written(out / f"{split}.txt"))]
                if self.held_out:
                    handles.append(stack.enter_context(written(out / "valid.txt")))
                found = rows(given.matching(pattern), [self.column], given.report)
                for number, (text,) in enumerate(found):
                    if number == self.documents:
                        break
                    is_held_out = self.held_out is not None and number % self.held_out == self.held_out - 1
                    lines = [clean for line in str(text or "").split("\n") if (clean := one_line(line))]
                    counts["documents without text"] += not lines
                    if lines:
                        handles[is_held_out].write("\n".join(lines) + "\n")
        return +counts
