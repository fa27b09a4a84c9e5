"""What every labelled task offers, its sentences as a source; what tasks of files, the hub and the grammar share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources import open_source
from synthlang.sources.base import BATCH_SENTENCES, because, check_split
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.splits import OPTIONS, files_by_split, files_read, path_options
from synthlang.tasks.batch import ItemGroup, TaskBatch, batches_of_groups, unique_ids

Kind = Literal["words", "classes", "spans"]


class TaskSet(ABC):
    """Labelled items in named splits, streamed as batches.

    name      as the user wrote it, for messages
    kind      what is labelled: each word, the whole item, or spans that answer a question
    fields    names of the texts of an item
    tags      the column of the corpus that holds the labels of words, None if there is none
    columns   the word columns of the corpora, ``form`` first, the same in every batch
    splits    names among ``train``, ``dev``, ``test``
    labels    names of the class labels of items in any split; () if items have none
    label_name   what a data set of the hub calls the column of class labels
    licence   SPDX id of the items where it is known
    left_out  split of the data that is none of the task → why, such as a test set without gold labels

    Sentence ids are unique in a split and rise from 0 in the order of the batches.
    """

    name: str
    kind: Kind
    fields: tuple[str, ...]
    splits: tuple[str, ...]
    columns: tuple[str, ...] = (FORM,)
    tags: str | None = None
    label_name: str = "label"
    licence: str | None = None
    left_out: Mapping[str, str] = MappingProxyType({})

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that affects the items, and nothing else."""

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The items of a split in order; InputError if there is no such split."""

    def size(self, split: str) -> int | None:  # noqa: ARG002  a task that knows looks at it
        """About how many items a split has, as ``size_of`` tells it; None: not known."""
        return None

    def check(self, split: str, hint: str = "") -> None:
        """Raise InputError if there is no such split, with the reason if it was left out; ``hint`` ends the line."""
        if split not in self.splits:
            reason = f" ({self.left_out[split]})" if split in self.left_out else ""
            raise InputError(f"{self.name} has no split {split!r}{reason}; it has {', '.join(self.splits)}{hint}")

    def as_source(self) -> SentencesOf:
        """The sentences of all items as a source: for a parser, for counts of words."""
        return SentencesOf(self)

    def field_rows(self, fields: tuple[str, ...] | None) -> tuple[int, ...]:
        """The indices of ``fields`` (None: all); InputError for a name that is none."""
        for name in fields or ():
            if name not in self.fields:
                raise InputError(f"{self.name}: there is no field {name!r}; there are {', '.join(self.fields)}")
        return tuple(i for i, name in enumerate(self.fields) if fields is None or name in fields)


@dataclass(frozen=True)
class SentencesOf:
    """The sentences of a task as a source; the ids are those they have in the task."""

    task: TaskSet

    @property
    def fingerprint(self) -> str:
        """That of the task: it covers its sentences."""
        return self.task.fingerprint

    @property
    def splits(self) -> tuple[str, ...]:
        return self.task.splits

    @property
    def columns(self) -> tuple[str, ...]:
        return self.task.columns

    def size(self, split: str) -> int | None:
        """Known where items are sentences."""
        return self.task.size(split) if self.task.kind == "words" else None

    def batches(self, split: str) -> Iterator[Corpus]:
        check_split(self, split, self.task.name)
        for batch in self.task.batches(split):
            for start in range(0, len(batch.corpus), BATCH_SENTENCES):
                yield batch.corpus.between(start, start + BATCH_SENTENCES)


class GroupTask(TaskSet):
    """A task whose items are read as groups; ids that come again get a number.

    answered   the field that answers lie in
    """

    answered: ClassVar[int] = 0

    @abstractmethod
    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        """The items of a split with their texts; ``counts`` takes what is left out or mended, by reason."""

    def batches(self, split: str) -> Iterator[TaskBatch]:
        self.check(split)
        counts: Counter[str] = Counter()
        return batches_of_groups(unique_ids(self._groups(split, counts), counts), self.labels, counts, self.answered)


class ReadTask(GroupTask):
    """A task in data of somebody else: a split without a usable ``item`` is an InputError when it is opened.

    A wrong path or header is one, too; a wrong line or row is when it is reached.
    """

    item: ClassVar[str]

    def _place(self, split: str) -> str | Path:
        """What stands before a message about a split."""
        return f"{self.name}: the split {split}"

    def _unusable(self, split: str) -> Counter[str] | None:
        """None for a split with an item, else what all of it was left out for."""
        counts: Counter[str] = Counter()
        return counts if next(self._groups(split, counts), None) is None else None

    def _check_usable(self) -> None:
        for split in self.splits:
            if (counts := self._unusable(split)) is not None:
                raise InputError(f"holds no {self.item}{because(counts)}", self._place(split))


class FileTask(ReadTask):
    """A task in files of texts; ``files`` has that of each split, told by its name or in ``options`` (``splits``)."""

    endings: ClassVar[tuple[str, ...]]
    own_options: ClassVar[tuple[str, ...]] = ()  # what may stand after ? beside those of ``splits``

    def __init__(self, scheme: str, spec: str) -> None:
        path, self.options = path_options(spec, (*OPTIONS, *self.own_options))
        self.name, self.path = f"{scheme}:{path}", user_path(path)
        self.files = files_by_split(self.path, self.endings, self.options)
        self.splits = tuple(self.files)
        self._check_usable()

    @property
    def read_as(self) -> str:
        """Which file was read as which split, and which others of the folder were not read."""
        return files_read(self.path, self.files, self.endings)

    def _place(self, split: str) -> Path:
        return self.files[split]


class HubTask(ReadTask):
    """A task in a data set of the hub or a local folder whose texts are plain; ``_data`` has the rows of each split."""

    _data: dict[str, Any]

    def size(self, split: str) -> int | None:
        return len(self._data[split]) if split in self._data else None


def built_in(spec: str) -> MiniEnglish:
    """The grammar that ``builtin:mini-english?…`` names."""
    source = open_source(spec)
    assert isinstance(source, MiniEnglish), "the only built-in source"
    return source


class MiniEnglishTask(GroupTask):
    """As many items in each split as the source has sentences there; a split of no size is none."""

    licence = MiniEnglish.licence
    version: ClassVar[tuple[str, int]]  # what the items are, and the version of what makes them

    def __init__(self, source: MiniEnglish) -> None:
        self.source = source
        self.splits = tuple(split for split in source.splits if source.size(split))
        tags = () if self.tags is None or self.tags in source.columns else (self.tags,)
        self.columns = (*source.columns, *tags)

    @property
    def fingerprint(self) -> str:
        """Of the grammar and its settings."""
        kind, version = self.version
        return fingerprint(kind, version=version, source=self.source.fingerprint)

    def size(self, split: str) -> int:
        return self.source.size(split)
