"""The interface of a labelled task, and base classes for tasks in files, on the hub and in the grammar."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources import open_source
from synthlang.sources.base import BATCH_SENTENCES, check_split, nothing_in
from synthlang.sources.hub_data import (
    STRINGS,
    by_split,
    digest_values,
    dtype_of,
    load_data,
    name_and_options,
    no_columns,
    rows_of,
)
from synthlang.sources.limited import LIMIT, without_limit
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.segmentation import SegmentedText, split_words
from synthlang.sources.splits import CJK, NORMALISE, OPTIONS, files_by_split, files_read, path_options
from synthlang.sources.text import counted_uncut
from synthlang.sources.words import spelled
from synthlang.tasks.batch import ItemGroup, TaskBatch, batches_of_groups, unique_ids

Kind = Literal["words", "classes", "spans"]


class TaskSet(ABC):
    """Labelled items in named splits, streamed as batches.

    Sentence ids are unique in a split and increase from 0 in the order of the batches.

    Attributes:
        name: The task as the user wrote it, perhaps without options, for messages.
        kind: The labelled unit: ``words``, ``classes`` (whole items) or ``spans`` (answers to questions).
        fields: Names of the texts of an item.
        splits: Names among ``train``, ``dev`` and ``test``.
        columns: The word columns of every batch, ``form`` first.
        tags: The column with the labels of words, or None.
        labels: Names of the class labels of items in any split, or ().
        label_name: Name of the column of class labels in a data set of the hub.
        licence: SPDX id of the items, if known.
        left_out: Omitted splits with the reason, such as a test set without gold labels.
        paired: True if the fields of an item are variants of one sentence, which a language derives alike.
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
    paired: ClassVar[bool] = False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Fingerprint of everything that affects the items, and of nothing else.

        Raises:
            InputError: The data cannot be read, or a text is not UTF-8.
        """

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def batches(self, split: str) -> Iterator[TaskBatch]:
        """Yield the items of a split in order.

        Raises:
            InputError: The task lacks the split, or a line or row of the split is malformed or cannot be read.
        """

    def size(self, split: str) -> int | None:  # noqa: ARG002  subclasses use it
        """Return the approximate number of items in a split, or None if it is unknown (see ``size_of``).

        Raises:
            InputError: A task of the built-in grammar lacks the split.
        """
        return None

    def with_morphology(self, names: Sequence[str]) -> TaskSet:  # noqa: ARG002  subclasses use it
        """Return the task with the columns of MORPHOLOGY that are among ``names`` and that its source can add."""
        return self

    def check(self, split: str, hint: str = "") -> None:
        """Check that the task has a split.

        Raises:
            InputError: The task lacks the split. The error has ``hint``, or else a hint with the names of all splits.
        """
        if split not in self.splits:
            reason = f" ({self.left_out[split]})" if split in self.left_out else ""
            has = ", ".join(self.splits)
            reason = f"the task has no split {split!r}{reason}, only {has}"
            raise InputError(reason, self.name, hint=hint or f"name one of: {has}", code="missing")

    def as_source(self) -> SentencesOf:
        """Return the sentences of all items as a source, for example to count words or to check columns."""
        return SentencesOf(self)

    def field_rows(self, fields: tuple[str, ...] | None) -> tuple[int, ...]:
        """Return the indices of ``fields`` in the order of the task, or of all fields for None.

        Raises:
            InputError: The task lacks a field.
        """
        for name in fields or ():
            if name not in self.fields:
                hint = f"use {' or '.join(self.fields)}"
                raise InputError(f"the task has no field {name!r}", self.name, hint=hint, code="unknown")
        return tuple(i for i, name in enumerate(self.fields) if fields is None or name in fields)


@dataclass(frozen=True)
class SentencesOf:
    """The sentences of a task as a source, with their ids in the task."""

    task: TaskSet

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the task, which covers its sentences."""
        return self.task.fingerprint

    @property
    def splits(self) -> tuple[str, ...]:
        return self.task.splits

    @property
    def columns(self) -> tuple[str, ...]:
        return self.task.columns

    def size(self, split: str) -> int | None:
        """Return the approximate number of sentences in a split if items are sentences, else None.

        Raises:
            InputError: A task of the built-in grammar lacks the split.
        """
        return self.task.size(split) if self.task.kind == "words" else None

    def batches(self, split: str) -> Iterator[Corpus]:
        check_split(self, split, self.task.name)
        for batch in self.task.batches(split):
            for start in range(0, len(batch.corpus), BATCH_SENTENCES):
                yield batch.corpus.between(start, start + BATCH_SENTENCES)


class GroupTask(TaskSet):
    """A task whose items are read in groups. Repeated ids get a number.

    Attributes:
        answered: Index of the field that contains the answers.
    """

    answered: ClassVar[int] = 0
    normalise: str | None = None
    """``NFC`` if words are converted to this Unicode form, or None if they are unchanged."""

    @abstractmethod
    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        """Yield the items of a split with their texts, and count omissions and changes by reason in ``counts``."""

    def batches(self, split: str) -> Iterator[TaskBatch]:
        self.check(split)
        counts: Counter[str] = Counter()
        groups = unique_ids(self._groups(split, counts), counts)
        return map(self._remarked, batches_of_groups(groups, self.labels, counts, self.answered))

    def _remarked(self, batch: TaskBatch) -> TaskBatch:
        """Add the counts of unusual words to a batch, and convert its words to the form ``normalise``."""
        remarks = Counter(batch.counts)
        corpus = spelled(counted_uncut(batch.corpus, remarks), remarks, self.normalise)
        return replace(batch, corpus=corpus, counts=dict(+remarks), paired=self.paired)


class ReadTask(GroupTask):
    """A task in existing data.

    Opening a task raises an InputError for a wrong path or header, and for a split without a usable ``item``. A wrong
    line or row raises an InputError when it is read.
    """

    scheme: ClassVar[str]
    """Scheme of the task, as in ``nli:PATH``."""
    options: dict[str, str]
    """Options after ``?``."""
    item: str
    """Name of an item in messages, such as "labelled pair"."""
    cjk: str | None = None
    """``characters`` if each Chinese character and each kana of running text is a word, else None."""
    spaced = False
    """True if texts are words between spaces, as in exported data sets, and not running text."""

    def _about(self, error: InputError, split: str) -> InputError:
        return error.inside(split, path=self.name)

    def _words(self, text: str) -> list[str]:
        return SegmentedText.spaced(text).words if self.spaced else split_words(text, bool(self.cjk))

    @property
    def _marks(self) -> dict[str, Any]:
        """Entries of the fingerprint for the options ``normalise`` and ``cjk``, if they were chosen."""
        chosen = {NORMALISE: self.normalise, CJK: self.cjk}
        return {name: value for name, value in chosen.items() if value}

    def _unusable(self, split: str) -> Counter[str] | None:
        """Return None for a split with an item, else the counts of omitted items by reason."""
        counts: Counter[str] = Counter()
        return counts if next(self._groups(split, counts), None) is None else None

    def _check_usable(self) -> None:
        for split in self.splits:
            if (counts := self._unusable(split)) is not None:
                raise self._about(nothing_in(self.item, None, counts), split)


class FileTask(ReadTask):
    """A task in text files.

    Args:
        spec: ``PATH[?option&…]``, a file or a folder with a file for each split.

    Attributes:
        files: The file of each split, found by its name or given by an option.

    Raises:
        InputError: The path or an option is wrong, or a split cannot be read or has no usable item.
    """

    endings: ClassVar[tuple[str, ...]]
    """Endings of the names of data files in a folder."""
    own_options: ClassVar[tuple[str, ...]] = ()
    """Names of the options of this task besides the options of all tasks in files, as in ``PATH?name=value``."""

    def __init__(self, spec: str) -> None:
        path, self.options = path_options(spec, (*OPTIONS, *self.own_options))
        self.normalise, self.cjk = self.options.pop(NORMALISE, None), self.options.pop(CJK, None)
        self.name, self.path = f"{self.scheme}:{path}", user_path(path)
        self.files = self._find()
        self.splits = tuple(self.files)
        self._check_usable()

    def _find(self) -> dict[str, Path]:
        return files_by_split(self.path, self.endings, self.options)

    @property
    def read_as(self) -> str:
        """Message that lists the files that are read as splits, and the other data files of the folder."""
        return files_read(self.path, self.files, self.endings)

    def _about(self, error: InputError, split: str) -> InputError:
        return error.inside(path=self.files[split], line=error.line)


class HubTask(ReadTask):
    """A task in a data set of the hub or in a local folder with plain texts.

    A subclass finds its ``_columns``. ``_data`` has the rows of each split.

    Args:
        name: ``NAME[:CONFIG]`` of the hub, or a local folder, with options after it (``?normalise=NFC``).

    Raises:
        InputError: An option is wrong, or the data set cannot be loaded, lacks columns, or has no usable item.
    """

    known_options: ClassVar[tuple[str, ...]] = (NORMALISE, CJK)
    other_splits: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Our split for each unusual name in a data set (see ``by_split``)."""
    _columns: dict[str, str]
    """The column of each part of an item that the data set has."""

    def __init__(self, name: str) -> None:
        name, self.options = name_and_options(name, self.known_options, f"{self.scheme}:hf")
        self.name = f"{self.scheme}:hf:{name}"
        self.normalise, self.cjk = self.options.get(NORMALISE), self.options.get(CJK)
        self._data: dict[str, Any] = by_split(load_data(name), f"hf:{name}", self.other_splits)
        self.splits = tuple(self._data)
        self._features: Mapping[str, Any] = next(iter(self._data.values())).features

    def _find_columns(
        self, names: Mapping[str, Sequence[str]], needed: Mapping[str, str], numbers: Container[str]
    ) -> dict[str, str]:
        """Return the column of each part of an item that the data set has, in the order of ``names``.

        Args:
            names: The usual names of the column of each part.
            needed: The parts that must have a column, with their descriptions for the error.
            numbers: Parts whose column may hold integers. All others are texts.

        Raises:
            InputError: A required column is missing or has another type. The error lists the columns.
        """
        places = {column.strip().lower(): column for column in reversed(list(self._features))}
        found = {}
        for part, usual in names.items():
            kinds = (*STRINGS, "int", "uint") if part in numbers else STRINGS
            known = (places.get(n, "") for n in (*usual, *(("idx",) if part == "id" else ())))
            column = next((c for c in known if (dtype_of(self._features.get(c)) or "").startswith(kinds)), None)
            if column is not None:
                found[part] = column
            elif part in needed:
                wanted = f"a column for the {needed[part]} ({' or '.join(usual)})"
                raise no_columns(self.name, wanted, self._features)
        return found

    def size(self, split: str) -> int | None:
        return len(self._data[split]) if split in self._data else None

    @contextmanager
    def _placed(self, split: str) -> Iterator[None]:
        """Add the data set and the split to an error of the block."""
        try:
            yield
        except InputError as error:
            raise error.inside(split, path=self.name) from error

    def _parts(self, split: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each row of a split, from 0, and the values of the row by the part of an item."""
        with self._placed(split):
            for number, values in enumerate(rows_of(self._data[split], list(self._columns.values()))):
                yield number, dict(zip(self._columns, values, strict=True))

    def _digests(self) -> dict[str, str]:
        """Return the hash of the values that are read of each split (see ``digest_values``)."""
        found = {}
        for split, data in self._data.items():
            with self._placed(split):
                found[split] = digest_values(data, list(self._columns.values()))
        return found


def opener(
    files: Callable[[str], TaskSet], hub: Callable[[str], TaskSet], grammar: Callable[[MiniEnglish], TaskSet]
) -> Callable[[str, str], TaskSet]:
    """Return the function that opens a task, given its scheme and the text after the colon of its spec.

    Args:
        files: Opens files, given a path with options.
        hub: Opens a data set, given the text after ``hf:``.
        grammar: Opens the built-in grammar.
    """

    def opened(_: str, rest: str) -> TaskSet:
        if rest.startswith("builtin:"):
            return grammar(built_in(rest))
        return hub(rest.removeprefix("hf:")) if rest.startswith("hf:") else files(rest)

    return opened


def built_in(spec: str) -> MiniEnglish:
    """Open the built-in grammar ``builtin:mini-english?…`` for a task.

    Raises:
        InputError: The spec names another grammar, or an option is wrong or is ``limit``.
    """
    if without_limit(spec)[1] is not None:
        hint = "set the numbers of items of the splits with sentences, dev and test"
        raise InputError("cannot be set for a task of the grammar", spec, keys=LIMIT, hint=hint, code="unsupported")
    source = open_source(spec)
    assert isinstance(source, MiniEnglish), "mini-english is the only built-in source"
    return source


class MiniEnglishTask(GroupTask):
    """A task of the built-in grammar, with as many items as the source has sentences. Empty splits are left out."""

    licence = MiniEnglish.licence
    version: ClassVar[tuple[str, int]]
    """The kind of items and the version of their code, for the fingerprint."""

    def __init__(self, source: MiniEnglish) -> None:
        self.source = source
        self.splits = tuple(split for split in source.splits if source.size(split))
        tags = () if self.tags is None or self.tags in source.columns else (self.tags,)
        self.columns = (*source.columns, *tags)

    def with_morphology(self, names: Sequence[str]) -> MiniEnglishTask:
        return type(self)(self.source.with_morphology(names))

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the grammar, its settings and the version of the task."""
        kind, version = self.version
        return fingerprint(kind, version=version, source=self.source.fingerprint)

    def size(self, split: str) -> int:
        return self.source.size(split)
