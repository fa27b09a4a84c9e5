"""The rows of a batch as Arrow tables, made directly from columns of codes, without a Python object per word.

parent      id, text, words, labels                                   every sentence of the source
derived     id, text, words, origin, parent_text, labels              the sentences that the language keeps, with
                                                                      affected if a transform flags sentences
parallel    id, parent_text, derived_text, parent_words, derived_words, alignment

With a vocabulary, ``parent`` and ``derived`` also have ``input_ids``. Arrays are made from their buffers, because
``pyarrow.array`` imports pandas, which takes 35 MB in each process and is not used.

The overlap of two texts is computed from their word types. A type is stored as a 64-bit hash and a count, in 16 bytes,
so texts may have any size. The hash is multilinear, Σ rᵢ · (byteᵢ + 1) mod 2⁶⁴ with a random rᵢ for each position. Two
types collide with a probability below 2⁻⁵⁶ (Lemire & Kaser 2014, "Strongly universal string hashing is fast", section
2). The low bits of the hash are weaker than the high bits. For a million types the probability of any collision is
below 10⁻⁴.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthlang.corpus import FORM, Column, Corpus
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.rng import key_of, random_bits


@dataclass(frozen=True)
class Strings:
    """Strings as UTF-8: string i is ``data[offsets[i] : offsets[i + 1]]``.

    Attributes:
        offsets: Start of each string in ``data`` in bytes, [strings + 1].
        data: The bytes of all strings.
    """

    offsets: NDArray[np.int32]
    data: bytes

    @staticmethod
    def of(strings: Sequence[str]) -> Strings:
        """Encode strings as UTF-8."""
        joined = "".join(strings)
        data = joined.encode("utf-8")
        offsets = np.zeros(len(strings) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, strings), np.int32, len(strings)), out=offsets[1:])
        if len(data) > len(joined):  # turn offsets in characters into offsets in bytes
            begins = np.flatnonzero(np.frombuffer(data, np.uint8) & 0xC0 != 0x80)
            offsets = np.append(begins, len(data)).astype(np.int32)[offsets]
        return Strings(offsets, data)

    @property
    def array(self) -> Any:
        """The strings as an Arrow array."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.string(), len(self.offsets) - 1, buffers)


def numbers(values: NDArray[Any]) -> Any:
    """Turn int32 or int64 values [n] into an Arrow array."""
    kinds = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kinds[values.dtype], len(values), [None, pa.py_buffer(values)])


def flags(values: NDArray[np.bool_]) -> Any:
    """Turn flags [n] into an Arrow array."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def lists(offsets: NDArray[np.int64], values: Any) -> Any:
    """Return an Arrow array of one list for each sentence.

    ``offsets`` [sentences + 1] holds the bounds of the lists in the Arrow array ``values``.
    """
    assert offsets[-1] < 2**31, "a batch has fewer than 2 billion words"
    return pa.ListArray.from_arrays(numbers(offsets.astype(np.int32)), values)


def coded(codes: NDArray[np.int32], names: Any) -> Any:
    """Turn codes [n], which index the Arrow array ``names``, into an Arrow dictionary array."""
    return pa.DictionaryArray.from_arrays(numbers(codes.astype(np.int32, copy=False)), names)


CONFIGS = ("parent", "derived", "parallel")
IDS = "input_ids"
AFFECTED = "affected"
ELEMENT = ".list.element"
"""The path in a parquet file from a list column to its values."""
COUNTERS = ("id", f"origin{ELEMENT}", f"alignment{ELEMENT}.parent", f"alignment{ELEMENT}.derived")
"""Columns whose numbers mostly grow by a constant."""


@dataclass(frozen=True)
class LanguageBatch:
    """A batch in one language.

    Attributes:
        corpus: The sentences.
        names: The word types of the batch in UTF-8, encoded once.
    """

    corpus: Corpus
    names: Strings

    @staticmethod
    def of(corpus: Corpus) -> LanguageBatch:
        """Build the batch of a corpus, with one code for equal word types.

        Parquet numbers codes by distinct names.
        """
        form = corpus.form
        names = form.names or ()
        if len(set(names)) < len(names):
            distinct = Column.of(names)
            form, names = Column(distinct.codes[form.codes], distinct.names), distinct.names or ()
            corpus = Corpus(corpus.offsets, {**corpus.columns, FORM: form}, corpus.ids)
        return LanguageBatch(corpus, Strings.of(names))

    @property
    def words(self) -> Any:
        """The words of each sentence, as an Arrow array of lists."""
        return lists(self.corpus.offsets, coded(self.corpus.form.codes, self.names.array))

    @property
    def text(self) -> Any:
        """The words of each sentence, separated by single spaces, as an Arrow array of strings."""
        words = self.names.array.take(numbers(self.corpus.form.codes))
        return pc.binary_join(lists(self.corpus.offsets, words), Strings.of([" "]).array[0])


def tables_of(
    parent: LanguageBatch, derived: LanguageBatch, rewrite: Rewrite, ids_of: Mapping[str, Any] | None = None
) -> dict[str, pa.Table]:
    """Return the Arrow table of each configuration of CONFIGS, by name.

    Args:
        parent: The batch in the source language.
        derived: The result of applying ``rewrite`` to ``parent``.
        rewrite: The rewrite of the language.
        ids_of: Token ids as Arrow lists, for the configurations ``parent`` and ``derived``.
    """
    text, words = parent.text, parent.words
    ids, new_text, new_words = numbers(derived.corpus.ids), derived.text, derived.words
    columns = {"parent": {"id": numbers(parent.corpus.ids), "text": text, "words": words, **_labels(parent.corpus)}}
    if rewrite.source_rows is not None:  # the other configurations have only the sentences that the language kept
        text = text.take(numbers(rewrite.source_rows))
        words = LanguageBatch(rewrite.source(parent.corpus), parent.names).words
    origin = lists(derived.corpus.offsets, numbers(rewrite.source_index))
    columns["derived"] = {"id": ids, "text": new_text, "words": new_words, "origin": origin}
    columns["derived"] |= {"parent_text": text, **_labels(derived.corpus)}
    if rewrite.affected is not None:
        columns["derived"][AFFECTED] = flags(rewrite.affected)
    columns["parallel"] = {"id": ids, "parent_text": text, "derived_text": new_text, "parent_words": words}
    columns["parallel"] |= {"derived_words": new_words, "alignment": _alignment(derived.corpus, rewrite.source_index)}
    for name, column in (ids_of or {}).items():
        columns[name][IDS] = column
    return {name: pa.table(columns[name]) for name in CONFIGS}


def _labels(corpus: Corpus) -> dict[str, Any]:
    return {
        name: lists(corpus.offsets, column_values(column)) for name, column in corpus.columns.items() if name != FORM
    }


def column_values(column: Column) -> Any:
    """Return the values of a column as an Arrow array: numbers, or a dictionary array of distinct names."""
    if column.names is None:
        return numbers(column.codes.astype(np.int32, copy=False))
    distinct = Column.of(column.names)
    codes = distinct.codes[column.codes] if len(column.codes) else column.codes
    return coded(codes, Strings.of(distinct.names or ()).array)


def _alignment(derived: Corpus, origin: NDArray[np.int32]) -> Any:
    """Return the pairs {parent, derived} of word indices for each sentence. Inserted words are in no pair."""
    aligned = origin != INSERTED
    before = np.concatenate([[0], np.cumsum(aligned)])[derived.offsets]
    pairs = [numbers(origin[aligned]), numbers(derived.position[aligned].astype(np.int32))]
    return lists(before, pa.StructArray.from_arrays(pairs, ["parent", "derived"]))


KEY = key_of("overlap")


@dataclass(frozen=True)
class Types:
    """Word types as sorted ``hashes`` [types] uint64, with their ``counts`` [types] int64."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @staticmethod
    def of(column: Column, names: Strings) -> Types:
        """Count the words of a column, whose names in UTF-8 are ``names``."""
        counts = np.bincount(column.codes, minlength=len(names.offsets) - 1).astype(np.int64)
        used = np.flatnonzero(counts)
        return _summed(hash_strings(names)[used], counts[used])


def hash_strings(strings: Strings) -> NDArray[np.uint64]:
    """Return the 64-bit multilinear hash of each string (see the module for the equation), [strings] uint64."""
    offsets = strings.offsets.astype(np.int64)
    lengths = np.diff(offsets)
    values = np.frombuffer(strings.data, np.uint8).astype(np.uint64) + np.uint64(1)
    place = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
    factors = random_bits(KEY, np.arange(int(lengths.max(initial=0))))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values * factors[place], dtype=np.uint64)])
    return np.asarray(np.diff(sums[offsets]), np.uint64)


def merged(parts: Iterable[Types]) -> Types:
    """Merge parts and add their counts. Memory grows with the number of types only."""
    total, waiting, size = Types(np.zeros(0, np.uint64), np.zeros(0, np.int64)), [], 0
    for part in parts:
        waiting.append(part)
        size += len(part.hashes)
        if size > len(total.hashes):
            total, waiting, size = _joined([total, *waiting]), [], 0
    return _joined([total, *waiting])


def _joined(parts: list[Types]) -> Types:
    return _summed(np.concatenate([p.hashes for p in parts]), np.concatenate([p.counts for p in parts]))


def _summed(hashes: NDArray[np.uint64], counts: NDArray[np.int64]) -> Types:
    order = np.argsort(hashes, kind="stable")
    hashes, counts = hashes[order], counts[order]
    first = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]) != 0)
    return Types(hashes[first], np.add.reduceat(counts, first) if len(first) else counts)


@dataclass(frozen=True)
class Overlap:
    """Numbers of words in a source text, and of the words that it shares with a derived text.

    Papers give a nominal share ("50 % of the vocabulary kept"). The actual share depends on the frequency of the types
    that are kept.

    Attributes:
        types_shared: Number of the source's word types that also occur in the derived text.
        types: Number of the source's word types.
        tokens_shared: Σ over words of min(count in the source, count in the derived text).
        tokens: Number of the source's running words.
    """

    types_shared: int
    types: int
    tokens_shared: int
    tokens: int

    @property
    def by_type(self) -> float:
        """Share of the source's types that the derived text also has, 0–1. It is 0 for an empty text."""
        return self.types_shared / max(self.types, 1)

    @property
    def by_token(self) -> float:
        """Share of the source's running words that the derived text also has, with multiplicity, 0–1.

        The share is 0 for an empty text.
        """
        return self.tokens_shared / max(self.tokens, 1)


def overlap_of(parent: Types, derived: Types) -> Overlap:
    """Compute the overlap of two texts (see ``Overlap``) from their word types."""
    _, ours, theirs = np.intersect1d(parent.hashes, derived.hashes, assume_unique=True, return_indices=True)
    shared = int(np.minimum(parent.counts[ours], derived.counts[theirs]).sum())
    return Overlap(len(ours), len(parent.hashes), shared, int(parent.counts.sum()))
