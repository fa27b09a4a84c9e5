"""Word vectors in the text format of word2vec and fastText (``.vec``, also gzipped).

The first line has the number of words and the number of dimensions. Each further line has a word and its numbers,
separated by spaces. Binary and pickled files cannot be read. Export them as text with the program that wrote them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from probes.static.vectors import StaticVectors
from synthlang.errors import InputError
from synthlang.files import lines_of, read_lines, reading
from synthlang.packed import GZIP, open_packed
from synthlang.progress import Report, silent
from synthlang.wording import plural


def read_vec(path: Path, words: int | None = None, report: Report = silent) -> StaticVectors:
    """Read the first ``words`` vectors of a ``.vec`` file. Most files begin with the most frequent words.

    A word that is repeated keeps its first vector. ``facts`` of the result has the number of ``duplicates`` and of
    ``zeros``. A word may contain spaces, but not before a number.

    Args:
        path: The file, as text or gzipped text.
        words: Maximum number of lines to read after the header (default: all).
        report: Function that receives the progress.

    Raises:
        InputError: The file cannot be read, the header is not two numbers of at least 1, the vectors do not fit into
            memory, a line has another number of dimensions, or a number is invalid or not finite in float32. The error
            is also raised if the file ends before the lines that the header announces, up to ``words``, or if all
            words are read and further lines follow.
    """
    lines = _lines(path)
    count, width = _header(next(lines, (1, ""))[1], path)
    wanted = count if words is None else min(count, words)
    try:
        vectors = np.zeros((wanted, width), np.float32)
    except (MemoryError, ValueError) as error:
        reason = f"{plural(wanted, 'vector')} of {plural(width, 'dimension')} do not fit into memory"
        raise InputError(
            reason, path, 1, hint="set words to a smaller number, or correct this line", code="resources"
        ) from error
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
    """Split a line into its word, which may contain spaces, and its vector [width].

    Raises:
        InputError: The line is not a word and ``width`` numbers, or a number is not finite in float32.
    """
    word, _, numbers = line.partition(" ")
    row = _numbers(numbers)
    if not word or row is None or len(row) != width:
        parts = line.rstrip(" ").rsplit(" ", width)
        if len(parts) != width + 1 or not parts[0]:
            fields = plural(len(parts), "field") if parts[0] else "no word"
            reason = f"the line must be a word and {plural(width, 'number')}, separated by spaces, but it has {fields}"
            raise InputError(reason, path, number, hint=MEND, code="format")
        word, row = parts[0], _numbers(" ".join(parts[1:]))
        if row is None or len(row) != width:
            wrong = next(field for field in parts[1:] if (found := _numbers(field)) is None or len(found) != 1)
            raise InputError(f"{wrong!r} is not a number", path, number, hint=MEND, code="format")
        # an extra number would become part of the word
        if " " in word and _numbers(word.rsplit(" ", 1)[1]) is not None:
            raise InputError(
                f"the line has more than {plural(width, 'number')}", path, number, hint=MEND, code="format"
            )
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
    """Yield the numbered lines of a text file, which may be gzipped.

    Raises:
        InputError: The file cannot be read.
    """
    zipped = False
    if path.is_file():
        with reading(path), path.open("rb") as start:
            zipped = start.read(len(GZIP)) == GZIP
    if not zipped:
        yield from read_lines(path)
        return
    with open_packed(path) as handle:
        yield from lines_of(handle, path)
