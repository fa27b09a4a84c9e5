"""Base classes of tasks that label the words of a text, and the encoding of labelled words as rows.

text     the cats .               words      the   cats   .
tokens   <s> Ġthe Ġcat s Ġ. </s>  columns    1 1   2 3    4 4
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.data.packing import ranges
from pretrain.model.text import Packed, Text
from probes.models.pretrained import Reader
from probes.transfer.tasks.base import NO_LABEL, Batch, Examples, Head, Labels, Task, classes_of, other_task
from probes.transfer.tasks.heads import TagHead
from probes.transfer.tasks.metrics import OUTSIDE
from synthlang.corpus import Column, Corpus
from synthlang.sources.base import require_columns
from synthlang.tasks import TaskSet, is_task, open_task
from synthlang.tasks.batch import TaskBatch
from synthlang.transforms.mark import INSERTED_TAG, edit
from synthlang.vocabulary import starts_word

Rows = NDArray[np.int64]

ROUND_WIDTH = 8  # rows are padded to a multiple of this, so that few shapes occur
CUT = "words beyond the length"
TOKENLESS = "words without a token"
UNLABELLED = "words without a gold label"
UNSEEN = "words with a label that training does not have"


@dataclass(frozen=True)
class LabelledWords:
    """The words with a gold label in a set of items, and the rows that contain them.

    Attributes:
        reader: The reader that encoded the words.
        ids: [tokens + 1] the tokens of all rows with their ``<s>`` and ``</s>``, and one padding token.
        bounds: [rows + 1] the first token of each row.
        corpus: The sentences with only these words. Heads and tags are renumbered accordingly.
        index: [words] the index of each word in ``corpus``.
        offsets: [items + 1] the first word of each item.
        starts: [words of corpus] for each word, the position in its text of the first word of its sentence, from 0.
        columns: [words, 2] the first and the last column of the subwords of each word.
        read: [words] True if the word has subwords, and all its subwords are in the row.
        counts: Number of words that were not read or have no label, by reason.
    """

    reader: Reader
    ids: Rows
    bounds: Rows
    corpus: Corpus
    index: Rows
    offsets: Rows
    starts: Rows
    columns: Rows
    read: NDArray[np.bool_]
    counts: Mapping[str, int]

    def text(self, rows: Rows) -> Text:
        """Return the rows at the indices ``rows`` [n] as input of a model, padded to a multiple of ROUND_WIDTH."""
        at = padded_places(self.bounds, rows, ROUND_WIDTH)
        return Text.of(torch.from_numpy(self.ids[at]), self.reader.number, torch.from_numpy(at >= 0)).without_padding()

    def column(self, name: str) -> Column:
        """Return the values [words] of the column ``name`` for the labelled words."""
        return self.corpus.columns[name].take(self.index)

    @cached_property
    def read_offsets(self) -> Rows:
        """The first read word of each item among all read words, [items + 1]."""
        return np.concatenate([[0], np.cumsum(self.read)]).astype(np.int64)[self.offsets]

    def lists(self, values: list[Any]) -> list[list[Any]]:
        """Divide the values of all words into a list for each item."""
        return [values[start:stop] for start, stop in pairwise(self.offsets.tolist())]


def words_of(batch: TaskBatch, reader: Reader, length: int, has_gold: NDArray[np.bool_]) -> LabelledWords:
    """Return the words of a batch with a gold label, encoded by ``reader`` in rows of at most ``length`` tokens.

    ``has_gold`` [words] is the mask of words with a label. If the words of the language are tokens, the first token of
    a source word has the label, and its other tokens are ignored.

    Raises:
        InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
    """
    encoded, corpus, texts = reader.encode(batch.corpus), batch.corpus, batch.texts[:, 0]
    text_starts = encoded.word_offsets[batch.word_offsets]  # [texts + 1] in tokens
    kept = np.minimum(np.diff(text_starts), length - 2)  # [texts] tokens of each in its row
    ids, bounds = _with_specials(encoded.ids, text_starts, kept, texts, reader)
    first = np.ones(len(has_gold), bool)
    if reader.language.on_tokens:
        first = starts_word(corpus.form, reader.language.script)
    real = has_gold & first
    if not real.all():  # a rewrite keeps labels consistent: heads are renumbered, and mentions start with B
        corpus = edit(corpus, corpus.form, real, []).apply(corpus)
    first_sentence = np.searchsorted(batch.text_of_sentence, np.arange(len(batch.field_of_text) + 1))
    borders = corpus.offsets[first_sentence]  # [texts + 1] in words of the corpus
    index, _ = ranges(borders[texts], borders[texts + 1])
    offsets = np.concatenate([[0], np.cumsum(np.diff(borders)[texts])]).astype(np.int64)
    starts = (corpus.offsets[:-1] - borders[:-1][batch.text_of_sentence])[corpus.sentence_of_word]
    own = np.flatnonzero(real)[index]  # [words] the index of each word in the batch
    text = np.repeat(np.arange(len(kept)), np.diff(batch.word_offsets))[own]
    pieces = np.diff(encoded.word_offsets)[own]
    column = 1 + encoded.word_offsets[own] - text_starts[text]
    columns = np.stack([column, column + pieces - 1], axis=1)
    tokenless = pieces == 0
    read = ~tokenless & (columns[:, 1] <= kept[text])
    counts = {CUT: int((~read & ~tokenless).sum()), TOKENLESS: int(tokenless.sum())}
    counts[UNLABELLED] = int((first & ~has_gold).sum())
    return LabelledWords(reader, ids, bounds, corpus, index, offsets, starts, columns, read, counts)


def _with_specials(tokens: Rows, text_starts: Rows, kept: Rows, texts: Rows, reader: Reader) -> tuple[Rows, Rows]:
    """Return rows with the text of each item between ``<s>`` and ``</s>``, and the bounds of the rows."""
    index, _ = ranges(text_starts[texts], text_starts[texts] + kept[texts])
    bounds = np.concatenate([[0], np.cumsum(kept[texts] + 2)]).astype(np.int64)
    ids = np.empty(int(bounds[-1]) + 1, np.int64)
    is_token = np.ones(len(ids), bool)
    for at, special in ((bounds[:-1], reader.specials.bos), (bounds[1:] - 1, reader.specials.eos)):
        ids[at], is_token[at] = special, False
    ids[-1], is_token[-1] = reader.specials.pad, False
    ids[is_token] = tokens[index]
    return ids, bounds


def padded_places(bounds: Rows, rows: Rows, multiple: int = 1) -> Rows:
    """Return the indices [n, width] that lay out concatenated lists as n padded rows, with −1 for padding.

    The index −1 selects the last value, so a padding value can be appended to the values. The width is the length of
    the longest list, but at least 1, rounded up to a multiple.

    Args:
        bounds: [lists + 1] the first index of each list, and the end of the last list.
        rows: [n] the lists to lay out.
        multiple: The number of which the width is a multiple.

    >>> padded_places(np.array([0, 1, 4]), np.array([1, 0]))
    array([[ 1,  2,  3],
           [ 0, -1, -1]])
    """
    starts, stops = bounds[rows], bounds[rows + 1]
    width = -(-max(int((stops - starts).max(initial=0)), 1) // multiple) * multiple
    at = starts[:, None] + np.arange(width)
    return np.where(at < stops[:, None], at, -1)


@dataclass(frozen=True, kw_only=True)
class WordExamples(Examples):
    """Encoded items with labelled words, one row each.

    Attributes:
        words: The labelled words and their rows.
        targets: The targets of words by name, [words] each, with NO_LABEL for a word without a target.
        item_targets: The targets of items by name, [items] each.
    """

    words: LabelledWords
    targets: Mapping[str, Rows]
    item_targets: Mapping[str, Rows] = field(default_factory=dict)

    @property
    def lengths(self) -> Rows:
        """The length [rows] of each row in tokens, including special tokens."""
        return np.diff(self.words.bounds)

    @cached_property
    def _read(self) -> tuple[Rows, dict[str, Rows]]:
        """Columns and targets of the words that were read, each followed by a padding value."""
        read = self.words.read
        targets = {name: np.append(values[read], NO_LABEL) for name, values in self.targets.items()}
        return np.append(self.words.columns[read], [[0, 0]], axis=0), targets

    def batch(self, rows: Rows) -> Batch:
        """Return the rows at the indices ``rows`` [n], with the columns and targets of the words that were read."""
        at = padded_places(self.words.read_offsets, rows)
        columns, of_words = self._read
        targets = {name: values[at] for name, values in of_words.items()}
        targets |= {name: values[rows] for name, values in self.item_targets.items()}
        mask = torch.from_numpy(at >= 0)
        return Batch(
            text=self.words.text(rows),
            words=torch.from_numpy(columns[at]),
            mask=mask,
            targets={name: torch.from_numpy(values) for name, values in targets.items()},
            role=self.words.reader.role,
            rows=rows,
            packed=Packed.of(mask),
        )


class WordTask(Task):
    """The base class of tasks that label words.

    Attributes:
        requires: The columns that the items must have.
    """

    requires: ClassVar[tuple[str, ...]]

    def open(self, spec: str) -> TaskSet:
        """Open a task set, or any source that has the required columns.

        Raises:
            InputError: The items belong to another task, cannot be opened, or lack a column.
        """
        scheme = spec.partition(":")[0]
        if is_task(spec) and scheme not in (self.name, "slots"):  # slots: is a source too
            raise other_task(spec, self.name)
        task = open_task(spec if scheme == self.name and ":" in spec else f"{self.name}:{spec}")
        require_columns(task.as_source(), self.requires, task.name, f"the task {self.name}")
        return task

    def words(self, batch: TaskBatch, readers: Sequence[Reader]) -> LabelledWords:
        """Return the words with a gold label, encoded by the only reader (see `words_of`).

        Raises:
            InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
        """
        return words_of(batch, readers[0], self.length, self.has_gold(batch.corpus))

    @abstractmethod
    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """Return the mask [words] of words with a gold label. Inserted words have none."""


def is_named(column: Column) -> NDArray[np.bool_]:
    """Return the mask [words] of labels other than ``_``, the sign for no label."""
    return np.asarray([name != INSERTED_TAG for name in column.names or ()], bool)[column.codes]


def not_inserted(corpus: Corpus) -> NDArray[np.bool_]:
    """Return the mask [words] of words that no transform inserted.

    An inserted word has no head, and ``_`` as its UPOS tag and relation. Its BIO tag is ``O``, as for other words.
    """
    inserted = np.ones(len(corpus.form.codes), bool)
    for name in ("upos", "deprel"):
        inserted &= ~is_named(corpus.columns[name]) if name in corpus.columns else False
    if "head" in corpus.columns:
        inserted &= corpus.columns["head"].codes < 0
    return ~inserted


def names_in(column: Column, among: NDArray[np.bool_]) -> list[str]:
    """Return the distinct names that a column has at the words of the mask ``among`` [words], sorted."""
    return sorted({(column.names or ())[code] for code in np.unique(column.codes[among]).tolist()})


@dataclass(frozen=True, kw_only=True)
class TagExamples(WordExamples):
    """Encoded items with a tag for each word.

    Attributes:
        tags: The tags that can be predicted. Targets and outputs are indices of them.
        unread: The prediction for a word that was not read.
    """

    tags: tuple[str, ...]
    unread: str

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the tags of the words of each item, from the ``outputs`` of all rows (see `tags_of`)."""
        return self.tags_of(outputs)

    def tags_of(self, outputs: Iterable[Iterable[int]]) -> list[list[str]]:
        """Return the tags of the words of each item.

        ``outputs`` has the classes of the words that were read, by row. The other words get ``unread``.
        """
        classes = np.full(len(self.words.read), len(self.tags), np.int64)
        classes[self.words.read] = np.fromiter(chain.from_iterable(outputs), np.int64)
        names = (*self.tags, self.unread)
        return self.words.lists([names[code] for code in classes.tolist()])


class TagTask(WordTask):
    """The base class of tasks with a tag for each word, in the first column of ``requires``.

    Attributes:
        unread: The prediction for a word that was not read.
    """

    predicts_labels = True
    unread: ClassVar[str]

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """Encode a tag for each word. A tag outside ``labels`` is counted and is not a target.

        Raises:
            InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
        """
        words = self.words(batch, readers)
        column = words.column(self.requires[0])
        classes, unseen = classes_of(column, labels["tags"])
        return TagExamples(
            batch.ids,
            words.lists(column.values()),
            {**words.counts, UNSEEN: unseen},
            words=words,
            targets={"tags": classes},
            tags=labels["tags"],
            unread=self.unread,
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """Return a tagger for states of width ``hidden``."""
        return TagHead(hidden=hidden, classes=len(labels["tags"]), config=self.config.head)


def span_tags(column: Column, among: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the sorted tags of the words in the mask ``among`` [words]: O, and B and I of each type of span."""
    kinds = {name[2:] for name in names_in(column, among) if name != OUTSIDE}
    return tuple(sorted({OUTSIDE, *(f"{letter}-{kind}" for kind in kinds for letter in "BI")}))
