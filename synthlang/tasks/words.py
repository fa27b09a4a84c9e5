"""Tasks that label words: named entities, slots, parts of speech, trees. An item is a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from synthlang.corpus import Column
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import Labelled, Source, require_columns, size_of
from synthlang.sources.hub import HubSource
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.slots import SlotsSource
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.build import taken_counts, unique_id

FIELD = ("text",)


class WordTask(TaskSet):
    """The sentences of a source that has the column ``tags``; the intents of a source that has them label the items.

    ``needs``: further columns without which the task is none.
    """

    kind = "words"
    fields = FIELD
    label_name = "intent"

    def __init__(self, name: str, source: Source, tags: str, needs: tuple[str, ...] = ()) -> None:
        require_columns(source, (tags, *needs), name, "the task")
        self.name, self.source, self.tags = name, source, tags
        self.licence = getattr(source, "licence", None)

    @property
    def fingerprint(self) -> str:
        """Of the source and the labelled column."""
        return fingerprint("word-task", source=self.source.fingerprint, tags=self.tags)

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of the source, but those that are known to hold nothing."""
        if not isinstance(self.source, MiniEnglish):  # every other source refuses an empty split itself
            return self.source.splits
        return tuple(split for split in self.source.splits if self.source.size(split))

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """The intents; () for a source without."""
        return self.source.intents if isinstance(self.source, SlotsSource | HubSource) else ()

    def size(self, split: str) -> int | None:
        """That of the source."""
        return size_of(self.source, split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The sentences of a split in order."""
        self.check(split)
        return self._labelled(split, Counter(), {})

    def _labelled(self, split: str, counts: Counter[str], times: dict[str, int]) -> Iterator[TaskBatch]:
        """The batches with what their sentences are labelled and called; ``times`` keeps the ids seen so far."""
        index = {name: code for code, name in enumerate(self.labels)}
        for corpus, labels, seen, names in self._batches(split):
            counts.update(seen)
            label = Column(np.asarray([index[name] for name in labels], np.int32), self.labels) if index else None
            ids = map(str, corpus.ids.tolist()) if names is None else (unique_id(n, times, counts) for n in names)
            rows = np.arange(len(corpus), dtype=np.int64)
            yield TaskBatch(
                corpus, rows, np.zeros_like(rows), rows[:, None], tuple(ids), label, counts=taken_counts(counts)
            )

    def _batches(self, split: str) -> Iterator[Labelled]:
        if isinstance(self.source, SlotsSource | HubSource):
            return self.source.labelled(split)
        return (Labelled(corpus, [], {}) for corpus in self.source.batches(split))
