"""A task in a derived language, every label on what it was on; and a task with the annotation of a parser.

Class labels stay with their items, tags of words move with their words (see rewrite.py), answers are kept where their
words still stand together. An item is left out when a sentence of it is, or when no answer of it is whole; everything
is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import FORM, Column, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.sources.base import Source
from synthlang.tasks.base import SentencesOf, TaskSet
from synthlang.tasks.batch import Answers, TaskBatch

LOST_SENTENCE = "items dropped, a sentence of theirs was dropped"
EMPTY_TEXT = "items dropped, a text of theirs has no word left"
LOST_ANSWERS = "items dropped, no answer is in one piece"
TORN = "answers torn apart"
DELETED = "answers deleted"
SHORTENED = "answers shortened, a word was deleted"


def derive_task(
    batch: TaskBatch, language: Language, fields: tuple[int, ...] | None = None
) -> tuple[TaskBatch, dict[str, int]]:
    """The batch in the language, and what happened by reason.

    ``fields`` are the fields (as indices) that are derived, None means all; the texts of the
    others stay in the parent's language, for pairs of mixed languages.
    """
    chosen = np.ones(len(batch.corpus), bool)
    if fields is not None:
        chosen = np.isin(batch.field_of_text, fields)[batch.text_of_sentence]
    return rewrite_task(batch, partial_rewrite(language, batch.corpus, chosen))


def partial_rewrite(language: Language, corpus: Corpus, chosen: NDArray[np.bool_]) -> Rewrite:
    """The language's rewrite of the chosen sentences; the others stay as they are, in their places."""
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
    """The batch after a rewrite of its corpus, and what happened by reason (the rewrite's counts included)."""
    counts = Counter(rewrite.counts)
    place = np.full(len(batch.corpus), -1, np.int64)  # of each sentence in the output
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
    torn = np.setdiff1d(asked, answers.item)
    counts[LOST_ANSWERS] += len(torn)
    derived = replace(left, corpus=mine.apply(batch.corpus), answers=answers)
    result = derived.take(np.setdiff1d(np.arange(len(left)), torn))
    return result, {reason: n for reason, n in counts.items() if n}


def _moved(answers: Answers, rewrite: Rewrite, corpus: Corpus, counts: Counter[str]) -> Answers:
    """The answers that are in one piece after a rewrite of ``corpus`` (its output sentences are those of the corpus).

    An answer is whole if the words that came from it stand together without another word
    between them; a word inserted in the middle tears it, as it tears an entity.
    """
    if not len(answers):
        return answers
    known = np.flatnonzero(rewrite.source_index != INSERTED)
    row = (rewrite.source_index + np.repeat(corpus.offsets[:-1], np.diff(rewrite.offsets)))[known]
    words = int(corpus.offsets[-1])
    # where each word went, first and last place, and how often; one more row so that a slice may end there
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
    torn = int(((size > 0) & ~whole).sum())
    counts.update({TORN: torn, DELETED: int((size == 0).sum()), SHORTENED: int(shorter.sum())})
    return Answers(answers.item[whole], low[whole], high[whole] + 1)


NO_PARSE = "sentences without a parse"
NUMBER = "sentence"


class ParsedTask(TaskSet):
    """The task with its sentences as ``parse`` gives them: ``parse(source)`` is a source over a source.

    It keeps the words and the column ``sentence`` and adds columns, as ``ParsedSource`` does. It may
    leave sentences out: their items are dropped and counted.
    """

    def __init__(self, task: TaskSet, parse: Callable[[Source], Source]) -> None:
        self.task, self.source = task, parse(_Numbered(task))
        self.name, self.kind, self.fields = task.name, task.kind, task.fields
        self.tags, self.label_name, self.licence = task.tags, task.label_name, task.licence
        self.splits, self.left_out = task.splits, task.left_out
        self.columns = tuple(name for name in self.source.columns if name != NUMBER)
        if self.tags == "deprel":
            raise InputError(f"{self.name}: trees are the labels here; a parser would replace them, leave it out")

    @cached_property
    def fingerprint(self) -> str:
        """Of the task and of the source, which covers the parser."""
        return fingerprint("parsed-task", task=self.task.fingerprint, source=self.source.fingerprint)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.task.labels

    def size(self, split: str) -> int | None:
        """That of the task, before what the parser leaves out."""
        return self.task.size(split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The items of a split in order, but those with a sentence that the source does not have."""
        self.check(split)
        parsed = filter(len, map(_with_ids, self.source.batches(split)))
        waiting: list[Corpus] = []  # sentences of the parser, which cuts batches as it likes
        for batch in self.task.batches(split):
            last = int(batch.corpus.ids[-1]) if len(batch.corpus) else -1
            while not (waiting and waiting[-1].ids[-1] >= last) and (more := next(parsed, None)) is not None:
                waiting.append(more)
            whole = concatenate(waiting)
            stop = int(np.searchsorted(whole.ids, last, side="right"))
            waiting = [rest] if len(rest := whole.between(stop, len(whole))) else []
            yield put_back(batch, whole.between(0, stop), self.name, self.tags)


@dataclass(frozen=True)
class _Numbered(SentencesOf):
    """The sentences of a task, each word with the id of its sentence: a parser may number what it leaves anew."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.task.columns, NUMBER)

    def batches(self, split: str) -> Iterator[Corpus]:
        for corpus in super().batches(split):
            number = Column(corpus.ids[corpus.sentence_of_word].astype(np.int32))
            yield replace(corpus, columns={**corpus.columns, NUMBER: number})


def _with_ids(corpus: Corpus) -> Corpus:
    """A batch of a source over ``_Numbered`` with the ids that its sentences have in the task."""
    columns = dict(corpus.columns)
    number = columns.pop(NUMBER).codes
    return Corpus(corpus.offsets, columns, number[corpus.offsets[:-1]].astype(np.int64))


def put_back(batch: TaskBatch, sentences: Corpus, name: str, tags: str | None = None) -> TaskBatch:
    """The batch with these sentences in place of its own, matched by their ids.

    The column ``tags`` stays that of the batch: gold labels, where a parser has tags of the same name.
    """
    found = np.searchsorted(batch.corpus.ids, sentences.ids)
    own = batch.corpus.take(found[found < len(batch.corpus)])
    same = np.array_equal(own.ids, sentences.ids) and np.array_equal(own.offsets, sentences.offsets)
    if not same or own.form.values() != sentences.form.values():
        raise InputError(f"{name}: the parser changed words or sentences; it must keep those of the task")
    missing = len(batch.corpus) - len(found)
    kept = replace(Rewrite.identity(own), source_rows=found, counts={NO_PARSE: missing} if missing else {})
    left, counts = rewrite_task(batch, kept)
    parsed = sentences.take(np.searchsorted(sentences.ids, left.corpus.ids))
    if tags is not None:
        parsed = replace(parsed, columns={**parsed.columns, tags: left.corpus.columns[tags]})
    return replace(left, corpus=parsed, counts=dict(Counter(batch.counts) + Counter(counts)))
