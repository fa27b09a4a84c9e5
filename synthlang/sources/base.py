"""The interface of a source of sentences, and the checks and counts that all sources share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeVar

from synthlang.corpus import Corpus, count_words
from synthlang.errors import InputError
from synthlang.sources.splits import NAMES
from synthlang.sources.words import COMPLETE, WITHHELD
from synthlang.wording import enumerated

BATCH_SENTENCES = 2000  # a constant, because the borders of batches affect the bytes
PARSED = (
    "parse a text (synthlang parse SOURCE --out DIR) and use conllu:DIR; "
    "synthlang derive also has the option --parser spacy:NAME"
)
TAGGED = (
    "use iob:PATH, with a word and its tag on each line, or conllu:PATH if each word has a tag such as NER=B-PER in "
    "the last column"
)
SLOTS = "use slots:PATH, or conllu:PATH if each word has a tag such as Slot=B-time in the last column"
TRAINING = "name a source with a training split, such as FOLDER?train=FILE or FILE?split=train"
"""Hint of errors about a source without a training split."""
MORPHOLOGY = ("feats", "lemma")
"""Columns of features and lemmas, which a source reads only if an option or a language names them."""
MORPHOLOGICAL = (
    "use a treebank (conllu:PATH) with features and lemmas, or parse a text with a lemmatizer "
    "(synthlang parse SOURCE --morphology --out DIR) and use conllu:DIR; synthlang derive also has the option --parser"
)
HINTS = {
    **dict.fromkeys(("upos", "head", "deprel"), PARSED),
    **dict.fromkeys(MORPHOLOGY, MORPHOLOGICAL),
    "ner": TAGGED,
    "slot": SLOTS,
}
"""Hint of the error for a missing column, by column."""
T = TypeVar("T")


class Source(Protocol):
    """Sentences in named splits, streamed as batches of at most BATCH_SENTENCES sentences.

    All batches of a source have the same columns. Sentence ids count from 0 in each split. In ``lines:``, an id is the
    number of the line.

    A source may also have the methods ``size(split)`` (see ``size_of``) and ``remarks(split)`` (see ``remarks_of``),
    and the attributes ``licence`` (an SPDX id) and ``language_codes`` (codes of its languages for a data set card,
    such as ``en``). A source that can add columns of MORPHOLOGY on request has the method
    ``with_morphology(names)`` (see ``with_columns``).
    """

    @property
    def fingerprint(self) -> str:
        """Fingerprint of everything that affects the sentences, and of nothing else."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, among ``train``, ``dev`` and ``test``."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the word columns, ``form`` first."""
        ...

    def batches(self, split: str) -> Iterator[Corpus]:
        """Yield the sentences of a split in order.

        Raises:
            InputError: The source lacks the split, or a line or row of the split is malformed or cannot be read.
        """
        ...


class Labelled(NamedTuple):
    """A batch of sentences with a label of each whole sentence, if the source has such labels.

    Attributes:
        corpus: The sentences.
        labels: The label of each sentence. The list is empty if the source has no such labels.
        counts: Number of omissions and changes in this batch by reason.
        ids: The name of each sentence, or None if the source has no names of sentences.
    """

    corpus: Corpus
    labels: list[str]
    counts: dict[str, int]
    ids: list[str] | None = None


def in_batches(rows: Iterable[T]) -> Iterator[tuple[int, list[T]]]:
    """Yield (index of the first row, rows) for up to BATCH_SENTENCES rows at a time. Indices count from 0."""
    rest, first = iter(rows), 0
    while chunk := list(islice(rest, BATCH_SENTENCES)):
        yield first, chunk
        first += len(chunk)


def annotated_batches(sentences: Iterable[Mapping[str, Sequence[Any]]]) -> Iterator[Corpus]:
    """Yield sentences, given as {column: values}, as batches of up to BATCH_SENTENCES sentences with ids from 0."""
    return (Corpus.of(rows, first) for first, rows in in_batches(sentences))


def size_of(source: object, split: str) -> int | None:
    """Return the approximate number of sentences or items in a split, or None if it is unknown.

    The call is cheap. For an estimate it reads only the start of a file (see ``blocks_in``). The estimate may improve
    while the split is read.

    Raises:
        InputError: The built-in grammar lacks the split.
    """
    size = getattr(source, "size", None)
    return None if size is None else size(split)


def remarks_of(source: object, split: str) -> Mapping[str, int]:
    """Return counts of changes, omissions and suspicious words by reason, in the part of a split that has been read.

    The counts of a source without the method ``remarks`` are empty.
    """
    remarks = getattr(source, "remarks", None)
    return {} if remarks is None else remarks(split)


def check_split(source: Source, split: str, name: str, hint: str = "") -> None:
    """Check that a source has a split.

    Args:
        source: Source of sentences.
        split: Name of the split.
        name: The source as the user wrote it, for the error.
        hint: Hint of the error for a source of several files (default: to name another split).

    Raises:
        InputError: The source lacks the split.
    """
    if split not in source.splits:
        if getattr(source, "is_one_file", False) and split in NAMES:
            hint = f"read the file as this split: PATH?split={split}"
        else:
            hint = hint or ("use this split" if len(source.splits) == 1 else "use one of these splits")
        reason = f"the source has no split {split!r}, only {enumerated(source.splits)}"
        raise InputError(reason, name, hint=hint, code="missing")


class HasColumns(Protocol):
    """Interface of sources and of tasks of labelled items: the names of their word columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the word columns."""
        ...


S = TypeVar("S", bound=HasColumns)


def with_columns(source: S, names: Sequence[str]) -> S:
    """Return the source or task with the columns of MORPHOLOGY that ``names`` contains, if it can add them.

    The other columns, the sentences and the items are the same. A source without ``with_morphology`` is returned
    unchanged.

    Raises:
        InputError: A file of the source cannot be read, or one of its first sentences is malformed.
    """
    more = [name for name in MORPHOLOGY if name in names and name not in source.columns]
    add: Callable[[list[str]], S] | None = getattr(source, "with_morphology", None)
    return source if add is None or not more else add(more)


def lacks_morphology(source: HasColumns, names: Sequence[str]) -> bool:
    """Return True if ``names`` has a column of MORPHOLOGY that the source or task lacks."""
    return any(name in MORPHOLOGY and name not in source.columns for name in names)


def require_columns(source: Source, names: Sequence[str], name: str, purpose: str, hint: str = "") -> None:
    """Check that a source has the columns that ``purpose`` needs.

    Args:
        source: Source of sentences.
        names: Names of the columns that are needed.
        name: The source as the user wrote it, for the error.
        purpose: Subject of the error, such as "the task".
        hint: Hint of the error (default: an explanation of how to get the column).

    Raises:
        InputError: The source lacks a column.
    """
    missing = [n for n in names if n not in source.columns]
    if missing:
        has = ", ".join(source.columns)
        reason = f"{purpose} needs the column {missing[0]!r}, but the source has only {has}"
        hint = hint or HINTS.get(missing[0], "use a source with this column")
        raise InputError(reason, name, hint=hint, code="missing")


def nothing_in(item: str, path: str | PathLike[str] | None, counts: Mapping[str, int] | None = None) -> InputError:
    """Return the error for a file or a data set without a single ``item``, such as "sentence".

    Args:
        item: Name of the missing items, in the singular.
        path: The file or data set, for the error.
        counts: Number of omitted items by reason. The message lists these numbers.
    """
    left_out = because(counts or {})
    item = f"usable {item}" if left_out else item
    hint = COMPLETE if (counts or {}).get(WITHHELD) else f"use data with at least one {item}"
    return InputError(f"has no {item}{left_out}", path, hint=hint, code="empty")


def listed(counts: Mapping[str, int]) -> str:
    """Return counts by reason as text on one line, without zeros.

    >>> listed({"too long": 2, "no word": 1, "never": 0})
    'too long: 2; no word: 1'
    """
    return "; ".join(f"{reason}: {count}" for reason, count in counts.items() if count)


def because(counts: Mapping[str, int]) -> str:
    """Return counts by reason in brackets for the end of a message, or "" if all are zero."""
    return f" ({reasons})" if (reasons := listed(counts)) else ""


def counted_split(source: Source, split: str | None = None, name: str = "the source") -> str:
    """Return the split whose words are counted: ``split`` if given, else the training split.

    ``name`` is the source as the user wrote it, for the error.

    A language or a vocabulary must not be built from a test set unless the user names that split.

    Raises:
        InputError: The source lacks the split.
    """
    if split is None and "train" not in source.splits:
        raise InputError(
            f"words are counted in the training split, but the source has only {enumerated(source.splits)}",
            name,
            hint=f"{TRAINING}; synthlang derive can count another split with --counts SPLIT",
            code="missing",
        )
    if split is not None:
        check_split(source, split, name)
    return split or "train"


def word_counts(source: Source, split: str | None = None, name: str = "the source") -> Counter[str]:
    """Return the number of occurrences of each form in the split that ``counted_split`` chooses.

    ``name`` is the source as the user wrote it, for the error.

    Raises:
        InputError: The source lacks the split, or the split cannot be read.
    """
    counts: Counter[str] = Counter()
    for batch in source.batches(counted_split(source, split, name)):
        count_words(counts, batch)
    return counts
