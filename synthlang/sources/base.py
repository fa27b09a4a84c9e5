"""What every source of sentences offers, and how it is named on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.overlap import count_words

BATCH_SENTENCES = 2000  # a constant: batch borders are part of "same spec, same bytes"
# how a source comes by a column that it lacks
PARSED = ". A parser gives trees: synthlang parse SOURCE --out DIR, then conllu:DIR; or derive with --parser spacy:NAME"
HINTS = {"upos": PARSED, "head": PARSED, "deprel": PARSED, "feats": ". A treebank's are read with conllu:PATH?feats"}
T = TypeVar("T")


class Source(Protocol):
    """Sentences in named splits, streamed as batches of at most BATCH_SENTENCES sentences.

    The columns are the same in every batch of a source; sentence ids count from 0 in each split.

    A source may have more: ``size(split)``, about how many sentences the split has, told without
    reading it (None: not known); ``remarks(split)``; ``licence``, the SPDX id of its sentences; ``language_codes``.
    """

    @property
    def fingerprint(self) -> str:
        """Of everything that affects the sentences, and nothing else."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """Names among ``train``, ``dev``, ``test``."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the word columns, ``form`` first."""
        ...

    def batches(self, split: str) -> Iterator[Corpus]:
        """The sentences of a split in order."""
        ...


class Labelled(NamedTuple):
    """A batch of sentences that are labelled as a whole.

    labels   the label of each sentence; none at all if the source has no such labels
    counts   reason → how often, what was left out or mended
    ids      the names of the sentences, None if they are just numbers
    """

    corpus: Corpus
    labels: list[str]
    counts: dict[str, int]
    ids: list[str] | None = None


def in_batches(rows: Iterable[T]) -> Iterator[tuple[int, list[T]]]:
    """(number of the first one, rows) of BATCH_SENTENCES rows at a time, the last ones fewer."""
    rest, first = iter(rows), 0
    while chunk := list(islice(rest, BATCH_SENTENCES)):
        yield first, chunk
        first += len(chunk)


def annotated_batches(sentences: Iterable[Mapping[str, Sequence[Any]]]) -> Iterator[Corpus]:
    """Sentences as {column: values} as batches."""
    return (Corpus.of(rows, first) for first, rows in in_batches(sentences))


def size_of(source: object, split: str) -> int | None:
    """About how many sentences a split of a source, or items of a task, there are; None if it cannot tell.

    Cheap enough to ask at each batch; the answer may become better while the split is read.
    """
    size = getattr(source, "size", None)
    return None if size is None else size(split)


def remarks_of(source: object, split: str) -> Mapping[str, int]:
    """What was mended in the sentences of a split that were read so far, or may be wrong with them, by reason."""
    remarks = getattr(source, "remarks", None)
    return {} if remarks is None else remarks(split)


def check_split(source: Source, split: str, name: str) -> None:
    """Raise InputError if the source ``name`` has no such split."""
    if split not in source.splits:
        hint = f" (?split={split} reads the file as that)" if getattr(source, "is_one_file", False) else ""
        raise InputError(f"{name} has no split {split!r}; it has {', '.join(source.splits)}{hint}")


def require_columns(source: Source, names: Sequence[str], name: str, purpose: str) -> None:
    """Raise InputError if a column needed for ``purpose`` is missing."""
    missing = [n for n in names if n not in source.columns]
    if missing:
        has = ", ".join(source.columns)
        raise InputError(f"{purpose} needs the column {missing[0]!r}; {name} has {has}{HINTS.get(missing[0], '')}")


def listed(counts: Mapping[str, int]) -> str:
    """The reasons on one line, empty if nothing was counted.

    >>> listed({"too long": 2, "no word": 1, "never": 0})
    'too long: 2; no word: 1'
    """
    return "; ".join(f"{reason}: {count}" for reason, count in counts.items() if count)


def because(counts: Mapping[str, int]) -> str:
    """The reasons in brackets, to stand after a message."""
    return f" ({reasons})" if (reasons := listed(counts)) else ""


def counted_split(source: Source, split: str | None = None) -> str:
    """The split whose words are counted: the one that was asked for, else the training split, else InputError.

    What a language or a vocabulary is made of must not come from a test set unless somebody says so.
    """
    if split is None and "train" not in source.splits:
        has = ", ".join(source.splits)
        raise InputError(
            f"words are counted in the training split, and the source has only {has}: derive takes --counts "
            f"{source.splits[0]} or another source; elsewhere FOLDER?train=FILE or FILE?split=train says what to count"
        )
    if split is not None:
        check_split(source, split, "the source")
    return split or "train"


def word_counts(source: Source, split: str | None = None) -> Counter[str]:
    """Occurrences of each form in a split: see ``counted_split``."""
    counts: Counter[str] = Counter()
    for batch in source.batches(counted_split(source, split)):
        count_words(counts, batch)
    return counts
