"""Slot filling: utterances with a BIO tag on each word and an intent.

    FOLDER/{train,valid,test}/seq.in, seq.out, label     ATIS and Snips: a line an utterance in each
    FOLDER/*.tsv or a file                               multilingual TOD (Schuster et al. 2019): tab-separated
                                                         intent, slots, utterance and more

A folder that holds seq.in itself is one split: the one its name says, else ``train``. Slots of multilingual TOD are
spans of characters, ``15:23:reminder/todo,28:37:datetime``; a word has the tag of the slot that it shares a character
with, so a span that cuts a word is widened to it, and counted. The release has slots that begin before their
utterance: such an utterance is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import BATCH_SENTENCES, Labelled, because, check_split
from synthlang.sources.conllu import one_word
from synthlang.sources.tags import iob_tag, legal_tags
from synthlang.sources.text import SPLITS, FileSource, digest_splits, find_splits, is_file, named_splits, split_of
from synthlang.sources.words import RULES, Words

READER = 1  # part of the fingerprint: count up when the same bytes give other utterances
PARTS = ("seq.in", "seq.out", "label")
WORDLESS = "utterances left out, without a word"


class Utterance(NamedTuple):
    """The words, their tags and the intent of the whole."""

    words: list[str]
    tags: list[str]
    intent: str


class SlotsSource(FileSource):
    """Utterances with slots; a wrong path is an InputError here, a wrong line when it is reached."""

    columns: tuple[str, ...] = (FORM, "slot")

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        if is_file(self.path):
            self.files = {split_of(self.path.name, ENDINGS) or "train": self.path}
        elif (self.path / PARTS[0]).is_file():
            self.files = {SPLITS.get(self.path.name.lower(), "train"): self.path}
        else:
            self.files = _splits_of(self.path)
        for split in self.files:
            counts: Counter[str] = Counter()
            if next(self.utterances(split, counts), None) is None:
                raise InputError(f"holds no utterance{because(counts)}", self.files[split])

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split and the version of this reader."""
        parts = {
            f"{split} {part.name if path.is_dir() else ''}": part
            for split, path in self.files.items()
            for part in ([path / name for name in PARTS] if path.is_dir() else [path])
        }
        return fingerprint("slots", reader=READER, rules=RULES, splits=digest_splits(parts))

    @cached_property
    def intents(self) -> tuple[str, ...]:
        """The intents of all splits, sorted."""
        return tuple(sorted({u.intent for split in self.files for u in self.utterances(split, Counter())}))

    def utterances(self, split: str, counts: Counter[str]) -> Iterator[Utterance]:
        """The utterances of a split in order; ``counts`` takes those left out, such as one without a word."""
        path = self.files[split]
        read = read_folder(path) if path.is_dir() else (Utterance(*parts) for parts in read_mtod(path, counts))
        for utterance in read:
            if utterance.words:
                yield utterance
            else:
                counts[WORDLESS] += 1

    def batches(self, split: str) -> Iterator[Corpus]:
        """The utterances of a split in order, the tags as legal IOB2."""
        return (batch.corpus for batch in self.labelled(split))

    def labelled(self, split: str) -> Iterator[Labelled]:
        """The batches, each with the intents of its utterances and what was left out or mended by reason."""
        check_split(self, split, f"slots:{self.path}")
        counts: Counter[str] = Counter()
        rest, first = self.utterances(split, counts), 0
        while rows := list(islice(rest, BATCH_SENTENCES)):
            corpus = Corpus.of([{FORM: row.words, "slot": row.tags} for row in rows], first)
            seen = {reason: n for reason, n in counts.items() if n}
            yield Labelled(legal_tags(corpus), [row.intent for row in rows], seen)
            counts.clear()
            first += len(rows)


def _splits_of(folder: Path) -> dict[str, Path]:
    """The folder or the file of each split."""
    folders = {split: path for split, path in named_splits(folder).items() if path.is_dir()}
    if not folders and not any(split_of(path.name, ENDINGS) for path in folder.iterdir() if path.is_file()):
        raise InputError(
            f"holds neither folders train, valid, test of {', '.join(PARTS)}, nor files whose names say train, dev or"
            f" test and end in {' or '.join(ENDINGS)}",
            folder,
        )
    return folders or find_splits(folder, ENDINGS)


def read_folder(folder: Path) -> Iterator[Utterance]:
    """Read seq.in, seq.out and label side by side; InputError with the line where they do not agree."""
    for part in PARTS:
        if not (folder / part).is_file():
            raise InputError(f"has no file {part}; a split is a folder of {', '.join(PARTS)}", folder)
    for lines in zip_longest(*(read_lines(folder / part) for part in PARTS)):
        if None in lines:
            ended = PARTS[lines.index(None)]
            raise InputError(f"{ended} ends before the other files of its folder do", folder)
        (number, text), (_, marks), (_, label) = lines
        words, found, intent = text.split(), marks.split(), label.strip()
        if len(words) != len(found):
            raise InputError(f"{len(found)} tags for {len(words)} words", folder / "seq.out", number)
        if words and not intent:
            raise InputError("the intent is empty", folder / "label", number)
        tags = [iob_tag(tag) for tag in found]
        if None in tags:
            wrong = found[tags.index(None)]
            raise InputError(f"the tag {wrong[:40]!r} must be O, B-slot or I-slot", folder / "seq.out", number)
        yield Utterance([one_word(word) for word in words], [tag for tag in tags if tag], intent)


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
