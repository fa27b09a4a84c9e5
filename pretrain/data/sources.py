"""Sources of rows: streams, whole sentences, copies of a text, and sentence pairs for TLM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pretrain.artifacts import Parallel
from pretrain.data.batch import Rows, RowSource, Span
from pretrain.data.packing import fill, pack, ranges, write_alone, write_sentences
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation
from synthlang.shards import Shards
from synthlang.vocabularies import Specials
from synthlang.wording import plural

ALONE = frozenset({"positions", "valid", "sentences"})
MOST_TOO_LONG = 0.05
"""Share of sentences that do not fit into a row, above which the message about the rows is a warning."""


def told_rows(source: RowSource) -> str:
    """Return a message with the number of rows of a source and the counts of its sentences by reason, without zeros.

    The message is a warning if more than MOST_TOO_LONG of the sentences or pairs do not fit into a row.
    """
    counted = [f"{reason}: {count:,}" for reason, count in source.counts.items() if count]
    line = f"{source.name}: " + "; ".join([f"{source.rows:,} rows", *counted])
    if source.too_long <= MOST_TOO_LONG * source.size:
        return line
    share = f"{100 * source.too_long / source.size:.0f} % of {source.size:,}"
    row = "a row" if len(source.languages) == 1 else "half a row"
    return f"warning: {line}; {share} do not fit into {row}; raise batch.length"


class StreamRows:
    """Rows cut from a stream: row r is <s> and the tokens r · (length − 1) … (r + 1) · (length − 1) − 1.

    The stream has all sentences of the text, each followed by </s>. Tokens after the last whole row are left out.

    Args:
        shards: The text.
        language: Number of the language.
        length: Number of tokens of a row.
        specials: The special ids.
        name: Name of the text in messages.
        causal: True if the rows are read from left to right.

    Raises:
        InputError: The text does not fill one row.
    """

    optional: frozenset[str] = frozenset()
    too_long = 0  # a sentence may go on in the next row

    def __init__(
        self, shards: Shards, language: int, length: int, specials: Specials, name: str, causal: bool = False
    ) -> None:
        self.term, self.causal = ("clm" if causal else "mlm"), causal
        self.shards, self.length, self.specials, self.name = shards, length, specials, name
        self.languages: tuple[int, ...] = (language,)
        self.spans: tuple[Span, ...] = ((0, length, language),)
        self._starts = shards.offsets + np.arange(len(shards.offsets))  # start of each sentence in the stream
        tokens = int(self._starts[-1])
        self.rows = tokens // (length - 1) if len(shards.tokens) else 0
        if self.rows == 0:
            reason = f"the text has {plural(tokens, 'token')}, but a row of length {length} needs {length - 1}"
            raise InputError(reason, f"language {name}", hint="lower batch.length, or give more text", code="range")
        self.size = len(shards)
        self.counts = {"tokens left over": tokens - self.rows * (length - 1)}

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        width = self.length - 1
        begin = numbers * width
        first = np.searchsorted(self._starts, begin, side="right") - 1
        behind = np.searchsorted(self._starts, begin + width)  # sentences first … behind − 1 have tokens in the row
        sentence, row = ranges(first, behind)
        column = self._starts[sentence + 1] - begin[row]  # column of the sentence's </s>, with <s> counted
        inside = column < self.length
        is_end = np.zeros((len(numbers), self.length), bool)
        is_end[row[inside], column[inside]] = True
        # Every earlier sentence has added one </s> to the stream, and the text has no such token.
        ended = np.cumsum(is_end, axis=1, dtype=np.int32)[:, :-1]
        token = (begin - first)[:, None] + np.arange(width) - ended
        ids = np.empty((len(numbers), self.length), np.int64)
        ids[:, 0] = self.specials.bos
        ids[:, 1:] = self.shards.tokens[np.minimum(token, len(self.shards.tokens) - 1)]  # the last </s> has no token
        ids[is_end] = self.specials.eos
        return Rows(ids, np.full_like(ids, self.languages[0]))


class SentenceRows:
    """Rows of whole sentences and padding: ``<s> sentence </s> sentence </s> … <pad> …``, in the order of the text.

    With ``alone``, each sentence has its own <s> and positions and attends only to itself: ``<s> sentence </s> <s>
    sentence </s> …``, in an order with little padding.

    A sentence that does not fit into a row is left out and counted in ``too_long``. With ``alone``, empty sentences are
    left out, too.

    Args:
        shards: The text.
        language: Number of the language.
        length: Number of tokens of a row.
        specials: The special ids.
        name: Name of the text in messages.
        report: Function that shows the progress of packing.
        alone: True if each sentence attends only to itself.
        causal: True if the rows are read from left to right.

    Raises:
        InputError: No sentence of the text can be used.
    """

    def __init__(
        self,
        shards: Shards,
        language: int,
        length: int,
        specials: Specials,
        name: str,
        report: Report = silent,
        alone: bool = False,
        causal: bool = False,
    ) -> None:
        self.term, self.causal = ("clm" if causal else "mlm"), causal
        self.shards, self.length, self.specials, self.name = shards, length, specials, name
        self.languages: tuple[int, ...] = (language,)
        self.spans: tuple[Span, ...] = ((0, length, language),)
        self.alone = alone
        self.optional = ALONE if alone else frozenset({"valid"})
        lengths = np.diff(shards.offsets)
        self.size, self.too_long = len(shards), int((lengths + 2 > length).sum())
        empty = int((lengths == 0).sum()) if alone else 0
        if self.too_long + empty == len(shards):
            counts = f"sentences: {len(shards):,}; over {length - 2} tokens: {self.too_long:,}; empty: {empty:,}"
            reason = f"no sentence is usable ({counts})"
            hint = "raise batch.length" if self.too_long else "give sentences with words"
            raise InputError(reason, f"language {name}", hint=hint, code="range")
        task = f"pack {name}"
        if alone:
            self._items = fill(lambda a, b: self._costs(a, b, 2, 1), len(shards), length, task, report)
        else:
            self._items = pack(lambda a, b: self._costs(a, b, 1, 0)[None], len(shards), length - 1, task, report)
        self.rows = len(self._items)
        self.counts = {f"sentences dropped, over {length - 2} tokens": self.too_long}
        if alone:
            self.counts |= {"sentences dropped, empty": empty}

    def _costs(self, first: int, last: int, specials: int, shortest: int) -> NDArray[np.int64]:
        lengths = np.diff(self.shards.offsets[first : last + 1])
        fits = (lengths + 2 <= self.length) & (lengths >= shortest)
        return np.where(fits, lengths + specials, 0)

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        sentence, row = self._items.of(numbers)
        ids = np.empty((len(numbers), self.length), np.int64)
        languages = np.full_like(ids, self.languages[0])
        if self.alone:
            number, positions = write_alone(ids, self.shards, sentence, row, self.specials)
            return Rows(ids, languages, positions, number >= 0, number)
        fits = self.shards.offsets[sentence + 1] - self.shards.offsets[sentence] + 2 <= self.length
        return Rows(ids, languages, valid=write_sentences(ids, self.shards, sentence[fits], row[fits], self.specials))


class CopiesRows:
    """The rows of several copies of a text with other random draws. An epoch has the rows of all copies.

    All ``copies`` have the same language, length and packing.
    """

    def __init__(self, copies: Sequence[RowSource]) -> None:
        first = copies[0]
        self.name, self.term, self.languages, self.length = first.name, first.term, first.languages, first.length
        self.optional, self.spans, self.causal = first.optional, first.spans, first.causal
        self.copies = tuple(copies)
        self._stops = np.cumsum([copy.rows for copy in copies])
        self.rows = int(self._stops[-1])
        self.size, self.too_long = sum(copy.size for copy in copies), sum(copy.too_long for copy in copies)
        self.counts = {reason: sum(copy.counts[reason] for copy in copies) for reason in first.counts}

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        which = np.searchsorted(self._stops, numbers, side="right")
        place = np.argsort(np.argsort(which, kind="stable"))  # place of each row in the rows sorted by copy
        read = [
            copy.read(numbers[which == i] - (self._stops[i] - copy.rows))
            for i, copy in enumerate(self.copies)
            if (which == i).any()
        ]

        def joined(field: str) -> Any:
            parts = [getattr(rows, field) for rows in read]
            return None if parts[0] is None else np.concatenate(parts)[place]

        return Rows(**{field.name: joined(field.name) for field in fields(Rows)})


class ParallelRows:
    """Rows of sentence pairs, with one language in each half of a row (Lample & Conneau 2019, section 3.3).

    round(rate · pairs) pairs are drawn without replacement, and a larger rate includes the pairs of a smaller one. The
    drawn pairs are packed in the order of ``parallel`` while both halves have room: ``<s> a1 </s> a2 </s> <pad> … | <s>
    b1 </s> b2 </s> <pad> …``. Positions start again in the second half.

    With ``alone``, each pair attends only to itself: ``<s> a1 </s> <s> a2 </s> … | <s> b1 </s> <s> b2 </s> …``.
    Positions start again in each sentence.

    Args:
        parallel: The sentence pairs.
        rate: Share of the pairs that is drawn, above 0 and at most 1.
        length: Number of tokens of a row, which is even.
        specials: The special ids.
        seed: Seed of the draw.
        name: Name of the two texts in messages.
        report: Function that shows the progress of packing.
        alone: True if each pair attends only to itself.
        causal: True if the rows are read from left to right, so that the second half sees the first.
        turned: True if the second language of the pairs comes first.

    Attributes:
        size: Number of drawn pairs.
        too_long: Number of drawn pairs that were left out because a side does not fit into half a row.
        empty: Number of drawn pairs that were left out because a side has no token.

    Raises:
        InputError: No drawn pair is usable.
    """

    term = "tlm"

    def __init__(
        self,
        parallel: Parallel,
        rate: float,
        length: int,
        specials: Specials,
        seed: int,
        name: str,
        report: Report = silent,
        alone: bool = False,
        causal: bool = False,
        turned: bool = False,
    ) -> None:
        assert length % 2 == 0, "the config checks the length of rows of pairs"
        self.length, self.specials, self.name = length, specials, name
        self.half, self.causal = length // 2, causal
        first, second = (1, 0) if turned else (0, 1)
        both, shards = (parallel.left, parallel.right), (parallel.left_shards, parallel.right_shards)
        self.languages: tuple[int, ...] = (both[first], both[second])
        self.spans: tuple[Span, ...] = ((0, self.half, both[first]), (self.half, length, both[second]))
        self._shards = (shards[first], shards[second])
        self._pairs = self._usable(parallel.rows[:, [first, second]], rate, key_of("tlm", seed, *both))
        self.alone, task = alone, f"pack {name}"
        self.optional = ALONE if alone else frozenset({"positions", "valid"})
        if alone:
            self._items = fill(
                lambda a, b: self._costs(a, b).max(axis=0) + 1, len(self._pairs), self.half, task, report
            )
        else:
            self._items = pack(self._costs, len(self._pairs), self.half - 1, task, report)
        self.rows = len(self._items)

    def _usable(self, pairs: NDArray[np.int64], rate: float, key: int) -> NDArray[np.int64]:
        """Draw the share ``rate`` of the pairs, and return the usable pairs in the order of the text, [pairs, 2].

        Raises:
            InputError: No drawn pair is usable.
        """
        drawn = pairs[np.sort(permutation(key, len(pairs))[: round(rate * len(pairs))])]
        lengths = self._lengths(drawn)
        empty = lengths.min(axis=0) == 0
        fits = lengths.max(axis=0) + 2 <= self.half
        self.size, self.empty, self.too_long = len(drawn), int(empty.sum()), int((~fits & ~empty).sum())
        self.counts = {
            "pairs drawn": self.size,
            f"pairs dropped, a side has over {self.half - 2} tokens": self.too_long,
            "pairs dropped, a side is empty": self.empty,
        }
        usable: NDArray[np.int64] = drawn[fits & ~empty]
        if not len(usable):
            counts = f"over {self.half - 2} tokens on a side: {self.too_long:,}; with an empty side: {self.empty:,}"
            reason = f"no sentence pair is usable (pairs: {len(pairs):,}; drawn: {len(drawn):,}; {counts})"
            hint = "raise objective.tlm_rate, or give more sentence pairs"
            if len(drawn):
                hint = "raise batch.length" if self.too_long else "give pairs without an empty side"
            raise InputError(reason, f"languages {self.name}", hint=hint, code="empty")
        return usable

    def _lengths(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of each side, [2, pairs]."""
        sides = zip(self._shards, pairs.T, strict=True)
        return np.stack([shards.offsets[row + 1] - shards.offsets[row] for shards, row in sides])

    def _costs(self, first: int, last: int) -> NDArray[np.int64]:
        return self._lengths(self._pairs[first:last]) + 1

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        pair, row = self._items.of(numbers)
        ids = np.empty((len(numbers), self.length), np.int64)
        languages, valid = np.empty_like(ids), np.empty(ids.shape, bool)
        sentences, positions = np.empty_like(ids), np.tile(np.arange(self.half), (len(numbers), 2))
        for side, (start, stop, language) in enumerate(self.spans):
            half = np.s_[:, start:stop]
            given = ids[half], self._shards[side], self._pairs[pair, side], row, self.specials
            if self.alone:
                sentences[half], positions[half] = write_alone(*given)
                valid[half] = sentences[half] >= 0
            else:
                valid[half] = write_sentences(*given)
            languages[half] = language
        languages[~valid] = self.languages[0]
        return Rows(ids, languages, positions, valid, sentences if self.alone else None)
