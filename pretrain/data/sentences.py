"""Rows of whole sentences: as many as fit, then padding."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pretrain.data.packing import pack, ranges, write_sentences
from pretrain.data.rows import Rows, Span
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.shards import Shards
from synthlang.vocabularies import Specials


class SentenceRows:
    """``<s> sentence </s> sentence </s> … <pad> …``, in the order of the text; no sentence is cut.

    A sentence that with its <s> and </s> is longer than a row is left out: ``dropped`` counts them.
    ``name`` says whose text it is, for messages; InputError if no sentence fits.
    """

    term: Literal["mlm"] = "mlm"
    padded = True

    def __init__(
        self, shards: Shards, member: int, length: int, specials: Specials, name: str, report: Report = silent
    ) -> None:
        self.shards, self.length, self.specials, self.name = shards, length, specials, name
        self.languages = (member,)
        self.spans: tuple[Span, ...] = ((0, length, member),)
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
