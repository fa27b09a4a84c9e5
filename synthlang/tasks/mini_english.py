"""The pairs of mini-english: inference by construction, with gold annotation of every sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from synthlang.fingerprint import fingerprint
from synthlang.sources.base import check_split
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.nli import LABELS, nli_pairs
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.build import Group, Item, batches_of_groups
from synthlang.tasks.pairs import FIELDS

VERSION = 1  # of the pairs: another version may emit others for the same settings


class MiniEnglishPairs(TaskSet):
    """As many pairs in each split as the source has sentences there."""

    kind = "classes"
    fields = FIELDS
    name = "nli:builtin:mini-english"
    labels = LABELS
    licence = "apache-2.0"

    def __init__(self, source: MiniEnglish) -> None:
        self.source = source

    @property
    def fingerprint(self) -> str:
        """Of the grammar and its settings."""
        return fingerprint("mini-english-pairs", version=VERSION, source=self.source.fingerprint)

    @property
    def splits(self) -> tuple[str, ...]:
        """All three, but those of no size."""
        return tuple(split for split in self.source.splits if self.source.size(split))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every annotation there is."""
        return self.source.columns

    def size(self, split: str) -> int:
        """That of the source."""
        return self.source.size(split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The pairs of a split in order."""
        check_split(self.as_source(), split, self.name)
        return batches_of_groups(self._groups(split), LABELS, Counter())

    def _groups(self, split: str) -> Iterator[Group]:
        for number, pair in enumerate(nli_pairs(self.source, split, self.source.size(split))):
            texts = tuple((i, [dict(s.columns)]) for i, s in enumerate((pair.premise, pair.hypothesis)))
            yield Group(texts, (Item(str(number), (0, 1), pair.label),))
