"""Slot filling: utterances with a BIO tag on each word and an intent.

    FOLDER/{train,valid,test}/seq.in, seq.out, label     ATIS and Snips: one utterance per line in each file
    FOLDER/*.tsv or a file                               multilingual TOD (Schuster et al. 2019): tab-separated
                                                         intent, slots, utterance and more; or MultiATIS++ (Xu et
                                                         al. 2020): a header with utterance, slot_labels and intent
    FOLDER/*.conll, *.bio or a file                      xSID (van der Goot et al. 2021): comments ``# text: …`` and
                                                         ``# intent: …``, then one word per line with its tag last.
                                                         Up to 1 % of the utterances may have a wrong word number.
                                                         They are left out

A folder that contains seq.in itself is one split. Its name selects the split, and other names mean ``train``. Slots of
multilingual TOD are spans of characters, ``15:23:reminder/todo,28:37:datetime``. A word gets the tag of the slot that
it shares a character with, so a span that cuts a word is widened to the word, and counted. An utterance with a slot
outside its text, which occurs in the release, is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.sources.base import Labelled, in_batches, nothing_in
from synthlang.sources.columns import PAIR, Line, column_lines, too_few_columns
from synthlang.sources.segmentation import RULES, SegmentedText
from synthlang.sources.splits import SPLITS, find_splits, is_file
from synthlang.sources.tags import iob_tag, legal_tags
from synthlang.sources.text import FileSource
from synthlang.sources.words import (
    CLEANED,
    REMOVED,
    SPACES,
    Faults,
    count_unseen,
    filled,
    joined_lines,
    spaced,
    spelled,
    tidied,
)
from synthlang.wording import enumerated, plural

READER = 1  # part of the fingerprint: raise when the same bytes give other utterances
PARTS = ("seq.in", "seq.out", "label")
INTENT = re.compile(r"#\s*intent\s*[:=](.*)", re.IGNORECASE)
SLOT = re.compile(r"(-?[0-9]{1,9}):(-?[0-9]{1,9}):(\S+)", re.ASCII)
WORDLESS = "utterances left out because they have no word"
OUTSIDE = "utterances left out because a slot is outside the text"
WIDENED = "slots widened to whole words"


class Utterance(NamedTuple):
    """An utterance with a tag on each word and an intent.

    Attributes:
        words: The words.
        tags: Tag of each word: O, or B- or I- and the name of a slot.
        intent: The intent.
    """

    words: list[str]
    tags: list[str]
    intent: str


class SlotsSource(FileSource):
    """Source of utterances, each with IOB2 tags of slots and with an intent.

    Args:
        spec: ``PATH[?option&…]``, a file or a folder in one of the formats of this module.

    Raises:
        InputError: The path or an option is wrong, or a split cannot be read, is malformed in its first utterance, or
            has no utterance with a word.
    """

    scheme = "slots"
    by_rules = True
    anew = (*CLEANED, *SPACES)
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
            if error.code != "missing":
                raise
            reason = f"{error.reason}, and no folder is named train, valid or test"
            hint = f"{error.hint}, or put {enumerated(PARTS)} of each split into a folder with the name of the split"
            raise InputError(reason, error.path, hint=hint, code=error.code) from error

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
        """The names of the intents of all splits, sorted.

        Raises:
            InputError: A file cannot be read, or a line is malformed.
        """
        return tuple(sorted({u.intent for split in self.files for u in self.utterances(split, Counter())}))

    def utterances(self, split: str, counts: Counter[str]) -> Iterator[Utterance]:
        """Yield the utterances of a split in order, and count omissions and changes by reason in ``counts``.

        Raises:
            InputError: A file cannot be read, or a line is malformed.
            KeyError: The source lacks the split.
        """
        path = self.files[split]
        for utterance in self._utterances(path, counts):
            tidy = next(tidied([{FORM: utterance.words, "slot": utterance.tags}], counts), None)
            if tidy is not None:
                yield Utterance(tidy[FORM], tidy["slot"], utterance.intent)
            else:
                counts[WORDLESS] += 1

    def _utterances(self, path: Path, counts: Counter[str]) -> Iterator[Utterance]:
        if path.is_dir():
            return read_folder(path)
        first = next((line for _, line in joined_lines(path) if line.strip()), "")
        if first.startswith("#"):
            return read_commented(path, counts)
        return read_table(path) if set(first.lower().split("\t")) >= HEADER else read_mtod(path, counts)

    def batches(self, split: str) -> Iterator[Corpus]:
        """Yield the sentences of a split in order.

        Raises:
            InputError: The source lacks the split. A malformed line raises the error when it is read.
        """
        self.check(split)
        return self._batches(split)

    def _batches(self, split: str) -> Iterator[Corpus]:
        remarks = self._remarks[split] = Counter()
        for batch in self.labelled(split):
            remarks.update(batch.counts)
            yield batch.corpus

    def labelled(self, split: str) -> Iterator[Labelled]:
        """Yield the batches of a split with the intents of their utterances, and counts of omissions and changes.

        Raises:
            InputError: The source lacks the split, a file cannot be read, or a line is malformed.
        """
        self.check(split)
        counts: Counter[str] = Counter()
        for first, rows in in_batches(self.utterances(split, counts)):
            corpus = Corpus.of([{FORM: row.words, "slot": row.tags} for row in rows], first)
            labelled = spelled(legal_tags(corpus), counts, self.normalise)
            seen = {reason: n for reason, n in counts.items() if n}
            yield Labelled(labelled, [row.intent for row in rows], seen)
            counts.clear()


def read_commented(path: Path, counts: Counter[str]) -> Iterator[Utterance]:
    """Yield utterances with one word per line after comments such as ``# intent: X`` or ``# intent = X``.

    The first column may number the words. Up to one utterance in a hundred may have a number out of sequence. Such
    utterances are left out and counted in ``counts``.

    Raises:
        InputError: The file cannot be read, too many utterances have a number out of sequence, a line has too few
            columns, a tag is invalid, a word is empty, or an utterance has no intent.
    """
    words, tags, intent, numbered = list[str](), list[str](), "", _numbers_words(path)
    last, faults = 0, Faults(counts)
    fault: InputError | None = None
    for line in chain(column_lines(path), [Line(0, [], "")]):
        number, fields, text = line
        if line.is_comment:
            intent = match[1].strip() if (match := INTENT.match(text)) else intent
        elif fields:
            if len(fields) < 2 + numbered:
                hint = "write a number, a word and its tag, separated by tabs" if numbered else PAIR
                raise too_few_columns(path, line, 2 + numbered, hint)
            if numbered and not fault and fields[0] != str(len(words) + 1):
                reason = f"the word number {fields[0]!r} is out of sequence: {len(words) + 1} must come next"
                hint = "correct the number" if fields[0] != "1" else "insert a blank line before each utterance"
                fault = InputError(reason, path, number, hint=hint, code="format")
            words.append(filled(fields[numbered], path, number))
            tags.append(iob_tag(fields[-1].strip(), path, number))
            last = number
        elif words:
            if not intent:
                hint = "write a comment '# intent: NAME' before the first word of the utterance"
                raise InputError("the utterance has no intent", path, last, hint=hint, code="missing")
            if fault:
                faults.add(fault)
            else:
                faults.read += 1
                yield Utterance(words, tags, intent)
            words, tags, intent, fault = [], [], "", None
    faults.end()


def _numbers_words(path: Path) -> bool:
    """Return whether most utterances begin with a line of ``1`` and at least two more columns."""
    lines = chain([Line(0, [], "")], column_lines(path))
    firsts = [line.fields for before, line in pairwise(lines) if line.fields and not before.fields]
    return 2 * sum(len(fields) > 2 and fields[0] == "1" for fields in firsts) > len(firsts)


HEADER = {"utterance", "slot_labels", "intent"}


def read_table(path: Path) -> Iterator[Utterance]:
    """Yield the utterances of a file of MultiATIS++: a header, then words and tags that are separated by spaces.

    The header must have the names of HEADER, in any case and order.

    Raises:
        InputError: The file cannot be read, or a line has another number of columns than the header, another number of
            tags than words, an invalid tag, or no intent.
    """
    lines = joined_lines(path)
    header = [name.strip().lower() for name in next(lines)[1].split("\t")]
    for number, line in lines:
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != len(header):
            reason = f"the line has {plural(len(cells), 'column')}, but the header has {len(header)}"
            hint = f"separate {plural(len(header), 'column')} by tabs"
            raise InputError(reason, path, number, hint=hint, code="format")
        row = dict(zip(header, cells, strict=True))
        yield _utterance(row["utterance"], row["slot_labels"], row["intent"], (path, path, path), number)


def _utterance(text: str, marks: str, label: str, paths: Sequence[Path], line: int) -> Utterance:
    """Parse an utterance. ``paths`` are the files of its words, tags and intent, for errors."""
    words, tags, intent = spaced(text), spaced(marks), label.strip()
    if len(words) != len(tags):
        reason = f"the line has {plural(len(tags), 'tag')} for {plural(len(words), 'word')}"
        raise InputError(reason, paths[1], line, hint="write one tag for each word", code="format")
    if words and not intent:
        raise InputError("the intent is empty", paths[2], line, hint="write an intent", code="empty")
    return Utterance(words, [iob_tag(tag, paths[1], line) for tag in tags], intent)


def read_folder(folder: Path) -> Iterator[Utterance]:
    """Yield the utterances of seq.in, seq.out and label, read side by side.

    Raises:
        InputError: A file is missing or cannot be read, the files have different numbers of lines, or a line has
            another number of tags than words, an invalid tag, or no intent.
    """
    for part in PARTS:
        if not (folder / part).is_file():
            reason = f"the file {part} is missing, but a split is a folder with {enumerated(PARTS)}"
            raise InputError(reason, folder, hint="add the file", code="missing")
    for lines in zip_longest(*(joined_lines(folder / part) for part in PARTS)):
        if None in lines:
            ended = PARTS[lines.index(None)]
            hint = f"write one line for each utterance in {enumerated(PARTS)}"
            longer = PARTS[next(n for n, line in enumerate(lines) if line is not None)]
            reason = f"the file ends before {longer} in the same folder"
            raise InputError(reason, folder / ended, hint=hint, code="format")
        (number, text), (_, marks), (_, label) = lines
        yield _utterance(text, marks, label, [folder / part for part in PARTS], number)


def read_mtod(path: Path, counts: Counter[str]) -> Iterator[Utterance]:
    """Yield the utterance of each line of multilingual TOD.

    An utterance with a slot outside its text is left out. ``counts`` counts such utterances, the slots that are widened
    to whole words, and the invisible characters that are removed.

    Raises:
        InputError: The file cannot be read, or a line has fewer than three columns, no intent, or a slot that is not
            ``start:end:name``.
    """
    for number, line in joined_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) < 3:
            reason = f"the line must have an intent, slots and an utterance, but it has {plural(len(fields), 'column')}"
            hint = (
                "separate three columns by tabs; a file with a word on each line must begin with a comment "
                "'# intent: NAME', and MultiATIS++ with a header"
            )
            raise InputError(reason, path, number, hint=hint, code="format")
        intent, slots, text = fields[0].strip(), fields[1].strip(), fields[2]
        if not intent:
            raise InputError("the intent is empty", path, number, hint="write an intent", code="empty")
        spans = []
        for slot in slots.split(",") if slots else ():
            match = SLOT.fullmatch(slot.strip())
            if match is None:
                reason = f"the slot {slot[:60]!r} must be START:END:NAME, with positions of characters"
                raise InputError(reason, path, number, hint="correct the slot", code="format")
            spans.append((int(match[1]), int(match[2]), match[3]))
        if any(not 0 <= start < stop <= len(text) for start, stop, _ in spans):
            counts[OUTSIDE] += 1
        else:
            words = SegmentedText.of(text)
            counts[REMOVED] += count_unseen(text)
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
