"""Derive tasks with their labels, and add the annotation of a parser to tasks.

Class labels stay with their items. Tags of words move with their words (see rewrite.py). An answer is kept if its
words are still adjacent. An item is left out if one of its sentences is left out, if none of its answers is in one
piece, or if the sides of a minimal pair become equal. All omissions are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import FORM, Column, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.sources.base import Source, with_columns
from synthlang.tasks.base import SentencesOf, TaskSet
from synthlang.tasks.batch import Answers, TaskBatch

LOST_SENTENCE = "items dropped because a sentence was dropped"
EMPTY_TEXT = "items dropped because a text has no word left"
EQUAL = "pairs dropped because both sides became equal"
LOST_ANSWERS = "items dropped because no answer is in one piece"
SPLIT = "answers split by other words"
DELETED = "answers deleted"
SHORTENED = "answers shortened because a word was deleted"


def derive_task(
    batch: TaskBatch, language: Language, fields: tuple[int, ...] | None = None
) -> tuple[TaskBatch, dict[str, int]]:
    """Derive a batch in the language.

    Args:
        batch: The items.
        language: The derived language.
        fields: Indices of the fields to derive, or None for all. Other fields stay in the source language.

    Returns:
        The derived batch, and counts of omissions and changes by reason.

    Raises:
        InputError: The language cannot be applied to a sentence.
    """
    chosen = np.ones(len(batch.corpus), bool)
    if fields is not None:
        chosen = np.isin(batch.field_of_text, fields)[batch.text_of_sentence]
    derived, counts = rewrite_task(batch, partial_rewrite(language, batch.draws, chosen))
    return _different(derived, counts) if batch.paired else (derived, counts)


def _different(batch: TaskBatch, counts: Mapping[str, int]) -> tuple[TaskBatch, dict[str, int]]:
    """Drop and count the pairs whose sides are equal."""
    equal = np.asarray([one == other for one, other in zip(batch.strings(0), batch.strings(1), strict=True)], bool)
    if not equal.any():
        return batch, dict(counts)
    return batch.take(np.flatnonzero(~equal)), {**counts, EQUAL: int(equal.sum())}


def partial_rewrite(language: Language, corpus: Corpus, chosen: NDArray[np.bool_]) -> Rewrite:
    """Return the rewrite that derives only the chosen sentences in the language.

    ``chosen`` [sentences] flags these sentences. The other sentences stay unchanged in their places.

    Raises:
        InputError: The language cannot be applied to a sentence.
    """
    if chosen.all():
        return language.rewrite(corpus)
    rows, others = np.flatnonzero(chosen).astype(np.int64), np.flatnonzero(~chosen).astype(np.int64)
    unchanged = corpus.take(others)
    mine, rest = language.rewrite(corpus.take(rows)), Rewrite.identity(unchanged)
    kept = np.concatenate([rows if mine.source_rows is None else rows[mine.source_rows], others])
    form = concatenate([Corpus(r.offsets, {FORM: r.form}, np.zeros(len(r), np.int64)) for r in (mine, rest)])
    head = None if mine.head is None else np.concatenate([mine.head, unchanged.columns["head"].codes])
    joined = Rewrite(
        form.offsets, np.concatenate([mine.source_index, rest.source_index]), form.form, kept, mine.counts, head
    )
    return joined.take(np.argsort(kept, kind="stable").astype(np.int64))


def rewrite_task(batch: TaskBatch, rewrite: Rewrite) -> tuple[TaskBatch, dict[str, int]]:
    """Apply a rewrite of a batch's sentences to the whole batch.

    An item is dropped if one of its sentences is lost or if one of its texts becomes empty. An item with answers is
    also dropped if no answer stays in one piece.

    Returns:
        The derived batch, and counts of omissions and changes by reason.
    """
    counts = Counter(rewrite.counts)
    place = np.full(len(batch.corpus), -1, np.int64)  # the row of each sentence in the output
    place[np.arange(len(rewrite)) if rewrite.source_rows is None else rewrite.source_rows] = np.arange(len(rewrite))
    lost = np.bincount(batch.text_of_sentence, weights=place < 0, minlength=len(batch.field_of_text)) > 0
    lengths = np.append(np.diff(rewrite.offsets), 0)[place]
    empty = ~lost & (np.bincount(batch.text_of_sentence, weights=lengths, minlength=len(batch.field_of_text)) == 0)
    dropped, emptied = lost[batch.texts].any(axis=1), empty[batch.texts].any(axis=1)
    counts.update({LOST_SENTENCE: int(dropped.sum()), EMPTY_TEXT: int((emptied & ~dropped).sum())})
    items = np.flatnonzero(~(dropped | emptied)).astype(np.int64)
    left, mine = batch.take(items), rewrite.take(place[batch.sentences_of(items)])
    asked = np.unique(left.answers.item)
    answers = _moved(left.answers, mine, left.corpus, counts)
    unanswered = np.setdiff1d(asked, answers.item)
    counts[LOST_ANSWERS] += len(unanswered)
    derived = replace(left, corpus=mine.apply(batch.corpus), answers=answers)
    result = derived.take(np.setdiff1d(np.arange(len(left)), unanswered))
    return result, {reason: n for reason, n in counts.items() if n}


def _moved(answers: Answers, rewrite: Rewrite, corpus: Corpus, counts: Counter[str]) -> Answers:
    """Return the answers whose words are still adjacent after a rewrite that keeps all sentences.

    A word that is inserted inside an answer splits the answer.
    """
    if not len(answers):
        return answers
    known = np.flatnonzero(rewrite.source_index != INSERTED)
    row = (rewrite.source_index + np.repeat(corpus.offsets[:-1], np.diff(rewrite.offsets)))[known]
    words = int(corpus.offsets[-1])
    # First and last place of each word in the output, and its number of copies. An extra row allows slices to the end.
    first, last = np.full(words + 1, len(rewrite.source_index)), np.full(words + 1, -1)
    np.minimum.at(first, row, known)
    np.maximum.at(last, row, known)
    times = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=words))])
    there = np.concatenate([[0], np.cumsum(last[:-1] >= 0)])
    bounds = np.stack([answers.start, answers.stop], axis=1).ravel()
    low, high = np.minimum.reduceat(first, bounds)[::2], np.maximum.reduceat(last, bounds)[::2]
    size = times[answers.stop] - times[answers.start]
    whole = (size > 0) & (high - low + 1 == size)
    shorter = whole & (there[answers.stop] - there[answers.start] < answers.stop - answers.start)
    split = int(((size > 0) & ~whole).sum())
    counts.update({SPLIT: split, DELETED: int((size == 0).sum()), SHORTENED: int(shorter.sum())})
    return Answers(answers.item[whole], low[whole], high[whole] + 1)


class _Wrapped(TaskSet):
    """A task with the items of another task in a changed form."""

    def __init__(self, task: TaskSet) -> None:
        self.task = task
        self.name, self.kind, self.fields = task.name, task.kind, task.fields
        self.tags, self.label_name, self.licence = task.tags, task.label_name, task.licence
        self.splits, self.left_out, self.columns = task.splits, task.left_out, task.columns

    @property
    def labels(self) -> tuple[str, ...]:
        return self.task.labels

    def size(self, split: str) -> int | None:
        """Return the approximate size of the whole task, including items that are left out, or None if unknown.

        Raises:
            InputError: A task of the built-in grammar lacks the split.
        """
        return self.task.size(split)


class DerivedTask(_Wrapped):
    """A task whose items are all derived in a bound language (see ``bind_language``)."""

    def __init__(self, task: TaskSet, language: Language) -> None:
        super().__init__(with_columns(task, language.requires))
        self.language, self.name = language, f"{task.name} in {language.name}"

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("derived-task", task=self.task.fingerprint, language=self.language.fingerprint)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """Yield the derived items of a split in order.

        Raises:
            InputError: The task lacks the split, an item is malformed, or the language cannot be applied to a sentence.
        """
        for batch in self.task.batches(split):
            derived, counts = derive_task(batch, self.language)
            yield replace(derived, counts=dict(Counter(batch.counts) + Counter(counts)))


NO_PARSE = "sentences without a parse"
NUMBER = "sentence"


class ParsedTask(_Wrapped):
    """A task with the columns of a parser.

    The parser must keep the words and the column ``sentence``, as ``ParsedSource`` does. If it leaves sentences out,
    their items are dropped and counted.

    Args:
        task: The task.
        parse: Function from the source of the task's sentences to the parsed source.

    Raises:
        InputError: The labels of the task are trees, which the parser would replace.
    """

    def __init__(self, task: TaskSet, parse: Callable[[Source], Source]) -> None:
        super().__init__(task)
        self.source = parse(_Numbered(task))
        self.columns = tuple(name for name in self.source.columns if name != NUMBER)
        if self.tags == "deprel":
            reason = "a parser would replace the trees, which are the labels of this task"
            raise InputError(reason, self.name, hint="leave the parser out", code="conflict")

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the task and of the parsed source, which covers the parser."""
        return fingerprint("parsed-task", task=self.task.fingerprint, source=self.source.fingerprint)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """Yield the items of a split in order, except for items of which a sentence has no parse.

        Raises:
            InputError: The task lacks the split, an item is malformed, or the parser fails or changes words or
                sentences.
        """
        self.check(split)
        parsed = filter(len, map(_with_ids, self.source.batches(split)))
        waiting: list[Corpus] = []  # sentences of the parser, whose batches may have any size
        for batch in self.task.batches(split):
            last = int(batch.corpus.ids[-1]) if len(batch.corpus) else -1
            while not (waiting and waiting[-1].ids[-1] >= last) and (more := next(parsed, None)) is not None:
                waiting.append(more)
            whole = concatenate(waiting)
            stop = int(np.searchsorted(whole.ids, last, side="right"))
            waiting = [rest] if len(rest := whole.between(stop, len(whole))) else []
            yield self._put_back(batch, whole.between(0, stop))

    def _put_back(self, batch: TaskBatch, sentences: Corpus) -> TaskBatch:
        """Replace the sentences of a batch by parsed sentences with the same ids, which are in the order of their ids.

        Items that lose a sentence are dropped and counted. The tags of the task stay.
        """
        found = np.searchsorted(batch.corpus.ids, sentences.ids)
        own = batch.corpus.take(found[found < len(batch.corpus)])
        same = np.array_equal(own.ids, sentences.ids) and np.array_equal(own.offsets, sentences.offsets)
        if not same or own.form.values() != sentences.form.values():
            raise InputError(
                "the parser changed words or sentences of the task",
                self.name,
                hint="use a parser that keeps the given words",
                code="changed",
            )
        missing = len(batch.corpus) - len(found)
        kept = replace(Rewrite.identity(own), source_rows=found, counts={NO_PARSE: missing} if missing else {})
        left, counts = rewrite_task(batch, kept)
        parsed = sentences.take(np.searchsorted(sentences.ids, left.corpus.ids))
        if self.tags is not None:
            parsed = replace(parsed, columns={**parsed.columns, self.tags: left.corpus.columns[self.tags]})
        return replace(left, corpus=parsed, counts=dict(Counter(batch.counts) + Counter(counts)))


@dataclass(frozen=True)
class _Numbered(SentencesOf):
    """The sentences of a task with a column for the sentence id, since a parser may renumber sentences."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.task.columns, NUMBER)

    def batches(self, split: str) -> Iterator[Corpus]:
        for corpus in super().batches(split):
            number = Column(corpus.ids[corpus.sentence_of_word].astype(np.int32))
            yield replace(corpus, columns={**corpus.columns, NUMBER: number})


def _with_ids(corpus: Corpus) -> Corpus:
    """Return a parsed batch of ``_Numbered`` with the sentence ids of the task."""
    columns = dict(corpus.columns)
    number = columns.pop(NUMBER).codes
    return Corpus(corpus.offsets, columns, number[corpus.offsets[:-1]].astype(np.int64))
