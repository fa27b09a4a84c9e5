"""Tasks that label words: named entities and slots. An item is a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from synthlang.corpus import Column, Corpus
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import Source, require_columns, size_of
from synthlang.sources.slots import SlotsSource
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch

FIELD = ("text",)


class WordTask(TaskSet):
    """The sentences of a source that has the column ``tags``; the intents of a SlotsSource label the items."""

    kind = "words"
    fields = FIELD
    label_name = "intent"

    def __init__(self, name: str, source: Source, tags: str) -> None:
        require_columns(source, (tags,), name, "the task")
        self.name, self.source, self.tags = name, source, tags
        self.licence = getattr(source, "licence", None)

    @property
    def fingerprint(self) -> str:
        """Of the source and the labelled column."""
        return fingerprint("word-task", source=self.source.fingerprint, tags=self.tags)

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.splits

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """The intents; () for a source without."""
        return self.source.intents if isinstance(self.source, SlotsSource) else ()

    def size(self, split: str) -> int | None:
        """That of the source."""
        return size_of(self.source, split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The sentences of a split in order."""
        if not isinstance(self.source, SlotsSource):
            return (_batch(corpus, None, {}) for corpus in self.source.batches(split))
        index = {name: code for code, name in enumerate(self.labels)}
        return (
            _batch(corpus, Column(np.asarray([index[i] for i in intents], np.int32), self.labels), counts)
            for corpus, intents, counts in self.source.labelled(split)
        )


def _batch(corpus: Corpus, label: Column | None, counts: dict[str, int]) -> TaskBatch:
    rows = np.arange(len(corpus), dtype=np.int64)
    ids = tuple(map(str, corpus.ids.tolist()))
    return TaskBatch(corpus, rows, np.zeros_like(rows), rows[:, None], ids, label, counts=counts)
