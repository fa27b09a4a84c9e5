"""The result of a transform on a batch of sentences, as indices.

For each output word, ``source_index`` holds the index of its source word in the sentence, or −1 for an inserted
word. Composing transforms means composing these indices. Every label follows the indices, and no word is found again
by comparing strings.

    source  he saw her .      inverted, final mark kept:  her saw he .     source_index 2 1 0 3

A transform may also drop sentences. ``source_rows`` lists the sentences that remain. ``counts`` holds the number of
events by reason, such as sentences that were dropped.
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
SPAN_COLUMNS = ("ner", "slot")  # the columns with BIO tags


@dataclass(frozen=True)
class Rewrite:
    """Result of applying a transform to a batch.

    Attributes:
        offsets: Start of each output sentence, [output sentences + 1].
        source_index: Index of each word's source word in its sentence, [output words] int32.
        form: Word forms, [output words].
        source_rows: Row of each output sentence's source sentence, [output sentences]. None means all rows, in
            order.
        counts: Number of events by reason, for reports: ``{"reorder: sentences dropped, not projective": 3}``.
        head: New column ``head``, [output words], if the transform attached words to other heads. None means that
            heads follow their words.
        affected: Flags of the output sentences that a transform counts as affected, such as the sentences with a
            marked verb, [output sentences]. A control has the same flags as its language. None means that no
            transform sets the flag.
    """

    offsets: NDArray[np.int64]
    source_index: NDArray[np.int32]
    form: Column
    source_rows: NDArray[np.int64] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    head: NDArray[np.int32] | None = None
    affected: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        assert len(self.source_index) == self.offsets[-1] == len(self.form.codes)
        assert self.source_rows is None or len(self.source_rows) == len(self)
        assert self.affected is None or len(self.affected) == len(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def identity(corpus: Corpus, form: Column | None = None) -> Rewrite:
        """Return the rewrite that keeps every word, with the new forms ``form`` [words] if they are given."""
        return Rewrite(corpus.offsets, corpus.position.astype(np.int32), corpus.form if form is None else form)

    @staticmethod
    def reorder(corpus: Corpus, index: NDArray[np.int64]) -> Rewrite:
        """Return the rewrite to the word order ``index`` [words].

        ``index`` holds for each output word the index of its source word in the batch. Each word stays in its sentence.
        """
        return Rewrite(corpus.offsets, corpus.position[index].astype(np.int32), corpus.form.take(index))

    def counted(self, counts: Mapping[str, Any]) -> Rewrite:
        """Return a copy with ``counts``: numbers, or arrays of flags to sum. Zero counts are left out."""
        sums = {reason: int(np.sum(count)) for reason, count in counts.items()}
        return replace(self, counts={reason: count for reason, count in sums.items() if count})

    def then(self, second: Rewrite) -> Rewrite:
        """Compose this rewrite with ``second``, a rewrite of its output.

        The equation is source_index = first.source_index[second.source_index]. A sentence is affected if one of the
        two rewrites affects it.
        """
        first = self if second.source_rows is None else self.take(second.source_rows)
        rows = _rows(second, first.offsets)
        index = np.append(first.source_index, INSERTED)[rows].astype(np.int32)
        counts = dict(Counter(self.counts) + Counter(second.counts))
        head = second.head
        if head is None and first.head is not None:
            head = second._heads(first.head, first.offsets, rows)
        flags = [flags for flags in (first.affected, second.affected) if flags is not None]
        affected = np.any(flags, axis=0) if flags else None
        moved = replace(second, source_index=index, source_rows=first.source_rows, counts=counts, head=head)
        return replace(moved, affected=affected)

    def take(self, rows: NDArray[np.int64]) -> Rewrite:
        """Return the output sentences at ``rows`` [n], in that order, with the counts of the whole batch."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.arange(offsets[-1], dtype=np.int64) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        source_rows = rows if self.source_rows is None else self.source_rows[rows]
        head = None if self.head is None else self.head[words]
        affected = None if self.affected is None else self.affected[rows]
        form = self.form.take(words)
        return Rewrite(offsets, self.source_index[words], form, source_rows, self.counts, head, affected)

    def source(self, corpus: Corpus) -> Corpus:
        """Return the source sentence of each output sentence. ``source_index`` indexes their words."""
        return corpus if self.source_rows is None else corpus.take(self.source_rows)

    def apply(self, corpus: Corpus) -> Corpus:
        """Return the rewritten corpus with every column of ``corpus`` carried along.

        An inserted word gets the name ``_`` or the number −1, and the tag O in a span column. ``head`` follows the
        words that it points to, unless the rewrite has a new column ``head``. A word whose head is deleted gets the
        head −1. Span columns stay legal BIO: an entity that the rewrite splits becomes several entities.
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
        """Convert 1-based heads (0 is the root) to the output. A word whose head was deleted gets −1."""
        starts_out = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        known = self.source_index != INSERTED
        place = np.full(len(heads), -1, np.int64)
        # The first token of a word becomes the head of its dependents. An assignment with repeated indices keeps the
        # last value, so the rows run backwards.
        place[rows[known][::-1]] = (np.arange(len(rows)) - starts_out)[known][::-1]
        head = np.append(heads, -1)[rows]
        target = np.clip(head - 1, 0, None) + np.repeat(source[:-1], np.diff(self.offsets))
        moved = np.append(place, -1)[np.minimum(target, len(place))]
        return np.where(head <= 0, head, np.where(moved < 0, -1, moved + 1)).astype(np.int32)

    def _spans(self, column: Column, source: NDArray[np.int64], rows: NDArray[np.int64]) -> Column:
        """Move BIO tags with their words. A tag becomes B if the left neighbour is in another mention."""
        mention, kind, kinds = mentions(column, source)
        first = _piece_starts(self.offsets, np.append(mention, -1)[rows])
        kind = np.append(kind, -1)[rows]
        names = ("O", *(f"{letter}-{k}" for k in kinds for letter in "BI"))
        codes = np.where(kind < 0, 0, 1 + 2 * kind + np.where(first, 0, 1))
        return Column(codes.astype(np.int32), names)

    def split_mentions(self, corpus: Corpus, column: str) -> NDArray[np.int64]:
        """Count the mentions of a span column that the rewrite split into several pieces, [output sentences]."""
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
    """Return the row of each output word's source word. An inserted word gets the number of source words."""
    starts = np.repeat(source_offsets[:-1], np.diff(rewrite.offsets))
    return np.where(rewrite.source_index == INSERTED, source_offsets[-1], rewrite.source_index + starts)


def _carry(column: Column, rows: NDArray[np.int64]) -> Column:
    """Return the column at ``rows``. An inserted word gets the name ``_``, or the number −1."""
    if column.names is None:
        return Column(np.append(column.codes, -1)[rows].astype(np.int32))
    if not (rows == len(column.codes)).any():
        return column.take(rows)
    names = column.names if "_" in column.names else (*column.names, "_")
    return Column(np.append(column.codes, names.index("_"))[rows].astype(np.int32), names)


def mentions(ner: Column, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Return the mention and the entity kind of each word as numbers, and the names of the kinds.

    Mentions are numbered from 0 in the batch, and a kind is an index into the names. Both numbers are −1 for a word
    outside all mentions, [words] int64 each. ``ner`` is a column of BIO tags, and ``offsets`` [sentences + 1] has the
    start of each sentence.

    A mention starts at B-X, or at an I-X that does not continue a mention of X, as CoNLL's scorer repairs such
    tags. A mention never crosses a sentence boundary.
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
