"""Slot filling: utterances with a BIO tag on each word and an intent.

    FOLDER/{train,valid,test}/seq.in, seq.out, label     ATIS and Snips: one utterance per line in each file
    FOLDER/*.tsv or a file                               multilingual TOD (Schuster et al. 2019): tab-separated
                                                         intent, slots, utterance and more
    FOLDER/*.conll or a file                             xSID (van der Goot et al. 2021): comments ``# text: …`` and
                                                         ``# intent: …``, then one word per line with its tag last

A folder that contains seq.in itself is one split, named by the folder, else ``train``. Slots of multilingual TOD are
spans of characters, ``15:23:reminder/todo,28:37:datetime``. A word gets the tag of the slot that it shares a character
with, so a span that cuts a word is widened to the word, and counted. An utterance with a slot outside its text, which
occurs in the release, is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.sources.base import Labelled, in_batches, nothing_in
from synthlang.sources.conllu import one_word
from synthlang.sources.iob import too_few_columns
from synthlang.sources.segmentation import RULES, SegmentedText
from synthlang.sources.splits import SPLITS, find_splits, is_file
from synthlang.sources.tags import iob_tag, legal_tags
from synthlang.sources.text import FileSource

READER = 1  # part of the fingerprint: raise when the same bytes give other utterances
PARTS = ("seq.in", "seq.out", "label")
COMMENT = re.compile(r"#\s*[\w.-]+\s*[:=]|# |#$")
INTENT = re.compile(r"#\s*intent\s*[:=](.*)", re.IGNORECASE)
SLOT = re.compile(r"(-?[0-9]{1,9}):(-?[0-9]{1,9}):(\S+)", re.ASCII)
WORDLESS = "utterances left out because they have no word"
OUTSIDE = "utterances left out because a slot is outside the text"
WIDENED = "slots widened to whole words"


class Utterance(NamedTuple):
    """The words of an utterance with their tags, and its intent."""

    words: list[str]
    tags: list[str]
    intent: str


class SlotsSource(FileSource):
    """Utterances with legal IOB2 tags of slots."""

    scheme = "slots"
    by_rules = True
    endings = (".tsv", ".conll", ".bio")
    columns = (FORM, "slot")

    def __init__(self, spec: str | Path) -> None:
        super().__init__(spec)
        for split in self.files:
            counts: Counter[str] = Counter()
            if next(self.utterances(split, counts), None) is None:
                raise nothing_in("utterance", self.files[split], counts)

    def _find(self) -> dict[str, Path]:
        if is_file(self.path) or self.options:
            return super()._find()
        if (self.path / PARTS[0]).is_file():
            return {SPLITS.get(self.path.name.lower(), "train"): self.path}
        if any(path.is_dir() and path.name.lower() in SPLITS for path in self.path.iterdir()):
            return find_splits(self.path, ("",), folders=True)
        try:
            return super()._find()
        except InputError as error:
            other = InputError(
                f"there are no folders train, valid, test with {', '.join(PARTS)} either", code="missing"
            )
            raise InputError(error.reason, error.path, hint=error.hint, code=error.code, others=(other,)) from error

    def _marks(self) -> dict[str, Any]:
        return {"reader": READER, "rules": RULES}

    def _digested(self) -> dict[str, Path]:
        return {
            f"{split} {part.name if path.is_dir() else ''}": part
            for split, path in self.files.items()
            for part in ([path / name for name in PARTS] if path.is_dir() else [path])
        }

    @cached_property
    def intents(self) -> tuple[str, ...]:
        """The intents of all splits, sorted."""
        return tuple(sorted({u.intent for split in self.files for u in self.utterances(split, Counter())}))

    def utterances(self, split: str, counts: Counter[str]) -> Iterator[Utterance]:
        """Yield the utterances of a split in order, and count omissions by reason in ``counts``."""
        path = self.files[split]
        for utterance in self._utterances(path, counts):
            if utterance.words:
                yield utterance
            else:
                counts[WORDLESS] += 1

    def _utterances(self, path: Path, counts: Counter[str]) -> Iterator[Utterance]:
        if path.is_dir():
            return read_folder(path)
        return read_commented(path) if has_comments(path) else read_mtod(path, counts)

    def _batches(self, split: str) -> Iterator[Corpus]:
        return (batch.corpus for batch in self.labelled(split))

    def labelled(self, split: str) -> Iterator[Labelled]:
        """Yield the batches with the intents of their utterances, and counts of omissions and changes."""
        self.check(split)
        counts: Counter[str] = Counter()
        for first, rows in in_batches(self.utterances(split, counts)):
            corpus = Corpus.of([{FORM: row.words, "slot": row.tags} for row in rows], first)
            seen = {reason: n for reason, n in counts.items() if n}
            yield Labelled(legal_tags(corpus), [row.intent for row in rows], seen)
            counts.clear()


def has_comments(path: Path) -> bool:
    """Return True if the first line that is not blank is a comment."""
    return next((line.startswith("#") for _, line in read_lines(path) if line.strip()), False)


def read_commented(path: Path) -> Iterator[Utterance]:
    """Yield utterances with one word per line after comments such as ``# intent: X`` or ``# intent = X``.

    The first column may number the words.

    Raises:
        InputError: A number is out of sequence, a tag is invalid, or an utterance has no intent.
    """
    words, tags, intent, numbered = list[str](), list[str](), "", None
    last = 0
    for number, line in chain(read_lines(path), [(0, "")]):
        if COMMENT.match(line) and not words:
            intent = match[1].strip() if (match := INTENT.match(line)) else intent
        elif line.strip():
            fields = line.split("\t") if "\t" in line else line.split()
            numbered = (len(fields) > 2 and fields[0] == "1") if numbered is None else numbered
            if len(fields) < 2 + numbered:
                raise too_few_columns(path, number, 2 + numbered)
            if numbered and fields[0] != str(len(words) + 1):
                raise InputError(f"the word's number {fields[0]!r} is out of sequence", path, number, code="format")
            words.append(one_word(fields[numbered]))
            tags.append(iob_tag(fields[-1].strip(), path, number))
            last = number
        elif words:
            if not intent:
                raise InputError("the utterance has no comment '# intent: …'", path, last, code="missing")
            yield Utterance(words, tags, intent)
            words, tags, intent = [], [], ""


def read_folder(folder: Path) -> Iterator[Utterance]:
    """Yield the utterances of seq.in, seq.out and label, read side by side.

    Raises:
        InputError: A file is missing, or the files do not match.
    """
    for part in PARTS:
        if not (folder / part).is_file():
            reason = f"there is no file {part}, but a split is a folder with {', '.join(PARTS)}"
            raise InputError(reason, folder, code="missing")
    for lines in zip_longest(*(read_lines(folder / part) for part in PARTS)):
        if None in lines:
            ended = PARTS[lines.index(None)]
            raise InputError("the file ends before the other files of its folder", folder / ended, code="format")
        (number, text), (_, marks), (_, label) = lines
        words, tags, intent = text.split(), marks.split(), label.strip()
        if len(words) != len(tags):
            reason = f"the line has {len(tags)} tags for {len(words)} words"
            raise InputError(reason, folder / "seq.out", number, code="format")
        if words and not intent:
            raise InputError("the intent is empty", folder / "label", number, code="empty")
        yield Utterance(list(map(one_word, words)), [iob_tag(t, folder / "seq.out", number) for t in tags], intent)


def read_mtod(path: Path, counts: Counter[str]) -> Iterator[Utterance]:
    """Yield the utterance of each line of multilingual TOD. A malformed line raises an InputError."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) < 3:
            reason = f"the line has {len(fields)} columns, but needs an intent, slots and an utterance"
            raise InputError(reason, path, number, code="format")
        intent, slots, text = fields[0].strip(), fields[1].strip(), fields[2]
        if not intent:
            raise InputError("the intent is empty", path, number, code="empty")
        spans = []
        for slot in slots.split(",") if slots else ():
            match = SLOT.fullmatch(slot.strip())
            if match is None:
                raise InputError(f"the slot {slot[:60]!r} must be start:end:name", path, number, code="format")
            spans.append((int(match[1]), int(match[2]), match[3]))
        if any(not 0 <= start < stop <= len(text) for start, stop, _ in spans):
            counts[OUTSIDE] += 1
        else:
            words = SegmentedText.of(text)
            yield Utterance(words.words, _tags(words, spans, counts), intent)


def _tags(words: SegmentedText, slots: list[tuple[int, int, str]], counts: Counter[str]) -> list[str]:
    """Return the tag of each word. A word in two slots gets the first one."""
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
