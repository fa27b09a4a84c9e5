"""The step ``segment``: words separated by spaces, in the files of a data set."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Literal

from synthlang.corpus import FORM
from synthlang.data.conversions.base import opened, written
from synthlang.data.steps.base import BaseStep, StepRecord, Tools
from synthlang.errors import InputError
from synthlang.parsing.chunks import CHUNK, ParseCache, parse_chunks
from synthlang.parsing.segmenters import Segmenter, open_segmenter

RATES = {"spacy": 22_000.0, "spacy:th": 100_000.0, "moses": 400_000.0}
"""Characters per second on one core by segmenter (docs/data.md). The rate ``spacy`` was measured on Chinese."""
REPORTS = 1000
"""Number of reports of progress for a file."""
FAILED = "texts that the segmenter could not read, which are unchanged"
Words = list[str]
Record = tuple[list[str], Callable[[Sequence[Words]], str]]
"""Texts of a record, and the function from their words to the lines of the record."""


class Segment(BaseStep):
    """Separate the words of files by spaces."""

    unit = "characters"
    kind: Literal["segment"]
    """Words separated by spaces."""
    segmenter: str
    """The segmenter, such as spacy:zh or moses:de."""
    only: str | None = None
    """Ending of the names of the files that the step changes (default: all files)."""

    @property
    def about(self) -> str:
        return f"separate words with {self.segmenter}"

    @property
    def rate(self) -> float:
        return RATES.get(self.segmenter) or RATES[self.segmenter.partition(":")[0]]

    def check(self) -> str:
        return open_segmenter(self.segmenter).version

    def run(self, layout: str, paths: Iterable[Path], tools: Tools) -> StepRecord:
        """Separate the words of files by spaces, and replace the files. A killed run continues from the cache.

        Args:
            layout: The layout of the data set, a key of LAYOUTS.
            paths: The files. Only files whose names have the ending ``only`` are changed.
            tools: Resources with which the step runs.

        Raises:
            InputError: The segmenter cannot be opened, fails or changes characters, or a file cannot be read.
            DiskError: A file cannot be written.
        """
        segmenter, counts = open_segmenter(self.segmenter), Counter[str]()
        for path in paths:
            if self.only is None or path.name.endswith(f".{self.only}"):
                _segment(segmenter, LAYOUTS[layout], path, tools, counts, f"{self.about}: {path.name}")
        return self.record(segmenter.version, segmenter.fingerprint, +counts)


def _segment(
    segmenter: Segmenter,
    read: Callable[[Iterable[str]], Iterator[Record]],
    path: Path,
    tools: Tools,
    counts: Counter[str],
    task: str,
) -> None:
    waiting: deque[Record] = deque()
    made, size, done, told = path.with_name(f"{path.name}.segmented"), path.stat().st_size, 0, 0

    def texts() -> Iterator[str]:
        for record in records:
            waiting.append(record)
            yield from record[0]

    with opened(path) as lines, written(made) as handle:
        records = read(lines)
        words = _words(segmenter, texts(), tools, counts)
        for found in words:
            # the words of the first text of a record come after the record was read
            parts, build = waiting.popleft()
            line = build([found, *(next(words) for _ in parts[1:])])
            handle.write(line)
            counts["texts"] += len(parts)
            done += len(line.encode())
            if done - told >= size / REPORTS:
                told = done
                tools.report(task, done, max(done, size), "")
    made.replace(path)


def _words(segmenter: Segmenter, texts: Iterator[str], tools: Tools, counts: Counter[str]) -> Iterator[Words]:
    """Yield the words of each text."""
    kept: deque[list[str]] = deque()

    def chunks() -> Iterator[list[str]]:
        while chunk := [*islice(texts, CHUNK)]:
            kept.append(chunk)
            yield chunk

    for outcomes, _ in parse_chunks(segmenter, "text", chunks(), ParseCache(tools.cache), tools.workers):
        for text, outcome in zip(kept.popleft(), outcomes, strict=True):
            if isinstance(outcome, str):
                counts[FAILED] += 1
                yield text.split()
            else:
                yield [word for parsed in outcome for word in parsed[FORM]]


# --- records of each layout


def _lines(lines: Iterable[str]) -> Iterator[Record]:
    """Yield each line as a text."""
    for line in lines:
        yield [line], lambda words: " ".join(words[0]) + "\n"


def _pairs(lines: Iterable[str]) -> Iterator[Record]:
    """Yield the rows of premise, hypothesis and label. The first row is the header."""
    for number, line in enumerate(lines):
        if number == 0:
            yield [""], lambda _, header=line: f"{header}\n"  # type: ignore[misc]
            continue
        first, second, label = line.split("\t")
        yield [first, second], lambda words, label=label: "\t".join([*map(" ".join, words), label]) + "\n"  # type: ignore[misc]


def _labels(lines: Iterable[str]) -> Iterator[Record]:
    """Yield the sentences, which have a word and its tag on each line and end with a blank line."""
    for is_sentence, group in groupby(lines, key=bool):
        if is_sentence:
            yield _sentence([line.split("\t") for line in group])


def _sentence(rows: Sequence[Sequence[str]]) -> Record:
    text = ""
    for word, _ in rows:  # two words in Latin letters stay two words
        is_latin = text[-1:].isascii() and text[-1:].isalnum() and word[:1].isascii() and word[:1].isalnum()
        text += f" {word}" if is_latin else word

    def build(words: Sequence[Words]) -> str:
        return "".join(f"{word}\t{tag}\n" for word, tag in relabelled(rows, words[0])) + "\n"

    return [text], build


def relabelled(rows: Sequence[Sequence[str]], words: Words) -> list[tuple[str, str]]:
    """Move the tags of the tokens of a sentence to its words, and return pairs of a word and its tag.

    A word that crosses the border of an entity is cut there, so that all entities keep their borders.

    Args:
        rows: Pairs of a token and its BIO tag.
        words: The words, which have the same characters as the tokens except for white space.

    Raises:
        InputError: The words have other characters.

    >>> relabelled([("北", "B-LOC"), ("京", "I-LOC"), ("大", "O"), ("好", "O")], ["北京", "大好"])
    [('北京', 'B-LOC'), ('大好', 'O')]
    >>> relabelled([("在", "O"), ("北", "B-LOC"), ("京", "I-LOC")], ["在北", "京"])
    [('在', 'O'), ('北', 'B-LOC'), ('京', 'I-LOC')]
    """
    whole = "".join("".join(word.split()) for word, _ in rows)
    check_characters(whole, words)
    tags, starts = list[str](), set[int]()
    before = "O"
    for word, tag in rows:
        if tag.startswith("B-") or (tag == "O") != (before == "O") or (tag != "O" and tag[2:] != before[2:]):
            starts.add(len(tags))
        size = len("".join(word.split()))
        tags += [tag, *[tag.replace("B-", "I-", 1)] * (size - 1)][:size]
        before = tag
    found, at = list[tuple[str, str]](), 0
    for word in words:
        inside = [at, *sorted(border for border in starts if at < border < at + len(word)), at + len(word)]
        found += [(whole[a:b], tags[a]) for a, b in pairwise(inside)]
        at += len(word)
    return found


def _slots(lines: Iterable[str]) -> Iterator[Record]:
    """Yield the utterances of multilingual TOD, whose slots are spans of characters."""
    for line in lines:
        intent, spans, utterance, *others = line.split("\t")
        yield [utterance], partial(_slot_line, intent, spans, utterance, others)


def _slot_line(intent: str, spans: str, text: str, others: Sequence[str], words: Sequence[Words]) -> str:
    return "\t".join([intent, moved_spans(spans, text, words[0]), " ".join(words[0]), *others]) + "\n"


def moved_spans(spans: str, text: str, words: Words) -> str:
    """Return spans of characters of a text as spans of its words joined by spaces.

    A span without a character of a word is not changed.

    Args:
        spans: Spans such as ``3:5:time,6:9:place``, where the second number is the end.
        text: The text.
        words: Words of the text, which have the same characters except for white space.

    Raises:
        InputError: The words have other characters.
        ValueError: A span is not of the form START:END:LABEL.

    >>> moved_spans("0:4:a,5:6:b", "abcd e", ["ab", "cd", "e"])
    '0:5:a,6:7:b'
    """
    check_characters(text, words)
    places = [at for at, character in enumerate(" ".join(words)) if character != " "]
    new = dict(zip((at for at, character in enumerate(text) if not character.isspace()), places, strict=True))
    moved = []
    for span in filter(None, spans.split(",")):
        first, last, label = span.split(":", 2)
        inside = [new[at] for at in range(int(first), int(last)) if at in new]
        moved.append(f"{inside[0]}:{inside[-1] + 1}:{label}" if inside else span)
    return ",".join(moved)


def check_characters(text: str, words: Words) -> None:
    """Check that words have the same characters as a text, except for white space.

    Raises:
        InputError: The characters differ.
    """
    if "".join(words) != "".join(text.split()):
        reason = f"the segmenter changed the characters of a text: {text[:40]}"
        raise InputError(reason, hint="leave out the steps of this data set (--no-steps)", code="failed")


LAYOUTS: dict[str, Callable[[Iterable[str]], Iterator[Record]]] = {
    "text": _lines,
    "pairs": _lines,
    "nli": _pairs,
    "ner": _labels,
    "slots": _slots,
}
"""Reader of the records of each layout that can be segmented."""
