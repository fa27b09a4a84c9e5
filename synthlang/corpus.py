"""Corpus: sentences as columns.

A corpus is a batch of sentences. The words of all sentences are stored one after another, and ``offsets`` holds the
start of each sentence. A column gives one value for each word, either a number (``head``) or a code into a list of
names (``form``, ``upos``, …). Large data is a stream of such batches, so memory is bounded by the batch.

    words   the cat sat .  it ran .        offsets  [0, 4, 7]
    head    2 3 0 3        2 0 2           (1-based in the sentence, 0 = root, as CoNLL-U)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORM = "form"
LABEL_COLUMNS = ("upos", "deprel", "ner", "slot", "feats", "lemma")


@dataclass(frozen=True)
class Column:
    """Values of one column of a corpus, one for each word.

    Attributes:
        codes: Indices into ``names``, or the numbers themselves if ``names`` is None, [words] int32.
        names: Values of a column of strings, or None for a column of numbers. A name may be unused, and two names may
            be equal (see ``map_names``).
    """

    codes: NDArray[np.int32]
    names: tuple[str, ...] | None = None

    @staticmethod
    def of(values: Sequence[str]) -> Column:
        """Encode strings. ``names`` are in the order of their first occurrence.

        >>> Column.of(["a", "b", "a"])
        Column(codes=array([0, 1, 0], dtype=int32), names=('a', 'b'))
        """
        index: defaultdict[str, int] = defaultdict()
        index.default_factory = index.__len__  # a new value gets the next number without running Python code
        codes = np.fromiter(map(index.__getitem__, values), np.int32, len(values))
        return Column(codes, tuple(index))

    def values(self) -> list[Any]:
        """Return the values as a Python list, of strings if the column has names and of numbers otherwise."""
        if self.names is None:
            return list(self.codes.tolist())
        names = self.names
        return [names[code] for code in self.codes.tolist()]

    def take(self, index: NDArray[Any]) -> Column:
        """Return the values at ``index``, which holds indices of words [n] or flags [words]."""
        return replace(self, codes=self.codes[index])

    def lookup(self, of_name: Callable[[str], Any], dtype: type = bool) -> NDArray[Any]:
        """Apply ``of_name`` to the name of each word, and return the results, [words] of ``dtype``.

        The column must have names. The function is called once for each item of ``names``.
        """
        table: NDArray[Any] = np.asarray([of_name(name) for name in self.names or ()], dtype)
        return table[self.codes] if len(self.codes) else np.zeros(0, dtype)

    def map_used(self, change: Callable[[str], str]) -> Column:
        """Return the column with ``change`` applied to the names that occur, and without the other names.

        The column must have names.
        """
        used, codes = np.unique(self.codes, return_inverse=True)
        names = self.names or ()
        return Column(codes.astype(np.int32), tuple(change(names[code]) for code in used.tolist()))

    def map_names(self, names: Iterable[str]) -> Column:
        """Return the same codes under ``names``, one for each old name. New names may be equal to each other."""
        return replace(self, names=tuple(names))


@dataclass(frozen=True)
class Sentence:
    """One sentence as Python lists.

    Attributes:
        id: Index of the sentence in its split.
        columns: Name of a column → its values, one for each word. ``form`` is required.
    """

    id: int
    columns: Mapping[str, list[Any]]

    @property
    def words(self) -> list[str]:
        """The forms of the words of the sentence, in order."""
        return self.columns[FORM]

    @property
    def text(self) -> str:
        """The words of the sentence, separated by single spaces."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Corpus:
    """A batch of sentences in columns.

    Attributes:
        offsets: Start of each sentence, [sentences + 1] int64, offsets[0] = 0.
        columns: Columns of length offsets[-1] by name. ``form`` is required.
        ids: Index of each sentence in its split, [sentences] int64. It is the counter of every random decision
            about the sentence, so a batch may be cut anywhere.
    """

    offsets: NDArray[np.int64]
    columns: Mapping[str, Column]
    ids: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        words = int(self.offsets[-1])
        assert FORM in self.columns and self.columns[FORM].names is not None, "a corpus needs word forms"
        assert self.offsets[0] == 0 and bool(np.all(np.diff(self.offsets) >= 0)), "offsets must grow from 0"
        assert len(self.ids) == len(self), "one id for each sentence"
        assert all(len(c.codes) == words for c in self.columns.values()), "columns must have one value for each word"

    @staticmethod
    def of(sentences: Sequence[Mapping[str, Sequence[Any]]], first: int = 0) -> Corpus:
        """Build a corpus from sentences given as {column: values}, all with the same columns.

        ``form`` is required. A column of integers other than ``form`` and LABEL_COLUMNS becomes a column of numbers.
        ``first`` is the id of the first sentence.
        """
        lengths = [len(sentence[FORM]) for sentence in sentences]
        names = list(sentences[0]) if sentences else [FORM]
        columns = {}
        for name in names:
            values = list(chain.from_iterable(sentence[name] for sentence in sentences))
            numeric = name not in (FORM, *LABEL_COLUMNS) and all(isinstance(v, int) for v in values)
            columns[name] = Column(np.asarray(values, np.int32)) if numeric else Column.of(values)
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        return Corpus(offsets, columns, np.arange(first, first + len(lengths), dtype=np.int64))

    @staticmethod
    def of_words(sentences: Sequence[Sequence[str]], first: int = 0) -> Corpus:
        """Build a corpus from lists of words. ``first`` is the id of the first sentence."""
        return Corpus.of([{FORM: words} for words in sentences], first)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def form(self) -> Column:
        """The column with the form of each word of the batch."""
        return self.columns[FORM]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each sentence, [sentences]."""
        return np.diff(self.offsets)

    @property
    def sentence_of_word(self) -> NDArray[np.int64]:
        """Index in the batch of each word's sentence, [words]."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    @property
    def position(self) -> NDArray[np.int64]:
        """0-based position of each word in its sentence, [words]."""
        return np.arange(self.offsets[-1], dtype=np.int64) - self.offsets[:-1][self.sentence_of_word]

    def __getitem__(self, row: int) -> Sentence:
        start, end = int(self.offsets[row]), int(self.offsets[row + 1])
        part = slice(start, end)
        columns = {n: replace(c, codes=c.codes[part]).values() for n, c in self.columns.items()}
        return Sentence(int(self.ids[row]), columns)

    def __iter__(self) -> Iterator[Sentence]:
        return (self[row] for row in range(len(self)))

    def take(self, rows: NDArray[np.int64]) -> Corpus:
        """Return the sentences at ``rows`` [n], in that order. They keep their ids."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.arange(offsets[-1], dtype=np.int64) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        return Corpus(offsets, {n: c.take(words) for n, c in self.columns.items()}, self.ids[rows])

    def texts(self) -> list[str]:
        """Return each sentence as text: its words, separated by single spaces."""
        words = self.form.values()
        bounds = self.offsets.tolist()
        return [" ".join(words[a:b]) for a, b in pairwise(bounds)]

    def between(self, start: int, stop: int) -> Corpus:
        """Return the sentences of the slice ``start:stop``, without a copy of their codes. They keep their ids."""
        start, stop, _ = slice(start, stop).indices(len(self))
        first, last = int(self.offsets[start]), int(self.offsets[max(start, stop)])
        columns = {n: replace(c, codes=c.codes[first:last]) for n, c in self.columns.items()}
        return Corpus(self.offsets[start : max(start, stop) + 1] - first, columns, self.ids[start : max(start, stop)])


def concatenate(batches: Sequence[Corpus]) -> Corpus:
    """Join batches that have the same columns. The names of each column are merged.

    The result for no batches is a corpus without sentences, with the column ``form`` alone.
    """
    if not batches:
        return Corpus.of_words([])
    columns = {name: _join([b.columns[name] for b in batches]) for name in batches[0].columns}
    starts = np.cumsum([0] + [int(b.offsets[-1]) for b in batches])
    offsets = [b.offsets[:-1] + s for b, s in zip(batches, starts[:-1], strict=True)]
    ids = np.concatenate([b.ids for b in batches])
    return Corpus(np.concatenate([*offsets, starts[-1:]]).astype(np.int64), columns, ids)


def _join(columns: Sequence[Column]) -> Column:
    if columns[0].names is None:
        return Column(np.concatenate([c.codes for c in columns]))
    index: dict[str, int] = {}
    parts = []
    for column in columns:
        assert column.names is not None, "a column has names in every batch or in none"
        table = np.asarray([index.setdefault(n, len(index)) for n in column.names], np.int32)
        parts.append(table[column.codes] if len(column.codes) else column.codes)
    return Column(np.concatenate(parts), tuple(index))


def count_words(counts: Counter[str], corpus: Corpus) -> None:
    """Add the number of occurrences of each word form of a batch to ``counts``."""
    names = corpus.form.names or ()
    used = np.bincount(corpus.form.codes, minlength=len(names))
    for code in np.flatnonzero(used).tolist():
        counts[names[code]] += int(used[code])
