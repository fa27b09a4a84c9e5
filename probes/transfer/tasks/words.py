"""What the tasks share that label the words of a text: which words have a label, and their rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.data.packing import ranges
from probes.transfer.batch import NO_LABEL, Batch, Examples, Reader
from probes.transfer.rows import TokenRows, places, token_rows
from probes.transfer.tasks.base import Task
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.sources.base import require_columns
from synthlang.subwords import starts_word
from synthlang.tasks import TaskSet, is_task, open_task
from synthlang.tasks.batch import TaskBatch
from synthlang.transforms.edits import edit
from synthlang.transforms.mark import INSERTED_TAG

Rows = NDArray[np.int64]

CUT = "words beyond the length"
TOKENLESS = "words without a token"
UNLABELLED = "words without a gold label"
UNSEEN = "words with a label that training does not have"


@dataclass(frozen=True)
class Words:
    """The words of items that have a gold label, those of an item next to each other.

    corpus    these words only; heads and tags are those of sentences without the other words
    index     [words] where each stands in ``corpus``
    offsets   [items + 1]
    starts    [words of corpus] 0-based place of the first word of each one's sentence in its text
    columns   [words, 2] first and last column of its subwords
    read      [words] whether all of its subwords are in the row, and there is one
    """

    tokens: TokenRows
    corpus: Corpus
    index: Rows
    offsets: Rows
    starts: Rows
    columns: Rows
    read: NDArray[np.bool_]
    counts: Mapping[str, int]

    def column(self, name: str) -> Column:
        """The values of a column for these words."""
        return self.corpus.columns[name].take(self.index)

    @cached_property
    def read_offsets(self) -> Rows:
        """[items + 1] the same for the words that are read."""
        return np.concatenate([[0], np.cumsum(self.read)]).astype(np.int64)[self.offsets]

    def lists(self, values: list[Any]) -> list[list[Any]]:
        """[items] the values of each item's words."""
        return [values[start:stop] for start, stop in pairwise(self.offsets.tolist())]


def words_of(batch: TaskBatch, reader: Reader, length: int, has_gold: NDArray[np.bool_]) -> Words:
    """The words of a batch with a gold label and where they stand in rows; ``has_gold`` [words] tells of each.

    Where the words of a language are tokens, the label of a word stands on the first of them; the others are no words.
    """
    tokens, corpus, real = token_rows(batch, reader, length), batch.corpus, has_gold
    if reader.language.on_tokens:
        first = starts_word(corpus.form, reader.language.script)
        real, without = has_gold & first, int((first & ~has_gold).sum())
    else:
        without = int((~has_gold).sum())
    if not real.all():  # labels follow as in any rewrite: heads count the words that are left, mentions start with B
        corpus = edit(corpus, corpus.form, real, []).apply(corpus)
    first_sentence = np.searchsorted(batch.text_of_sentence, np.arange(len(batch.field_of_text) + 1))
    bounds, text = corpus.offsets[first_sentence], batch.texts[:, 0]
    index, _ = ranges(bounds[text], bounds[text + 1])
    offsets = np.concatenate([[0], np.cumsum(np.diff(bounds)[text])]).astype(np.int64)
    starts = (corpus.offsets[:-1] - bounds[:-1][batch.text_of_sentence])[corpus.sentence_of_word]
    own = np.flatnonzero(real)[index]
    read, tokenless = tokens.whole[own], tokens.pieces[own] == 0
    counts = {CUT: int((~read & ~tokenless).sum()), TOKENLESS: int(tokenless.sum()), UNLABELLED: without}
    left = {reason: n for reason, n in counts.items() if n}
    return Words(tokens, corpus, index, offsets, starts, tokens.columns[own], read, left)


@dataclass(frozen=True, kw_only=True)
class WordExamples(Examples):
    """Items whose words are labelled, a row an item.

    targets        name → [words] what is to be learned of each, NO_LABEL for nothing
    item_targets   name → [items]
    """

    words: Words
    targets: Mapping[str, Rows]
    item_targets: Mapping[str, Rows] = field(default_factory=dict)

    @property
    def lengths(self) -> Rows:
        """[rows] tokens, those around the text included."""
        return np.diff(self.words.tokens.bounds)

    @cached_property
    def _read(self) -> tuple[Rows, dict[str, Rows]]:
        """Columns and targets of the words that are read, each with one more that fills up rows."""
        read = self.words.read
        targets = {name: np.append(values[read], NO_LABEL) for name, values in self.targets.items()}
        return np.append(self.words.columns[read], [[0, 0]], axis=0), targets

    def batch(self, rows: Rows) -> Batch:
        """The rows with these numbers; only words that are read are there."""
        at = places(self.words.read_offsets, rows)
        columns, of_words = self._read
        targets = {name: values[at] for name, values in of_words.items()}
        targets |= {name: values[rows] for name, values in self.item_targets.items()}
        return Batch(
            text=self.words.tokens.text(rows),
            words=torch.from_numpy(columns[at]),
            mask=torch.from_numpy(at >= 0),
            targets={name: torch.from_numpy(values) for name, values in targets.items()},
            role=self.words.tokens.reader.role,
            rows=rows,
        )


class WordTask(Task):
    """A task whose labels stand on words. ``requires`` are the columns that its items must have."""

    requires: ClassVar[tuple[str, ...]]

    def open(self, spec: str) -> TaskSet:
        """A task set, or any source with the columns that the task needs."""
        scheme = spec.partition(":")[0]
        if is_task(spec) and scheme not in (self.name, "slots"):  # slots: is a source too
            raise InputError(f"{spec!r} names items of the task {scheme}; this is the task {self.name}")
        task = open_task(spec if scheme == self.name and ":" in spec else f"{self.name}:{spec}")
        require_columns(task.as_source(), self.requires, task.name, f"the task {self.name}")
        return task

    def words(self, batch: TaskBatch, readers: Sequence[Reader]) -> Words:
        """The words of the items that have a gold label."""
        return words_of(batch, readers[0], self.config.length, self.has_gold(batch.corpus))

    @abstractmethod
    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """[words] which have a gold label: one that a transform inserted has none."""


def is_named(column: Column) -> NDArray[np.bool_]:
    """[words] whether a label is one: ``_`` stands for none, in CoNLL-U and on words that were inserted."""
    return np.asarray([name != INSERTED_TAG for name in column.names or ()], bool)[column.codes]


def not_inserted(corpus: Corpus) -> NDArray[np.bool_]:
    """[words] whether a word was there before any transform, for labels that do not tell (an inserted word is ``O``).

    Transforms that insert read UPOS and relations, so these tell: ``_``, without a head.
    """
    inserted = np.ones(len(corpus.form.codes), bool)
    for name in ("upos", "deprel"):
        inserted &= ~is_named(corpus.columns[name]) if name in corpus.columns else False
    if "head" in corpus.columns:
        inserted &= corpus.columns["head"].codes < 0
    return ~inserted


def names_in(column: Column, among: NDArray[np.bool_]) -> list[str]:
    """The names that occur ``among`` [words], sorted."""
    return sorted({(column.names or ())[code] for code in np.unique(column.codes[among]).tolist()})


def classes_of(column: Column, names: Sequence[str]) -> tuple[Rows, int]:
    """[words] the place of each label among ``names``, NO_LABEL if it is none of them, and how many are not."""
    index = {name: i for i, name in enumerate(names)}
    table = np.asarray([index.get(name, NO_LABEL) for name in column.names or ()], np.int64)
    classes = table[column.codes]
    return classes, int((classes == NO_LABEL).sum())


def with_unseen(counts: Mapping[str, int], unseen: int, reason: str = UNSEEN) -> dict[str, int]:
    """The counts and one more, if it is not 0."""
    return {**counts, **({reason: unseen} if unseen else {})}
