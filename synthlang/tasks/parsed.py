"""A task whose sentences have the annotation of another source: what a parser made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import Rewrite
from synthlang.sources.base import Source, check_split
from synthlang.tasks.base import SentencesOf, TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.derive import rewrite_task

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
        self.left_out = task.left_out
        if self.tags == "deprel":
            raise InputError(f"{self.name}: trees are the labels here; a parser would replace them, leave it out")

    @cached_property
    def fingerprint(self) -> str:
        """Of the task and of the source, which covers the parser."""
        return fingerprint("parsed-task", task=self.task.fingerprint, source=self.source.fingerprint)

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of the task."""
        return self.task.splits

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the source."""
        return tuple(name for name in self.source.columns if name != NUMBER)

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the task."""
        return self.task.labels

    def size(self, split: str) -> int | None:
        """That of the task, before what the parser leaves out."""
        return self.task.size(split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The items of a split in order, but those with a sentence that the source does not have."""
        check_split(self.as_source(), split, self.name)
        sentences = _Stream(self.source.batches(split))
        for batch in self.task.batches(split):
            yield put_back(batch, sentences.until(batch.corpus.ids), self.name, self.tags)


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


class _Stream:
    """Batches of a source, cut anew by sentence ids."""

    def __init__(self, batches: Iterator[Corpus]) -> None:
        self.batches = batches
        self.rest: list[Corpus] = []

    def until(self, ids: NDArray[np.int64]) -> Corpus | None:
        """The next sentences whose ids are at most the last of ``ids``; None if there are none."""
        last = int(ids[-1]) if len(ids) else -1
        while not (self.rest and len(self.rest[-1]) and self.rest[-1].ids[-1] >= last):
            batch = next(self.batches, None)
            if batch is None:
                break
            self.rest.append(_with_ids(batch))
        parts = [part for part in self.rest if len(part)]
        ready = [part.between(0, int(np.searchsorted(part.ids, last, side="right"))) for part in parts]
        later = [part.between(int(np.searchsorted(part.ids, last, side="right")), len(part)) for part in parts]
        self.rest = [part for part in later if len(part)]
        ready = [part for part in ready if len(part)]
        return concatenate(ready) if ready else None


def put_back(batch: TaskBatch, sentences: Corpus | None, name: str, tags: str | None = None) -> TaskBatch:
    """The batch with these sentences in place of its own, matched by their ids.

    The column ``tags`` stays that of the batch: gold labels, where a parser has tags of the same name.
    """
    if sentences is None:
        sentences = batch.corpus.between(0, 0)
    found = np.searchsorted(batch.corpus.ids, sentences.ids)
    own = batch.corpus.take(found[found < len(batch.corpus)])
    same = np.array_equal(own.ids, sentences.ids) and np.array_equal(own.offsets, sentences.offsets)
    if not same or own.form.values() != sentences.form.values():
        raise InputError(f"{name}: the parser changed words or sentences; it must keep those of the task")
    missing = len(batch.corpus) - len(found)
    kept = replace(Rewrite.identity(own), kept=found, counts={NO_PARSE: missing} if missing else {})
    left, counts = rewrite_task(batch, kept)
    parsed = sentences.take(np.searchsorted(sentences.ids, left.corpus.ids))
    if tags is not None:
        parsed = replace(parsed, columns={**parsed.columns, tags: left.corpus.columns[tags]})
    return replace(left, corpus=parsed, counts=dict(Counter(batch.counts) + Counter(counts)))
