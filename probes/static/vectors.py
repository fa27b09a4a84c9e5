"""Static word vectors, word vectors extended by the vector of their sentence, and files of word vectors.

Files are in the text format of word2vec and fastText (``.vec``, also gzipped). The first line has the number of words
and the number of dimensions. Each further line has a word and its numbers, separated by spaces. Binary and pickled
files cannot be read. Export them as text with the program that wrote them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.static.settings import POOLS, Pool
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.files import lines_of, read_lines, reading
from synthlang.packed import GZIP, open_packed
from synthlang.progress import Report, silent
from synthlang.sources.base import nothing_in
from synthlang.wording import plural


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """One vector for each word type.

    Attributes:
        words: The distinct words, most frequent first if frequencies are known.
        vectors: [words, d] float32, finite.
        facts: The origin of the vectors, as JSON values.
    """

    words: tuple[str, ...]
    vectors: Tensor
    facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word in ``vectors``."""
        return {word: row for row, word in enumerate(self.words)}

    def rows_of(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the row [n] int64 of each word, or −1 for a word without a vector."""
        return np.fromiter((self.index.get(word, -1) for word in words), np.int64, len(words))

    def vectors_of(self, words: Sequence[str]) -> Tensor:
        """Return the vector [n, d] float32 of each word, with zeros for words without a vector."""
        rows = self.rows_of(words)
        found = self.vectors[torch.from_numpy(np.maximum(rows, 0))]
        return found.masked_fill(torch.from_numpy(rows < 0)[:, None], 0.0)

    def with_small_letters(self, words: Sequence[str]) -> StaticVectors:
        """Return the vectors, with a vector added for each of ``words`` that has one only in lower case.

        An added word gets the vector of its lower-cased form. ``words`` must be distinct. ``facts`` of the result has
        the number of added words as ``small_letters``.
        """
        more = [word for word in words if word not in self.index and word.lower() in self.index]
        rows = torch.tensor([self.index[word.lower()] for word in more], dtype=torch.long)
        facts = {**self.facts, "small_letters": len(more)}
        return StaticVectors((*self.words, *more), torch.cat([self.vectors, self.vectors[rows]]), facts)

    def without_zeros(self) -> StaticVectors:
        """Return the words whose vectors are not zero, with their vectors."""
        kept = (self.vectors != 0).any(1)
        words = tuple(word for word, there in zip(self.words, kept.tolist(), strict=True) if there)
        return self if bool(kept.all()) else StaticVectors(words, self.vectors[kept], self.facts)

    def rows_of_column(self, forms: Column) -> NDArray[np.int64]:
        """Return the row in ``vectors`` [n] int64 of each of the n words in a column, or −1 for words without a vector.

        Each type is looked up once.
        """
        return self.rows_of(forms.names or ())[forms.codes]

    def mapped(self, function: Callable[[Tensor], Tensor]) -> StaticVectors:
        """Return the same words with vectors mapped by a function [n, d] → [n, k], such as a rotation, as float32."""
        rows = torch.cat([function(batch) for batch in torch.split(self.vectors, ROWS)])
        return StaticVectors(self.words, rows.float(), self.facts)


SENTENCES = 500  # sentences per batch
ROWS = 8192  # vectors that are mapped at once


def augmented(vectors: StaticVectors, corpus: Corpus, pools: Sequence[Pool] = POOLS) -> Iterator[Tensor]:
    """Yield word vectors with sentence vectors appended, in batches of SENTENCES sentences.

    A batch is [words of the batch, d · (1 + number of pools)] float32, where d is the size of a vector. ``corpus`` has
    the sentences, and ``pools`` names the sentence vectors to append.

    A sentence vector is the element-wise mean, maximum or minimum of the vectors of its words (Rücklé et al. 2018).
    With all three, 300 dimensions become 1,200. Words without a vector do not contribute to sentence vectors. Their own
    rows are zero, so that they count as misses. As in Cao et al. 2020, section 3.4, ``vectors`` must already be
    normalised and rotated, because a rotation does not preserve maximum and minimum.
    """
    for start in range(0, len(corpus), SENTENCES):
        part = corpus.between(start, start + SENTENCES)
        rows = vectors.rows_of_column(part.form)
        known = rows >= 0
        own = vectors.vectors[torch.from_numpy(np.maximum(rows, 0))]
        mask = torch.from_numpy(known)
        inside = np.concatenate([[0], np.cumsum(known)])[part.offsets]
        pooled = pool_rows(own[mask], inside, pools)
        whole = torch.cat([own, pooled[torch.from_numpy(part.sentence_of_word)]], dim=1)
        yield whole.masked_fill(~mask[:, None], 0.0)


def pool_rows(rows: Tensor, offsets: NDArray[np.int64], pools: Sequence[Pool]) -> Tensor:
    """Return the element-wise mean, maximum or minimum of each segment of rows, [segments, d · pools] float32.

    Args:
        rows: [n, d] The rows, float32.
        offsets: [segments + 1] Segment i has the rows offsets[i] … offsets[i + 1] − 1. A segment without rows is zero.
        pools: Names of the functions, whose results are put side by side.
    """
    values, lengths = rows.numpy(), np.diff(offsets)
    filled = lengths > 0
    starts = offsets[:-1][filled]  # the next filled segment starts where this one ends
    result = np.zeros((len(lengths), len(pools), values.shape[1]), np.float32)
    for at, name in enumerate(pools if len(starts) else ()):
        if name == "mean":
            sums = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
            result[filled, at] = sums / lengths[filled][:, None]
        else:
            result[filled, at] = (np.maximum if name == "max" else np.minimum).reduceat(values, starts, axis=0)
    return torch.from_numpy(result.reshape(len(lengths), -1))


def read_vec(path: Path, words: int | None = None, report: Report = silent) -> StaticVectors:
    """Read the first ``words`` vectors of a ``.vec`` file. Most files begin with the most frequent words.

    A word that is repeated keeps its first vector. ``facts`` of the result has the number of ``duplicates`` and of
    ``zeros``. A word may contain spaces, but not before a number.

    Args:
        path: The file, as text or gzipped text.
        words: Maximum number of lines to read after the header (default: all).
        report: Function that receives the progress.

    Raises:
        InputError: The file cannot be read or is empty, the header is not two numbers of at least 1, the vectors do not
            fit into memory, a line has another number of dimensions, or a number is invalid or not finite in float32.
            The error is also raised if the file ends before the lines that the header announces, up to ``words``, or if
            all words are read and further lines follow.
    """
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise nothing_in("word vector", path)
    count, width = _header(first[1], path)
    wanted = count if words is None else min(count, words)
    try:
        vectors = np.zeros((wanted, width), np.float32)
    except (MemoryError, ValueError) as error:
        reason = f"{plural(wanted, 'vector')} of {plural(width, 'dimension')} do not fit into memory"
        hint = "set words to a smaller number, or correct this line"
        raise InputError(reason, path, 1, hint=hint, code="resources") from error
    index: dict[str, int] = {}
    seen = 0
    for number, line in lines:
        if seen == wanted:
            if wanted < count:
                break
            if line.strip():
                reason = f"the file has more words than its first line gives ({count:,})"
                raise InputError(reason, path, number, hint="correct the first line", code="format")
            continue
        seen += 1
        word, row = _entry(line, width, path, number)
        fresh = len(index)
        if index.setdefault(word, fresh) == fresh:
            vectors[fresh] = row
        if not seen % 10_000:
            report("word vectors", seen, wanted, "")
    if seen < wanted:
        reason = f"has {plural(seen, 'word')}, but its first line gives {count:,}"
        raise InputError(reason, path, hint="download or export the file again", code="damaged")
    rows = torch.from_numpy(vectors[: len(index)])
    zeros = int((rows == 0).all(1).sum())
    return StaticVectors(tuple(index), rows, {"source": "file", "duplicates": seen - len(index), "zeros": zeros})


def _header(line: str, path: Path) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isascii() and field.isdigit() and len(field) < 10 for field in fields):
        hint = "add such a line (files of GloVe have none), or give another file"
        shown = line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
        reason = f"the first line must be the number of words and the number of dimensions, not {shown!r}"
        raise InputError(reason, path, 1, hint=hint, code="format")
    count, width = map(int, fields)
    if not count or not width:
        reason = f"the numbers of words and of dimensions must be at least 1, not {count} and {width}"
        raise InputError(reason, path, 1, hint="correct the line, or give another file", code="range")
    return count, width


MEND = "correct the line, or export the vectors again"
SHOWN = 40  # characters of a wrong line


def _entry(line: str, width: int, path: Path, number: int) -> tuple[str, NDArray[np.float32]]:
    """Split a line into its word, which may contain spaces, and its vector [width]."""
    word, _, numbers = line.partition(" ")
    row = _numbers(numbers)
    if not word or row is None or len(row) != width:
        word, *numbers_of_line = line.rstrip(" ").rsplit(" ", width)
        row = _numbers(" ".join(numbers_of_line))
        extra = " " in word and _numbers(word.rsplit(" ", 1)[1]) is not None  # it would become part of the word
        if not word or row is None or len(row) != width or extra:
            reason = f"the line must be a word and {plural(width, 'number')}, separated by spaces"
            raise InputError(reason, path, number, hint=MEND, code="format")
    with np.errstate(over="ignore"):
        short = row.astype(np.float32)
    if not np.isfinite(short).all():
        raise InputError(f"the vector of {word!r} contains NaN or infinity", path, number, hint=MEND, code="range")
    return word, short


def _numbers(text: str) -> NDArray[np.float64] | None:
    """Parse numbers separated by spaces, in one call for speed. Return None for any other text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # older NumPy only warns and returns the numbers before the fault
        try:
            return np.fromstring(text, np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file, which may be gzipped."""
    zipped = False
    if path.is_file():
        with reading(path), path.open("rb") as start:
            zipped = start.read(len(GZIP)) == GZIP
    if not zipped:
        yield from read_lines(path)
        return
    with open_packed(path) as handle:
        yield from lines_of(handle, path)
