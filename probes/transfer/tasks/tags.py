"""A tag for each word: what the tasks share that predict one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from probes.transfer.batch import Examples, Reader
from probes.transfer.heads.head import Head
from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.words import WordExamples, WordTask, classes_of, with_unseen
from synthlang.tasks.batch import TaskBatch


@dataclass(frozen=True, kw_only=True)
class TagExamples(WordExamples):
    """A tag for each word; ``unread`` is what is predicted for a word that was not read."""

    tags: tuple[str, ...]
    unread: str

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """[items] the tags of its words; ``outputs`` are the classes of the words that are read."""
        return self.tags_of(outputs)

    def tags_of(self, outputs: Iterable[Iterable[int]]) -> list[list[str]]:
        """For each item the tag of each word, from the classes of those that were read."""
        classes = np.full(len(self.words.read), len(self.tags), np.int64)
        classes[self.words.read] = np.fromiter(chain.from_iterable(outputs), np.int64)
        names = (*self.tags, self.unread)
        return self.words.lists([names[code] for code in classes.tolist()])


class TagTask(WordTask):
    """Words with a tag each, in the first column of ``requires``; ``unread`` as in TagExamples."""

    unread: ClassVar[str]

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """The tag of each word that has one."""
        words = self.words(batch, readers)
        column = words.column(self.requires[0])
        classes, unseen = classes_of(column, labels["tags"])
        return TagExamples(
            batch.ids,
            words.lists(column.values()),
            with_unseen(words.counts, unseen),
            words=words,
            targets={"tags": classes},
            tags=labels["tags"],
            unread=self.unread,
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """A tagger."""
        from probes.transfer.heads.tags import TagHead

        return TagHead(hidden=hidden, classes=len(labels["tags"]), config=self.config.head)
