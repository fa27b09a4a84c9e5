"""MASSIVE (FitzGerald et al. 2022): JSON lines with marked slots to ``seq.in``, ``seq.out`` and ``label``.

A slot is marked as in ``wake me at [time : nine am] on [date : friday]``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from synthlang.data.conversions.base import Converter, Given, opened, splits_of, written
from synthlang.data.sources import ANEW, OTHER
from synthlang.errors import InputError
from synthlang.files import writing

FIELDS = ("partition", "annot_utt", "intent")
SPLITS = {"train": "train", "dev": "valid", "test": "test"}
PARTS = ("seq.in", "seq.out", "label")
SLOT = re.compile(r"\[([^\[\]:]+) : ([^\[\]]+)\]")
OUTSIDE, BRACKET = "O", "utterances left out because their brackets are not slots"


class Massive(Converter):
    """Write the utterances of one language of MASSIVE to ``seq.in``, ``seq.out`` and ``label`` for each split."""

    kind: Literal["massive"]
    """Utterances of MASSIVE."""
    file: str
    """ARCHIVE!MEMBER of the language."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.file,)

    @property
    def written_splits(self) -> tuple[str, ...]:
        return splits_of(SPLITS.values())

    def run(self, given: Given, out: Path) -> dict[str, int]:
        counts, path = Counter[str](), given.path(self.file)
        with ExitStack() as stack:
            lines = stack.enter_context(opened(path))
            handles = {}
            for theirs, ours in SPLITS.items():
                with writing(out / ours):
                    (out / ours).mkdir()
                handles[theirs] = [stack.enter_context(written(out / ours / part)) for part in PARTS]
            for number, line in enumerate(lines, start=1):
                row = _row(line, path, number)
                words, tags = utterance(row["annot_utt"])
                if not words or any("[" in word or "]" in word for word in words):
                    counts[BRACKET] += 1
                    continue
                for handle, text in zip(
                    handles[row["partition"]], (" ".join(words), " ".join(tags), row["intent"]), strict=True
                ):
                    handle.write(f"{text}\n")
        return +counts


def _row(line: str, path: Path, number: int) -> dict[str, str]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError("the line is not JSON", path, number, hint=ANEW, code="damaged") from error
    if not isinstance(row, dict) or not all(isinstance(row.get(field), str) for field in FIELDS):
        raise InputError(f"the line lacks a text {' or '.join(FIELDS)}", path, number, hint=OTHER, code="missing")
    if row["partition"] not in SPLITS:
        reason = f"must be {' or '.join(SPLITS)}, not {row['partition']!r}"
        raise InputError(reason, path, number, keys="partition", hint=OTHER, code="unknown")
    return row


def utterance(marked: str) -> tuple[list[str], list[str]]:
    """Return the words of an utterance with marked slots, and their BIO tags.

    >>> utterance("wake me at [time : nine am]")
    (['wake', 'me', 'at', 'nine', 'am'], ['O', 'O', 'O', 'B-time', 'I-time'])
    """
    words, tags, end = list[str](), list[str](), 0
    for match in SLOT.finditer(marked):
        before, inside = marked[end : match.start()].split(), match[2].split()
        slot = match[1].strip().replace(" ", "_")
        words += [*before, *inside]
        tags += [OUTSIDE] * len(before) + [f"{'I' if i else 'B'}-{slot}" for i in range(len(inside))]
        end = match.end()
    rest = marked[end:].split()
    return [*words, *rest], [*tags, *[OUTSIDE] * len(rest)]
