"""Rewrite: what a transform did to a batch of sentences, as indices.

For each output word ``origin`` holds the index of its source word in the sentence, −1 for
an inserted one. Composition of transforms is composition of these indices, and every
label follows from them; nothing is ever found again by comparing strings.

    source  he saw her .      inverted, final mark kept:  her saw he .     origin 2 1 0 3

A transform may also drop sentences (``kept`` says which are left), and it says in ``counts``
what it did or could not do, by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import FORM, Column, Corpus

INSERTED = -1
SPAN_COLUMNS = ("ner", "slot")  # BIO tags


@dataclass(frozen=True)
class Rewrite:
    """What became of a batch.

    offsets   [output sentences + 1]
    origin    [output words] int32
    form      [output words]
    kept      [output sentences] row of each one's source sentence; None: all, in order
    head      [output words] the column ``head`` where words were attached anew; None: heads follow their words
    counts    reason → how often, for reports: ``{"reorder: sentences dropped, not projective": 3}``
    """

    offsets: NDArray[np.int64]
    origin: NDArray[np.int32]
    form: Column
    kept: NDArray[np.int64] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    head: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        assert len(self.origin) == self.offsets[-1] == len(self.form.codes)
        assert self.kept is None or len(self.kept) == len(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def identity(corpus: Corpus, form: Column | None = None) -> Rewrite:
        """The rewrite that changes nothing, or nothing but the forms."""
        return Rewrite(corpus.offsets, corpus.position.astype(np.int32), corpus.form if form is None else form)

    @staticmethod
    def reorder(corpus: Corpus, index: NDArray[np.int64]) -> Rewrite:
        """The rewrite to word order ``index`` [words]: rows of the whole batch, kept within sentences."""
        return Rewrite(corpus.offsets, corpus.position[index].astype(np.int32), corpus.form.take(index))

    def counted(self, counts: Mapping[str, Any]) -> Rewrite:
        """The same with ``counts``: numbers, or flags to count; those of nothing are left out."""
        sums = {reason: int(np.sum(count)) for reason, count in counts.items()}
        return replace(self, counts={reason: count for reason, count in sums.items() if count})

    def then(self, second: Rewrite) -> Rewrite:
        """Compose: this rewrite, then ``second`` of its output: origin = first.origin[second.origin]."""
        first = self if second.kept is None else self.take(second.kept)
        rows = _rows(second, first.offsets)
        origin = np.append(first.origin, INSERTED)[rows]
        counts = dict(Counter(self.counts) + Counter(second.counts))
        head = second.head
        if head is None and first.head is not None:
            head = second._heads(first.head, first.offsets, rows)
        return replace(second, origin=origin.astype(np.int32), kept=first.kept, counts=counts, head=head)

    def take(self, rows: NDArray[np.int64]) -> Rewrite:
        """The output sentences at ``rows``, in that order; the counts stay those of the batch."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.arange(offsets[-1], dtype=np.int64) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        kept = rows if self.kept is None else self.kept[rows]
        head = None if self.head is None else self.head[words]
        return Rewrite(offsets, self.origin[words], self.form.take(words), kept, self.counts, head)

    def source(self, corpus: Corpus) -> Corpus:
        """The source sentences of the output, one for one: what ``origin`` counts in."""
        return corpus if self.kept is None else corpus.take(self.kept)

    def apply(self, corpus: Corpus) -> Corpus:
        """The rewritten corpus with every column of ``corpus`` carried along.

        Inserted words get the name ``_`` (head −1). ``head`` follows the words it points to, or is the rewrite's own;
        span columns become legal BIO again: an entity torn apart becomes several.
        """
        corpus = self.source(corpus)
        rows = _rows(self, corpus.offsets)
        columns: dict[str, Column] = {}
        for name, column in corpus.columns.items():
            if name == FORM:
                columns[name] = self.form
            elif name == "head":
                heads = self._heads(column.codes, corpus.offsets, rows) if self.head is None else self.head
                columns[name] = Column(heads)
            elif name in SPAN_COLUMNS:
                columns[name] = self._spans(column, corpus.offsets, rows)
            else:
                columns[name] = _carry(column, rows)
        return Corpus(self.offsets, columns, corpus.ids)

    def _heads(self, heads: NDArray[np.int32], source: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """1-based heads in the output, of those in the source; 0 stays the root, −1 where the head was deleted."""
        starts_out = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        kept = self.origin != INSERTED
        place = np.full(len(heads), -1, np.int64)
        # backwards, so that the head is the first of a word's tokens where words became tokens
        place[rows[kept][::-1]] = (np.arange(len(rows)) - starts_out)[kept][::-1]
        head = np.append(heads, -1)[rows]
        target = np.clip(head - 1, 0, None) + np.repeat(source[:-1], np.diff(self.offsets))
        moved = np.append(place, -1)[np.minimum(target, len(place))]
        return np.where(head <= 0, head, np.where(moved < 0, -1, moved + 1)).astype(np.int32)

    def _spans(self, column: Column, source: NDArray[np.int64], rows: NDArray[np.int64]) -> Column:
        """BIO tags moved with their words: B where the left neighbour is of another mention."""
        mention, kind, kinds = mentions(column, source)
        first = _piece_starts(self.offsets, np.append(mention, -1)[rows])
        kind = np.append(kind, -1)[rows]
        names = ("O", *(f"{letter}-{k}" for k in kinds for letter in "BI"))
        codes = np.where(kind < 0, 0, 1 + 2 * kind + np.where(first, 0, 1))
        return Column(codes.astype(np.int32), names)

    def torn(self, corpus: Corpus, column: str) -> NDArray[np.int64]:
        """[output sentences] how many mentions of a span column came apart into several pieces."""
        corpus = self.source(corpus)
        mention, _, _ = mentions(corpus.columns[column], corpus.offsets)
        moved = np.append(mention, -1)[_rows(self, corpus.offsets)]
        pieces = np.bincount(
            moved[_piece_starts(self.offsets, moved) & (moved >= 0)], minlength=int(mention.max(initial=0)) + 1
        )
        inside = np.flatnonzero(mention >= 0)
        sentence = np.zeros(len(pieces), np.int64)
        sentence[mention[inside]] = corpus.sentence_of_word[inside]
        return np.bincount(sentence[pieces > 1], minlength=len(self)).astype(np.int64)


def _piece_starts(offsets: NDArray[np.int64], mention: NDArray[np.int64]) -> NDArray[np.bool_]:
    first = np.ones(len(mention), bool)
    first[1:] = mention[1:] != mention[:-1]
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    return first


def _rows(rewrite: Rewrite, source_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each output word the row of its source word in the batch; for an inserted one the row after the last."""
    starts = np.repeat(source_offsets[:-1], np.diff(rewrite.offsets))
    return np.where(rewrite.origin == INSERTED, source_offsets[-1], rewrite.origin + starts)


def _carry(column: Column, rows: NDArray[np.int64]) -> Column:
    """The column at ``rows``; inserted words have the name ``_``, or the number −1."""
    if column.names is None:
        return Column(np.append(column.codes, -1)[rows].astype(np.int32))
    if not (rows == len(column.codes)).any():
        return column.take(rows)
    names = column.names if "_" in column.names else (*column.names, "_")
    return Column(np.append(column.codes, names.index("_"))[rows].astype(np.int32), names)


def mentions(ner: Column, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """For each word its mention (−1 outside) and its entity kind, and the names of the kinds.

    A mention starts at B-X, or at I-X that does not continue a mention of X (the repair
    of CoNLL's scorer); it never crosses a sentence boundary.
    """
    assert ner.names is not None
    kinds = tuple(sorted({n[2:] for n in ner.names if n[:2] in ("B-", "I-")}))
    code_kind = np.asarray([kinds.index(n[2:]) if n[:2] in ("B-", "I-") else -1 for n in ner.names] or [0])
    code_begins = np.asarray([n.startswith("B-") for n in ner.names] or [False])
    kind = code_kind[ner.codes]
    previous = np.full(len(kind), -1)
    previous[1:] = kind[:-1]
    previous[offsets[:-1][np.diff(offsets) > 0]] = -1
    starts = (kind >= 0) & (code_begins[ner.codes] | (kind != previous))
    mention = np.where(kind >= 0, np.cumsum(starts) - 1, -1)
    return mention, kind, kinds
