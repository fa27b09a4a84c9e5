"""Sources of rows. Of one language: a stream that is chopped, or whole sentences with padding after them; of sentence
pairs, for TLM: one language in each half."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pretrain.artifacts import Parallel
from pretrain.data.batch import Rows, Span
from pretrain.data.packing import pack, ranges, write_sentences
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation
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
        sentence, row = ranges(self._starts[numbers], self._starts[numbers + 1])
        fits = self.shards.offsets[sentence + 1] - self.shards.offsets[sentence] + 2 <= self.length
        ids = np.empty((len(numbers), self.length), np.int64)
        valid = write_sentences(ids, self.shards, sentence[fits], row[fits], self.specials)
        return Rows(ids, np.full_like(ids, self.languages[0]), valid=valid)


class ParallelRows:
    """Sentence pairs (Lample & Conneau 2019, section 3.3): the left language in the first half, the right after it.

    A share ``rate`` of the pairs is drawn without replacement: round(rate · pairs), of which a smaller rate
    draws a part. They are packed in the order of ``parallel``, as long as both halves have room:
    ``<s> a1 </s> a2 </s> <pad> … | <s> b1 </s> b2 </s> <pad> …``. Positions start anew in the second half.

    drawn     pairs drawn
    too_long  of these, left out since a side with its <s> and </s> is longer than half a row
    empty     of these, left out since a side has no token

    InputError for an odd length, and if no pair is left.
    """

    term = "tlm"
    padded = True

    def __init__(
        self,
        parallel: Parallel,
        rate: float,
        length: int,
        specials: Specials,
        seed: int,
        name: str,
        report: Report = silent,
    ) -> None:
        if length % 2:
            raise InputError(f"{name}: TLM needs an even batch.length, a half for each language; it is {length}")
        self.length, self.specials, self.name = length, specials, name
        self.half = length // 2
        self.languages: tuple[int, ...] = (parallel.left, parallel.right)
        self.spans: tuple[Span, ...] = ((0, self.half, parallel.left), (self.half, length, parallel.right))
        self._shards = (parallel.left_shards, parallel.right_shards)
        self._pairs = self._usable(parallel.rows, rate, key_of("tlm", seed, parallel.left, parallel.right))
        self._starts = pack(self._costs, len(self._pairs), self.half - 1, f"pack {name}", report)
        self.rows = len(self._starts) - 1

    def _usable(self, pairs: NDArray[np.int64], rate: float, key: int) -> NDArray[np.int64]:
        """The pairs that are drawn and fit, in order."""
        drawn = pairs[np.sort(permutation(key, len(pairs))[: round(rate * len(pairs))])]
        lengths = self._lengths(drawn)
        empty = lengths.min(axis=0) == 0
        fits = lengths.max(axis=0) + 2 <= self.half
        self.drawn, self.empty, self.too_long = len(drawn), int(empty.sum()), int((~fits & ~empty).sum())
        self.counts = {
            "pairs drawn": self.drawn,
            f"pairs dropped, a side has over {self.half - 2} tokens": self.too_long,
            "pairs dropped, a side is empty": self.empty,
        }
        usable: NDArray[np.int64] = drawn[fits & ~empty]
        if not len(usable):
            raise InputError(
                f"{self.name}: TLM has no usable pair: {len(drawn)} of {len(pairs)} drawn, of these {self.too_long} "
                f"have a side of over {self.half - 2} tokens (half a row), {self.empty} an empty side"
            )
        return usable

    def _lengths(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of each side, [2, pairs]."""
        sides = zip(self._shards, pairs.T, strict=True)
        return np.stack([shards.offsets[row + 1] - shards.offsets[row] for shards, row in sides])

    def _costs(self, first: int, last: int) -> NDArray[np.int64]:
        return self._lengths(self._pairs[first:last]) + 1

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        pair, row = ranges(self._starts[numbers], self._starts[numbers + 1])
        ids = np.empty((len(numbers), self.length), np.int64)
        languages = np.empty_like(ids)
        valid = np.empty(ids.shape, bool)
        for side, (start, stop, language) in enumerate(self.spans):
            sentences = self._pairs[pair, side]
            valid[:, start:stop] = write_sentences(
                ids[:, start:stop], self._shards[side], sentences, row, self.specials
            )
            languages[:, start:stop] = language
        languages[~valid] = self.languages[0]
        positions = np.tile(np.arange(self.half), (len(numbers), 2))
        return Rows(ids, languages, positions, valid)
