"""Rows of one language: a stream that is chopped, or whole sentences with padding after them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pretrain.data.packing import pack, ranges, write_sentences
from pretrain.data.rows import Rows, Span
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.shards import Shards
from synthlang.vocabularies import Specials


class StreamRows:
    """Row r is <s> and the tokens r · (length − 1) … (r + 1) · (length − 1) − 1 of the stream.

    name  whose text it is, for messages; InputError if it does not fill one row
    """

    term = "mlm"
    padded = False

    def __init__(self, shards: Shards, language: int, length: int, specials: Specials, name: str) -> None:
        self.shards, self.length, self.specials, self.name = shards, length, specials, name
        self.languages: tuple[int, ...] = (language,)
        self.spans: tuple[Span, ...] = ((0, length, language),)
        self._starts = shards.offsets + np.arange(len(shards.offsets))  # of the sentences in the stream
        tokens = int(self._starts[-1])
        self.rows = tokens // (length - 1) if len(shards.tokens) else 0
        if self.rows == 0:
            raise InputError(
                f"{name}: {tokens} tokens do not fill one row of length {length}; take a smaller batch.length"
            )
        self.counts = {"tokens left over": tokens - self.rows * (length - 1)}

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of the given numbers."""
        width = self.length - 1
        begin = numbers * width
        first = np.searchsorted(self._starts, begin, side="right") - 1
        behind = np.searchsorted(self._starts, begin + width)  # sentences first … behind − 1 have tokens in the row
        sentence, row = ranges(first, behind)
        column = self._starts[sentence + 1] - begin[row]  # of its </s>, <s> counted
        inside = column < self.length
        is_end = np.zeros((len(numbers), self.length), bool)
        is_end[row[inside], column[inside]] = True
        # the stream has one </s> more than the text has tokens for each sentence that ended before
        ended = np.cumsum(is_end, axis=1, dtype=np.int32)[:, :-1]
        token = (begin - first)[:, None] + np.arange(width) - ended
        ids = np.empty((len(numbers), self.length), np.int64)
        ids[:, 0] = self.specials.bos
        ids[:, 1:] = self.shards.tokens[np.minimum(token, len(self.shards.tokens) - 1)]  # the last </s> has none
        ids[is_end] = self.specials.eos
        return Rows(ids, np.full_like(ids, self.languages[0]))


class SentenceRows:
    """``<s> sentence </s> sentence </s> … <pad> …``, in the order of the text; no sentence is cut.

    A sentence that with its <s> and </s> is longer than a row is left out: ``dropped`` counts them.
    ``name`` says whose text it is, for messages; InputError if no sentence fits.
    """

    term = "mlm"
    padded = True

    def __init__(
        self, shards: Shards, language: int, length: int, specials: Specials, name: str, report: Report = silent
    ) -> None:
        self.shards, self.length, self.specials, self.name = shards, length, specials, name
        self.languages: tuple[int, ...] = (language,)
        self.spans: tuple[Span, ...] = ((0, length, language),)
        self.dropped = int((np.diff(shards.offsets) + 2 > length).sum())
        if self.dropped == len(shards):
            raise InputError(
                f"{name}: none of {len(shards)} sentences fits into a row of length {length}; raise batch.length"
            )
        self._starts = pack(self._costs, len(shards), length - 1, f"pack {name}", report)
        self.rows = len(self._starts) - 1
        self.counts = {f"sentences dropped, over {length - 2} tokens": self.dropped}

    def _costs(self, first: int, last: int) -> NDArray[np.int64]:
        lengths = np.diff(self.shards.offsets[first : last + 1])
        return np.where(lengths + 2 <= self.length, lengths + 1, 0)[None]

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of the given numbers."""
        sentence, row = ranges(self._starts[numbers], self._starts[numbers + 1])
        fits = self.shards.offsets[sentence + 1] - self.shards.offsets[sentence] + 2 <= self.length
        ids = np.empty((len(numbers), self.length), np.int64)
        valid = write_sentences(ids, self.shards, sentence[fits], row[fits], self.specials)
        return Rows(ids, np.full_like(ids, self.languages[0]), valid=valid)
