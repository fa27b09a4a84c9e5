"""Rewrite: what a transform did to a batch of sentences, as indices.

For each output word ``origin`` holds the index of its source word in the sentence, −1 for
an inserted one. Composition of transforms is composition of these indices, and every
label follows from them; nothing is ever found again by comparing strings.

    source  he saw her .      inverted, final mark kept:  her saw he .     origin 2 1 0 3
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import FORM, Column, Corpus

INSERTED = -1


@dataclass(frozen=True)
class Rewrite:
    """``offsets`` [sentences + 1], ``origin`` [output words] int32, ``form`` [output words]."""

    offsets: NDArray[np.int64]
    origin: NDArray[np.int32]
    form: Column

    def __post_init__(self) -> None:
        assert len(self.origin) == self.offsets[-1] == len(self.form.codes)

    @staticmethod
    def identity(corpus: Corpus) -> Rewrite:
        """The rewrite that changes nothing."""
        return Rewrite(corpus.offsets, corpus.position.astype(np.int32), corpus.form)

    @staticmethod
    def reorder(corpus: Corpus, index: NDArray[np.int64]) -> Rewrite:
        """The rewrite to word order ``index`` [words]: rows of the whole batch, kept within sentences."""
        return Rewrite(corpus.offsets, corpus.position[index].astype(np.int32), corpus.form.take(index))

    def then(self, second: Rewrite) -> Rewrite:
        """Compose: this rewrite, then ``second`` of its output: origin = first.origin[second.origin]."""
        origin = np.append(self.origin, INSERTED)[_rows(second, self.offsets)]
        return replace(second, origin=origin.astype(np.int32))

    def apply(self, corpus: Corpus) -> Corpus:
        """The rewritten corpus with every column of ``corpus`` carried along.

        Inserted words get the name ``_`` (head −1). ``head`` follows the words it points to,
        ``ner`` becomes legal BIO again: an entity torn apart becomes several.
        """
        rows = _rows(self, corpus.offsets)
        columns: dict[str, Column] = {}
        for name, column in corpus.columns.items():
            if name == FORM:
                columns[name] = self.form
            elif name == "head":
                columns[name] = Column(self._heads(corpus, rows))
            elif name == "ner":
                columns[name] = self._entities(corpus, rows)
            else:
                columns[name] = _carry(column, rows)
        return Corpus(self.offsets, columns, corpus.ids)

    def _heads(self, corpus: Corpus, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """1-based heads in the output; 0 stays the root, −1 where the head was deleted."""
        starts_out = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        kept = self.origin != INSERTED
        place = np.full(len(corpus.form.codes), -1, np.int64)
        place[rows[kept]] = (np.arange(len(rows)) - starts_out)[kept]
        head = np.append(corpus.columns["head"].codes, -1)[rows]
        target = np.clip(head - 1, 0, None) + np.repeat(corpus.offsets[:-1], np.diff(self.offsets))
        moved = np.append(place, -1)[np.minimum(target, len(place))]
        return np.where(head <= 0, head, np.where(moved < 0, -1, moved + 1)).astype(np.int32)

    def _entities(self, corpus: Corpus, rows: NDArray[np.int64]) -> Column:
        """BIO tags moved with their words: B where the left neighbour is of another mention."""
        column = corpus.columns["ner"]
        mention, kind, kinds = mentions(column, corpus.offsets)
        mention, kind = np.append(mention, -1)[rows], np.append(kind, -1)[rows]
        first = np.ones(len(rows), bool)
        first[1:] = mention[1:] != mention[:-1]
        first[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
        names = ("O", *(f"{letter}-{k}" for k in kinds for letter in "BI"))
        codes = np.where(mention < 0, 0, 1 + 2 * kind + np.where(first, 0, 1))
        return Column(codes.astype(np.int32), names)


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
