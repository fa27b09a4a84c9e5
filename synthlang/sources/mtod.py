"""Multilingual task-oriented dialogue (Schuster et al. 2019): tab-separated intent, slots, utterance and more.

Slots are spans of characters, ``15:23:reminder/todo,28:37:datetime``; a word has the tag of
the slot that it shares a character with, so a span that cuts a word is widened to it, and
counted. The release has slots that begin before their utterance: such an utterance is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.sources.characters import Words

ENDINGS = (".tsv",)
SLOT = re.compile(r"(-?[0-9]{1,9}):(-?[0-9]{1,9}):(\S+)", re.ASCII)
OUTSIDE = "utterances left out, a slot is not inside the text"
WIDENED = "slots widened to whole words"


def read_mtod(path: Path, counts: Counter[str]) -> Iterator[tuple[list[str], list[str], str]]:
    """(words, tags, intent) of each line; InputError with the line for what is none."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) < 3:
            raise InputError(f"a line has at least intent, slots and utterance; here are {len(fields)}", path, number)
        intent, slots, text = fields[0].strip(), fields[1].strip(), fields[2]
        if not intent:
            raise InputError("the intent is empty", path, number)
        spans = [_slot(slot, path, number) for slot in (slots.split(",") if slots else ())]
        if any(not 0 <= start < stop <= len(text) for start, stop, _ in spans):
            counts[OUTSIDE] += 1
            continue
        words = Words.of(text)
        yield words.words, _tags(words, spans, counts), intent


def _slot(slot: str, path: Path, number: int) -> tuple[int, int, str]:
    match = SLOT.fullmatch(slot.strip())
    if match is None:
        raise InputError(f"the slot {slot[:60]!r} must be start:end:name", path, number)
    return int(match[1]), int(match[2]), match[3]


def _tags(words: Words, slots: list[tuple[int, int, str]], counts: Counter[str]) -> list[str]:
    """The tag of each word; a word of two slots has that of the one named first."""
    tags = ["O"] * len(words.words)
    for start, stop, name in slots:
        span = words.span(start, stop) or (0, 0)
        letter = "B"
        for at in range(*span):
            if tags[at] == "O":
                tags[at] = f"{letter}-{name}"
                letter = "I"
        counts[WIDENED] += span[0] < span[1] and words.is_cut(span, start, stop)
    return tags
