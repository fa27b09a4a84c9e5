"""Word types of a text of any size, for the overlap of two texts.

Types are held as 64-bit hashes and counts, 16 bytes each, so that a large corpus fits. The hash
is multilinear, Σ rᵢ · (byteᵢ + 1) mod 2⁶⁴ with a random rᵢ for each position; two types collide
with a probability below 2⁻⁵⁶ (Lemire & Kaser 2014, "Strongly universal string hashing is fast",
section 2; the low bits are the weak ones). For a million types that is below 10⁻⁴ for any pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column
from synthlang.export.arrow import Strings
from synthlang.overlap import Overlap
from synthlang.rng import key_of, random_bits

KEY = key_of("overlap")


@dataclass(frozen=True)
class Types:
    """Word types: ``hashes`` [types] uint64, growing; ``counts`` [types] int64."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @staticmethod
    def of(column: Column, names: Strings) -> Types:
        """The names that occur in a column of words; ``names`` are its names."""
        counts = np.bincount(column.codes, minlength=len(names.offsets) - 1).astype(np.int64)
        used = np.flatnonzero(counts)
        return _summed(hash_strings(names)[used], counts[used])


def hash_strings(strings: Strings) -> NDArray[np.uint64]:
    """The hash of each string."""
    offsets = strings.offsets.astype(np.int64)
    lengths = np.diff(offsets)
    values = np.frombuffer(strings.data, np.uint8).astype(np.uint64) + np.uint64(1)
    place = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
    factors = random_bits(KEY, np.arange(int(lengths.max(initial=0))))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values * factors[place], dtype=np.uint64)])
    return np.asarray(np.diff(sums[offsets]), np.uint64)


def merged(parts: Iterable[Types]) -> Types:
    """All types of the parts, with their counts added up; memory grows with the types only."""
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


def overlap_of(parent: Types, derived: Types) -> Overlap:
    """The overlap of two texts, as ``synthlang.overlap.overlap`` defines it."""
    _, ours, theirs = np.intersect1d(parent.hashes, derived.hashes, assume_unique=True, return_indices=True)
    shared = int(np.minimum(parent.counts[ours], derived.counts[theirs]).sum())
    return Overlap(len(ours), len(parent.hashes), shared, int(parent.counts.sum()))
