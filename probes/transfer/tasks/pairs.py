"""Tasks on two texts, which form one row of tokens as in RoBERTa and BERT.

    <s> a </s> </s> b </s>          RoBERTa (Liu et al. 2019, section 2.1)
    <s> a </s> b </s>               BERT (Devlin et al. 2019, section 3), token type 1 from ``b`` on

Two texts in different languages are in two blocks of columns, and each block has its own padding. Every column then
belongs to one language, as separate layers and embeddings require. Positions are numbered without a gap, so a row has
the same result in every batch.

    <s> a a </s> .  .  | </s> b b b </s> .          positions  0 1 2 3 - - | 4 5 6 7 8 -
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.data.packing import ranges
from pretrain.model.text import Text
from probes.models.pretrained import Reader, Role
from probes.transfer.tasks.base import Examples, Task, other_task
from synthlang.corpus import FORM, Column, Corpus
from synthlang.tasks import TaskSet, is_task, open_task
from synthlang.tasks.base import Kind
from synthlang.tasks.batch import TaskBatch

Ints = NDArray[np.int64]
MULTIPLE = 8  # widths of blocks are multiples of this, so that few shapes occur


@dataclass(frozen=True, eq=False)
class FieldTokens:
    """The tokens of all texts of one field, encoded for one language.

    Attributes:
        ids: [tokens] int32, the token ids of all texts.
        words: [words + 1] int32, the first token of each word of the field.
        texts: [texts + 1] the first word of each text of the batch. Texts of other fields are empty.
        form: [words] the words.
    """

    ids: NDArray[np.int32]
    words: NDArray[np.int32]
    texts: Ints
    form: Column

    @staticmethod
    def of(batch: TaskBatch, field: int, reader: Reader) -> FieldTokens:
        """Encode the texts of the field at the index ``field`` with its reader.

        Raises:
            InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
        """
        mine = batch.field_of_text == field
        corpus = batch.corpus.take(np.flatnonzero(mine[batch.text_of_sentence]).astype(np.int64))
        # encode only words of this field, since the other field may be in another language
        used = np.flatnonzero(np.bincount(corpus.form.codes, minlength=len(corpus.form.names or ())))
        place = np.zeros(len(corpus.form.names or ()), np.int32)
        place[used] = np.arange(len(used))
        names = corpus.form.names or ()
        form = Column(place[corpus.form.codes], tuple(names[i] for i in used.tolist()))
        encoded = reader.encode(Corpus(corpus.offsets, {FORM: form}, corpus.ids))
        texts = np.concatenate([[0], np.cumsum(np.where(mine, np.diff(batch.word_offsets), 0))]).astype(np.int64)
        assert len(encoded.ids) < 2**31, "more tokens than an int32 counts"
        return FieldTokens(encoded.ids.astype(np.int32), encoded.word_offsets.astype(np.int32), texts, form)

    def spans(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return the first token [n] and the number of tokens [n] of the n texts with the indices ``texts``."""
        first = self.words[self.texts[texts]].astype(np.int64)
        return first, self.words[self.texts[texts + 1]] - first

    def strings(self, start: int, stop: int) -> str:
        """Return the words ``start`` … ``stop`` − 1 of the field, separated by spaces."""
        names = self.form.names or ()
        return " ".join(names[code] for code in self.form.codes[start:stop].tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class PairExamples(Examples):
    """Encoded items with two texts in each row.

    Attributes:
        rows: The tokens of all rows.
    """

    rows: PairRows

    @property
    def lengths(self) -> Ints:
        """The length [rows] of each row in tokens, including special tokens."""
        return self.rows.lengths

    @property
    def around(self) -> int:
        """The number of special tokens in a row."""
        return self.rows.around


def separators(bert: bool) -> int:
    """Return the number of special tokens in a row of two texts: 3 in the form of BERT, else 4 as in RoBERTa."""
    return 3 if bert else 4


def longest_first(a: Ints, b: Ints, room: int) -> tuple[Ints, Ints]:
    """Return the lengths to which pairs of texts with ``a`` [n] and ``b`` [n] tokens are cut to fit into ``room``.

    The longer text is cut until both are equally long, and then both are cut in turn, as with ``longest_first`` in the
    tokenizers of Hugging Face. If ``room`` is odd, the longer text gets the extra token, or the second of two equally
    long texts.
    """
    short = np.where(np.minimum(a, b) > room // 2, room // 2, np.minimum(a, b))
    long = np.minimum(np.maximum(a, b), room - short)
    return np.where(a > b, long, short), np.where(a > b, short, long)


@dataclass(frozen=True, eq=False)
class PairRows:
    """Rows of tokens with two texts each.

    Attributes:
        ids: The tokens of each field.
        start: [rows, 2] the first token of each text of a row.
        size: [rows, 2] the number of tokens of each text in the row.
        readers: The readers of the two fields, which belong to one model.
        length: The maximum length of a row in tokens.
        block: The width of the block of first texts, if languages differ. With None, each batch has its own width.
    """

    ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    start: Ints
    size: Ints
    readers: tuple[Reader, Reader]
    length: int
    block: int | None = None

    def __post_init__(self) -> None:
        first, second = self.readers
        assert first.specials == second.specials and first.bert == second.bert, "two texts of one row have one model"

    @property
    def role(self) -> Role:
        """The role of the batches: ``target`` if either text is in the target language."""
        return "target" if any(reader.role == "target" for reader in self.readers) else "source"

    @cached_property
    def lengths(self) -> Ints:
        """The number of tokens of each row, [rows]."""
        total: Ints = self.size.sum(axis=1) + self.around
        return total

    @property
    def around(self) -> int:
        """The number of special tokens in a row."""
        return separators(self.readers[0].bert)

    @property
    def in_blocks(self) -> bool:
        """True if the two texts have different languages, so that they are in two blocks."""
        return self.readers[0].number != self.readers[1].number

    def begin(self, rows: Ints) -> Ints:
        """Return the column [n] of the first token of the second text, in a batch of the rows ``rows`` [n]."""
        gap = self.around - 2  # separators between the texts
        if self.in_blocks:
            return np.full(len(rows), self._first_block(rows) + gap - 1)
        first: Ints = self.size[rows, 0]
        return first + 1 + gap

    def text(self, rows: Ints) -> Text:
        """Return the rows at the indices ``rows`` [n] as input of a model, padded to the longest of these rows."""
        specials, bert = self.readers[0].specials, self.readers[0].bert
        begin, (a, b) = self.begin(rows), self.size[rows].T
        head = self._first_block(rows) if self.in_blocks else 0
        width = head + _rounded(int((begin + b).max()) + 1 - head)
        if not self.in_blocks:
            width = min(width, self.length)
        at = np.arange(len(rows))
        ids = np.full((len(rows), width), specials.pad, np.int64)
        ids[:, 0], ids[at, begin + b] = specials.bos, specials.eos
        ids[at, a + 1] = specials.eos
        if not bert:
            ids[at, begin - 1] = specials.eos
        for field, column in enumerate((np.ones_like(begin), begin)):
            first = self.start[rows, field]
            token, row = ranges(first, first + self.size[rows, field])
            ids[row, token + (column - first)[row]] = self.ids[field][token]
        return self._text(ids, begin, a, b, head)

    def _text(self, ids: Ints, begin: Ints, a: Ints, b: Ints, head: int) -> Text:
        columns = np.arange(ids.shape[1])
        valid, positions = columns <= (begin + b)[:, None], None
        spans: tuple[tuple[int, int, int], ...] = ((0, ids.shape[1], self.readers[0].number),)
        if self.in_blocks:
            valid &= (columns < (a + 2)[:, None]) | (columns >= head)
            moved = np.where(columns < head, columns, columns - head + (a + 2)[:, None])
            positions = torch.from_numpy(np.where(valid, moved, 0))
            spans = ((0, head, self.readers[0].number), (head, ids.shape[1], self.readers[1].number))
        segments = torch.from_numpy((valid & (columns >= begin[:, None])).astype(np.int64))
        seen = None if valid.all() else torch.from_numpy(valid)
        text = Text(torch.from_numpy(ids), seen, spans, positions, segments if self.readers[0].bert else None)
        return text.without_padding()

    def _first_block(self, rows: Ints) -> int:
        return _rounded(int(self.size[rows, 0].max()) + 2) if self.block is None else self.block

    def with_block(self) -> PairRows:
        """Return the same rows with a fixed width of the first block, so that columns agree between batches."""
        block = _rounded(int(self.size[:, 0].max(initial=0)) + 2)
        return replace(self, block=block)


def _rounded(width: int) -> int:
    return -(-width // MULTIPLE) * MULTIPLE


class PairTask(Task):
    """The base class of tasks on two texts.

    Attributes:
        kind: The kind of task that the items must have.
        fields: The names of the two texts, which the items must have.
    """

    kind: ClassVar[Kind]
    fields: ClassVar[tuple[str, str]]

    def open(self, spec: str) -> TaskSet:
        """Open labelled items. The scheme of the task in ``spec`` is optional.

        Raises:
            InputError: The items cannot be opened, or belong to another task.
        """
        task = open_task(spec if is_task(spec) else f"{self.name}:{spec}")
        if task.kind != self.kind or task.fields != self.fields:
            raise other_task(spec, self.name)
        return task
